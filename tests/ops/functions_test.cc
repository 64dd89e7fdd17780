#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/match.h"
#include "core/graph/verify.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/nn_ops.h"
#include "ops/state_ops.h"
#include "tests/testing/op_text.h"

// The functions that users call: names, defaults, poisoned values, places in messages.
namespace millrace::testing {
namespace {

class FunctionsTest : public ::testing::Test {
 protected:
  const Node& NodeOf(Value v) { return *b_.graph().node(v.port().node); }
  std::string OpOf(Value v) { return v.ok() ? NodeOf(v).op().name() : "(poisoned)"; }
  Value Input(PartialShape shape, DType dtype = DType::kFloat) {
    return Placeholder(b_, dtype, shape);
  }

  GraphBuilder b_{AllOps()};
};

TEST_F(FunctionsTest, OperatorsAreFunctions) {
  const Value x = Input({2, 3}), y = Input({3});
  EXPECT_EQ(OpOf(x + y), "AddV2");
  EXPECT_EQ(OpOf(x - y), "Sub");
  EXPECT_EQ(OpOf(x * y), "Mul");
  EXPECT_EQ(OpOf(x / y), "RealDiv");
  EXPECT_EQ(OpOf(-x), "Neg");
  EXPECT_EQ((x + y).shape().ToString(), "[2,3]");
  EXPECT_TRUE(b_.status().ok()) << b_.status();
}

TEST_F(FunctionsTest, NumbersTakeTheDTypeOfTheirNeighbour) {
  const Value x = Input({2}, DType::kDouble), i = Input({2}, DType::kInt64);
  for (const Value& v : {x + 1, x - 1, x * 2, x / 2, 1 + x, 1 - x, 2 * x, 1 / x}) {
    EXPECT_EQ(v.dtype(), DType::kDouble);
  }
  EXPECT_EQ((i * 2).dtype(), DType::kInt64);
  EXPECT_EQ(OpOf(i / 2), "Div");
  const Value left = 1 - x;
  EXPECT_EQ(OpOf(Value(&b_, NodeOf(left).inputs()[0])), "Const");
  EXPECT_TRUE(b_.status().ok()) << b_.status();
}

TEST_F(FunctionsTest, PoisonedValuesPassThroughAndTheFirstErrorStays) {
  const Value x = Input({2, 3}), y = Input({4, 5});
  const Value bad = MatMul(x, y);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.builder(), &b_);
  const std::string first(b_.status().message());
  EXPECT_TRUE(absl::StrContains(first, "the inner extents differ")) << first;
  EXPECT_TRUE(absl::StrContains(first, "functions_test.cc")) << first;
  const int nodes = b_.graph().num_nodes();
  for (const Value& v : {bad + 1,
                         1 - bad,
                         bad * bad,
                         -bad,
                         Relu(bad),
                         LeakyRelu(bad),
                         Softplus(bad),
                         ClipByValue(bad, bad, bad),
                         ReduceAny(bad),
                         ArgMin(bad, 0),
                         CumSum(bad, 0),
                         CumProd(bad, 0),
                         BatchMatMul(bad, bad),
                         IdentityN({bad, bad})[1],
                         PreventGradient(bad, ""),
                         ReduceSum(bad),
                         ReduceMean(bad, {0}),
                         ArgMax(bad, 0),
                         Reshape(bad, std::vector<int64_t>{-1}),
                         ExpandDims(bad, 0),
                         Squeeze(bad),
                         Transpose(bad, {1, 0}),
                         Slice(bad, {0}, {1}),
                         Pad(bad, {{0, 1}}),
                         Concat({bad, bad}, 0),
                         Gather(bad, bad),
                         GatherNd(bad, bad),
                         ScatterNd(bad, bad, bad),
                         UnsortedSegmentSum(bad, bad, bad),
                         WhereTrue(bad),
                         Unique(bad)[1],
                         TopK(bad, 1)[1],
                         DynamicStitch({bad}, {bad}),
                         Print(bad, {bad}),
                         CheckNumerics(bad, ""),
                         GatherRows(bad, bad),
                         Stack({bad, bad}),
                         Unstack(bad, 2)[1],
                         Split(bad, 2, 0)[1],
                         Split(bad, {1, 2}, 0)[1],
                         TakeSlice(bad, {{0}, {1}, {}}),
                         PlaceholderWithDefault(bad, {2}),
                         OneHot(bad, 3),
                         Cast(bad, DType::kDouble),
                         Select(bad, bad, bad),
                         AddN({bad, bad}),
                         BiasAdd(bad, bad),
                         Conv2D(bad, bad),
                         MaxPool(bad),
                         AvgPool(bad),
                         Softmax(bad),
                         SparseCrossEntropy(bad, bad),
                         CrossEntropy(bad, bad),
                         ReadVariable(bad),
                         IsInitialized(bad),
                         ShapeOf(bad),
                         Fill(bad, bad),
                         Tile(bad, bad),
                         BroadcastTo(bad, bad),
                         RandomUniform(bad, DType::kFloat, 1),
                         StatelessRandomUniform(bad, bad, DType::kFloat)}) {
    EXPECT_FALSE(v.ok());
    EXPECT_EQ(v.builder(), &b_);
  }
  EXPECT_FALSE(Assign(bad, bad).ok());
  EXPECT_FALSE(Assert(bad, {bad}).ok());
  EXPECT_FALSE(AddToRows(bad, bad, bad).ok());
  EXPECT_FALSE(ApplyRmsProp(bad, bad, bad, bad, bad, bad, bad, bad).ok());
  EXPECT_FALSE(ApplyMomentum(bad, bad, bad, bad, bad, true).ok());
  EXPECT_FALSE(BroadcastGradientArgs(bad, bad)[1].ok());
  EXPECT_EQ(b_.status().message(), first);
  EXPECT_EQ(b_.graph().num_nodes(), nodes);
}

TEST_F(FunctionsTest, EmptyValuesDoNotCrash) {
  const Value none;
  for (const Value& v :
       {none + none, none * 2.0, -none, Relu(none), ReduceSum(none), AddN({}), Concat({}, 0),
        Concat({none, none}, 0), Reshape(none, none), Softmax(none), ReadVariable(none)}) {
    EXPECT_FALSE(v.ok());
  }
  EXPECT_FALSE(Assign(none, none).ok());
  // Beside a value that has a builder, the mistake is reported.
  EXPECT_FALSE((Input({2}) + none).ok());
  EXPECT_FALSE(b_.status().ok());
}

TEST_F(FunctionsTest, ValuesOfTwoBuildersDoNotMix) {
  GraphBuilder other(AllOps());
  const Value x = Input({2}), y = Placeholder(other, DType::kFloat, {2});
  EXPECT_FALSE((x + y).ok());
  EXPECT_FALSE(b_.status().ok());
}

TEST_F(FunctionsTest, ScalarsOfEveryNumericDType) {
  for (const DType dtype :
       {DType::kFloat, DType::kDouble, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
        DType::kUint8, DType::kUint16, DType::kUint32, DType::kUint64, DType::kBool}) {
    const Value one = Scalar(b_, 1, dtype);
    EXPECT_EQ(one.dtype(), dtype);
    EXPECT_EQ(one.shape().ToString(), "[]");
  }
  EXPECT_TRUE(b_.status().ok()) << b_.status();
  EXPECT_FALSE(Scalar(b_, 300, DType::kUint8).ok());
  EXPECT_TRUE(absl::StrContains(b_.status().message(), "300 does not fit in uint8")) << b_.status();
}

TEST_F(FunctionsTest, NumbersThatIntegersDoNotHold) {
  for (const auto& [value, dtype] : std::vector<std::pair<double, DType>>{{NAN, DType::kInt32},
                                                                          {9.3e18, DType::kInt64},
                                                                          {-1, DType::kUint64},
                                                                          {INFINITY, DType::kInt8},
                                                                          {1, DType::kString}}) {
    GraphBuilder b(AllOps());
    EXPECT_FALSE(Scalar(b, value, dtype).ok());
    EXPECT_FALSE(b.status().ok());
  }
  EXPECT_FALSE(IntVector(b_, {int64_t{1} << 40}).ok());
  EXPECT_TRUE(absl::StrContains(b_.status().message(), "does not fit in int32")) << b_.status();
}

TEST_F(FunctionsTest, FunctionsAreThePublicOps) {
  const Value x = Input({2, 3}), bools = Input({2, 3}, DType::kBool);
  const std::vector<std::pair<Value, const char*>> functions = {
      {Expm1(x), "Expm1"},
      {Log1p(x), "Log1p"},
      {Erf(x), "Erf"},
      {Relu6(x), "Relu6"},
      {LeakyRelu(x), "LeakyRelu"},
      {Elu(x), "Elu"},
      {Softplus(x), "Softplus"},
      {IsNan(x), "IsNan"},
      {IsInf(x), "IsInf"},
      {LogicalAnd(bools, bools), "LogicalAnd"},
      {LogicalOr(bools, bools), "LogicalOr"},
      {LogicalNot(bools), "LogicalNot"},
      {ClipByValue(x, Scalar(b_, 0), Scalar(b_, 1)), "ClipByValue"},
      {ReduceMin(x), "Min"},
      {ReduceProd(x, {1}), "Prod"},
      {ReduceAll(bools), "All"},
      {ReduceAny(bools, {0}, true), "Any"},
      {ArgMin(x, 1), "ArgMin"},
      {CumSum(x, 1), "Cumsum"},
      {CumProd(x, -1, true, true), "Cumprod"},
      {BatchMatMul(x, x, false, true), "BatchMatMulV2"},
      {IdentityN({x, bools})[1], "IdentityN"},
      {PreventGradient(x, "none"), "PreventGradient"},
  };
  for (const auto& [value, op] : functions) EXPECT_EQ(OpOf(value), op);
  const AttrMap& scan = NodeOf(CumProd(x, -1, true, false)).attrs();
  EXPECT_TRUE(scan.GetOr("exclusive", false));
  EXPECT_FALSE(scan.GetOr("reverse", true));
  EXPECT_EQ(BatchMatMul(x, x, false, true).shape().ToString(), "[2,2]");
  EXPECT_TRUE(b_.status().ok()) << b_.status();
}

TEST_F(FunctionsTest, ReductionsOverAllAxes) {
  EXPECT_EQ(ReduceSum(Input({2, 3})).shape().ToString(), "[]");
  EXPECT_EQ(ReduceMax(Input({2, 3}), {}, true).shape().ToString(), "[1,1]");
  EXPECT_EQ(ReduceMean(Input({2, 3}), {-1}).shape().ToString(), "[2]");
  EXPECT_EQ(ReduceSum(Input(Shape())).shape().ToString(), "[]");
  EXPECT_EQ(OpOf(ReduceSum(Input(PartialShape()))), "Sum");
  EXPECT_TRUE(b_.status().ok()) << b_.status();
}

TEST_F(FunctionsTest, OptionsBecomeAttributes) {
  Conv2DOptions conv;
  conv.stride_height = 2;
  conv.padding = Padding::kValid;
  const Value y = Conv2D(Input({1, 9, 9, 2}), Input({3, 3, 2, 4}), conv);
  EXPECT_EQ(y.shape().ToString(), "[1,4,7,4]");
  PoolOptions pool;
  pool.padding = Padding::kSame;
  EXPECT_EQ(MaxPool(y, pool).shape().ToString(), "[1,2,4,4]");
  EXPECT_EQ(AvgPool(y).shape().ToString(), "[1,2,3,4]");
  EXPECT_TRUE(b_.status().ok()) << b_.status();
}

TEST_F(FunctionsTest, OneHotMakesItsConstants) {
  const Value y = OneHot(Input({4}, DType::kInt64), 10, DType::kDouble);
  EXPECT_EQ(y.dtype(), DType::kDouble);
  EXPECT_EQ(y.shape().ToString(), "[4,10]");
}

TEST_F(FunctionsTest, DrawsHaveStreamsOfTheirOwnThatDoNotChange) {
  const Value shape = IntVector(b_, {2, 3});
  const Value a = RandomUniform(shape, DType::kFloat, 7);
  const Value c = RandomUniform(shape, DType::kFloat, 7);
  const int64_t stream_a = NodeOf(a).attrs().GetOr<int64_t>("_millrace_stream", -1);
  const int64_t stream_c = NodeOf(c).attrs().GetOr<int64_t>("_millrace_stream", -1);
  EXPECT_GE(stream_a, 0);
  EXPECT_NE(stream_a, stream_c);
  // A checkpointed stream must go on after the next build of this library.
  EXPECT_EQ(NodeOf(a).name(), "RandomUniform");
  EXPECT_EQ(stream_a, 8811508119554522079);
  EXPECT_EQ(NodeOf(a).attrs().GetOr<int64_t>("seed", -1), 7);
  EXPECT_EQ(OpOf(RandomNormal(shape, DType::kDouble, 1)), "RandomStandardNormal");
  EXPECT_EQ(OpOf(TruncatedNormal(shape, DType::kDouble, ~0ull)), "TruncatedNormal");
}

TEST_F(FunctionsTest, ASecondVariableOfANameIsRefused) {
  VariableHandle(b_, "w", DType::kFloat, {3}, SourceLocation{"model.cc", 3});
  EXPECT_FALSE(VariableHandle(b_, "w", DType::kFloat, {3}, SourceLocation{"model.cc", 8}).ok());
  EXPECT_EQ(b_.status().message(),
            "variable 'w' was made already, at model.cc:3: choose another name or a name scope "
            "(at model.cc:8)");
}

TEST_F(FunctionsTest, VariablesAreNamedByScope) {
  const auto scope = b_.NameScope("dense");
  const Value w = VariableHandle(b_, "w", DType::kFloat, {3, 4});
  EXPECT_EQ(NodeOf(w).name(), "dense/w");
  EXPECT_EQ(NodeOf(w).attrs().GetOr<std::string>("shared_name", ""), "dense/w");
  const Value read = ReadVariable(w);
  EXPECT_EQ(read.dtype(), DType::kFloat);
  EXPECT_EQ(read.shape().ToString(), "[3,4]");
  EXPECT_EQ(ReadVariable(w).port(), read.port()) << "reads between two updates share one node";
  EXPECT_EQ(OpOf(ReadVariable(Identity(w))), "ReadVariableOp");
}

TEST_F(FunctionsTest, ReadingWhatIsNoVariable) {
  EXPECT_FALSE(ReadVariable(Input({2})).ok());
  EXPECT_TRUE(absl::StrContains(b_.status().message(), "is not the handle of a variable"))
      << b_.status();
}

TEST_F(FunctionsTest, UpdatesComeAfterEarlierReads) {
  const Value w = VariableHandle(b_, "w", DType::kFloat, {3});
  const Value before = ReadVariable(w);
  const Operation update = ApplyGradientDescent(w, Scalar(b_, 0.1), Square(before));
  ASSERT_TRUE(update.ok()) << b_.status();
  const std::vector<NodeId> controls = b_.graph().node(update.node())->control_inputs();
  EXPECT_EQ(controls, std::vector<NodeId>{before.port().node});
  EXPECT_FALSE(ReadVariable(w).port() == before.port());
  const Operation all = Group(b_, {update}, "train");
  EXPECT_EQ(all.name(), "train");
  EXPECT_EQ(b_.graph().node(all.node())->control_inputs(), std::vector<NodeId>{update.node()});
  EXPECT_TRUE(Verify(b_.graph()).ok());
}

}  // namespace
}  // namespace millrace::testing
