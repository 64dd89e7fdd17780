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

// The first largest along the axis in input 1.
std::vector<Array> ArgMax(const std::vector<Array>& in) {
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
      if (x[x.At(index)] <= largest) continue;
      largest = x[x.At(index)];
      best = i;
    }
    return static_cast<double>(best);
  })};
}

std::vector<Array> HalfSumOfSquares(const std::vector<Array>& in) {
  Array sum = Zeros({});
  for (double v : in[0].values) sum[0] = HalfSquares(sum[0], v);
  return {sum};
}

Reference MatMul(bool transpose_a, bool transpose_b) {
  return [=](const std::vector<Array>& in) {
    const Array &a = in[0], &b = in[1];
    const int64_t inner = a.shape[transpose_a ? 0 : 1];
    return std::vector<Array>{
        Generate({a.shape[transpose_a ? 1 : 0], b.shape[transpose_b ? 0 : 1]},
                 [&](const std::vector<int64_t>& index) {
                   double sum = 0;
                   for (int64_t k = 0; k < inner; ++k) {
                     sum += a[transpose_a ? a.At({k, index[0]}) : a.At({index[0], k})] *
                            b[transpose_b ? b.At({index[1], k}) : b.At({k, index[1]})];
                   }
                   return sum;
                 })};
  };
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
      {"Prod", "", "[0];(0)", Product()},
      {"Prod", "", "int32[3];(0)", Product(), 1, 9},
      {"ArgMax", "", "[3,4];=1", ArgMax},
      {"ArgMax", "", "[3,4,2];=-2", ArgMax},
      {"ArgMax", "output_type=int32", "[3,4];=0", ArgMax},
      {"ArgMax", "", "[5];=0", ArgMax, 0, 1, 1e-5, {{1, 3, 2, 3, 0}}},
      {"ArgMax", "", "[0,4];=1", ArgMax},
      {"L2Loss", "", "[3,4]", HalfSumOfSquares},
      {"L2Loss", "", "[2,2,2]", HalfSumOfSquares},
      {"L2Loss", "", "[0]", HalfSumOfSquares},

      {"MatMul", "", "[2,3];[3,4]", MatMul(false, false)},
      {"MatMul", "transpose_a=true", "[3,2];[3,4]", MatMul(true, false)},
      {"MatMul", "transpose_b=true", "[2,3];[4,3]", MatMul(false, true)},
      {"MatMul", "transpose_a=true, transpose_b=true", "[3,2];[4,3]", MatMul(true, true)},
      {"MatMul", "", "[1,1];[1,1]", MatMul(false, false)},
      {"MatMul", "", "[0,3];[3,4]", MatMul(false, false)},
      {"MatMul", "", "[2,0];[0,4]", MatMul(false, false)},
      {"MatMul", "", "[5,19];[19,6]", MatMul(false, false), -2, 2, 1e-4},
  };
}

}  // namespace millrace::testing
