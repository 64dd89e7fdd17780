#include <gtest/gtest.h>

#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "tests/testing/graph_runner.h"
#include "tests/testing/op_text.h"

// Ops of numbers that take strings, too, through the session: the tables of op_cases_test hold
// numbers only.
namespace millrace::testing {
namespace {

class StringOpsTest : public ::testing::Test {
 protected:
  Value Strings(const Shape& shape, const std::vector<std::string>& values) {
    return Const(b_, Tensor::Strings(shape, values));
  }
  Value Bools(const Shape& shape, std::initializer_list<bool> values) {
    return Const(b_, Tensor::Of<bool>(shape, values));
  }
  Value Call(const char* op, const std::vector<Value>& inputs) {
    return b_.AddOne(op, inputs, {}, SourceLocation::Current());
  }
  Tensor Run(Value value) {
    EXPECT_TRUE(b_.status().ok()) << b_.status();
    auto results = runner_.Run(b_.graph(), {}, {value.name()});
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? (*results)[0] : Tensor();
  }
  void ExpectStrings(Value value, const Shape& shape, const std::vector<std::string>& wanted) {
    const Tensor got = Run(value);
    ASSERT_EQ(got.dtype(), DType::kString);
    ASSERT_EQ(got.shape(), shape);
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(got.string(static_cast<int64_t>(i)), wanted[i]) << i;
    }
  }
  void ExpectBools(Value value, const std::vector<bool>& wanted) {
    const Tensor got = Run(value);
    ASSERT_EQ(got.dtype(), DType::kBool);
    ASSERT_EQ(got.num_elements(), static_cast<int64_t>(wanted.size()));
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(got.data<bool>()[i], wanted[i]) << i;
  }

  GraphRunner runner_;
  GraphBuilder b_{AllOps()};
};

TEST_F(StringOpsTest, SelectTakesWholeStrings) {
  const Value x = Strings({2, 2}, {"a", "", "a longer string than most", "d"});
  const Value y = Strings({2, 2}, {"e", "f", "g", "h"});
  ExpectStrings(Call("Select", {Bools({2}, {false, true}), x, y}), {2, 2},
                {"e", "f", "a longer string than most", "d"});
  ExpectStrings(Call("Select", {Bools({2, 2}, {true, true, false, true}), x, y}), {2, 2},
                {"a", "", "g", "d"});
  ExpectStrings(Call("Select", {Bools({}, {false}), Strings({}, {"x"}), Strings({}, {"y"})}), {},
                {"y"});
  ExpectStrings(Call("Select", {Bools({0}, {}), Strings({0}, {}), Strings({0}, {})}), {0}, {});
}

TEST_F(StringOpsTest, SelectV2Broadcasts) {
  ExpectStrings(
      Select(Bools({2, 1}, {true, false}), Strings({3}, {"a", "b", "c"}), Strings({}, {"other"})),
      {2, 3}, {"a", "b", "c", "other", "other", "other"});
}

TEST_F(StringOpsTest, EqualComparesBytes) {
  const Value x = Strings({2, 2}, {"a", "b", std::string("\0x", 2), ""});
  ExpectBools(Equal(x, Strings({2}, {"a", ""})), {true, false, false, true});
  ExpectBools(NotEqual(x, Strings({}, {"b"})), {true, false, true, true});
  ExpectBools(Equal(x, Strings({2, 2}, {"a", "b ", std::string("\0y", 2), std::string(1, '\0')})),
              {true, false, false, false});
}

TEST_F(StringOpsTest, StringsAreJoinedAndCut) {
  const Value x = Strings({2, 2}, {"a", "", "a longer string than most", "d"});
  const Value y = Strings({2, 1}, {"e", "f"});
  const Value joined = Concat({x, y}, 1);
  ExpectStrings(joined, {2, 3}, {"a", "", "e", "a longer string than most", "d", "f"});
  ExpectStrings(Stack({y, y}, 1), {2, 2, 1}, {"e", "e", "f", "f"});
  const std::vector<Value> rows = Unstack(joined, 2, 0);
  ExpectStrings(rows[1], {3}, {"a longer string than most", "d", "f"});
  const std::vector<Value> parts = Split(joined, 3, 1);
  ExpectStrings(parts[0], {2, 1}, {"a", "a longer string than most"});
  ExpectStrings(parts[2], {2, 1}, {"e", "f"});
}

TEST_F(StringOpsTest, StringsAreMovedAndRepeated) {
  const Value x = Strings({2, 3}, {"a", "", "a longer string than most", "d", "e", "ff"});
  ExpectStrings(Transpose(x, {1, 0}), {3, 2},
                {"a", "d", "", "e", "a longer string than most", "ff"});
  ExpectStrings(TakeSlice(x, {.begin = {1, 2}, .end = {2, 0}, .strides = {1, -1}}), {1, 2},
                {"ff", "e"});
  const Value y = Strings({2, 1}, {"a longer string than most", "b"});
  ExpectStrings(Tile(y, IntVector(b_, {2, 2})), {4, 2},
                {"a longer string than most", "a longer string than most", "b", "b",
                 "a longer string than most", "a longer string than most", "b", "b"});
  ExpectStrings(Tile(y, IntVector(b_, {1, 0})), {2, 0}, {});
  ExpectStrings(BroadcastTo(y, IntVector(b_, {2, 2, 2})), {2, 2, 2},
                {"a longer string than most", "a longer string than most", "b", "b",
                 "a longer string than most", "a longer string than most", "b", "b"});
}

TEST_F(StringOpsTest, StringsAreStitched) {
  const auto indices = [&](const Shape& shape, std::initializer_list<int32_t> values) {
    return Const(b_, Tensor::Of<int32_t>(shape, values));
  };
  const Value pair = Strings({2, 2}, {"a", "b", "a longer string than most", ""});
  const Value row = Strings({2}, {"x", "y"});
  ExpectStrings(DynamicStitch({indices({2}, {1, 0}), indices({}, {2})}, {pair, row}), {3, 2},
                {"a longer string than most", "", "a", "b", "x", "y"});
  // The later one wins; a place that none names is empty.
  ExpectStrings(DynamicStitch({indices({2}, {3, 1}), indices({}, {3})}, {pair, row}), {4, 2},
                {"", "", "a longer string than most", "", "", "", "x", "y"});
  // Data without elements before others.
  ExpectStrings(DynamicStitch({indices({0}, {}), indices({}, {0})}, {Strings({0, 2}, {}), row}),
                {1, 2}, {"x", "y"});
  ExpectStrings(DynamicStitch({indices({0}, {})}, {Strings({0, 2}, {})}), {0, 2}, {});
}

}  // namespace
}  // namespace millrace::testing
