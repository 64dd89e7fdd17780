#include <cstddef>
#include <cstdint>

#include "core/framework/tensor_proto.h"
#include "google/protobuf/stubs/logging.h"
#include "tests/fuzz/require.h"

namespace millrace::testing {
namespace {

constexpr int64_t kBudget = 1 << 20;

// Any proto is read, within its budget, or refused; what is read goes out and in as it was, and so
// does its shape.
void RunOne(absl::string_view bytes) {
  const google::protobuf::LogSilencer silencer;
  TensorProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  if (const StatusOr<PartialShape> shape = ShapeFromProto(proto.tensor_shape()); shape.ok()) {
    TensorShapeProto out;
    ShapeToProto(*shape, &out);
    const StatusOr<PartialShape> again = ShapeFromProto(out);
    Require(again.ok() && *again == *shape, "a shape goes out and in");
    const StatusOr<PartialShape> parsed = PartialShape::Parse(shape->ToString());
    Require(parsed.ok() && *parsed == *shape, "a shape's text reads back");
  }
  ProtoBudget budget(kBudget);
  const StatusOr<Tensor> tensor = TensorFromProto(proto, budget);
  if (!tensor.ok()) return;
  Require(tensor->valid(), "what is read is a tensor");
  TensorProto out;
  Require(TensorToProto(*tensor, &out).ok(), "what was read can be written");
  const StatusOr<Tensor> again = TensorFromProto(out);
  Require(again.ok() && SameBits(*again, *tensor), "a tensor goes out and in");
}

}  // namespace
}  // namespace millrace::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::testing::RunOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
