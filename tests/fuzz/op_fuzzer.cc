#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/framework/bool_bytes.h"
#include "core/graph/graph.h"
#include "python_free_api/runtime.h"
#include "tests/fuzz/require.h"

// Any op with any shapes, attributes and values is refused with a status or computes what its shape
// function says: nothing crashes, nothing is undefined, nothing takes more memory than the device
// has.
namespace millrace::testing {
namespace {

constexpr int64_t kMemory = int64_t{64} << 20;
constexpr int64_t kMostElements = 4096;  // of an input

// The choices that the input's bytes make; zeros when they have run out.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t Byte() {
    if (at_ == size_) return 0;
    return data_[at_++];
  }
  int Below(int n) { return Byte() % n; }
  bool Flag() { return Below(2) == 1; }
  // Mostly small, sometimes at the ends of the types.
  int64_t Number() {
    constexpr int64_t kEdges[] = {std::numeric_limits<int32_t>::max(),
                                  std::numeric_limits<int32_t>::min(),
                                  std::numeric_limits<int64_t>::max(),
                                  std::numeric_limits<int64_t>::min(),
                                  1000,
                                  int64_t{1} << 20,
                                  int64_t{1} << 40,
                                  255};
    const uint8_t byte = Byte();
    return byte >= 248 ? kEdges[byte - 248] : byte % 9 - 2;
  }
  double Real() {
    const uint8_t byte = Byte();
    switch (byte) {
      case 255:
        return std::numeric_limits<double>::infinity();
      case 254:
        return -std::numeric_limits<double>::infinity();
      case 253:
        return std::nan("");
      case 252:
        return -0.0;
      case 251:
        return 1e-40;
      case 250:
        return 1e30;
      default:
        return (byte - 100) / 16.0;
    }
  }
  std::string Text() {
    constexpr const char* kTexts[] = {"", "SAME", "VALID", "EXPLICIT", "NHWC", "NCHW", "x"};
    return kTexts[Below(7)];
  }
  // Often one that fits the shapes before: the same, a scalar, or a number for each dimension.
  Shape AnyShape() {
    switch (Below(5)) {
      case 0:
        return Shape();
      case 1:
        return Shape({last_.rank()});
      case 2:
        return last_;
      default:
        return last_ = NewShape();
    }
  }
  Tensor AnyTensor(DType dtype) {
    const Shape shape = AnyShape();
    if (dtype == DType::kString) {
      std::vector<std::string> strings(shape.num_elements());
      for (std::string& s : strings) s = Text();
      return Tensor::Strings(shape, strings);
    }
    Tensor tensor = Tensor::Zeros(dtype, shape);
    for (int64_t i = 0; i < shape.num_elements(); ++i) SetElement(tensor, i);
    NormalizeBools(tensor);
    return tensor;
  }

 private:
  Shape NewShape() {
    constexpr int64_t kExtents[] = {0, 1, 2, 3, 4, 5, 8};
    while (true) {
      std::vector<int64_t> dims(Below(6));
      int64_t elements = 1;
      for (int64_t& dim : dims) elements *= dim = kExtents[Below(7)];
      if (elements <= kMostElements) return *Shape::Create(dims);
    }
  }
  void SetElement(Tensor& tensor, int64_t i) {
    switch (tensor.dtype()) {
      case DType::kFloat:
        tensor.mutable_data<float>()[i] = static_cast<float>(Real());
        return;
      case DType::kDouble:
        tensor.mutable_data<double>()[i] = Real();
        return;
      case DType::kInt32:
        tensor.mutable_data<int32_t>()[i] = static_cast<int32_t>(Number());
        return;
      case DType::kInt64:
        tensor.mutable_data<int64_t>()[i] = Number();
        return;
      default: {
        char* const data = static_cast<char*>(tensor.mutable_raw_data());
        const size_t size = SizeOf(tensor.dtype());
        for (size_t k = 0; k < size; ++k) data[i * size + k] = static_cast<char>(Byte());
      }
    }
  }
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
  Shape last_;
};

AttrValue AnyAttr(const AttrDef& def, Choices& choices) {
  const auto list = [&](auto make) {
    std::vector<decltype(make())> values(choices.Below(9));
    for (auto&& value : values) value = make();
    return AttrValue(values);
  };
  const auto type = [&]() -> DType {
    constexpr DType kTypes[] = {DType::kFloat,    DType::kDouble, DType::kInt32, DType::kInt64,
                                DType::kBool,     DType::kUint8,  DType::kInt8,  DType::kHalf,
                                DType::kBfloat16, DType::kString};
    if (def.allowed_types.empty()) return kTypes[choices.Below(10)];
    return def.allowed_types[choices.Below(static_cast<int>(def.allowed_types.size()))];
  };
  if (def.kind == "type") return type();
  if (def.kind == "list(type)") return list(type);
  if (def.kind == "int") return choices.Number();
  if (def.kind == "list(int)") return list([&] { return choices.Number(); });
  if (def.kind == "float") return static_cast<float>(choices.Real());
  if (def.kind == "bool") return choices.Flag();
  if (def.kind == "shape") return PartialShape(choices.AnyShape());
  if (def.kind == "tensor") return choices.AnyTensor(type());
  if (!def.allowed_strings.empty()) {
    return def.allowed_strings[choices.Below(static_cast<int>(def.allowed_strings.size()))];
  }
  return choices.Text();
}

// A graph of one op, "y", and of what its inputs come from.
struct Program {
  Graph graph;
  StepSignature signature;
  std::vector<Tensor> feeds;
  std::vector<std::string> init;  // assignments of the variables

