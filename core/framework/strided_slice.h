#ifndef CORE_FRAMEWORK_STRIDED_SLICE_H_
#define CORE_FRAMEWORK_STRIDED_SLICE_H_

#include <optional>
#include <vector>

#include "core/framework/attr.h"
#include "core/framework/shape.h"

namespace millrace {

inline constexpr int kMaxSliceEntries = 32;  // the bits of a mask

// What a strided slice asks for, as the op StridedSlice says it (x[1:, ..., None, -1] in Python):
// an entry each of begin, end and strides, and for each entry i the bit i of five masks.
struct StridedSliceSpec {
  using Ints = std::optional<std::vector<int64_t>>;
  Ints begin, end, strides;      // nullopt: not known yet
  int count = 0;                 // entries
  int64_t begin_mask = 0;        // begin[i] does not count: from the first element
  int64_t end_mask = 0;          // end[i] does not count: to the last
  int64_t ellipsis_mask = 0;     // all dimensions that the other entries leave; one bit at most
  int64_t new_axis_mask = 0;     // a new dimension of extent 1
  int64_t shrink_axis_mask = 0;  // element begin[i] alone, and the dimension goes

  // The masks are those of the attributes. InvalidArgument if the lengths differ, there are more
  // than 32 entries, or more than one ellipsis.
  static StatusOr<StridedSliceSpec> Create(const AttrMap& attrs, Ints begin, Ints end, Ints strides,
                                           int count);
};

// What it is for an input of some shape.
struct StridedSlice {
  struct Dim {
    int64_t begin = 0;
    int64_t stride = 1;
    int64_t size = 0;  // PartialShape::kUnknown while something is not known
  };
  std::vector<Dim> dims;  // one for each dimension of the input
  PartialShape shape;     // of the result: without dims that go, with the new ones
};

// InvalidArgument, naming the entry, for more entries than dimensions, a stride of 0, an index out
// of range, or a stride that is not positive where one element is taken.
StatusOr<StridedSlice> ResolveStridedSlice(const StridedSliceSpec& spec, const PartialShape& input);

}  // namespace millrace

#endif  // CORE_FRAMEWORK_STRIDED_SLICE_H_
