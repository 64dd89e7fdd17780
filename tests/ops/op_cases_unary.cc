#include <cmath>

#include "tests/ops/op_cases.h"

namespace millrace::testing {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Sign(double x) { return (x > 0) - (x < 0); }

}  // namespace

std::vector<OpCase> UnaryCases() {
  const auto neg = Unary([](double x) { return -x; });
  const auto relu = Unary([](double x) { return x > 0 ? x : 0; });
  const auto reciprocal = Unary([](double x) { return 1 / x; });
  const auto tanh_grad = Binary([](double y, double dy) { return dy * (1 - y * y); });
  const auto relu_grad = Binary([](double dy, double x) { return x > 0 ? dy : 0; });
  return {
      {"Neg", "", "[3,4]", neg},
      {"Neg", "", "[2,1,3]", neg},
      {"Neg", "", "[0]", neg},
      {"Neg", "", "int32[5]", neg},
      {"Neg", "", "int64[]", neg},
      {"Abs", "", "[3,4]", Unary([](double x) { return std::abs(x); })},
      {"Abs", "", "int64[2,3]", Unary([](double x) { return std::abs(x); })},
      {"Sign", "", "[3,4]", Unary(Sign)},
      {"Sign", "", "int32[4]", Unary(Sign), -3, 3, 1e-5, {{-3, 0, 2, 0}}},
      {"Square", "", "[2,2,3]", Unary([](double x) { return x * x; })},
      {"Square", "", "int32[4]", Unary([](double x) { return x * x; }), -9, 9},
      {"Sqrt", "", "[3,4]", Unary([](double x) { return std::sqrt(x); }), 0.1, 4},
      {"Sqrt", "", "[0,3]", Unary([](double x) { return std::sqrt(x); })},
      {"Rsqrt", "", "[3,4]", Unary([](double x) { return 1 / std::sqrt(x); }), 0.3, 4},
      {"Reciprocal", "", "[3,4]", reciprocal, 0.3, 4},
      {"Reciprocal", "", "[3]", reciprocal, -4, -0.3},
      {"Exp", "", "[3,4]", Unary([](double x) { return std::exp(x); })},
      {"Exp", "", "[70]", Unary([](double x) { return std::exp(x); }), -20, 3},
      {"Log", "", "[3,4]", Unary([](double x) { return std::log(x); }), 0.1, 5},
      {"Tanh", "", "[3,4]", Unary([](double x) { return std::tanh(x); })},
      {"Tanh", "", "[1]", Unary([](double x) { return std::tanh(x); })},
      {"Sigmoid", "", "[3,7]", Unary(Sigmoid), -6, 6},
      {"Sigmoid", "", "[]", Unary(Sigmoid)},
      {"Relu", "", "[3,4]", relu},
      {"Relu", "", "[2,0]", relu},
      {"Relu", "", "int32[4]", relu, -5, 5},
      {"IsFinite",
       "",
       "[4]",
       Unary([](double x) { return std::isfinite(x) ? 1.0 : 0.0; }),
       0,
       1,
       1e-5,
       {{1, INFINITY, -INFINITY, NAN}}},
      {"Cast", "DstT=double", "[3,4]", Unary([](double x) { return x; })},
      {"Cast", "DstT=float", "[2,2]", Unary([](double x) { return double(float(x)); })},
      {"Cast", "DstT=int32", "[4]", Unary([](double x) { return std::trunc(x); }), -9, 9},
      {"Cast", "DstT=float", "uint8[2,3]", Unary([](double x) { return x; }), 0, 255},
      {"Cast",
       "DstT=bool",
       "int64[4]",
       Unary([](double x) { return double(x != 0); }),
       0,
       1,
       1e-5,
       {{0, 1, -7, 0}}},
      {"Cast", "DstT=int64", "bool[4]", Unary([](double x) { return x; })},

      // y, dy
      {"TanhGrad", "", "[3,4];[3,4]", tanh_grad},
      {"TanhGrad", "", "[0];[0]", tanh_grad},
      {"SigmoidGrad", "", "[2,3,1];[2,3,1]",
       Binary([](double y, double dy) { return dy * y * (1 - y); })},
      {"SqrtGrad", "", "[3,4];[3,4]", Binary([](double y, double dy) { return dy / (2 * y); }), 0.3,
       2},
      {"RsqrtGrad", "", "[3,4];[3,4]",
       Binary([](double y, double dy) { return -0.5 * dy * y * y * y; })},
      {"ReciprocalGrad", "", "[3,4];[3,4]",
       Binary([](double y, double dy) { return -dy * y * y; })},
      {"ReluGrad", "", "[3,4];[3,4]", relu_grad},
      {"ReluGrad", "", "[1];[1]", relu_grad},
  };
}

}  // namespace millrace::testing
