#include <algorithm>
#include <cmath>

#include "tests/ops/op_cases.h"

namespace millrace::testing {
namespace {

std::vector<Array> First(const std::vector<Array>& in) { return {in[0]}; }

Array Vector(const std::vector<double>& values) {
  return {{static_cast<int64_t>(values.size())}, values};
}

std::vector<Array> ShapeOf(const std::vector<Array>& in) {
  return {Vector({in[0].shape.begin(), in[0].shape.end()})};
}

std::vector<Array> Fill(const std::vector<Array>& in) {
  const std::vector<int64_t> shape(in[0].values.begin(), in[0].values.end());
  return {Generate(shape, [&](const auto&) { return in[1][0]; })};
}

// The same elements in the given shape.
Reference Shaped(std::vector<int64_t> shape) {
  return [shape](const std::vector<Array>& in) {
    return std::vector<Array>{Array{shape, in[0].values}};
  };
}

Reference Constantly(Array a) {
  return [a](const std::vector<Array>&) { return std::vector<Array>{a}; };
}

Reference OneHot(int axis) {
  return [axis](const std::vector<Array>& in) {
    std::vector<int64_t> shape = in[0].shape;
    shape.insert(shape.begin() + axis, static_cast<int64_t>(in[1][0]));
    return std::vector<Array>{Generate(shape, [&](std::vector<int64_t> index) {
      const int64_t at = index[axis];
      index.erase(index.begin() + axis);
      return static_cast<int64_t>(in[0][in[0].At(index)]) == at ? in[2][0] : in[3][0];
    })};
  };
}

// Along `axis`, with the first `batch` dimensions of both paired.
Reference Gather(int axis, int batch) {
  return [axis, batch](const std::vector<Array>& in) {
    const Array &params = in[0], &indices = in[1];
    std::vector<int64_t> shape(params.shape.begin(), params.shape.begin() + axis);
    shape.insert(shape.end(), indices.shape.begin() + batch, indices.shape.end());
    shape.insert(shape.end(), params.shape.begin() + axis + 1, params.shape.end());
    return std::vector<Array>{Generate(shape, [&](const std::vector<int64_t>& index) {
      std::vector<int64_t> where(index.begin(), index.begin() + batch);
      const int own = indices.rank() - batch;
      where.insert(where.end(), index.begin() + axis, index.begin() + axis + own);
      std::vector<int64_t> from(index.begin(), index.begin() + axis);
      from.push_back(static_cast<int64_t>(indices[indices.At(where)]));
      from.insert(from.end(), index.begin() + axis + own, index.end());
      return params[params.At(from)];
    })};
  };
}

Reference BroadcastAxes(std::vector<double> first, std::vector<double> second) {
  return [=](const std::vector<Array>&) {
    return std::vector<Array>{Vector(first), Vector(second)};
  };
}

}  // namespace

std::vector<OpCase> ArrayCases() {
  const Reference zeros = Unary([](double) { return 0.0; });
  const Reference ones = Unary([](double) { return 1.0; });
  return {
      {"Const", "dtype=float, value=tensor(float[2,2]: 1 2 3 4)", "",
       Constantly({{2, 2}, {1, 2, 3, 4}})},
      {"Const", "dtype=int64, value=tensor(int64[0]: )", "", Constantly({{0}, {}})},
      {"Identity", "", "[2,3]", First},
      {"Identity", "", "[0]", First},
      {"Identity", "", "int8[2,1,2]", First, -9, 9},
      {"StopGradient", "", "[2,3]", First},
      {"StopGradient", "", "int64[1]", First, -9, 9},
      {"Fill", "", "(2,3);[]", Fill},
      {"Fill", "", "();[]", Fill},
      {"Fill", "", "int64(2,0,2);[]", Fill},
      {"Fill", "", "(3);int32[]", Fill, 3, 9},
      {"ZerosLike", "", "[2,3]", zeros},
      {"ZerosLike", "", "int32[0]", zeros},
      {"OnesLike", "", "[2,3,1]", ones},
      {"OnesLike", "", "int64[2]", ones},

      {"Shape", "", "[2,3,4]", ShapeOf},
      {"Shape", "out_type=int64", "[]", ShapeOf},
      {"Shape", "", "bool[0,2]", ShapeOf},
      {"Size", "", "[2,3,4]", Constantly({{}, {24}})},
      {"Size", "out_type=int64", "[0,3]", Constantly({{}, {0}})},
      {"Rank", "", "[2,3,4]", Constantly({{}, {3}})},
      {"Rank", "", "[]", Constantly({{}, {0}})},
      {"Reshape", "", "[2,6];(3,4)", Shaped({3, 4})},
      {"Reshape", "", "[2,6];(-1,2)", Shaped({6, 2})},
      {"Reshape", "", "[2,3,2];int64(12)", Shaped({12})},
      {"Reshape", "", "[1];()", Shaped({})},
      {"Reshape", "", "[0,3];(-1,3)", Shaped({0, 3})},
      {"ExpandDims", "", "[2,3];=0", Shaped({1, 2, 3})},
      {"ExpandDims", "", "[2,3];=-2", Shaped({2, 1, 3})},
      {"ExpandDims", "", "[];=0", Shaped({1})},
      {"ExpandDims", "", "[0];int64(1)", Shaped({0, 1})},
      {"Squeeze", "", "[1,3,1]", Shaped({3})},
      {"Squeeze", "squeeze_dims=[-1]", "[1,3,1]", Shaped({1, 3})},
      {"Squeeze", "squeeze_dims=[0]", "[1,0]", Shaped({0})},
      {"BroadcastGradientArgs", "", "(2,3);(3)", BroadcastAxes({}, {0})},
      {"BroadcastGradientArgs", "", "(2,1,4);(3,1)", BroadcastAxes({1}, {0, 2})},
      {"BroadcastGradientArgs", "", "int64(2,3);int64(2,3)", BroadcastAxes({}, {})},
      {"BroadcastGradientArgs", "", "();(2,3)", BroadcastAxes({0, 1}, {})},

      {"OneHot", "", "int64(2,0);=3;[];[]", OneHot(1)},
      {"OneHot", "axis=0", "(2,0,1,7);=3;[];[]", OneHot(0)},
      {"OneHot", "", "uint8=1;=2;int32[];int32[]", OneHot(0), 2, 9},
      {"OneHot", "", "int64();=3;[];[]", OneHot(1)},
      {"OneHot", "axis=1", "((0,1),(2,0));=3;[];[]", OneHot(1)},
      {"Range", "", "=0;=10;=3", Constantly(Vector({0, 3, 6, 9}))},
      {"Range", "", "int64=5;int64=0;int64=-2", Constantly(Vector({5, 3, 1}))},
      {"Range", "", "=3;=3;=1", Constantly(Vector({}))},
      {"Range", "", "double=0;double=1;double=0.25", Constantly(Vector({0, 0.25, 0.5, 0.75}))},
      {"GatherV2", "", "[5,3];((0,4),(2,2));=0", Gather(0, 0)},
      {"GatherV2", "", "[5,3];int64(2,0);=-1", Gather(1, 0)},
      {"GatherV2", "", "[2,4,3];((3,0),(1,3));=1", Gather(1, 0)},
      {"GatherV2", "", "[5,3];=1;=1", Gather(1, 0)},
      {"GatherV2", "", "[5,3];int32();=0", Gather(0, 0)},
      {"GatherV2", "batch_dims=1", "[2,3,2];((2,0),(1,1));=1", Gather(1, 1)},
      {"GatherV2",
       "batch_dims=1",
       "[2,2,3];int64((2,0,1),(1,1,0));=2",
       Gather(2, 1),
       -2,
       2,
       1e-5,
       {},
       true},
      {"GatherV2", "", "int64[4];(3,3,0);=0", Gather(0, 0), -9, 9},
  };
}

}  // namespace millrace::testing
