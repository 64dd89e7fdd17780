#include <algorithm>
#include <cmath>

#include "tests/ops/op_cases.h"

namespace millrace::testing {
namespace {

double Add(double x, double y) { return x + y; }
double Sub(double x, double y) { return x - y; }
double Mul(double x, double y) { return x * y; }
double Div(double x, double y) { return x / y; }
double DivNoNan(double x, double y) { return y == 0 ? 0 : x / y; }
double FloorDiv(double x, double y) { return std::floor(x / y); }
double FloorMod(double x, double y) { return x - std::floor(x / y) * y; }
double Max(double x, double y) { return x > y ? x : y; }
double Min(double x, double y) { return x < y ? x : y; }
double Pow(double x, double y) { return std::pow(x, y); }
double SquaredDifference(double x, double y) { return (x - y) * (x - y); }
double Equal(double x, double y) { return x == y; }
double NotEqual(double x, double y) { return x != y; }
double Less(double x, double y) { return x < y; }
double LessEqual(double x, double y) { return x <= y; }
double Greater(double x, double y) { return x > y; }
double GreaterEqual(double x, double y) { return x >= y; }

std::vector<Array> Select(const std::vector<Array>& in) {
  return {Generate(BroadcastShapeOf(in), [&](const std::vector<int64_t>& index) {
    return Broadcast(in[0], index) != 0 ? Broadcast(in[1], index) : Broadcast(in[2], index);
  })};
}

// A vector of conditions is for the rows.
std::vector<Array> SelectRows(const std::vector<Array>& in) {
  return {Generate(in[1].shape, [&](const std::vector<int64_t>& index) {
    const Array& condition = in[0];
    const std::vector<int64_t> at(index.begin(), index.begin() + condition.rank());
    return condition[condition.At(at)] != 0 ? in[1][in[1].At(index)] : in[2][in[2].At(index)];
  })};
}

std::vector<Array> Clip(const std::vector<Array>& in) {
  return {Generate(in[0].shape, [&](const std::vector<int64_t>& index) {
    const double below = std::min(in[0][in[0].At(index)], Broadcast(in[2], index));
    return std::max(below, Broadcast(in[1], index));
  })};
}

std::vector<Array> Sum(const std::vector<Array>& in) {
  Array sum = in[0];
  for (size_t i = 1; i < in.size(); ++i) {
    for (int64_t k = 0; k < sum.size(); ++k) sum[k] += in[i][k];
  }
  return {sum};
}

}  // namespace

std::vector<OpCase> BinaryCases() {
  const std::vector<std::vector<double>> compared = {{1, 2, 3, 4}, {1, 3, 2, 4}};
  return {
      {"AddV2", "", "[2,3];[2,3]", Binary(Add)},
      {"AddV2", "", "[2,3];[3]", Binary(Add)},
      {"AddV2", "", "[2,1,4];[3,1]", Binary(Add)},
      {"AddV2", "", "[1];[5]", Binary(Add)},
      {"AddV2", "", "[];[2,2]", Binary(Add)},
      {"AddV2", "", "[0,3];[3]", Binary(Add)},
      {"AddV2", "", "[3,1];[0]", Binary(Add)},
      {"AddV2", "", "[1,1];[1]", Binary(Add)},
      {"AddV2", "", "int32[2,3];int32[3]", Binary(Add), -9, 9},
      {"AddV2", "", "uint8[4];uint8[1]", Binary(Add), 0, 100},
      {"Add", "", "[2,3];[2,1]", Binary(Add)},
      {"Sub", "", "[2,3];[3]", Binary(Sub)},
      {"Sub", "", "[4];[2,3,4]", Binary(Sub)},
      {"Sub", "", "[];[]", Binary(Sub)},
      {"Sub", "", "int64[3];int64[]", Binary(Sub), -9, 9},
      {"Mul", "", "[2,3];[2,3]", Binary(Mul)},
      {"Mul", "", "[2,3,2];[3,1]", Binary(Mul)},
      {"Mul", "", "[0];[1]", Binary(Mul)},
      {"RealDiv", "", "[2,3];[3]", Binary(Div), 0.3, 2},
      {"RealDiv", "", "[2];[2,3,2]", Binary(Div), 0.3, 2},
      {"RealDiv", "", "[0,2];[]", Binary(Div), 0.3, 2},
      {"Div", "", "[2,3];[2,1]", Binary(Div), 0.3, 2},
      {"Div",
       "",
       "int32[4];int32[4]",
       Binary([](double x, double y) { return std::trunc(x / y); }),
       0,
       1,
       1e-5,
       {{7, -7, 7, -7}, {2, 2, -2, -2}}},
      {"DivNoNan", "", "[2,3];[3]", Binary(DivNoNan), 0.3, 2},
      {"DivNoNan", "", "[3,1];[1]", Binary(DivNoNan), -2, -0.3},
      {"FloorDiv",
       "",
       "[2,3];[3]",
       Binary(FloorDiv),
       0.3,
       2,
       1e-5,
       {{1.3, -2.6, 0.7, 3.3, -0.4, 2.2}, {0.9, -1.1, 0.8}}},
      {"FloorDiv",
       "",
       "int32[4];int32[4]",
       Binary(FloorDiv),
       0,
       1,
       1e-5,
       {{7, -7, 7, -7}, {2, 2, -2, -2}}},
      {"FloorMod",
       "",
       "[2,3];[3]",
       Binary(FloorMod),
       0.3,
       2,
       1e-5,
       {{1.3, -2.6, 0.7, 3.3, -0.4, 2.2}, {0.9, -1.1, 0.8}}},
      {"FloorMod",
       "",
       "int64[4];int64[4]",
       Binary(FloorMod),
       0,
       1,
       1e-5,
       {{7, -7, 7, -7}, {2, 2, -2, -2}}},
      {"FloorDiv", "", "uint8[4];uint8[]", Binary(FloorDiv), 1, 100},
      {"FloorMod", "", "int8[4];int8[]", Binary(FloorMod), 1, 100},
      {"Maximum", "", "uint8[4];uint8[2,1]", Binary(Max), 0, 100},
      {"Maximum", "", "[2,3];[3]", Binary(Max)},
      {"Maximum", "", "[2,2,3];[2,1]", Binary(Max)},
      {"Maximum", "", "int32[3];int32[]", Binary(Max), -9, 9},
      {"Minimum", "", "[2,1];[1,3]", Binary(Min)},
      {"Minimum", "", "[0];[0]", Binary(Min)},
      {"Pow", "", "[2,3];[3]", Binary(Pow), 0.3, 2},
      {"Pow", "", "[2,2,2];[]", Binary(Pow), 0.5, 1.5},
      {"Pow", "", "int64[3];int64[]", Binary(Pow), 0, 1, 1e-5, {{2, -3, 5}, {3}}},
      {"SquaredDifference", "", "[2,3];[3]", Binary(SquaredDifference)},
      {"SquaredDifference", "", "[2,1,2];[2,2,1]", Binary(SquaredDifference)},

      {"Equal", "", "[4];[4]", Binary(Equal), 0, 1, 1e-5, compared},
      {"Equal", "", "bool[2,2];bool[2]", Binary(Equal)},
      {"NotEqual", "", "int32[4];int32[4]", Binary(NotEqual), 0, 1, 1e-5, compared},
      {"Less", "", "[4];[4]", Binary(Less), 0, 1, 1e-5, compared},
      {"LessEqual", "", "int64[4];int64[4]", Binary(LessEqual), 0, 1, 1e-5, compared},
      {"Greater", "", "[2,3];[3]", Binary(Greater)},
      {"Greater", "", "[0];[1]", Binary(Greater)},
      {"GreaterEqual", "", "uint8[4];uint8[4]", Binary(GreaterEqual), 0, 1, 1e-5, compared},
      {"LogicalAnd", "", "bool[2,1];bool[1,2]",
       Binary([](double x, double y) { return double(x != 0 && y != 0); })},
      {"LogicalOr", "", "bool[2,1];bool[1,2]",
       Binary([](double x, double y) { return double(x != 0 || y != 0); })},
      {"LogicalNot", "", "bool[5]", Unary([](double x) { return double(x == 0); })},
      {"SelectV2", "", "bool[2,3];[2,3];[2,3]", Select},
      {"SelectV2", "", "bool[2,1];[3];[]", Select},
      {"SelectV2", "", "bool[];[2,1];[2,2]", Select},
      {"SelectV2", "", "bool[0];[1];[]", Select},
      {"SelectV2", "", "bool[4];int64[4];int64[4]", Select, -9, 9},
      {"SelectV2", "", "bool[2,1,1];[3,1];[4]", Select},
      {"SelectV2", "", "bool[1,3];[2,1];[1]", Select},
      {"Select", "", "bool[2,3];[2,3];[2,3]", SelectRows},
      {"Select", "", "bool[3];[3,2];[3,2]", SelectRows},
      {"Select", "", "bool[3];[3,1];[3,1]", SelectRows},
      {"Select", "", "bool[];[2,2];[2,2]", SelectRows},
      {"Select", "", "bool[4];[4];[4]", SelectRows},
      {"Select", "", "bool[];[];[]", SelectRows},
      {"Select", "", "bool[0];[0,3];[0,3]", SelectRows},
      {"Select", "", "bool[2];int64[2,2,2];int64[2,2,2]", SelectRows, -9, 9},
      {"Select", "", "bool[2];bool[2,1];bool[2,1]", SelectRows},
      {"ClipByValue", "", "[2,3];[];[]", Clip, -2, 2, 1e-5, {{}, {-0.5}, {0.7}}},
      {"ClipByValue",
       "",
       "[5];[5];[5]",
       Clip,
       -2,
       2,
       1e-5,
       {{1, 2, 3, 4, 5}, {0.5, 2.5, 0, 0, 0}, {3, 3, 2, 1, 7}}},
      {"ClipByValue", "", "[2,2];[2,2];[]", Clip, -2, 2, 1e-5, {{}, {-3, 0.2, -1, 0.3}, {0.7}}},
      {"ClipByValue", "", "[3];[];[3]", Clip, -2, 2, 1e-5, {{-2, 0, 2}, {-1}, {1, 1, 0.5}}},
      {"ClipByValue", "", "[];[];[]", Clip, -2, 2, 1e-5, {{3}, {-1}, {1}}},
      {"ClipByValue", "", "[0];[];[]", Clip},
      {"ClipByValue", "", "int32[5];int32[];int32[]", Clip, -9, 9, 1e-5, {{}, {-3}, {4}}},
      {"AddN", "", "[2,3];[2,3];[2,3]", Sum},
      {"AddN", "", "[2,1,2]", Sum},
      {"AddN", "", "[0];[0]", Sum},
      {"AddN", "", "int32[3];int32[3]", Sum, -9, 9},
  };
}

}  // namespace millrace::testing
