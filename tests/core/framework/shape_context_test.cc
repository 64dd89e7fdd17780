#include "core/framework/shape_context.h"

#include <string>
#include <vector>

#include "core/framework/sharding.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ShapeContext Context(const std::vector<PartialShape>& inputs,
                     const std::vector<const Tensor*>& values = {}, int outputs = 1) {
  static const AttrMap& attrs = *new AttrMap;
  static const std::vector<DType>& dtypes = *new std::vector<DType>(4, DType::kFloat);
  return ShapeContext(attrs, inputs, values, dtypes, outputs);
}

TEST(ShapeContextTest, WithRank) {
  const std::vector<PartialShape> inputs = {PartialShape{2, -1}, PartialShape()};
  const ShapeContext c = Context(inputs);
  EXPECT_EQ(c.WithRank(0, 2)->ToString(), "[2,?]");
  EXPECT_EQ(c.WithRank(1, 3)->ToString(), "[?,?,?]");
  EXPECT_THAT(std::string(c.WithRank(0, 4).status().message()),
              HasSubstr("input 0 has shape [2,?], but rank 4"));
}

TEST(ShapeContextTest, HostInts) {
  const Tensor ints = Tensor::Of<int32_t>(Shape{2}, {3, -1});
  const Tensor longs = Tensor::Scalar<int64_t>(int64_t{1} << 40);
  const Tensor floats = Tensor::Scalar<float>(1);
  const Tensor matrix = Tensor::Zeros(DType::kInt32, Shape{2, 2});
  const std::vector<PartialShape> inputs(5);
  const std::vector<const Tensor*> values = {&ints, &longs, &floats, &matrix};
  const ShapeContext c = Context(inputs, values);
  EXPECT_THAT(c.HostInts(0).value(), ElementsAre(3, -1));
  EXPECT_THAT(c.HostInts(1).value(), ElementsAre(int64_t{1} << 40));
  EXPECT_THAT(std::string(c.HostInts(2).status().message()), HasSubstr("input 2 is float"));
  EXPECT_THAT(std::string(c.HostInts(3).status().message()), HasSubstr("[2,2]"));
  EXPECT_EQ(c.HostInts(4).status().code(), absl::StatusCode::kNotFound);
}

struct ShapeInputCase {
  PartialShape input;
  std::vector<int64_t> value;  // empty with `known` false: not known
  bool known;
  const char* expected;  // the shape, or part of the message
  bool ok;
};

TEST(ShapeContextTest, ShapeFromHostInput) {
  const ShapeInputCase cases[] = {
      {PartialShape{2}, {4, -1}, true, "[4,?]", true},
      {PartialShape{0}, {}, true, "[]", true},
      {PartialShape{1}, {-2}, true, "extent -2", false},
      {PartialShape{9}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, true, "rank 9", false},
      {PartialShape{2}, {int64_t{1} << 40, int64_t{1} << 40}, true, "too many", false},
      {PartialShape{3}, {}, false, "[?,?,?]", true},
      {PartialShape{-1}, {}, false, "?", true},
      {PartialShape(), {}, false, "?", true},
      {PartialShape{9}, {}, false, "rank 9", false},
      {PartialShape{2, 2}, {}, false, "must be a vector", false},
  };
  for (const ShapeInputCase& c : cases) {
    const Tensor value = Tensor::Of<int64_t>(Shape{static_cast<int64_t>(c.value.size())},
                                             absl::MakeConstSpan(c.value));
    const std::vector<PartialShape> inputs = {c.input};
    const std::vector<const Tensor*> values = {c.known ? &value : nullptr};
    const StatusOr<PartialShape> shape = Context(inputs, values).ShapeFromHostInput(0);
    ASSERT_EQ(shape.ok(), c.ok) << c.expected << shape.status();
    if (c.ok) {
      EXPECT_EQ(shape->ToString(), c.expected);
    } else {
      EXPECT_THAT(std::string(shape.status().message()), HasSubstr(c.expected));
    }
  }
}

TEST(ShapeContextTest, CommonFunctions) {
  const std::vector<PartialShape> inputs = {PartialShape{2, 1}, PartialShape{3}};
  ShapeContext c = Context(inputs, {}, 2);
  ASSERT_TRUE(ShapeOfInput0(c).ok());
  EXPECT_EQ(c.output(1).ToString(), "[2,1]");
  ASSERT_TRUE(BroadcastShape(c).ok());
  EXPECT_EQ(c.output(0).ToString(), "[2,3]");
  ASSERT_TRUE(ScalarShape(c).ok());
  EXPECT_EQ(c.output(0).ToString(), "[]");
  ASSERT_TRUE(UnknownShape(c).ok());
  EXPECT_EQ(c.output(0).ToString(), "?");

  const std::vector<PartialShape> none;
  ShapeContext empty = Context(none);
  EXPECT_FALSE(ShapeOfInput0(empty).ok());
  EXPECT_FALSE(BroadcastShape(empty).ok());
}

TEST(ShardingTest, TextAndTheReplicatedRule) {
  EXPECT_EQ(Sharding::Split(1).ToString(), "S(1)");
  EXPECT_EQ(Sharding::PartialSum().ToString(), "P");
  const std::vector<Sharding> inputs = {Sharding::Split(0)};
  const std::vector<PartialShape> shapes(1);
  const std::vector<const Tensor*> values(1);
  const AttrMap attrs;
  ShardingContext c(attrs, inputs, shapes, values, shapes);
  ASSERT_TRUE(ReplicatedSharding(c).ok());
  EXPECT_EQ(c.input(0).ToString(), "B");
  EXPECT_EQ(c.output(0).ToString(), "B");
}

}  // namespace
}  // namespace millrace
