#include "tests/ops/op_cases.h"

namespace millrace::testing {
namespace {

using Index = std::vector<int64_t>;

int64_t Int(double v) { return static_cast<int64_t>(v); }

std::vector<Array> Transpose(const std::vector<Array>& in) {
  const Array &x = in[0], &perm = in[1];
  Index shape;
  for (double p : perm.values) shape.push_back(x.shape[Int(p)]);
  return {Generate(shape, [&](const Index& index) {
    Index from(index.size());
    for (size_t i = 0; i < index.size(); ++i) from[Int(perm[i])] = index[i];
    return x[x.At(from)];
  })};
}

std::vector<Array> Invert(const std::vector<Array>& in) {
  Array inverse = in[0];
  for (int64_t i = 0; i < in[0].size(); ++i) inverse[Int(in[0][i])] = static_cast<double>(i);
  return {inverse};
}

std::vector<Array> Concat(const std::vector<Array>& in) {
  const size_t count = in.size() - 1;
  const int axis = static_cast<int>(in[count][0] < 0 ? in[count][0] + in[0].rank() : in[count][0]);
  Index shape = in[0].shape;
  for (size_t i = 1; i < count; ++i) shape[axis] += in[i].shape[axis];
  return {Generate(shape, [&](Index index) {
    size_t i = 0;
    while (index[axis] >= in[i].shape[axis]) index[axis] -= in[i++].shape[axis];
    return in[i][in[i].At(index)];
  })};
}

std::vector<Array> Slice(const std::vector<Array>& in) {
  const Array& x = in[0];
  Index shape;
  for (int i = 0; i < x.rank(); ++i) {
    shape.push_back(in[2][i] == -1 ? x.shape[i] - Int(in[1][i]) : Int(in[2][i]));
  }
  return {Generate(shape, [&](Index index) {
    for (int i = 0; i < x.rank(); ++i) index[i] += Int(in[1][i]);
    return x[x.At(index)];
  })};
}

std::vector<Array> Pad(const std::vector<Array>& in) {
  const Array &x = in[0], &paddings = in[1];
  Index shape = x.shape;
  for (int i = 0; i < x.rank(); ++i) shape[i] += Int(paddings[2 * i] + paddings[2 * i + 1]);
  return {Generate(shape, [&](Index index) {
    for (int i = 0; i < x.rank(); ++i) {
      index[i] -= Int(paddings[2 * i]);
      if (index[i] < 0 || index[i] >= x.shape[i]) return 0.0;
    }
    return x[x.At(index)];
  })};
}

std::vector<Array> Tile(const std::vector<Array>& in) {
  const Array& x = in[0];
  Index shape = x.shape;
  for (int i = 0; i < x.rank(); ++i) shape[i] *= Int(in[1][i]);
  return {Generate(shape, [&](Index index) {
    for (int i = 0; i < x.rank(); ++i) index[i] %= x.shape[i];
    return x[x.At(index)];
  })};
}

std::vector<Array> BroadcastTo(const std::vector<Array>& in) {
  const Index shape(in[1].values.begin(), in[1].values.end());
  return {Generate(shape, [&](const Index& index) { return Broadcast(in[0], index); })};
}

}  // namespace

std::vector<OpCase> MovementCases() {
  return {
      {"Transpose", "", "[2,3];(1,0)", Transpose},
      {"Transpose", "", "[2,3,4];(2,0,1)", Transpose},
      {"Transpose", "", "[2,3,4];int64(0,2,1)", Transpose},
      {"Transpose", "", "[0,3];(1,0)", Transpose},
      {"Transpose", "", "[];()", Transpose},
      {"Transpose", "", "int32[2,3];(1,0)", Transpose, -9, 9},
      {"InvertPermutation", "", "(2,0,1,3)", Invert},
      {"InvertPermutation", "", "int64()", Invert},
      {"ConcatV2", "", "[2,3];[2,1];=1", Concat, -2, 2, 1e-5, {}, true},
      {"ConcatV2", "", "[1,3];[2,3];[0,3];[3,3];=0", Concat, -2, 2, 1e-5, {}, true},
      {"ConcatV2", "", "[2,2,3];[2,1,3];=-2", Concat, -2, 2, 1e-5, {}, true},
      {"ConcatV2", "", "int64[2];int64[3];=0", Concat, -9, 9},
      {"Slice", "", "[4,5];(1,2);(2,3)", Slice},
      {"Slice", "", "[4,5];(1,0);(-1,5)", Slice},
      {"Slice", "", "[2,3,4];int64(0,1,3);int64(2,2,1)", Slice},
      {"Slice", "", "[4,5];(4,0);(0,5)", Slice},
      {"Slice", "", "bool[4];(1);(2)", Slice},
      {"Pad", "", "[2,3];((1,0),(2,1))", Pad},
      {"Pad", "", "[2,1,2];((0,0),(1,1),(0,2))", Pad},
      {"Pad", "", "[0,2];((1,1),(0,0))", Pad},
      {"Pad", "", "int32[2];((1,2))", Pad, -9, 9},
      {"Tile", "", "[2,3];(2,1)", Tile},
      {"Tile", "", "[2,1,2];(1,3,2)", Tile},
      {"Tile", "", "[2,3];(0,2)", Tile},
      {"Tile", "", "[1];int64(4)", Tile},
      {"BroadcastTo", "", "[3];(2,3)", BroadcastTo},
      {"BroadcastTo", "", "[2,1,3];(2,2,2,3)", BroadcastTo},
      {"BroadcastTo", "", "[];(2,2)", BroadcastTo},
      {"BroadcastTo", "", "[1,3];(0,3)", BroadcastTo},
      {"BroadcastTo", "", "[2,2];int64(2,2)", BroadcastTo},
  };
}

}  // namespace millrace::testing
