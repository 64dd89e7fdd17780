#include <cmath>
#include <limits>

#include "tests/ops/op_cases.h"

namespace millrace::testing {
namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();
constexpr double kHighest = std::numeric_limits<double>::infinity();

double Add(double x, double y) { return x + y; }
double Mul(double x, double y) { return x * y; }
double Max(double x, double y) { return x > y ? x : y; }
double Min(double x, double y) { return x < y ? x : y; }
double Share(double sum, double count) { return sum / count; }
double HalfSquares(double sum, double x) { return sum + x * x / 2; }

Reference Sum(bool keep = false) { return Reduction(keep, 0, Add); }
Reference Mean(bool keep = false) { return Reduction(keep, 0, Add, Share); }
Reference Largest(bool keep = false) { return Reduction(keep, kLowest, Max); }
Reference Product(bool keep = false) { return Reduction(keep, 1, Mul); }

double And(double x, double y) { return x != 0 && y != 0; }
double Or(double x, double y) { return x != 0 || y != 0; }

// The first largest of `sign` times the elements, along the axis in input 1.
std::vector<Array> ArgExtreme(const std::vector<Array>& in, double sign) {
  const Array& x = in[0];
  const int axis = static_cast<int>(in[1][0] < 0 ? in[1][0] + x.rank() : in[1][0]);
  std::vector<int64_t> shape = x.shape;
  shape.erase(shape.begin() + axis);
  return {Generate(shape, [&](std::vector<int64_t> index) {
    index.insert(index.begin() + axis, 0);
    int64_t best = 0;
    double largest = kLowest;
    for (int64_t i = 0; i < x.shape[axis]; ++i) {
      index[axis] = i;
      if (sign * x[x.At(index)] <= largest) continue;
      largest = sign * x[x.At(index)];
      best = i;
    }
    return static_cast<double>(best);
  })};
}

std::vector<Array> ArgMax(const std::vector<Array>& in) { return ArgExtreme(in, 1); }
std::vector<Array> ArgMin(const std::vector<Array>& in) { return ArgExtreme(in, -1); }

std::vector<Array> HalfSumOfSquares(const std::vector<Array>& in) {
  Array sum = Zeros({});
  for (double v : in[0].values) sum[0] = HalfSquares(sum[0], v);
  return {sum};
}

}  // namespace

std::vector<OpCase> ReductionCases() {
  constexpr char kKeep[] = "keep_dims=true";
  const std::vector<std::vector<double>> with_zeros = {{2, 0, 3, 0, 0, 5, 1.5, -2, 4}};
  return {
      {"Sum", "", "[2,3];(0)", Sum()},
      {"Sum", "", "[2,3,4];(1)", Sum()},
      {"Sum", "", "[2,3,4];(0,-1)", Sum()},
      {"Sum", kKeep, "[2,3,4];(2,0)", Sum(true)},
      {"Sum", "", "[2,3];=1", Sum()},
      {"Sum", "", "[2,3];()", Sum()},
      {"Sum", "", "[2,3];int64(0,1)", Sum()},
      {"Sum", "", "[0,3];(0)", Sum()},
      {"Sum", "", "[2,0];(0)", Sum()},
      {"Sum", kKeep, "[1,1];(0)", Sum(true)},
      {"Sum", "", "[];()", Sum()},
      {"Sum", "", "int32[2,3];(1)", Sum(), -9, 9},
      {"Mean", "", "[2,3];(0)", Mean()},
      {"Mean", "", "[2,3,4];(0,2)", Mean()},
      {"Mean", kKeep, "[2,3];(1)", Mean(true)},
      {"Mean", "", "[4];(0)", Mean()},
      {"Mean", "", "[0,3];(1)", Mean()},
      {"Max", "", "[2,3];(0)", Largest()},
      {"Max", kKeep, "[2,3,4];(1)", Largest(true)},
      {"Max", "", "[2,3,4];(0,1,2)", Largest()},
      {"Max", "", "[3,0];(0)", Largest()},
      {"Max", "", "int64[4];(0)", Largest(), -9, 9},
      {"Min", "", "[2,3];(1)", Reduction(false, kHighest, Min)},
      {"Min", kKeep, "[2,3,2];(0,2)", Reduction(true, kHighest, Min)},
      {"Prod", "", "[2,3];(1)", Product()},
      {"Prod", kKeep, "[2,3,2];(0,2)", Product(true)},
      {"Prod", "", "[3,3];(1)", Product(), -2, 2, 1e-5, with_zeros},
      {"Prod", "", "[2,2,3];(0,2)", Product(), -2, 2, 1e-5, {{2, 0, 3, 4, 5, 6, 0, 1, 1, 2, 0, 2}}},
      {"Prod", "", "[0];(0)", Product()},
      {"Prod", "", "int32[3];(0)", Product(), 1, 9},
      {"ArgMax", "", "[3,4];=1", ArgMax},
      {"ArgMax", "", "[3,4,2];=-2", ArgMax},
      {"ArgMax", "output_type=int32", "[3,4];=0", ArgMax},
      {"ArgMax", "", "[5];=0", ArgMax, 0, 1, 1e-5, {{1, 3, 2, 3, 0}}},
      {"ArgMax", "", "[0,4];=1", ArgMax},
      {"ArgMax", "", "bool[5];=0", ArgMax, 0, 1, 1e-5, {{0, 0, 1, 0, 1}}},
      {"ArgMin", "", "[3,4];=1", ArgMin},
      {"ArgMin", "", "[3,4,2];=-3", ArgMin},
      {"ArgMin", "output_type=int32", "int64[3,4];=0", ArgMin, -9, 9},
      {"ArgMin", "", "[5];=0", ArgMin, 0, 1, 1e-5, {{1, 0, 2, 0, 3}}},
      {"All", "", "bool[2,3];(1)", Reduction(false, 1, And), 0, 1, 1e-5, {{1, 1, 1, 1, 0, 1}}},
      {"All", kKeep, "bool[2,3,2];(0,2)", Reduction(true, 1, And)},
      {"All", "", "bool[0,2];(0)", Reduction(false, 1, And)},
      {"All", "", "bool[3];()", Reduction(false, 1, And)},
      {"Any", "", "bool[2,3];(1)", Reduction(false, 0, Or), 0, 1, 1e-5, {{0, 0, 0, 0, 0, 1}}},
      {"Any", kKeep, "bool[2,3,2];int64(0,-1)", Reduction(true, 0, Or)},
      {"Any", "", "bool[2,0];=1", Reduction(false, 0, Or)},
      {"L2Loss", "", "[3,4]", HalfSumOfSquares},
      {"L2Loss", "", "[2,2,2]", HalfSumOfSquares},
      {"L2Loss", "", "[0]", HalfSumOfSquares},
  };
}

}  // namespace millrace::testing
