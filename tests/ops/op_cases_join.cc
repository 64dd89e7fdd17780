#include "tests/ops/op_cases.h"

// Joining, splitting, and strided slices.
namespace millrace::testing {
namespace {

using Index = std::vector<int64_t>;

int64_t Int(double v) { return static_cast<int64_t>(v); }

Reference Pack(int axis) {
  return [axis](const std::vector<Array>& in) -> std::vector<Array> {
    Index shape = in[0].shape;
    shape.insert(shape.begin() + axis, static_cast<int64_t>(in.size()));
    return {Generate(shape, [&](Index index) {
      const Array& from = in[index[axis]];
      index.erase(index.begin() + axis);
      return from[from.At(index)];
    })};
  };
}

// The parts [begin, begin + size) of x along an axis.
std::vector<Array> Parts(const Array& x, int axis, const Index& sizes) {
  std::vector<Array> parts;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    Index shape = x.shape;
    shape[axis] = size;
    parts.push_back(Generate(shape, [&](Index index) {
      index[axis] += begin;
      return x[x.At(index)];
    }));
    begin += size;
  }
  return parts;
}

Reference Unpack(int axis) {
  return [axis](const std::vector<Array>& in) {
    std::vector<Array> parts = Parts(in[0], axis, Index(in[0].shape[axis], 1));
    for (Array& part : parts) part.shape.erase(part.shape.begin() + axis);
    return parts;
  };
}

Reference Split(int axis, int count) {
  return [axis, count](const std::vector<Array>& in) {
    return Parts(in[1], axis, Index(count, in[1].shape[axis] / count));
  };
}

Reference SplitV(int axis, Index sizes) {
  return [axis, sizes](const std::vector<Array>& in) { return Parts(in[0], axis, sizes); };
}

// What a slice takes, written out: for each dimension of the input the indices, and the result's
// shape.
struct Taken {
  std::vector<Index> indices;
  Index shape;
};

Reference Slice(Taken taken) {
  return [taken](const std::vector<Array>& in) -> std::vector<Array> {
    Index inner;
    for (const Index& indices : taken.indices)
      inner.push_back(static_cast<int64_t>(indices.size()));
    Array y = Generate(inner, [&](Index index) {
      for (size_t i = 0; i < index.size(); ++i) index[i] = taken.indices[i][index[i]];
      return in[0][in[0].At(index)];
    });
    y.shape = taken.shape;
    return {y};
  };
}

// The reverse: dy is the last input, the first one the shape.
Reference SliceGrad(Taken taken) {
  return [taken](const std::vector<Array>& in) -> std::vector<Array> {
    Array dx = Zeros(Index(in[0].values.begin(), in[0].values.end()));
    Array dy = in[4];
    dy.shape.clear();
    for (const Index& indices : taken.indices) {
      dy.shape.push_back(static_cast<int64_t>(indices.size()));
    }
    for (int64_t i = 0; i < dy.size(); ++i) {
      Index index = dy.IndexOf(i);
      for (size_t k = 0; k < index.size(); ++k) index[k] = taken.indices[k][index[k]];
      dx[dx.At(index)] = dy[i];
    }
    return {dx};
  };
}

std::vector<Array> Shapes(const std::vector<Array>& in) {
  std::vector<Array> shapes;
  for (const Array& x : in) {
    shapes.push_back({{x.rank()}, {x.shape.begin(), x.shape.end()}});
  }
  return shapes;
}

std::vector<Array> Offsets(const std::vector<Array>& in) {
  std::vector<Array> offsets;
  const auto rank = static_cast<int64_t>(in[1].size());
  const int64_t axis = Int(in[0][0]) < 0 ? Int(in[0][0]) + rank : Int(in[0][0]);
  double offset = 0;
  for (size_t i = 1; i < in.size(); ++i) {
    offsets.push_back(Zeros({rank}));
    offsets.back()[axis] = offset;
    offset += in[i][axis];
  }
  return offsets;
}

std::vector<Array> PadV2(const std::vector<Array>& in) {
  const Array &x = in[0], &paddings = in[1];
  Index shape = x.shape;
  for (int i = 0; i < x.rank(); ++i) shape[i] += Int(paddings[2 * i] + paddings[2 * i + 1]);
  return {Generate(shape, [&](Index index) {
    for (int i = 0; i < x.rank(); ++i) {
      index[i] -= Int(paddings[2 * i]);
      if (index[i] < 0 || index[i] >= x.shape[i]) return in[2][0];
    }
    return x[x.At(index)];
  })};
}

}  // namespace

