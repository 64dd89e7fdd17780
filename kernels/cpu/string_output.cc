#include "kernels/cpu/string_output.h"

#include <cstring>

#include "core/base/checked_math.h"

namespace millrace {

Status OutputStrings(KernelContext& context, int output, const Shape& shape,
                     absl::FunctionRef<absl::string_view(int64_t i)> text) {
  // As Tensor keeps them: where each ends, after a 0, and then all characters.
  const int64_t count = shape.num_elements();
  MR_ASSIGN_OR_RETURN(const Shape offsets_shape, Shape::Create({count + 1}));
  MR_ASSIGN_OR_RETURN(Tensor offsets, context.AllocateScratch(DType::kInt64, offsets_shape));
  auto* const ends = offsets.mutable_data<int64_t>();
  const auto header = static_cast<int64_t>(offsets.byte_size());
  int64_t size = header;
  ends[0] = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!CheckedAdd(size, static_cast<int64_t>(text(i).size()), &size)) {
      return ResourceExhausted("strings of shape ", shape.ToString(), " are too long together");
    }
    ends[i + 1] = size - header;
  }
  MR_ASSIGN_OR_RETURN(const Shape bytes_shape, Shape::Create({size}));
  MR_ASSIGN_OR_RETURN(Tensor bytes, context.AllocateScratch(DType::kUint8, bytes_shape));
  auto* const data = bytes.mutable_data<char>();
  std::memcpy(data, ends, header);
  for (int64_t i = 0; i < count; ++i) {
    const absl::string_view own = text(i);
    if (!own.empty()) std::memcpy(data + header + ends[i], own.data(), own.size());
  }
  Tensor strings = Tensor::Adopt(DType::kString, shape, data, static_cast<size_t>(size),
                                 [memory = std::move(bytes)] {});
  if (!strings.valid()) return Internal("strings of shape ", shape.ToString(), " went wrong");
  context.set_output(output, std::move(strings));
  return absl::OkStatus();
}

}  // namespace millrace
