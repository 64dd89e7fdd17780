#include <gtest/gtest.h>

#include <map>

#include "absl/strings/match.h"
#include "core/graph/gradients.h"
#include "core/graph/graph_text.h"
#include "core/graph/verify.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/nn_ops.h"
#include "ops/state_ops.h"
#include "tests/testing/op_text.h"

// Which nodes gradients are made of: the numbers are op_cases_test's.
namespace millrace::testing {
namespace {

constexpr int64_t kUnknown = PartialShape::kUnknown;

class GradientStructureTest : public ::testing::Test {
 protected:
  Value Input(PartialShape shape, DType dtype = DType::kFloat) {
    return Placeholder(b_, dtype, shape);
  }

  // The gradients of the sum of y, checked to have the shapes of the xs.
  std::vector<Value> GradientsOf(Value y, const std::vector<Value>& xs) {
    before_ = Count();
    auto dxs = Gradients({y}, xs);
    EXPECT_TRUE(dxs.ok()) << dxs.status();
    if (!dxs.ok()) return {};
    EXPECT_TRUE(Verify(b_.graph()).ok());
    for (size_t i = 0; i < xs.size(); ++i) {
      EXPECT_TRUE((*dxs)[i].shape().IsCompatibleWith(xs[i].shape()));
    }
    return *dxs;
  }

  // How many nodes of type `op` the gradients added.
  int Added(const std::string& op) { return Count()[op] - before_[op]; }

  std::map<std::string, int> Count() const {
    std::map<std::string, int> count;
    for (NodeId id = 0; id < b_.graph().num_ids(); ++id) {
      if (b_.graph().IsLive(id)) ++count[b_.graph().node(id)->op().name()];
    }
    return count;
  }

  const Node& NodeOf(Value v) { return *b_.graph().node(v.port().node); }

  GraphBuilder b_{AllOps()};
  std::map<std::string, int> before_;
};

TEST_F(GradientStructureTest, EqualStaticShapesNeedNoReduction) {
  const Value x = Input({2, 3}), y = Input({2, 3});
  GradientsOf(Mul(x, y), {x, y});
  EXPECT_EQ(Added("Sum"), 0);
  EXPECT_EQ(Added("Shape"), 0);
  EXPECT_EQ(Added("BroadcastGradientArgs"), 0);
}

TEST_F(GradientStructureTest, StaticBroadcastReducesOverConstantAxes) {
  const Value x = Input({2, 3}), y = Input({3});
  const auto dx = GradientsOf(Add(x, y), {x, y});
  EXPECT_EQ(Added("Sum"), 1);
  EXPECT_EQ(Added("Reshape"), 0);
  EXPECT_EQ(Added("BroadcastGradientArgs"), 0);
  EXPECT_EQ(dx[1].shape().ToString(), "[3]");
}

TEST_F(GradientStructureTest, BroadcastOfOneAndMissingDimensions) {
  const Value x = Input({4, 2, 3}), y = Input({1, 3});
  const auto dx = GradientsOf(Add(x, y), {y});
  EXPECT_EQ(dx[0].shape().ToString(), "[1,3]");
  EXPECT_EQ(Added("BroadcastGradientArgs"), 0);
}

// A batch of unknown extent beside a bias: the shapes tell enough.
TEST_F(GradientStructureTest, UnknownBatchAgainstAVectorIsDecidedStatically) {
  const Value x = Input({kUnknown, 3}), y = Input({3});
  GradientsOf(Mul(x, y), {x, y});
  EXPECT_EQ(Added("Sum"), 1);
  EXPECT_EQ(Added("BroadcastGradientArgs"), 0);
}

TEST_F(GradientStructureTest, TwoUnknownExtentsAreDecidedInTheStep) {
  const Value x = Input({kUnknown, 3}), y = Input({kUnknown, 3});
  GradientsOf(Mul(x, y), {x, y});
  EXPECT_EQ(Added("BroadcastGradientArgs"), 1) << "shared by both operands";
  EXPECT_EQ(Added("Sum"), 2);
}

TEST_F(GradientStructureTest, AValueWithItselfIsNotBroadcast) {
  const Value x = Input({kUnknown, 3});
  GradientsOf(Mul(x, x), {x});
  EXPECT_EQ(Added("BroadcastGradientArgs"), 0);
  EXPECT_EQ(Added("AddN"), 1);
}

TEST_F(GradientStructureTest, MeanOfStaticShapeHasAConstantFactor) {
  const Value x = Input({4, 5});
  GradientsOf(ReduceMean(x), {x});
  EXPECT_EQ(Added("Size"), 0);
  EXPECT_EQ(Added("Shape"), 0);
}

TEST_F(GradientStructureTest, MeanOfUnknownBatchCountsInTheStep) {
  const Value x = Input({kUnknown, 5});
  GradientsOf(ReduceMean(x), {x});
  EXPECT_EQ(Added("Size"), 2);
}

TEST_F(GradientStructureTest, MeanOverKnownAxesOfUnknownBatchHasAConstantFactor) {
  const Value x = Input({kUnknown, 5});
  GradientsOf(ReduceMean(x, {1}), {x});
  EXPECT_EQ(Added("Size"), 0);
}

TEST_F(GradientStructureTest, MatMulIsTwoMatMulsForEveryTranspose) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const Value a = ta ? Input({3, 2}) : Input({2, 3});
      const Value b = tb ? Input({4, 3}) : Input({3, 4});
      const auto dx = GradientsOf(MatMul(a, b, ta, tb), {a, b});
      EXPECT_EQ(Added("MatMul"), 2);
      EXPECT_EQ(Added("Transpose"), 0);
      EXPECT_EQ(dx[0].shape(), a.shape());
      EXPECT_EQ(dx[1].shape(), b.shape());
    }
  }
}

