#include <ctime>

#include "gtest/gtest.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "tests/testing/local_machine.h"
#include "tests/testing/op_text.h"

namespace millrace::testing {
namespace {

// Of the processor, so that other programs on the machine do not count.
double Seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Time of the default pipeline on the step that gives `y`.
double SecondsOfPasses(const GraphBuilder& b, Value y) {
  LocalMachine machine;
  EXPECT_TRUE(b.status().ok()) << b.status();
  StatusOr<PrunedGraph> step = Prune(b.graph(), {{"x"}, {y.name()}, {}});
  EXPECT_TRUE(step.ok()) << step.status();
  if (!step.ok()) return 0;
  const double start = Seconds();
  const Status status = machine.Passes()(*step);
  EXPECT_TRUE(status.ok()) << status;
  return Seconds() - start;
}

TEST(LargeGraphTest, TenThousandNodesTakeLessThanASecond) {
  GraphBuilder b(AllOps());
  Value x = Placeholder(b, DType::kFloat, {8, 16}, "x");
  Value y = x;
  while (b.graph().num_nodes() < 10'000) {
    // A constant product, and an expression twice.
    const Value c = Mul(Scalar(b, 0.5), Scalar(b, 0.25));
    y = Add(Tanh(Mul(y, c)), Tanh(Mul(c, y)));
  }
  EXPECT_LT(SecondsOfPasses(b, y), 1);
}

// Each link's shape is known once the values of the one before are, as in a graph of unknown batch.
TEST(LargeGraphTest, LongChainsOfShapesTakeLessThanASecond) {
  GraphBuilder b(AllOps());
  Value y = Placeholder(b, DType::kFloat, {8, 16}, "x");
  int links = 0;
  while (b.graph().num_nodes() < 10'000) {
    y = Tanh(Tanh(Tanh(Tanh(y))));
    for (int i = 0; i < 5; ++i) y = Relu(Neg(y));
    const Value doubled = Mul(ShapeOf(y), IntVector(b, {1, 1}));
    y = Reshape(y, ++links % 10 == 0 ? doubled : ShapeOf(y));
  }
  EXPECT_LT(SecondsOfPasses(b, y), 1);
}

}  // namespace
}  // namespace millrace::testing
