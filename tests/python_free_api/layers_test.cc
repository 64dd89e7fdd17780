#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/python_free_api/program.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kUnknown = PartialShape::kUnknown;

// The elements of a constant, whatever shape is asked for.
Initializer Elements(std::vector<float> values) {
  return [values](GraphBuilder& b, DType, const Shape& shape, SourceLocation where) {
    return Const(b, Tensor::Of<float>(shape, values), "", where);
  };
}

class LayersTest : public ::testing::Test {
 protected:
  Value Input(PartialShape shape, DType dtype = DType::kFloat) {
    return Placeholder(p_.b, dtype, shape, "x");
  }
  std::vector<double> Numbers(Value y, const Shape& shape, std::vector<float> x) {
    return p_.Numbers(y, {{"x", Tensor::Of<float>(shape, x)}});
  }
  Program p_;
};

TEST_F(LayersTest, DenseIsAProductAndABias) {
  Dense::Options options;
  options.weights = Elements({1, 2, 3, 4, 5, 6});
  const Dense dense(p_.variables, "dense", 3, 2, options);
  const Value y = dense(Input({kUnknown, 3}));
  EXPECT_EQ(y.shape().ToString(), "[?,2]");
  ASSERT_EQ(p_.variables.size(), 2);
  EXPECT_EQ(p_.variables[0].name, "dense/weights");
  EXPECT_EQ(p_.variables[0].shape, (Shape{3, 2}));
  EXPECT_EQ(p_.variables[1].name, "dense/bias");
  EXPECT_EQ(p_.variables[1].shape, (Shape{2}));
  EXPECT_TRUE(p_.variables[0].trainable && p_.variables[1].trainable);
  // 1*1 + 0*3 - 1*5, 1*2 + 0*4 - 1*6; then 2*3 and 2*4.
  EXPECT_EQ(Numbers(y, {2, 3}, {1, 0, -1, 0, 2, 0}), (std::vector<double>{-4, -4, 6, 8}));
  const Tensor bias = Tensor::Of<float>({2}, {10, 20});
  ASSERT_EQ(RunStep(p_.session(), {{p_.variables[1].restore_feed, bias}}, {},
                    {p_.variables[1].restore_target})
                .status(),
            Status());
  EXPECT_EQ(Numbers(y, {1, 3}, {1, 0, -1}), (std::vector<double>{6, 16}));
}

TEST_F(LayersTest, DenseWithoutBiasAndInDouble) {
  Dense::Options options;
  options.use_bias = false;
  options.dtype = DType::kDouble;
  options.weights = Constant(0.5);
  const Value y = Dense(p_.variables, "dense", 2, 1, options)(Input({kUnknown, 2}, DType::kDouble));
  EXPECT_EQ(y.dtype(), DType::kDouble);
  EXPECT_EQ(p_.variables.size(), 1);
  EXPECT_EQ(p_.Numbers(y, {{"x", Tensor::Of<double>({1, 2}, {3, 5})}}), (std::vector<double>{4}));
}

TEST_F(LayersTest, UsesOfALayerShareItsParameters) {
  const Dense dense(p_.variables, "dense", 2, 2);
  const Value x = Input({kUnknown, 2});
  const Value difference = dense(x) - dense(x);
  EXPECT_EQ(p_.variables.size(), 2);
  EXPECT_EQ(Numbers(difference, {1, 2}, {3, 4}), (std::vector<double>{0, 0}));
}

TEST_F(LayersTest, LayersOfOneNameHaveParametersOfTheirOwn) {
  const Dense first(p_.variables, "dense", 2, 2);
  const Dense second(p_.variables, "dense", 2, 2);
  EXPECT_EQ(p_.b.status(), Status());
  EXPECT_EQ(p_.variables[2].name, "dense_1/weights");
  EXPECT_NE(p_.ValueOf("dense/weights"), p_.ValueOf("dense_1/weights"));
}

