#ifndef OPS_MATH_OPS_H_
#define OPS_MATH_OPS_H_

#include <vector>

#include "core/graph/graph_builder.h"

// Elementwise mathematics, reductions and matrix products. Binary functions broadcast as NumPy
// does. Every function takes the user's line last, for messages; a Value argument that is poisoned
// gives a poisoned result.
namespace millrace {

class OpRegistry;
void RegisterMathOps(OpRegistry& registry);

using Where = SourceLocation;

// -x
Value Neg(Value x, Where where = Where::Current());
// |x|
Value Abs(Value x, Where where = Where::Current());
// -1, 0 or 1
Value Sign(Value x, Where where = Where::Current());
// x*x
Value Square(Value x, Where where = Where::Current());
// The square root; NaN for negative x.
Value Sqrt(Value x, Where where = Where::Current());
// 1/sqrt(x)
Value Rsqrt(Value x, Where where = Where::Current());
// 1/x
Value Reciprocal(Value x, Where where = Where::Current());
// e^x
Value Exp(Value x, Where where = Where::Current());
// The natural logarithm.
Value Log(Value x, Where where = Where::Current());
// The hyperbolic tangent.
Value Tanh(Value x, Where where = Where::Current());
// 1/(1+e^-x)
Value Sigmoid(Value x, Where where = Where::Current());
// e^x - 1 and log(1+x), exact where x is small, too.
Value Expm1(Value x, Where where = Where::Current());
Value Log1p(Value x, Where where = Where::Current());
// The error function.
Value Erf(Value x, Where where = Where::Current());
// max(x,0)
Value Relu(Value x, Where where = Where::Current());
// min(max(x,0),6)
Value Relu6(Value x, Where where = Where::Current());
// x where it is positive, else alpha x.
Value LeakyRelu(Value x, float alpha = 0.2f, Where where = Where::Current());
// x where it is positive, else e^x - 1.
Value Elu(Value x, Where where = Where::Current());
// log(1+e^x)
Value Softplus(Value x, Where where = Where::Current());
// True for elements that are neither infinite nor NaN; that are NaN; that are infinite.
Value IsFinite(Value x, Where where = Where::Current());
Value IsNan(Value x, Where where = Where::Current());
Value IsInf(Value x, Where where = Where::Current());
// The same numbers as another dtype.
Value Cast(Value x, DType dtype, Where where = Where::Current());

Value Add(Value x, Value y, Where where = Where::Current());
Value Sub(Value x, Value y, Where where = Where::Current());
Value Mul(Value x, Value y, Where where = Where::Current());
// x/y; for integers rounded towards zero, and division by zero is an error of the step.
Value Div(Value x, Value y, Where where = Where::Current());
// 0 where y is 0.
Value DivNoNan(Value x, Value y, Where where = Where::Current());
Value FloorDiv(Value x, Value y, Where where = Where::Current());
Value FloorMod(Value x, Value y, Where where = Where::Current());
Value Maximum(Value x, Value y, Where where = Where::Current());
Value Minimum(Value x, Value y, Where where = Where::Current());
Value Pow(Value x, Value y, Where where = Where::Current());
Value SquaredDifference(Value x, Value y, Where where = Where::Current());
Value Equal(Value x, Value y, Where where = Where::Current());
Value NotEqual(Value x, Value y, Where where = Where::Current());
Value Less(Value x, Value y, Where where = Where::Current());
Value LessEqual(Value x, Value y, Where where = Where::Current());
Value Greater(Value x, Value y, Where where = Where::Current());
Value GreaterEqual(Value x, Value y, Where where = Where::Current());
Value LogicalAnd(Value x, Value y, Where where = Where::Current());
Value LogicalOr(Value x, Value y, Where where = Where::Current());
Value LogicalNot(Value x, Where where = Where::Current());
// x where `condition`, else y; all broadcast.
Value Select(Value condition, Value x, Value y, Where where = Where::Current());
// max(min(x,high),low); each bound is a scalar or has x's shape.
Value ClipByValue(Value x, Value low, Value high, Where where = Where::Current());
// The sum of equally shaped values, in their order.
Value AddN(absl::Span<const Value> values, Where where = Where::Current());

// Over `axes` (negative: from the end; empty: all of them).
Value ReduceSum(Value x, std::vector<int64_t> axes = {}, bool keep_dims = false,
                Where where = Where::Current());
Value ReduceMean(Value x, std::vector<int64_t> axes = {}, bool keep_dims = false,
                 Where where = Where::Current());
Value ReduceMax(Value x, std::vector<int64_t> axes = {}, bool keep_dims = false,
                Where where = Where::Current());
Value ReduceMin(Value x, std::vector<int64_t> axes = {}, bool keep_dims = false,
                Where where = Where::Current());
Value ReduceProd(Value x, std::vector<int64_t> axes = {}, bool keep_dims = false,
                 Where where = Where::Current());
// Of booleans: whether all are true, or any.
Value ReduceAll(Value x, std::vector<int64_t> axes = {}, bool keep_dims = false,
                Where where = Where::Current());
Value ReduceAny(Value x, std::vector<int64_t> axes = {}, bool keep_dims = false,
                Where where = Where::Current());
// The index (int64) of the largest, or smallest, element along `axis`; the first among equals.
Value ArgMax(Value x, int64_t axis, Where where = Where::Current());
Value ArgMin(Value x, int64_t axis, Where where = Where::Current());
// The sum, or product, of each element with those before it along `axis`; without itself if
// `exclusive`; from the end if `reverse`.
Value CumSum(Value x, int64_t axis, bool exclusive = false, bool reverse = false,
             Where where = Where::Current());
Value CumProd(Value x, int64_t axis, bool exclusive = false, bool reverse = false,
              Where where = Where::Current());
// Half the sum of squares: a scalar.
Value L2Loss(Value x, Where where = Where::Current());

// a[m,k] b[k,n] -> [m,n]; either may be given transposed.
Value MatMul(Value a, Value b, bool transpose_a = false, bool transpose_b = false,
             Where where = Where::Current());
// x[...,m,k] y[...,k,n] -> [...,m,n]: a product for each of the leading indices, which broadcast;
// the matrices of either may be given transposed.
Value BatchMatMul(Value x, Value y, bool adj_x = false, bool adj_y = false,
                  Where where = Where::Current());

// Operators: as Add, Sub, ... The user's line in messages is that of an operand.
Value operator+(Value x, Value y);
Value operator-(Value x, Value y);
Value operator*(Value x, Value y);
Value operator/(Value x, Value y);
Value operator-(Value x);
// With a number, of x's dtype.
Value operator+(Value x, double y);
Value operator-(Value x, double y);
Value operator*(Value x, double y);
Value operator/(Value x, double y);
Value operator+(double x, Value y);
Value operator-(double x, Value y);
Value operator*(double x, Value y);
Value operator/(double x, Value y);

}  // namespace millrace

#endif  // OPS_MATH_OPS_H_
