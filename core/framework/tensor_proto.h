#ifndef CORE_FRAMEWORK_TENSOR_PROTO_H_
#define CORE_FRAMEWORK_TENSOR_PROTO_H_

#include <cstdint>

#include "core/framework/tensor.h"
#include "core/framework/tensor.pb.h"
#include "core/framework/tensor_shape.pb.h"
#include "core/framework/types.pb.h"

namespace millrace {

// How much memory values read from protos may still take. A few bytes can name a large tensor
// (one value, repeated), so the sum over all that is read from one source is bounded, not the size
// of each: use one budget for a whole graph.
class ProtoBudget {
 public:
  static constexpr int64_t kDefaultBytes = int64_t{4} << 30;
  explicit ProtoBudget(int64_t bytes = kDefaultBytes) : left_(bytes) {}
  // ResourceExhausted, and nothing taken, if less than `bytes` is left.
  Status Take(int64_t bytes);

 private:
  int64_t left_;
};

// Unimplemented, naming it, for a type that this build lacks.
StatusOr<DType> DTypeFromProto(DataType type);
DataType DTypeToProto(DType dtype);

StatusOr<PartialShape> ShapeFromProto(const TensorShapeProto& proto);
void ShapeToProto(const PartialShape& shape, TensorShapeProto* proto);

// Reads tensor_content or the *_val field of the dtype, of which the last value is repeated up to
// the shape's size (no value: zeros). InvalidArgument if content and shape do not fit.
StatusOr<Tensor> TensorFromProto(const TensorProto& proto, ProtoBudget& budget);
StatusOr<Tensor> TensorFromProto(const TensorProto& proto);
// Replaces `*proto`. Strings as string_val, all else as tensor_content. InvalidArgument for
// resources and device memory.
Status TensorToProto(const Tensor& tensor, TensorProto* proto);

}  // namespace millrace

#endif  // CORE_FRAMEWORK_TENSOR_PROTO_H_