  StatusOr<NodeId> Add(std::string name, std::string op, AttrMap attrs, std::vector<Port> inputs) {
    NodeSpec spec;
    spec.name = std::move(name);
    spec.op = std::move(op);
    spec.attrs = std::move(attrs);
    spec.inputs = std::move(inputs);
    return graph.AddNode(std::move(spec));
  }
  // A value of that dtype: fed, with more or less known of its shape; a constant; or a variable.
  StatusOr<Port> AddInput(int number, DType dtype, Choices& choices) {
    const std::string name = StrCat("x", number);
    if (dtype == DType::kResource) {
      const Tensor value = choices.AnyTensor(choices.Flag() ? DType::kFloat : DType::kInt32);
      MR_ASSIGN_OR_RETURN(const NodeId handle, Add(name, "VarHandleOp",
                                                   {{"dtype", value.dtype()},
                                                    {"shape", PartialShape(value.shape())},
                                                    {"shared_name", name}},
                                                   {}));
      MR_ASSIGN_OR_RETURN(const NodeId constant, AddConstant(StrCat(name, "/value"), value));
      MR_RETURN_IF_ERROR(
          Add(StrCat(name, "/init"), "AssignVariableOp", {}, {{handle, 0}, {constant, 0}})
              .status());
      init.push_back(StrCat(name, "/init"));
      return Port{handle, 0};
    }
    const Tensor value = choices.AnyTensor(dtype);
    const int known = choices.Below(4);
    if (known == 3) {
      MR_ASSIGN_OR_RETURN(const NodeId constant, AddConstant(name, value));
      return Port{constant, 0};
    }
    PartialShape shape;
    if (known == 1) shape = value.shape();
    if (known == 2) {
      const std::vector<int64_t> dims(value.shape().rank(), PartialShape::kUnknown);
      shape = *PartialShape::Create(dims);
    }
    MR_ASSIGN_OR_RETURN(const NodeId fed,
                        Add(name, "Placeholder", {{"dtype", dtype}, {"shape", shape}}, {}));
    signature.feeds.push_back(name);
    feeds.push_back(value);
    return Port{fed, 0};
  }
  StatusOr<NodeId> AddConstant(const std::string& name, const Tensor& value) {
    return Add(name, "Const", {{"dtype", value.dtype()}, {"value", value}}, {});
  }
};

Status RunProgram(Runtime& runtime, const Program& program) {
  SessionOptions options;
  options.disabled_passes = {"constant_folding"};  // the kernels shall see it all
  MR_ASSIGN_OR_RETURN(const auto session, runtime.OpenSession(program.graph, options));
  if (!program.init.empty()) {
    MR_ASSIGN_OR_RETURN(const auto init, session->Prepare({{}, {}, program.init}));
    MR_RETURN_IF_ERROR(session->Run(*init, {}).status());
  }
  MR_ASSIGN_OR_RETURN(const auto step, session->Prepare(program.signature));
  MR_ASSIGN_OR_RETURN(const RunResult result, session->Run(*step, program.feeds));
  const Node& y = *program.graph.Find("y");
  for (size_t i = 0; i < result.fetches.size(); ++i) {
    const Tensor& value = result.fetches[i];
    const int output = static_cast<int>(i);
    Require(value.dtype() == y.output_dtype(output), "an output has the dtype of its signature");
    Require(y.output_shape(output).IsCompatibleWith(value.shape()),
            "an output has the shape that was inferred");
  }
  return session->Reset({});
}

void RunOne(Choices choices) {
  static Runtime& runtime = *[] {
    RuntimeOptions options;
    options.threads = 1;
    options.memory_limit = kMemory;
    return Runtime::Create(options)->release();
  }();
  static const auto& ops = *new auto(runtime.ops()->All());
  const int high = choices.Byte();
  const OpDef& op = *ops[(high << 8 | choices.Byte()) % ops.size()];
  if (op.Has(Trait::kSend) || op.Has(Trait::kRecv) || op.Has(Trait::kPlaceholder)) return;
  Program program{Graph(runtime.ops()), {}, {}, {}};
  AttrMap attrs;
  for (const AttrDef& def : op.attrs()) {
    if (op.name() == "Print" && def.name == "first_n") {
      attrs.Set("first_n", int64_t{0});
    } else if (!def.default_value || choices.Flag()) {
      attrs.Set(def.name, AnyAttr(def, choices));
    }
  }
  const StatusOr<NodeSignature> signature = ResolveSignature(op, attrs);
  // Numbers of inputs beyond this are nothing new.
  if (!signature.ok() || signature->inputs.size() > 20 || signature->outputs.size() > 100) return;
  std::vector<Port> inputs;
  for (size_t i = 0; i < signature->inputs.size(); ++i) {
    const StatusOr<Port> port =
        program.AddInput(static_cast<int>(i), signature->inputs[i], choices);
    if (!port.ok()) return;
    inputs.push_back(*port);
  }
  const StatusOr<NodeId> y = program.Add("y", op.name(), std::move(attrs), std::move(inputs));
  if (!y.ok()) return;
  for (size_t i = 0; i < signature->outputs.size(); ++i) {
    if (signature->outputs[i] != DType::kResource) {
      program.signature.fetches.push_back(StrCat("y:", i));
    }
  }
  if (program.signature.fetches.empty()) program.signature.targets = {"y"};
  const Status status = RunProgram(runtime, program);
  Require(!absl::IsInternal(status), status.message());
}

}  // namespace
}  // namespace millrace::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::testing::RunOne(millrace::testing::Choices(data, size));
  return 0;
}
