#include <algorithm>
#include <map>

#include "tests/ops/op_cases.h"

// Following indices, summing by index, and tensors as sets.
namespace millrace::testing {
namespace {

using Index = std::vector<int64_t>;

int64_t Int(double v) { return static_cast<int64_t>(v); }

// The product of the extents from dimension `from` on.
int64_t Inner(const Index& shape, size_t from) {
  int64_t n = 1;
  for (size_t i = from; i < shape.size(); ++i) n *= shape[i];
  return n;
}

std::vector<Array> SegmentSum(const std::vector<Array>& in) {
  const Array &data = in[0], &ids = in[1];
  Index shape = data.shape;
  shape.erase(shape.begin(), shape.begin() + ids.rank());
  const int64_t inner = Inner(shape, 0);
  shape.insert(shape.begin(), Int(in[2][0]));
  Array sums = Zeros(shape);
  for (int64_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) continue;
    for (int64_t k = 0; k < inner; ++k) sums[Int(ids[i]) * inner + k] += data[i * inner + k];
  }
  return {sums};
}

// For each row of `indices`: the offset of the slice that it names in a tensor of shape `whole`.
std::vector<int64_t> Offsets(const Array& indices, const Index& whole, int64_t* inner) {
  const int64_t depth = indices.shape.back();
  *inner = Inner(whole, static_cast<size_t>(depth));
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < Inner(indices.shape, 0) / std::max<int64_t>(depth, 1); ++i) {
    int64_t at = 0;
    for (int64_t k = 0; k < depth; ++k) at = at * whole[k] + Int(indices[i * depth + k]);
    offsets.push_back(at * *inner);
  }
  return offsets;
}

std::vector<Array> GatherNd(const std::vector<Array>& in) {
  int64_t inner = 0;
  const auto offsets = Offsets(in[1], in[0].shape, &inner);
  Index shape(in[1].shape.begin(), in[1].shape.end() - 1);
  shape.insert(shape.end(), in[0].shape.begin() + in[1].shape.back(), in[0].shape.end());
  Array y = Zeros(shape);
  for (size_t i = 0; i < offsets.size(); ++i) {
    for (int64_t k = 0; k < inner; ++k)
      y[static_cast<int64_t>(i) * inner + k] = in[0][offsets[i] + k];
  }
  return {y};
}

std::vector<Array> ScatterNd(const std::vector<Array>& in) {
  const Index shape(in[2].values.begin(), in[2].values.end());
  int64_t inner = 0;
  const auto offsets = Offsets(in[0], shape, &inner);
  Array y = Zeros(shape);
  for (size_t i = 0; i < offsets.size(); ++i) {
    for (int64_t k = 0; k < inner; ++k)
      y[offsets[i] + k] += in[1][static_cast<int64_t>(i) * inner + k];
  }
  return {y};
}

std::vector<Array> TrueIndices(const std::vector<Array>& in) {
  Array found{{0, in[0].rank()}, {}};
  for (int64_t i = 0; i < in[0].size(); ++i) {
    if (in[0][i] == 0) continue;
    ++found.shape[0];
    for (const int64_t k : in[0].IndexOf(i)) found.values.push_back(static_cast<double>(k));
  }
  return {found};
}

Array Vector(std::vector<double> values) {
  return {{static_cast<int64_t>(values.size())}, std::move(values)};
}

std::vector<Array> Unique(const std::vector<Array>& in) {
  std::vector<double> different, which;
  for (const double v : in[0].values) {
    const auto at = std::find(different.begin(), different.end(), v);
    which.push_back(static_cast<double>(at - different.begin()));
    if (at == different.end()) different.push_back(v);
  }
  return {Vector(different), Vector(which)};
}

std::vector<Array> ListDiff(const std::vector<Array>& in) {
  std::vector<double> out, places;
  for (int64_t i = 0; i < in[0].size(); ++i) {
    if (std::count(in[1].values.begin(), in[1].values.end(), in[0][i]) > 0) continue;
    out.push_back(in[0][i]);
    places.push_back(static_cast<double>(i));
  }
  return {Vector(out), Vector(places)};
}

std::vector<Array> TopK(const std::vector<Array>& in) {
  const Array& x = in[0];
  const int64_t k = Int(in[1][0]), n = x.shape.back();
  Index shape = x.shape;
  shape.back() = k;
  Array values = Zeros(shape), places = Zeros(shape);
  for (int64_t row = 0; n > 0 && row < x.size() / n; ++row) {
    std::vector<std::pair<double, int64_t>> order;  // largest first, then the first
    for (int64_t i = 0; i < n; ++i) order.push_back({-x[row * n + i], i});
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < k; ++i) {
      values[row * k + i] = -order[i].first;
      places[row * k + i] = static_cast<double>(order[i].second);
    }
  }
  return {values, places};
}