TEST_F(GradientStructureTest, OnlyWhatIsAskedForIsComputed) {
  const Value a = Input({2, 3}), b = Input({3, 4});
  GradientsOf(MatMul(a, b), {b});
  EXPECT_EQ(Added("MatMul"), 1);
  const Value x = Input({1, 8, 8, 1}), filter = Input({3, 3, 1, 4});
  GradientsOf(Conv2D(x, filter), {filter});
  EXPECT_EQ(Added("Conv2DBackpropFilter"), 1);
  EXPECT_EQ(Added("Conv2DBackpropInput"), 0);
}

TEST_F(GradientStructureTest, GradientOpsArePublicOnes) {
  const Value x = Input({2, 8, 8, 3}), filter = Input({3, 3, 3, 4}), bias = Input({4});
  const Value y = MaxPool(Relu(BiasAdd(Conv2D(x, filter), bias)));
  const auto dx = GradientsOf(y, {x, filter, bias});
  for (const char* op :
       {"MaxPoolGrad", "ReluGrad", "BiasAddGrad", "Conv2DBackpropInput", "Conv2DBackpropFilter"}) {
    EXPECT_EQ(Added(op), 1) << op;
  }
  EXPECT_EQ(Added("Shape"), 0) << "static shapes are constants";
  EXPECT_EQ(dx[0].shape(), x.shape());
  EXPECT_EQ(dx[1].shape(), filter.shape());
}

TEST_F(GradientStructureTest, ConvOfUnknownBatchAsksForTheShape) {
  const Value x = Input({kUnknown, 8, 8, 3}), filter = Input({3, 3, 3, 4});
  const auto dx = GradientsOf(Conv2D(x, filter), {x, filter});
  EXPECT_EQ(Added("Shape"), 1) << "of the images; that of the filter is known";
  EXPECT_EQ(dx[0].shape().ToString(), "[?,?,?,3]");
}

TEST_F(GradientStructureTest, ConcatOfUnknownBatchIsSlicedByConstants) {
  const Value x = Input({kUnknown, 3}), y = Input({kUnknown, 2});
  const auto dx = GradientsOf(Concat({x, y}, 1), {x, y});
  EXPECT_EQ(Added("Slice"), 2);
  EXPECT_EQ(Added("Shape"), 0);
  EXPECT_EQ(dx[1].shape().ToString(), "[?,2]");
}

TEST_F(GradientStructureTest, CrossEntropyUsesItsSecondOutput) {
  const Value logits = Input({8, 10});
  const Value labels = Input({8}, DType::kInt64);
  GradientsOf(ReduceMean(SparseCrossEntropy(logits, labels)), {logits});
  EXPECT_EQ(Added("Softmax"), 0);
  EXPECT_EQ(Added("LogSoftmax"), 0);
}

TEST_F(GradientStructureTest, StopGradientStops) {
  const Value x = Input({3});
  const auto dx = GradientsOf(Mul(x, StopGradient(Square(x))), {x});
  EXPECT_EQ(Added("AddN"), 0) << "one way back, not two";
  EXPECT_EQ(dx[0].shape(), x.shape());
}

TEST_F(GradientStructureTest, ReadsAreWhereGradientsEnd) {
  const Value w = VariableHandle(b_, "w", DType::kFloat, {3});
  const Value read = ReadVariable(w);
  const auto dx = GradientsOf(ReduceSum(Square(read)), {read});
  EXPECT_EQ(dx[0].shape().ToString(), "[3]");
}

TEST_F(GradientStructureTest, ConstantFunctionsHaveZeroGradients) {
  const Value x = Input({3});
  const auto dx = GradientsOf(Sign(x), {x});
  EXPECT_EQ(NodeOf(dx[0]).op().name(), "ZerosLike");
}

