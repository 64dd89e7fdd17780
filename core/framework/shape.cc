#include "core/framework/shape.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/checked_math.h"
#include "core/base/logging.h"

namespace millrace {
namespace {

// Room for the largest element and then some: byte sizes and sums of two of them stay in int64.
constexpr int64_t kSafetyFactor = 16;

std::string DimsToString(absl::Span<const int64_t> dims) {
  return StrCat("[",
                absl::StrJoin(dims, ",",
                              [](std::string* out, int64_t dim) {
                                absl::StrAppend(out, dim < 0 ? "?" : StrCat(dim));
                              }),
                "]");
}

Status CheckRank(absl::Span<const int64_t> dims) {
  if (dims.size() <= static_cast<size_t>(kMaxRank)) return absl::OkStatus();
  return InvalidArgument("rank ", dims.size(), " is more than the ", kMaxRank,
                         " dimensions that are supported");
}

// Zero extents are left out, so that the product of any of the others (a stride, the size of a row)
// is known to fit as well.
Status CheckProduct(absl::Span<const int64_t> dims) {
  int64_t product = kSafetyFactor;
  for (int64_t dim : dims) {
    if (dim > 0 && !CheckedMul(product, dim, &product)) {
      return InvalidArgument("shape ", DimsToString(dims), " has too many elements");
    }
  }
  return absl::OkStatus();
}

}  // namespace

Shape::Shape(std::initializer_list<int64_t> dims) {
  StatusOr<Shape> shape = Create(absl::MakeConstSpan(dims.begin(), dims.size()));
  if (shape.ok()) {
    *this = *shape;
    return;
  }
  // A mistake in the program; the empty vector is what can do least harm.
  LogError("Shape{...}: ", shape.status().message(), "; taken as [0]");
  rank_ = 1;
  num_elements_ = 0;
}

StatusOr<Shape> Shape::Create(absl::Span<const int64_t> dims) {
  MR_RETURN_IF_ERROR(CheckRank(dims));
  Shape shape;
  shape.rank_ = static_cast<int8_t>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) {
      return InvalidArgument("extent ", dims[i], " of dimension ", i, " is negative");
    }
    shape.dims_[i] = dims[i];
  }
  MR_RETURN_IF_ERROR(CheckProduct(dims));
  for (int64_t dim : dims) shape.num_elements_ *= dim;
  return shape;
}

std::string Shape::ToString() const { return DimsToString(dims()); }

PartialShape::PartialShape(const Shape& shape) : rank_(static_cast<int8_t>(shape.rank())) {
  std::copy(shape.dims().begin(), shape.dims().end(), dims_.begin());
}

PartialShape::PartialShape(std::initializer_list<int64_t> dims) {
  if (dims.size() > static_cast<size_t>(kMaxRank)) {
    // A mistake in the program; unknown rank claims nothing.
    LogError("PartialShape{...} of rank ", dims.size(), " is taken as of unknown rank");
    return;
  }
  rank_ = static_cast<int8_t>(dims.size());
  std::transform(dims.begin(), dims.end(), dims_.begin(),
                 [](int64_t dim) { return std::max(dim, kUnknown); });
}

StatusOr<PartialShape> PartialShape::Create(absl::Span<const int64_t> dims) {
  MR_RETURN_IF_ERROR(CheckRank(dims));
  MR_RETURN_IF_ERROR(CheckProduct(dims));
  PartialShape shape;
  shape.rank_ = static_cast<int8_t>(dims.size());
  std::transform(dims.begin(), dims.end(), shape.dims_.begin(),
                 [](int64_t dim) { return std::max(dim, kUnknown); });
  return shape;
}

bool PartialShape::IsFull() const {
  return has_rank() && std::none_of(dims().begin(), dims().end(), [](int64_t d) { return d < 0; });
}

StatusOr<Shape> PartialShape::ToShape() const {
  if (!IsFull()) return InvalidArgument("shape ", ToString(), " is not fully known");
  return Shape::Create(dims());
}

bool PartialShape::IsCompatibleWith(const PartialShape& other) const {
  if (!has_rank() || !other.has_rank()) return true;
  if (rank_ != other.rank_) return false;
  for (int i = 0; i < rank_; ++i) {
    if (dim_known(i) && other.dim_known(i) && dims_[i] != other.dims_[i]) return false;
  }
  return true;
}

StatusOr<PartialShape> PartialShape::MergeWith(const PartialShape& other) const {
  if (!IsCompatibleWith(other)) {
    return InvalidArgument("shapes ", ToString(), " and ", other.ToString(),
                           " contradict each other");
  }
  if (!has_rank()) return other;
  if (!other.has_rank()) return *this;
  std::array<int64_t, kMaxRank> merged{};
  for (int i = 0; i < rank_; ++i) merged[i] = dim_known(i) ? dims_[i] : other.dims_[i];
  return Create(absl::MakeConstSpan(merged.data(), rank_));
}

std::string PartialShape::ToString() const { return has_rank() ? DimsToString(dims()) : "?"; }

StatusOr<PartialShape> PartialShape::Parse(absl::string_view text) {
  absl::string_view inner = absl::StripAsciiWhitespace(text);
  if (inner == "?") return PartialShape();
  const auto malformed = [&] {
    return InvalidArgument("'", text, "' is not a shape; write [2,?], [] or ?");
  };
  if (!absl::ConsumePrefix(&inner, "[") || !absl::ConsumeSuffix(&inner, "]")) return malformed();
  inner = absl::StripAsciiWhitespace(inner);
  std::vector<int64_t> dims;
  if (!inner.empty()) {
    for (absl::string_view part : absl::StrSplit(inner, ',')) {
      part = absl::StripAsciiWhitespace(part);
      int64_t dim = kUnknown;
      if (part != "?" && (!absl::SimpleAtoi(part, &dim) || dim < kUnknown)) return malformed();
      dims.push_back(dim);
    }
  }
  return Create(dims);
}

StatusOr<PartialShape> BroadcastShapes(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank()) return PartialShape();
  const int rank = std::max(a.rank(), b.rank());
  std::array<int64_t, kMaxRank> dims{};
  for (int i = 0; i < rank; ++i) {
    // Aligned at the last dimension; a missing one counts as 1.
    const int ia = i - (rank - a.rank());
    const int ib = i - (rank - b.rank());
    const int64_t da = ia < 0 ? 1 : a.dim(ia);
    const int64_t db = ib < 0 ? 1 : b.dim(ib);
    if (da == db || db == 1) {
      dims[i] = da;
    } else if (da == 1 || da < 0) {
      dims[i] = db;
    } else if (db < 0) {
      dims[i] = da;
    } else {
      return InvalidArgument("shapes ", a.ToString(), " and ", b.ToString(),
                             " do not broadcast: ", da, " against ", db);
    }
  }
  return PartialShape::Create(absl::MakeConstSpan(dims.data(), rank));
}

}  // namespace millrace
