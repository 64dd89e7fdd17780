#include "tests/ops/op_cases.h"

namespace millrace::testing {
namespace {

double Add(double x, double y) { return x + y; }
double Mul(double x, double y) { return x * y; }

// Along the axis in input 1.
Reference Scan(double start, double (*f)(double, double), bool exclusive, bool reverse) {
  return [=](const std::vector<Array>& in) {
    const Array& x = in[0];
    const int axis = static_cast<int>(in[1][0] < 0 ? in[1][0] + x.rank() : in[1][0]);
    return std::vector<Array>{Generate(x.shape, [&](std::vector<int64_t> index) {
      const int64_t own = index[axis];
      double result = start;
      for (int64_t i = 0; i < x.shape[axis]; ++i) {
        const bool before = reverse ? i > own : i < own;
        if (!before && (exclusive || i != own)) continue;
        index[axis] = i;
        result = f(result, x[x.At(index)]);
      }
      return result;
    })};
  };
}

Reference Sum(bool exclusive = false, bool reverse = false) {
  return Scan(0, Add, exclusive, reverse);
}
Reference Product(bool exclusive = false, bool reverse = false) {
  return Scan(1, Mul, exclusive, reverse);
}

}  // namespace

std::vector<OpCase> ScanCases() {
  constexpr char kExclusive[] = "exclusive=true";
  constexpr char kReverse[] = "reverse=true";
  constexpr char kBoth[] = "exclusive=true, reverse=true";
  // None, one, and more zeros in a row.
  const std::vector<std::vector<double>> zeros = {
      {2, 3, 4, 5, 0, 3, 4, 2, 2, 3, 0, 5, 2, 0, 3, 0, 0, 0, 2, 3}};
  return {
      {"Cumsum", "", "[5];=0", Sum()},
      {"Cumsum", "", "[2,3];=1", Sum()},
      {"Cumsum", "", "[2,3,2];=-2", Sum()},
      {"Cumsum", kExclusive, "[2,3];=1", Sum(true)},
      {"Cumsum", kReverse, "[3,2];=0", Sum(false, true)},
      {"Cumsum", kBoth, "[2,3];int64=1", Sum(true, true)},
      {"Cumsum", kBoth, "[3,2];=0", Sum(true, true)},
      {"Cumsum", "", "[1,1];=0", Sum()},
      {"Cumsum", "", "[0,3];=0", Sum()},
      {"Cumsum", "", "[3,0];=0", Sum()},
      {"Cumsum", kReverse, "int32[4];=0", Sum(false, true), -9, 9},
      {"Cumprod", "", "[5];=0", Product()},
      {"Cumprod", "", "[2,3,2];=1", Product()},
      {"Cumprod", kExclusive, "[2,3];=1", Product(true)},
      {"Cumprod", kReverse, "[3,2];=-2", Product(false, true)},
      {"Cumprod", kBoth, "[2,3];=1", Product(true, true)},
      {"Cumprod", "", "[0];=0", Product()},
      {"Cumprod", "", "int64[4];=0", Product(), -9, 9},
      {"Cumprod", "", "[5,4];=1", Product(), -2, 2, 1e-5, zeros},
      {"Cumprod", kExclusive, "[5,4];=1", Product(true), -2, 2, 1e-5, zeros},
      {"Cumprod", kReverse, "[5,4];=1", Product(false, true), -2, 2, 1e-5, zeros},
      {"Cumprod", kBoth, "[5,4];=1", Product(true, true), -2, 2, 1e-5, zeros},
  };
}

}  // namespace millrace::testing
