#include <cstddef>
#include <cstdint>
#include <string>

#include "core/framework/attr_proto.h"
#include "core/framework/node_def.pb.h"
#include "core/graph/attr_text.h"
#include "google/protobuf/stubs/logging.h"
#include "tests/fuzz/require.h"

namespace millrace::testing {
namespace {

constexpr int64_t kBudget = 1 << 20;

// All of them, each in the form that tells its kind.
std::string ToText(const AttrMap& attrs) {
  std::string text;
  for (const auto& [name, value] : attrs) {
    absl::StrAppend(&text, AttrNameToText(name), "=", AttrToText(value, /*with_kind=*/true), "\n");
  }
  return text;
}

void CheckText(const std::string& name, const AttrValue& value) {
  const std::string text = StrCat(AttrNameToText(name), "=", AttrToText(value, true));
  TextCursor cursor(text, 1);
  const StatusOr<std::string> read_name = AttrNameFromText(cursor);
  Require(read_name.ok() && *read_name == name && cursor.Take("="), "a name's text reads back");
  const StatusOr<AttrValue> read = AttrFromText(cursor, "");
  Require(read.ok() && cursor.AtEnd(), "a value's text reads back");
  Require(AttrToText(*read, true) == AttrToText(value, true), "as it was");
}

// The attributes of a node are read, within their budget, or refused; what is read goes out and in
// as it was, as proto and as text.
void RunOne(absl::string_view bytes) {
  const google::protobuf::LogSilencer silencer;
  NodeDef def;
  if (!def.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  ProtoBudget budget(kBudget);
  const StatusOr<AttrMap> attrs = AttrsFromProto(def.attr(), budget);
  if (!attrs.ok()) return;
  NodeDef out;
  Require(AttrsToProto(*attrs, out.mutable_attr()).ok(), "what was read can be written");
  const StatusOr<AttrMap> again = AttrsFromProto(out.attr());
  Require(again.ok() && ToText(*again) == ToText(*attrs), "attributes go out and in");
  for (const auto& [name, value] : *attrs) CheckText(name, value);
}

}  // namespace
}  // namespace millrace::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::testing::RunOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
