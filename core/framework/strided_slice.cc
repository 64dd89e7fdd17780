#include "core/framework/strided_slice.h"

#include <algorithm>

namespace millrace {
namespace {

bool Has(int64_t mask, int entry) { return (mask >> entry & 1) != 0; }

std::optional<int64_t> At(const StridedSliceSpec::Ints& values, int entry) {
  return values ? std::optional((*values)[entry]) : std::nullopt;
}

// How many elements a walk from `begin` to before `end` takes.
int64_t Count(int64_t begin, int64_t end, int64_t stride) {
  const int64_t interval = end - begin;
  if (interval == 0 || (interval < 0) != (stride < 0)) return 0;
  return interval / stride + (interval % stride != 0 ? 1 : 0);
}

// `value` of a dimension of that extent, counted from its front and within its range: 0 to extent,
// or -1 to extent - 1 for walks that go backwards.
int64_t Clamp(int64_t value, int64_t extent, bool backwards) {
  const int64_t from_front = value < 0 ? value + extent : value;
  return std::clamp(from_front, int64_t{backwards ? -1 : 0}, backwards ? extent - 1 : extent);
}

// Entry `entry` as a range of a dimension of extent `extent`.
StatusOr<StridedSlice::Dim> RangeOf(const StridedSliceSpec& spec, int entry, int64_t extent) {
  StridedSlice::Dim range;
  range.size = PartialShape::kUnknown;
  const auto stride = At(spec.strides, entry);
  if (stride == 0) return InvalidArgument("strides[", entry, "] must not be 0");
  if (!stride || extent < 0) return range;
  const bool all_before = Has(spec.begin_mask, entry), all_after = Has(spec.end_mask, entry);
  const auto begin = At(spec.begin, entry), end = At(spec.end, entry);
  if ((!all_before && !begin) || (!all_after && !end)) return range;
  const bool backwards = *stride < 0;
  const int64_t first = backwards ? extent - 1 : 0, last = backwards ? -1 : extent;
  range.begin = all_before ? first : Clamp(*begin, extent, backwards);
  range.stride = *stride;
  range.size = Count(range.begin, all_after ? last : Clamp(*end, extent, backwards), *stride);
  return range;
}

// Entry `entry` as one element of a dimension.
StatusOr<StridedSlice::Dim> ElementOf(const StridedSliceSpec& spec, int entry, int64_t extent) {
  const auto stride = At(spec.strides, entry);
  if (stride && *stride <= 0) {
    return InvalidArgument("strides[", entry, "] must be positive where one element is taken, but ",
                           "is ", *stride);
  }
  StridedSlice::Dim element;
  element.size = 1;
  const auto begin = At(spec.begin, entry);
  if (!begin || extent < 0) return element;
  element.begin = *begin < 0 ? *begin + extent : *begin;
  if (element.begin < 0 || element.begin >= extent) {
    return InvalidArgument("begin[", entry, "] is ", *begin, ", which is out of range for extent ",
                           extent);
  }
  return element;
}

}  // namespace

StatusOr<StridedSliceSpec> StridedSliceSpec::Create(const AttrMap& attrs, Ints begin, Ints end,
                                                    Ints strides, int count) {
  if (count > kMaxSliceEntries) {
    return InvalidArgument("a slice of ", count, " entries; at most ", kMaxSliceEntries,
                           " are allowed");
  }
  for (const auto& [name, values] :
       {std::pair("begin", &begin), std::pair("end", &end), std::pair("strides", &strides)}) {
    if (*values && static_cast<int>((*values)->size()) != count) {
      return InvalidArgument(name, " has ", (*values)->size(), " entries, but others have ", count);
    }
  }
  StridedSliceSpec spec;
  spec.begin = std::move(begin);
  spec.end = std::move(end);
  spec.strides = std::move(strides);
  spec.count = count;
  spec.begin_mask = attrs.GetOr<int64_t>("begin_mask", 0);
  spec.end_mask = attrs.GetOr<int64_t>("end_mask", 0);
  spec.ellipsis_mask = attrs.GetOr<int64_t>("ellipsis_mask", 0);
  spec.new_axis_mask = attrs.GetOr<int64_t>("new_axis_mask", 0);
  spec.shrink_axis_mask = attrs.GetOr<int64_t>("shrink_axis_mask", 0);
  // Also where there are no entries: what a mask says must not depend on how many there are.
  if (const auto ellipses = static_cast<uint64_t>(spec.ellipsis_mask);
      (ellipses & (ellipses - 1)) != 0) {
    return InvalidArgument("a slice may have one ellipsis, but ellipsis_mask is ",
                           spec.ellipsis_mask, ", which has more than one bit");
  }
  return spec;
}

StatusOr<StridedSlice> ResolveStridedSlice(const StridedSliceSpec& spec,
                                           const PartialShape& input) {
  StridedSlice slice;
  if (!input.has_rank()) return slice;
  std::vector<int64_t> dims;  // of the result
  const auto take_all = [&](int until) {
    while (static_cast<int>(slice.dims.size()) < until) {
      const int64_t extent = input.dim(static_cast<int>(slice.dims.size()));
      slice.dims.push_back({0, 1, extent});
      dims.push_back(extent);
    }
  };
  for (int i = 0; i < spec.count; ++i) {
    const int at = static_cast<int>(slice.dims.size());
    if (Has(spec.ellipsis_mask, i)) {
      int after = 0;  // entries behind it that take a dimension
      for (int j = i + 1; j < spec.count; ++j) after += Has(spec.new_axis_mask, j) ? 0 : 1;
      take_all(std::min(input.rank(), input.rank() - after));
    } else if (Has(spec.new_axis_mask, i)) {
      dims.push_back(1);
    } else if (at == input.rank()) {
      return InvalidArgument("entry ", i, " of the slice is for dimension ", at,
                             ", but the input has shape ", input.ToString());
    } else if (Has(spec.shrink_axis_mask, i)) {
      MR_ASSIGN_OR_RETURN(const StridedSlice::Dim element, ElementOf(spec, i, input.dim(at)));
      slice.dims.push_back(element);
    } else {
      MR_ASSIGN_OR_RETURN(const StridedSlice::Dim range, RangeOf(spec, i, input.dim(at)));
      slice.dims.push_back(range);
      dims.push_back(range.size);
    }
  }
  take_all(input.rank());
  MR_ASSIGN_OR_RETURN(slice.shape, PartialShape::Create(dims));
  return slice;
}

}  // namespace millrace