std::vector<Array> Stitch(const std::vector<Array>& in) {
  const size_t count = in.size() / 2;
  double largest = -1;
  for (size_t i = 0; i < count; ++i) {
    for (const double v : in[i].values) largest = std::max(largest, v);
  }
  Index shape(in[count].shape.begin() + in[0].rank(), in[count].shape.end());
  const int64_t inner = Inner(shape, 0);
  shape.insert(shape.begin(), Int(largest) + 1);
  Array merged = Zeros(shape);
  for (size_t i = 0; i < count; ++i) {
    for (int64_t n = 0; n < in[i].size(); ++n) {
      for (int64_t k = 0; k < inner; ++k) {
        merged[Int(in[i][n]) * inner + k] = in[count + i][n * inner + k];
      }
    }
  }
  return {merged};
}

std::vector<Array> Same(const std::vector<Array>& in) { return {in[0]}; }

}  // namespace

std::vector<OpCase> ScatterCases() {
  return {
      {"UnsortedSegmentSum", "", "[4,2];(2,0,2,0);=3", SegmentSum},
      {"UnsortedSegmentSum", "", "[4,2];(1,-1,1,0);=2", SegmentSum},
      {"UnsortedSegmentSum",
       "",
       "[2,2,3];((0,1),(1,1));int64=2",
       SegmentSum,
       -2,
       2,
       1e-5,
       {},
       true},
      {"UnsortedSegmentSum", "", "[3];int64(0,0,0);=1", SegmentSum},
      {"UnsortedSegmentSum", "", "[0,2];();=2", SegmentSum},
      {"UnsortedSegmentSum", "", "int32[3];(1,1,0);=2", SegmentSum, -9, 9},
      {"GatherNd", "", "[3,4];((2,1),(0,0))", GatherNd},
      {"GatherNd", "", "[3,4];((2),(2),(1))", GatherNd},
      {"GatherNd", "", "[2,3,2];(1,2)", GatherNd},
      {"GatherNd", "", "int64[3,2];((1,0),(1,1))", GatherNd, -9, 9},
      {"ScatterNd", "", "((2),(0),(2));[3,2];(4,2)", ScatterNd},
      {"ScatterNd", "", "((1,2),(0,0));[2];(2,3)", ScatterNd},
      {"ScatterNd", "", "int64((0),(1));[2,2,2];int64(3,2,2)", ScatterNd},
      {"ScatterNd", "", "((1),(1));int32[2];(2)", ScatterNd, -9, 9},
      {"Where", "", "[2,3]", TrueIndices, -2, 2, 1e-5, {{0, 1, 0, 0, -2, 3}}},
      {"Where", "", "bool[4]", TrueIndices},
      {"Where", "", "int32[2,1,2]", TrueIndices, 0, 2},
      {"Where", "", "[0]", TrueIndices},
      {"Unique", "", "[6]", Unique, -2, 2, 1e-5, {{1, 2, 1, -3, 2, 0}}},
      {"Unique", "out_idx=int64", "int32[4]", Unique, 0, 3},
      {"Unique", "", "[0]", Unique},
      {"ListDiff", "", "[5];[2]", ListDiff, -2, 2, 1e-5, {{1, 2, 3, 2, 4}, {2, 5}}},
      {"ListDiff", "out_idx=int64", "int32[4];int32[3]", ListDiff, 0, 4},
      {"ListDiff", "", "[3];[0]", ListDiff},
      {"TopKV2", "", "[2,5];=3", TopK},
      {"TopKV2", "", "[4];=4", TopK, -2, 2, 1e-5, {{1, 3, -2, 2}}},
      {"TopKV2", "sorted=false", "[2,2,3];=1", TopK},
      {"TopKV2", "", "[3,2];=0", TopK},
      {"TopKV2", "", "int32[5];=5", TopK, 0, 2},
      {"TopKV2", "index_type=int64", "int32[5];int64=2", TopK, 0, 2},
      {"DynamicStitch", "", "(0,2);(1);[2,2];[1,2]", Stitch},
      {"DynamicStitch", "", "((3,0),(1,1));=2;int32[2,2];int32[]", Stitch, -9, 9},
      {"DynamicStitch", "", "(4,0);[2]", Stitch},
      {"CheckNumerics", R"(message="x")", "[2,3]", Same},
      {"CheckNumerics", R"(message="")", "[0]", Same},
      {"Print", R"(message="x", first_n=0)", "[2];[3]", Same},
      {"Print", R"(message="x", first_n=0)", "int32[2]", Same, -9, 9},
  };
}

}  // namespace millrace::testing