TEST_F(LayersTest, ConvolutionSumsItsWindow) {
  ConvolutionLayer::Options options;
  options.weights = Elements({1, 2, 3, 4});  // [2,2,1,1]
  const struct {
    Padding padding;
    int64_t stride;
    const char* shape;
    std::vector<double> values;
  } cases[] = {
      // 1*1 + 2*2 + 3*4 + 4*5 and so on, over the rows 1 2 3, 4 5 6, 7 8 9.
      {Padding::kValid, 1, "[?,2,2,1]", {37, 47, 67, 77}},
      // Zeros after the last row and column.
      {Padding::kSame, 1, "[?,3,3,1]", {37, 47, 21, 67, 77, 33, 23, 26, 9}},
      {Padding::kSame, 2, "[?,2,2,1]", {37, 21, 23, 9}},
  };
  const Value x = Input({kUnknown, 3, 3, 1});
  std::vector<Value> results;
  for (const auto& c : cases) {
    options.convolution.padding = c.padding;
    options.convolution.stride_height = options.convolution.stride_width = c.stride;
    results.push_back(ConvolutionLayer(p_.variables, "conv", 1, 1, 2, options)(x));
    EXPECT_EQ(results.back().shape().ToString(), c.shape);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(Numbers(results[i], {1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), cases[i].values);
  }
}

TEST_F(LayersTest, ConvolutionHasAFilterAndABiasAChannel) {
  const ConvolutionLayer conv(p_.variables, "conv", 3, 8, 5);
  EXPECT_EQ(conv(Input({kUnknown, 28, 28, 3})).shape().ToString(), "[?,28,28,8]");
  ASSERT_EQ(p_.variables.size(), 2);
  EXPECT_EQ(p_.variables[0].name, "conv/filter");
  EXPECT_EQ(p_.variables[0].shape, (Shape{5, 5, 3, 8}));
  EXPECT_EQ(p_.variables[1].shape, (Shape{8}));
  EXPECT_EQ(p_.ValueOf("conv/bias"), std::vector<double>(8, 0));
}

TEST_F(LayersTest, PoolsTakeTheLargestOrTheMeanOfAWindow) {
  const Value x = Input({kUnknown, 2, 4, 1});
  const Value largest = MaxPool(x);
  const Value mean = AvgPool(x);
  EXPECT_EQ(largest.shape().ToString(), "[?,1,2,1]");
  const std::vector<float> image = {1, -2, 3, 4, 5, 0, -7, 8};
  EXPECT_EQ(Numbers(largest, {1, 2, 4, 1}, image), (std::vector<double>{5, 8}));
  EXPECT_EQ(Numbers(mean, {1, 2, 4, 1}, image), (std::vector<double>{1, 2}));
}

TEST_F(LayersTest, FlattenKeepsTheBatchAndTheOrder) {
  const Value x = Input({kUnknown, 2, 3});
  const Value y = Flatten(x);
  EXPECT_EQ(y.shape().ToString(), "[?,6]");
  std::vector<float> values(12);
  for (int i = 0; i < 12; ++i) values[i] = static_cast<float>(i);
  const StatusOr<std::vector<Tensor>> run =
      p_.Run({{"x", Tensor::Of<float>({2, 2, 3}, values)}}, {y});
  ASSERT_EQ(run.status(), Status());
  EXPECT_EQ((*run)[0].shape().ToString(), "[2,6]");
  EXPECT_EQ(NumbersOf((*run)[0]), std::vector<double>(values.begin(), values.end()));
}

TEST(FlattenTest, ShapesAreKnownOrRefused) {
  const struct {
    PartialShape shape;
    const char* expected;  // a part of the error after '!'
  } cases[] = {
      {{5}, "[5,1]"},
      {{5, 4}, "[5,4]"},
      {{kUnknown, 7, 7, 32}, "[?,1568]"},
      {Shape(), "!but x has shape []"},
      {PartialShape(), "!but x has shape ?"},
      {{2, kUnknown, 3}, "!but x has shape [2,?,3]"},
      {{kUnknown, INT64_MAX / 2, 3}, "!but x has shape"},
  };
  for (const auto& c : cases) {
    Program p;
    const std::string here = Here(1);
    const Value y = Flatten(Placeholder(p.b, DType::kFloat, c.shape, "x"));
    const std::string expected = c.expected;
    if (expected[0] != '!') {
      EXPECT_EQ(y.shape().ToString(), expected);
      continue;
    }
    EXPECT_FALSE(y.ok());
    EXPECT_THAT(MessageOf(p.b.status()), HasSubstr(expected.substr(1)));
    EXPECT_THAT(MessageOf(p.b.status()), HasSubstr(here));
  }
}

class DropoutTest : public LayersTest {
 protected:
  static constexpr int64_t kElements = 20000;
  Value Ones() {
    return Const(p_.b, Tensor::Of<float>({kElements}, std::vector<float>(kElements, 1)));
  }
};

TEST_F(DropoutTest, ZeroesAtItsRateAndKeepsTheMean) {
  for (const double rate : {0.1, 0.5, 0.9}) {
    Program p;
    const Value x = Const(p.b, Tensor::Of<float>({kElements}, std::vector<float>(kElements, 3)));
    const std::vector<double> y = p.Numbers(Dropout(p.variables, x, rate, Mode::kTrain));
    int zeros = 0;
    for (const double v : y) {
      zeros += v == 0;
      EXPECT_TRUE(v == 0 || std::abs(v - 3 / (1 - rate)) < 1e-5) << v;
    }
    EXPECT_NEAR(zeros, rate * kElements, 5 * std::sqrt(rate * (1 - rate) * kElements)) << rate;
  }
}

TEST_F(DropoutTest, DoesNothingInUseOrAtRateZero) {
  const Value x = Ones();
  EXPECT_EQ(Dropout(p_.variables, x, 0.5, Mode::kEval).port(), x.port());
  EXPECT_EQ(Dropout(p_.variables, x, 0, Mode::kTrain).port(), x.port());
  EXPECT_EQ(p_.variables.size(), 0) << "needs no step";
}

TEST_F(DropoutTest, TheMaskFollowsFromSeedPlaceAndGlobalStep) {
  const Value x = Ones();
  std::vector<Value> ys = {Dropout(p_.variables, x, 0.5, Mode::kTrain, 1),
                           Dropout(p_.variables, x, 0.5, Mode::kTrain, 1),
                           Dropout(p_.variables, x, 0.5, Mode::kTrain, 2)};
  const Variables::Variable& step = p_.variables[p_.IndexOf("global_step")];
  auto masks = [&](int64_t at) {
    EXPECT_EQ(RunStep(p_.session(), {{step.restore_feed, Tensor::Scalar<int64_t>(at)}}, {},
                      {step.restore_target})
                  .status(),
              Status());
    std::vector<std::vector<double>> masks;
    for (const Value& y : ys) masks.push_back(p_.Numbers(y));
    return masks;
  };
  const auto at_zero = masks(0);
  EXPECT_NE(at_zero[0], at_zero[1]) << "two places in the model";
  EXPECT_NE(at_zero[0], at_zero[2]) << "two seeds";
  EXPECT_NE(at_zero[0], masks(1)[0]) << "two steps";
  EXPECT_EQ(at_zero, masks(0)) << "a step that is tried again";
}

TEST_F(DropoutTest, TheGradientGoesWhereTheValueWent) {
  const Value x = Input({kElements});
  const Value y = Dropout(p_.variables, x, 0.5, Mode::kTrain);
  const Value dx = Gradients({ReduceSum(y)}, {x}).value()[0];
  const std::vector<float> ones(kElements, 1);
  const auto run = p_.Run({{"x", Tensor::Of<float>({kElements}, ones)}}, {y, dx});
  ASSERT_EQ(run.status(), Status());
  EXPECT_EQ(NumbersOf((*run)[0]), NumbersOf((*run)[1]));
}

TEST_F(DropoutTest, TheRateIsCheckedInBothModes) {
  for (const Mode mode : {Mode::kTrain, Mode::kEval}) {
    for (const double rate : {-0.1, 1.0, 1.5, std::nan(""), HUGE_VAL}) {
      Program p;
      const Value x = Placeholder(p.b, DType::kFloat, {2}, "x");
      const std::string here = Here(1);
      EXPECT_FALSE(Dropout(p.variables, x, rate, mode).ok()) << rate;
      EXPECT_EQ(p.b.status(),
                InvalidArgument("a dropout rate must be in [0,1), but is ", rate, " (", here, ")"));
    }
  }
}

}  // namespace
}  // namespace millrace::testing