TEST_F(GradientStructureTest, NotDifferentiableNamesTheReason) {
  const Value x = Input({5});
  const auto dx = Gradients({Unique(x)[0]}, {x});
  ASSERT_FALSE(dx.ok());
  EXPECT_TRUE(absl::StrContains(dx.status().message(), "Unique")) << dx.status();
  EXPECT_TRUE(absl::StrContains(dx.status().message(), "smoothly")) << dx.status();
}

TEST_F(GradientStructureTest, PreventedGradientsGiveTheMessage) {
  const Value x = Input({3});
  const auto dx = Gradients({PreventGradient(Square(x), "the table is constant")}, {x});
  EXPECT_EQ(dx.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(dx.status().message(), "PreventGradient")) << dx.status();
  EXPECT_TRUE(absl::StrContains(dx.status().message(), "the table is constant")) << dx.status();
  // Elsewhere it is in nobody's way.
  EXPECT_TRUE(Gradients({Square(x) + StopGradient(PreventGradient(x, "no"))}, {x}).ok());
}

TEST_F(GradientStructureTest, IdentityNPassesWhatItGets) {
  const Value x = Input({3}), i = Input({2}, DType::kInt32), unused = Input({4});
  const std::vector<Value> all = IdentityN({x, i, unused});
  const auto dx = GradientsOf(ReduceSum(Square(all[0])), {x});
  EXPECT_EQ(Added("ZerosLike"), 0) << "no gradient for what none comes to";
  EXPECT_EQ(dx[0].shape(), x.shape());
}

TEST_F(GradientStructureTest, ActivationsKeepTheirParameters) {
  const Value x = Input({3});
  const auto first = GradientsOf(LeakyRelu(x, 0.5f), {x});
  EXPECT_EQ(NodeOf(first[0]).op().name(), "LeakyReluGrad");
  EXPECT_EQ(NodeOf(first[0]).attrs().GetOr("alpha", 0.0f), 0.5f);
  const auto lower = GradientsOf(ReduceSum(Square(first[0])), {x});
  EXPECT_EQ(lower[0].shape(), x.shape()) << "a slope that is constant has a gradient of zeros";
}

TEST_F(GradientStructureTest, EqualBatchesAreNotSummed) {
  const Value x = Input({5, 2, 3}), y = Input({5, 3, 4});
  const auto dx = GradientsOf(BatchMatMul(x, y), {x, y});
  EXPECT_EQ(Added("BatchMatMulV2"), 2);
  EXPECT_EQ(Added("Sum"), 0);
  EXPECT_EQ(Added("Shape"), 0);
  EXPECT_EQ(dx[1].shape(), y.shape());
}

TEST_F(GradientStructureTest, BatchesOfKnownRankAreSummedStatically) {
  const Value x = Input({kUnknown, kUnknown, 3}), w = Input({3, 4});
  const auto dx = GradientsOf(BatchMatMul(x, w), {x, w});
  EXPECT_EQ(Added("Sum"), 1) << "over the batches, for w";
  EXPECT_EQ(Added("BroadcastGradientArgs"), 0);
  EXPECT_EQ(dx[1].shape(), w.shape());
}

TEST_F(GradientStructureTest, SecondDerivativesOfActivations) {
  const Value x = Input({4});
  for (const Value& y : {Elu(x), Softplus(x), Erf(x), Expm1(x), Log1p(x), Tanh(x), Sigmoid(x),
                         Sqrt(x), Rsqrt(x), Reciprocal(x)}) {
    const auto first = GradientsOf(y, {x});
    const auto second = GradientsOf(ReduceSum(Square(first[0])), {x});
    EXPECT_EQ(second[0].shape(), x.shape()) << NodeOf(y).op().name();
  }
}

TEST_F(GradientStructureTest, SecondDerivativesOfALayer) {
  const Value x = Input({4, 3}), w = Input({3, 2});
  const auto first = GradientsOf(ReduceSum(Tanh(MatMul(x, w))), {w});
  const auto second = GradientsOf(ReduceSum(Square(first[0])), {w, x});
  EXPECT_EQ(second[0].shape(), w.shape());
  EXPECT_EQ(second[1].shape(), x.shape());
}

TEST_F(GradientStructureTest, SecondDerivativesOfConvolutionsAndTheirReason) {
  const Value x = Input({1, 6, 6, 1}), filter = Input({3, 3, 1, 2});
  const auto first = GradientsOf(AvgPool(Relu(Conv2D(x, filter))), {filter});
  const auto second = GradientsOf(ReduceSum(Square(first[0])), {filter});
  EXPECT_EQ(second[0].shape(), filter.shape());
  const auto pooled = GradientsOf(MaxPool(Conv2D(x, filter)), {filter});
  const auto refused = Gradients({ReduceSum(Square(pooled[0]))}, {filter});
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(absl::StrContains(refused.status().message(), "second derivatives are not provided"))
      << refused.status();
}

}  // namespace
}  // namespace millrace::testing
