// Mistakes in model code: kept by the builder, with the line of the user's program in which they
// were made, whatever layer or function found them.
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/python_free_api/program.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

Value Images(Program& p) {
  return Placeholder(p.b, DType::kFloat, {PartialShape::kUnknown, 4, 4, 1});
}
Value Rows(Program& p) { return Placeholder(p.b, DType::kFloat, {PartialShape::kUnknown, 3}); }

struct Mistake {
  const char* name;
  std::function<int(Program&)> make;  // gives the line of the mistake
  const char* message;
};

const std::vector<Mistake>& Mistakes() {
  static const auto& mistakes = *new std::vector<Mistake>{
      {"a dense layer of another width than its input",
       [](Program& p) {
         const Dense dense(p.variables, "dense", 4, 2);
         dense(Rows(p));
         return __LINE__ - 1;
       },
       "(in scope 'dense_1/', "},
      {"a dense layer of no units",
       [](Program& p) {
         Dense(p.variables, "dense", 3, 0);
         return __LINE__ - 1;
       },
       "variable 'dense/weights' cannot have the extents [3,0]: each must be at least 1"},
      {"a dense layer of a negative width",
       [](Program& p) {
         Dense(p.variables, "dense", -3, 2);
         return __LINE__ - 1;
       },
       "variable 'dense/weights' cannot have the extents [-3,2]"},
      {"a convolution of other channels than its input's",
       [](Program& p) {
         const ConvolutionLayer conv(p.variables, "conv", 3, 8, 3);
         conv(Images(p));
         return __LINE__ - 1;
       },
       "(in scope 'conv_1/', "},
      {"a convolution that no memory holds",
       [](Program& p) {
         ConvolutionLayer(p.variables, "conv", 1 << 30, 1 << 30, 1 << 20);
         return __LINE__ - 1;
       },
       "variable 'conv/filter' cannot have the extents"},
      {"dropout of integers",
       [](Program& p) {
         const Value x = Placeholder(p.b, DType::kInt32, {2});
         Dropout(p.variables, x, 0.5, Mode::kTrain);
         return __LINE__ - 1;
       },
       "int32"},
      {"clipping at zero",
       [](Program& p) {
         ClipByGlobalNorm({Rows(p)}, 0);
         return __LINE__ - 1;
       },
       "the limit of a global norm must be a finite float above 0, but is 0"},
      {"minimizing nothing",
       [](Program& p) {
         Minimize(Value(), p.variables, *Sgd(0.1));
         return __LINE__ - 1;
       },
       "the loss is an empty Value"},
      {"minimizing over nothing",
       [](Program& p) {
         Minimize(ReduceSum(Rows(p)), p.variables, *Sgd(0.1));
         return __LINE__ - 1;
       },
       "there is no trainable variable to minimize"},
      {"minimizing with a rate that is none",
       [](Program& p) {
         const Dense dense(p.variables, "dense", 3, 1);
         Minimize(ReduceSum(dense(Rows(p))), p.variables, *Sgd(-0.1));
         return __LINE__ - 1;
       },
       "an optimizer's rate must be a number of at least 0, but is -0.1"},
      {"adding shapes that do not go together",
       [](Program& p) {
         const Value x = Const(p.b, Tensor::Zeros(DType::kFloat, {2}));
         Add(x, Const(p.b, Tensor::Zeros(DType::kFloat, {3})));
         return __LINE__ - 1;
       },
       "[2]"},
  };
  return mistakes;
}

TEST(BuilderErrorsTest, KeepTheUsersLine) {
  for (const Mistake& mistake : Mistakes()) {
    Program p;
    const int line = mistake.make(p);
    const std::string message = MessageOf(p.b.status());
    EXPECT_EQ(p.b.status().code(), absl::StatusCode::kInvalidArgument) << mistake.name;
    EXPECT_THAT(message, HasSubstr(mistake.message)) << mistake.name;
    EXPECT_THAT(message, HasSubstr(StrCat(__FILE__, ":", line, ")"))) << mistake.name;
  }
}

// Model code goes on with poisoned values, and is checked once, at its end.
TEST(BuilderErrorsTest, TheFirstMistakeIsTheOneThatIsReported) {
  Program p;
  Dense narrow(p.variables, "narrow", 4, 2);
  Dense logits(p.variables, "logits", 2, 10);
  const std::string here = Here(1);
  Value x = Relu(narrow(Rows(p)));
  const Value loss = ReduceMean(Square(logits(Flatten(x))));
  const Operation train = Minimize(loss, p.variables, *Adam(), {.clip_global_norm = -1});
  EXPECT_FALSE(train.ok());
  EXPECT_THAT(MessageOf(p.b.status()), HasSubstr(here));
  EXPECT_EQ(p.runtime->OpenSession(p.b).status(), p.b.status());
}

TEST(BuilderErrorsTest, ValuesOfAnotherProgramAreRefused) {
  Program p;
  Program other;
  const Dense dense(p.variables, "dense", 3, 2);
  const Value x = Rows(other);
  EXPECT_FALSE(dense(x).ok());
  EXPECT_THAT(MessageOf(other.b.status()), HasSubstr("belongs to another builder"));
  Program third;
  const Value loss = ReduceSum(Rows(third));
  EXPECT_FALSE(Minimize(loss, p.variables, *Sgd(0.1)).ok());
  EXPECT_THAT(MessageOf(p.b.status()), HasSubstr("belongs to another builder"));
}

}  // namespace
}  // namespace millrace::testing
