#include "core/framework/tensor_proto.h"

#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"
#include "core/framework/bool_bytes.h"

namespace millrace {
namespace {

// What a tensor costs beside its elements: buffer, alignment.
constexpr int64_t kOverhead = 128;

std::string Describe(DType dtype, const Shape& shape) {
  return StrCat(Name(dtype), shape.ToString());
}

Status CheckCount(DType dtype, const Shape& shape, int64_t given) {
  if (given <= shape.num_elements()) return absl::OkStatus();
  return InvalidArgument("tensor ", Describe(dtype, shape), " holds ", shape.num_elements(),
                         " elements, but the proto has ", given, " values");
}

// Copies the values of a repeated field, and repeats the last one. Values outside of T's range
// keep their low bits, as in the public form.
template <typename T, typename Field>
Status Fill(const Field& values, Tensor& tensor) {
  MR_RETURN_IF_ERROR(CheckCount(tensor.dtype(), tensor.shape(), values.size()));
  T* data = tensor.mutable_data<T>();
  T* const end = data + tensor.num_elements();
  for (const auto value : values) *data++ = static_cast<T>(value);
  std::fill(data, end, values.empty() ? T() : data[-1]);
  return absl::OkStatus();
}

Status FillValues(const TensorProto& proto, Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat:
      return Fill<float>(proto.float_val(), tensor);
    case DType::kDouble:
      return Fill<double>(proto.double_val(), tensor);
    case DType::kHalf:
    case DType::kBfloat16:
      return Fill<uint16_t>(proto.half_val(), tensor);
    case DType::kInt8:
      return Fill<int8_t>(proto.int_val(), tensor);
    case DType::kInt16:
      return Fill<int16_t>(proto.int_val(), tensor);
    case DType::kInt32:
      return Fill<int32_t>(proto.int_val(), tensor);
    case DType::kUint8:
      return Fill<uint8_t>(proto.int_val(), tensor);
    case DType::kUint16:
      return Fill<uint16_t>(proto.int_val(), tensor);
    case DType::kInt64:
      return Fill<int64_t>(proto.int64_val(), tensor);
    case DType::kUint32:
      return Fill<uint32_t>(proto.uint32_val(), tensor);
    case DType::kUint64:
      return Fill<uint64_t>(proto.uint64_val(), tensor);
    case DType::kBool:
      return Fill<bool>(proto.bool_val(), tensor);
    case DType::kString:
    case DType::kResource:
    case DType::kInvalid:
      break;
  }
  return Unimplemented("a tensor of dtype ", Name(tensor.dtype()), " has no wire form");
}

StatusOr<Tensor> NumericFromProto(const TensorProto& proto, DType dtype, const Shape& shape,
                                  ProtoBudget& budget) {
  const std::string& content = proto.tensor_content();
  const int64_t size = shape.num_elements() * static_cast<int64_t>(SizeOf(dtype));
  if (!content.empty() && static_cast<int64_t>(content.size()) != size) {
    return InvalidArgument("tensor ", Describe(dtype, shape), " takes ", size,
                           " bytes, but the proto has ", content.size());
  }
  if (Status status = budget.Take(size + kOverhead); !status.ok()) {
    return Annotate(status, StrCat("tensor ", Describe(dtype, shape)));
  }
  MR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(HostAllocator(), dtype, shape));
  if (content.empty()) {
    MR_RETURN_IF_ERROR(FillValues(proto, tensor));
  } else {
    std::memcpy(tensor.mutable_raw_data(), content.data(), content.size());
    NormalizeBools(tensor);
  }
  return tensor;
}

// The lengths as varints, then the characters of all.
StatusOr<std::vector<std::string>> StringsOfContent(absl::string_view content, int64_t count) {
  const auto malformed = [] {
    return InvalidArgument("the tensor_content of a string tensor is malformed");
  };
  if (count > static_cast<int64_t>(content.size())) return malformed();  // a byte each at least
  std::vector<size_t> lengths(count);
  size_t at = 0;
  size_t total = 0;
  for (size_t& length : lengths) {
    int shift = 0;
    uint8_t byte = 0x80;
    for (; (byte & 0x80) != 0; shift += 7) {
      if (at == content.size() || shift > 28) return malformed();
      byte = static_cast<uint8_t>(content[at++]);
      length |= static_cast<size_t>(byte & 0x7f) << shift;
    }
    total += length;  // at most 2^35 each, 2^31 of them: no overflow
  }
  if (total != content.size() - at) return malformed();
  std::vector<std::string> strings;
  strings.reserve(lengths.size());
  for (size_t length : lengths) {
    strings.emplace_back(content.substr(at, length));
    at += length;
  }
  return strings;
}

// Takes memory for `count` strings of `each` bytes.
Status TakeProduct(int64_t count, int64_t each, const Shape& shape, ProtoBudget& budget) {
  int64_t bytes = 0;
  if (!CheckedMul(count, each, &bytes)) bytes = std::numeric_limits<int64_t>::max();
  return Annotate(budget.Take(bytes), StrCat("tensor ", Describe(DType::kString, shape)));
}

