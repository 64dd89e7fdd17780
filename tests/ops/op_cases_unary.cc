#include <algorithm>
#include <cmath>

#include "tests/ops/op_cases.h"

namespace millrace::testing {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Sign(double x) { return (x > 0) - (x < 0); }
double Same(double x) { return x; }
double Relu6(double x) { return std::min(std::max(x, 0.0), 6.0); }
double Quarter(double x) { return x > 0 ? x : x / 4; }
double TimesMinusTwo(double x) { return x > 0 ? x : -2 * x; }
double Elu(double x) { return x < 0 ? std::expm1(x) : x; }
double Softplus(double x) { return std::log1p(std::exp(x)); }

// Every input as it is.
std::vector<Array> All(const std::vector<Array>& in) { return in; }

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
      {"Inv", "", "[3,4]", reciprocal, 0.3, 4},
      {"Exp", "", "[3,4]", Unary([](double x) { return std::exp(x); })},
      {"Exp", "", "[70]", Unary([](double x) { return std::exp(x); }), -20, 3},
      {"Log", "", "[3,4]", Unary([](double x) { return std::log(x); }), 0.1, 5},
      {"Expm1", "", "[3,4]", Unary([](double x) { return std::expm1(x); })},
      {"Expm1", "", "[40]", Unary([](double x) { return std::expm1(x); }), -20, 3},
      {"Log1p", "", "[3,4]", Unary([](double x) { return std::log1p(x); }), -0.8, 5},
      {"Erf", "", "[3,7]", Unary([](double x) { return std::erf(x); }), -4, 4},
      {"Erf", "", "[0]", Unary([](double x) { return std::erf(x); })},
      {"Tanh", "", "[3,4]", Unary([](double x) { return std::tanh(x); })},
      {"Tanh", "", "[1]", Unary([](double x) { return std::tanh(x); })},
      {"Sigmoid", "", "[3,7]", Unary(Sigmoid), -6, 6},
      {"Sigmoid", "", "[]", Unary(Sigmoid)},
      {"Relu", "", "[3,4]", relu},
      {"Relu", "", "[2,0]", relu},
      {"Relu", "", "int32[4]", relu, -5, 5},
      {"Relu", "", "uint8[4]", relu, 0, 9},
      {"Relu6", "", "[3,4]", Unary(Relu6), -4, 9},
      {"Relu6", "", "int64[7]", Unary(Relu6), -4, 9},
      {"LeakyRelu", "alpha=0.25", "[3,4]", Unary(Quarter)},
      {"LeakyRelu", "alpha=-2.0", "[5]", Unary(TimesMinusTwo)},
      {"LeakyRelu", "alpha=0.25", "[0]", Unary(Quarter)},
      {"Elu", "", "[3,4]", Unary(Elu)},
      {"Elu", "", "[9]", Unary(Elu), -30, 5},
      {"Softplus", "", "[3,4]", Unary(Softplus)},
      {"Softplus", "", "[15]", Unary(Softplus), -40, 40},
      {"IsFinite",
       "",
       "[4]",
       Unary([](double x) { return std::isfinite(x) ? 1.0 : 0.0; }),
       0,
       1,
       1e-5,
       {{1, INFINITY, -INFINITY, NAN}}},
      {"IsNan",
       "",
       "[4]",
       Unary([](double x) { return std::isnan(x) ? 1.0 : 0.0; }),
       0,
       1,
       1e-5,
       {{1, INFINITY, -INFINITY, NAN}}},
      {"IsInf",
       "",
       "[4]",
       Unary([](double x) { return std::isinf(x) ? 1.0 : 0.0; }),
       0,
       1,
       1e-5,
       {{1, INFINITY, -INFINITY, NAN}}},
      {"IdentityN", "", "[2,3];[2];[]", All},
      {"IdentityN", "", "int32[2,3];[0]", All},
      // Its gradient is an error: gradient_structure_test.
      {"PreventGradient", R"(message="none")", "int32[2,3]", Unary(Same)},
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
      {"InvGrad", "", "[3,4];[3,4]", Binary([](double y, double dy) { return -dy * y * y; })},

      // dy, x or y
      {"ReluGrad", "", "[3,4];[3,4]", relu_grad},
      {"ReluGrad", "", "[1];[1]", relu_grad},
      {"Relu6Grad", "", "[3,4];[3,4]",
       Binary([](double dy, double x) { return x > 0 && x < 6 ? dy : 0; }), -4, 9},
      {"LeakyReluGrad", "alpha=0.25", "[3,4];[3,4]",
       Binary([](double dy, double x) { return x > 0 ? dy : dy / 4; })},
      {"LeakyReluGrad", "alpha=-2.0", "[0,4];[0,4]",
       Binary([](double dy, double x) { return x > 0 ? dy : dy * -2; })},
      {"EluGrad", "", "[3,4];[3,4]",
       Binary([](double dy, double y) { return y < 0 ? dy * (y + 1) : dy; })},
      {"SoftplusGrad", "", "[3,4];[3,4]",
       Binary([](double dy, double x) { return dy / (1 + std::exp(-x)); })},
      {"SoftplusGrad", "", "[1];[1]",
       Binary([](double dy, double x) { return dy / (1 + std::exp(-x)); })},
  };
}

}  // namespace millrace::testing
