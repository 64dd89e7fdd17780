#ifndef CORE_FRAMEWORK_ATTR_PROTO_H_
#define CORE_FRAMEWORK_ATTR_PROTO_H_

#include <string>

#include "core/framework/attr.h"
#include "core/framework/attr_value.pb.h"
#include "core/framework/tensor_proto.h"

namespace millrace {

using AttrProtoMap = google::protobuf::Map<std::string, AttrValueProto>;

// A list without elements does not say of which kind it is and is read as a list(int);
// ResolveSignature gives it the declared kind. A placeholder has no value: InvalidArgument, so
// put the function's attributes in their place first.
StatusOr<AttrValue> AttrFromProto(const AttrValueProto& proto, ProtoBudget& budget);
StatusOr<AttrValue> AttrFromProto(const AttrValueProto& proto);
// Replaces `*proto`. InvalidArgument for tensors that have no wire form.
Status AttrToProto(const AttrValue& value, AttrValueProto* proto);

// Errors name the attribute. Annotations ('_...') whose value this build cannot hold are left out.
StatusOr<AttrMap> AttrsFromProto(const AttrProtoMap& protos, ProtoBudget& budget);
StatusOr<AttrMap> AttrsFromProto(const AttrProtoMap& protos);
// Replaces `*protos`.
Status AttrsToProto(const AttrMap& attrs, AttrProtoMap* protos);

}  // namespace millrace

#endif  // CORE_FRAMEWORK_ATTR_PROTO_H_