StatusOr<Tensor> StringsFromProto(const TensorProto& proto, const Shape& shape,
                                  ProtoBudget& budget) {
  const int64_t count = shape.num_elements();
  std::vector<std::string> strings;
  MR_RETURN_IF_ERROR(CheckCount(DType::kString, shape, proto.string_val_size()));
  // The offsets, and the strings that they are made from.
  constexpr auto kEach = static_cast<int64_t>(sizeof(uint64_t) + sizeof(std::string));
  MR_RETURN_IF_ERROR(TakeProduct(count, kEach, shape, budget));
  if (!proto.tensor_content().empty()) {
    MR_ASSIGN_OR_RETURN(strings, StringsOfContent(proto.tensor_content(), count));
  } else {
    strings.assign(proto.string_val().begin(), proto.string_val().end());
    const int64_t missing = count - proto.string_val_size();
    if (missing > 0 && !strings.empty()) {
      const auto length = static_cast<int64_t>(strings.back().size());
      MR_RETURN_IF_ERROR(TakeProduct(missing, 2 * length, shape, budget));
      strings.resize(count, std::string(strings.back()));
    }
  }
  Tensor tensor = Tensor::Strings(shape, strings);
  if (!tensor.valid()) {
    return ResourceExhausted("no memory for tensor ", Describe(DType::kString, shape));
  }
  return tensor;
}

}  // namespace

Status ProtoBudget::Take(int64_t bytes) {
  if (bytes > left_) {
    return ResourceExhausted(bytes, " bytes are more than the ", left_,
                             " that what is read here may still take");
  }
  left_ -= bytes;
  return absl::OkStatus();
}

StatusOr<DType> DTypeFromProto(DataType type) {
  if (IsKnownDType(type)) return static_cast<DType>(type);
  const std::string& name = DataType_Name(type);
  return Unimplemented("type ", name.empty() ? StrCat(static_cast<int>(type)) : name,
                       " is not supported");
}

DataType DTypeToProto(DType dtype) { return static_cast<DataType>(dtype); }

StatusOr<PartialShape> ShapeFromProto(const TensorShapeProto& proto) {
  if (proto.unknown_rank()) {
    if (proto.dim_size() > 0) {
      return InvalidArgument("a shape of unknown rank has ", proto.dim_size(), " dimensions");
    }
    return PartialShape();
  }
  if (proto.dim_size() > kMaxRank) {
    return InvalidArgument("rank ", proto.dim_size(), " is more than the ", kMaxRank,
                           " dimensions that are supported");
  }
  std::array<int64_t, kMaxRank> dims{};
  for (int i = 0; i < proto.dim_size(); ++i) {
    dims[i] = proto.dim(i).size();
    if (dims[i] < PartialShape::kUnknown) {
      return InvalidArgument("extent ", dims[i], " of dimension ", i, " is negative");
    }
  }
  return PartialShape::Create({dims.data(), static_cast<size_t>(proto.dim_size())});
}

void ShapeToProto(const PartialShape& shape, TensorShapeProto* proto) {
  proto->Clear();
  proto->set_unknown_rank(!shape.has_rank());
  for (int64_t dim : shape.dims()) proto->add_dim()->set_size(dim);
}

StatusOr<Tensor> TensorFromProto(const TensorProto& proto, ProtoBudget& budget) {
  MR_ASSIGN_OR_RETURN(const DType dtype, DTypeFromProto(proto.dtype()));
  MR_ASSIGN_OR_RETURN(const PartialShape partial, ShapeFromProto(proto.tensor_shape()));
  MR_ASSIGN_OR_RETURN(const Shape shape, partial.ToShape());
  if (dtype == DType::kString) return StringsFromProto(proto, shape, budget);
  if (dtype == DType::kResource) {
    return Unimplemented("a tensor of dtype resource has no value outside of its process");
  }
  return NumericFromProto(proto, dtype, shape, budget);
}

StatusOr<Tensor> TensorFromProto(const TensorProto& proto) {
  ProtoBudget budget;
  return TensorFromProto(proto, budget);
}

Status TensorToProto(const Tensor& tensor, TensorProto* proto) {
  proto->Clear();
  if (tensor.dtype() == DType::kInvalid || tensor.dtype() == DType::kResource) {
    return InvalidArgument("a tensor of dtype ", Name(tensor.dtype()), " has no wire form");
  }
  if (!tensor.IsHostMemory()) {
    return InvalidArgument("tensor ", tensor.ToString(), " lies in device memory; copy it first");
  }
  if (tensor.byte_size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return InvalidArgument("tensor ", Describe(tensor.dtype(), tensor.shape()), " takes ",
                           tensor.byte_size(), " bytes, more than a proto can hold");
  }
  proto->set_dtype(DTypeToProto(tensor.dtype()));
  ShapeToProto(tensor.shape(), proto->mutable_tensor_shape());
  if (tensor.dtype() == DType::kString) {
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      const absl::string_view text = tensor.string(i);
      proto->add_string_val(text.data(), text.size());
    }
  } else {
    // The processors that Millrace runs on are little-endian, as the wire is.
    proto->set_tensor_content(tensor.raw_data(), tensor.byte_size());
  }
  return absl::OkStatus();
}

}  // namespace millrace
