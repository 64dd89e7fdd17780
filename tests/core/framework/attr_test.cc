#include "core/framework/attr.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

struct Case {
  AttrValue value;
  const char* kind;
  const char* text;
};

std::vector<Case> Cases() {
  const FunctionName body{"body", nullptr};
  const FunctionName typed{"f", std::make_shared<AttrMap>(AttrMap{{"T", DType::kFloat}})};
  return {
      {AttrValue(), "none", "none"},
      {"a\"b", "string", "\"a\\\"b\""},
      {-3, "int", "-3"},
      {int64_t{1} << 40, "int", "1099511627776"},
      {0.1F, "float", "0.1"},
      {1.0F, "float", "1.0"},
      {1e30F, "float", "1e+30"},
      {std::numeric_limits<float>::quiet_NaN(), "float", "nan"},
      {-std::numeric_limits<float>::infinity(), "float", "-inf"},
      {true, "bool", "true"},
      {DType::kInt32, "type", "int32"},
      {PartialShape{2, -1}, "shape", "[2,?]"},
      {Shape(), "shape", "[]"},
      {PartialShape(), "shape", "?"},
      {Tensor::Of<float>(Shape{2}, {1, 2}), "tensor", "float[2] = 1 2"},
      {body, "func", "body"},
      {typed, "func", "f{T=float}"},
      {std::vector<std::string>{"a", "b"}, "list(string)", "[\"a\", \"b\"]"},
      {std::vector<int64_t>{1, 2}, "list(int)", "[1, 2]"},
      {std::vector<int64_t>{}, "list(int)", "[]"},
      {std::vector<float>{1, 2.5F}, "list(float)", "[1.0, 2.5]"},
      {std::vector<bool>{true, false}, "list(bool)", "[true, false]"},
      {std::vector<DType>{DType::kFloat}, "list(type)", "[float]"},
      {std::vector<PartialShape>{PartialShape(), Shape{3}}, "list(shape)", "[?, [3]]"},
      {std::vector<Tensor>{Tensor::Scalar<int32_t>(1)}, "list(tensor)", "[int32[] = 1]"},
      {std::vector<FunctionName>{body, typed}, "list(func)", "[body, f{T=float}]"},
  };
}

TEST(AttrValueTest, KindsAndText) {
  for (const Case& c : Cases()) {
    EXPECT_EQ(c.value.kind(), c.kind);
    EXPECT_EQ(c.value.ToString(), c.text);
  }
}

TEST(AttrValueTest, EqualOnlyToItself) {
  const std::vector<Case> cases = Cases();
  const std::vector<Case> again = Cases();  // other buffers and functions, the same values
  for (size_t i = 0; i < cases.size(); ++i) {
    for (size_t j = 0; j < cases.size(); ++j) {
      EXPECT_EQ(cases[i].value == again[j].value, i == j) << cases[i].text << " " << again[j].text;
    }
  }
  EXPECT_FALSE(AttrValue(0.0F) == AttrValue(-0.0F));
  EXPECT_FALSE(AttrValue(Tensor::Scalar<float>(1)) == AttrValue(Tensor::Of<float>(Shape{1}, {1})));
  EXPECT_EQ((FunctionName{"f", nullptr}), (FunctionName{"f", std::make_shared<AttrMap>()}));
}

TEST(AttrMapTest, GetNamesWhatIsWrong) {
  AttrMap attrs{{"T", DType::kFloat}, {"axis", 1}};
  EXPECT_EQ(attrs.Get<DType>("T").value(), DType::kFloat);
  EXPECT_THAT(std::string(attrs.Get<DType>("U").status().message()), HasSubstr("'U' is missing"));
  EXPECT_THAT(std::string(attrs.Get<float>("axis").status().message()),
              HasSubstr("'axis' has an unexpected kind: int"));
  EXPECT_EQ(attrs.GetOr<int64_t>("axis", 7), 1);
  EXPECT_EQ(attrs.GetOr<int64_t>("T", 7), 7);
  attrs.Set("axis", 2);
  EXPECT_EQ(attrs.GetOr<int64_t>("axis", 7), 2);
  attrs.Erase("axis");
  EXPECT_FALSE(attrs.Has("axis"));
  EXPECT_EQ(attrs.size(), 1U);
}

}  // namespace
}  // namespace millrace
