#ifndef CORE_FRAMEWORK_SHAPE_H_
#define CORE_FRAMEWORK_SHAPE_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/types/span.h"
#include "core/base/status.h"

namespace millrace {

// More dimensions than this are refused by name.
inline constexpr int kMaxRank = 8;

// The extents of a tensor; all known, none negative, their product (and 16 times it, so that byte
// sizes are safe) fits an int64. No allocation. The only way from outside numbers is Create.
class Shape {
 public:
  Shape() = default;  // rank 0: a scalar
  // REQUIRES: valid extents written in the program; use Create for numbers from outside.
  Shape(std::initializer_list<int64_t> dims);
  static StatusOr<Shape> Create(absl::Span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t dim(int i) const { return dims_[i]; }
  int64_t operator[](int i) const { return dims_[i]; }
  absl::Span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  int64_t num_elements() const { return num_elements_; }
  std::string ToString() const;  // "[2,3]"; "[]" for a scalar

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims() == b.dims(); }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  int8_t rank_ = 0;
  int64_t num_elements_ = 1;
  std::array<int64_t, kMaxRank> dims_{};
};

// A shape of which the rank, or some extents, may be unknown.
class PartialShape {
 public:
  static constexpr int64_t kUnknown = -1;

  PartialShape() = default;                           // unknown rank: "?"
  PartialShape(const Shape& shape);                   // NOLINT: a shape is a partial shape
  PartialShape(std::initializer_list<int64_t> dims);  // kUnknown for an unknown extent
  // Any negative extent counts as unknown.
  static StatusOr<PartialShape> Create(absl::Span<const int64_t> dims);

  bool has_rank() const { return rank_ >= 0; }
  int rank() const { return rank_; }  // -1 if unknown
  int64_t dim(int i) const { return dims_[i]; }
  int64_t operator[](int i) const { return dims_[i]; }
  bool dim_known(int i) const { return dims_[i] >= 0; }
  absl::Span<const int64_t> dims() const {
    return {dims_.data(), static_cast<size_t>(rank_ < 0 ? 0 : rank_)};
  }
  bool IsFull() const;
  // InvalidArgument unless full.
  StatusOr<Shape> ToShape() const;
  // Whether some full shape fits both.
  bool IsCompatibleWith(const PartialShape& other) const;
  // What both say; InvalidArgument if they contradict each other.
  StatusOr<PartialShape> MergeWith(const PartialShape& other) const;
  std::string ToString() const;  // "[?,3]", "?" for an unknown rank
  static StatusOr<PartialShape> Parse(absl::string_view text);

  friend bool operator==(const PartialShape& a, const PartialShape& b) {
    return a.rank_ == b.rank_ && a.dims() == b.dims();
  }
  friend bool operator!=(const PartialShape& a, const PartialShape& b) { return !(a == b); }

 private:
  int8_t rank_ = -1;
  std::array<int64_t, kMaxRank> dims_{};
};

// NumPy's rule; an unknown extent against 1 or unknown stays unknown. Names both shapes on error.
StatusOr<PartialShape> BroadcastShapes(const PartialShape& a, const PartialShape& b);

}  // namespace millrace

#endif  // CORE_FRAMEWORK_SHAPE_H_