std::vector<OpCase> JoinCases() {
  const Taken reversed = {{{3, 1}, {0, 1, 2}}, {2, 3}};
  const Taken last = {{{0, 1}, {2}}, {2}};
  const Taken with_new = {{{1}, {0, 1, 2}, {0, 2}}, {1, 3, 1, 2}};
  return {
      {"Pack", "", "[2,3];[2,3];[2,3]", Pack(0)},
      {"Pack", "axis=1", "[2,3];[2,3]", Pack(1)},
      {"Pack", "axis=-1", "[2,2,3];[2,2,3]", Pack(3)},
      {"Pack", "", "[];[]", Pack(0)},
      {"Pack", "", "[2]", Pack(0)},
      {"Pack", "axis=1", "[0,2];[0,2]", Pack(1)},
      {"Pack", "", "bool[3];bool[3]", Pack(0)},
      {"Unpack", "num=2", "[2,3]", Unpack(0)},
      {"Unpack", "num=3, axis=1", "[2,3]", Unpack(1)},
      {"Unpack", "num=2, axis=-2", "[3,2,1]", Unpack(1)},
      {"Unpack", "num=1", "[1]", Unpack(0)},
      {"Unpack", "num=2, axis=1", "[0,2]", Unpack(1)},
      {"Split", "num_split=2", "=0;[4,3]", Split(0, 2)},
      {"Split", "num_split=3", "=-1;[2,3]", Split(1, 3)},
      {"Split", "num_split=1", "=0;[2]", Split(0, 1)},
      {"Split", "num_split=2", "=1;[2,0,2]", Split(1, 2)},
      {"Split", "num_split=2", "=0;int32[4]", Split(0, 2), -9, 9},
      {"SplitV", "num_split=3", "[6,2];(1,3,2);=0", SplitV(0, {1, 3, 2})},
      {"SplitV", "num_split=2", "[2,5];int64(-1,2);=-1", SplitV(1, {3, 2})},
      {"SplitV", "num_split=3", "[3];(0,3,-1);=0", SplitV(0, {0, 3, 0})},
      {"SplitV", "num_split=1", "[2,3];(3);=1", SplitV(1, {3})},
      {"StridedSlice", "", "[4,3];(3,0);(0,3);(-2,1)", Slice(reversed)},
      {"StridedSlice", "begin_mask=3, end_mask=3", "[4,3];(0,0);(0,0);(-2,1)",
       Slice({{{3, 1}, {0, 1, 2}}, {2, 3}})},
      {"StridedSlice", "ellipsis_mask=1, shrink_axis_mask=2", "[2,3];(0,-1);(0,0);(1,1)",
       Slice(last)},
      {"StridedSlice", "new_axis_mask=4, ellipsis_mask=2, end_mask=8",
       "[2,3,3];int64(1,0,0,0);int64(2,0,0,0);int64(1,1,1,2)", Slice(with_new)},
      {"StridedSlice", "", "[5];(-100);(100);(2)", Slice({{{0, 2, 4}}, {3}})},
      {"StridedSlice", "", "[5];(3);(1);(1)", Slice({{{}}, {0}})},
      {"StridedSlice", "", "[2,3];();();()", Slice({{{0, 1}, {0, 1, 2}}, {2, 3}})},
      {"StridedSlice", "shrink_axis_mask=1", "[3];(1);(2);(1)", Slice({{{1}}, {}})},
      {"StridedSlice", "begin_mask=1, end_mask=1", "bool[3];(0);(0);(-1)",
       Slice({{{2, 1, 0}}, {3}})},
      {"StridedSlice", "end_mask=1", "[0,2];(0);(0);(1)", Slice({{{}, {0, 1}}, {0, 2}})},
      {"StridedSliceGrad", "", "(4,3);(3,0);(0,3);(-2,1);[2,3]", SliceGrad(reversed)},
      {"StridedSliceGrad", "ellipsis_mask=1, shrink_axis_mask=2", "(2,3);(0,-1);(0,0);(1,1);[2]",
       SliceGrad(last)},
      {"StridedSliceGrad", "new_axis_mask=4, ellipsis_mask=2, end_mask=8",
       "int64(2,3,3);int64(1,0,0,0);int64(2,0,0,0);int64(1,1,1,2);[1,3,1,2]", SliceGrad(with_new)},
      {"StridedSliceGrad", "", "(5);(3);(1);(1);[0]", SliceGrad({{{}}, {0}})},
      {"ShapeN", "", "[2,3];[];[0,1]", Shapes},
      {"ShapeN", "out_type=int64", "[4]", Shapes},
      {"ConcatOffset", "", "=1;(2,3);(2,1);(2,5)", Offsets},
      {"ConcatOffset", "", "=-2;int64(2,3);int64(4,3)", Offsets},
      {"PadV2", "", "[2,3];((1,0),(2,1));[]", PadV2},
      {"PadV2", "", "[0,2];((1,1),(0,0));[]", PadV2},
      {"PadV2", "", "[2];int64((0,0));[]", PadV2},
      {"PadV2", "", "int32[1,2,1];((0,1),(1,0),(1,1));int32[]", PadV2, -9, 9},
      {"PlaceholderWithDefault", "shape=[2,3]", "[2,3]",
       [](const std::vector<Array>& in) { return in; }},
      {"PlaceholderWithDefault", "shape=?", "[0]", [](const std::vector<Array>& in) { return in; }},
  };
}

}  // namespace millrace::testing
