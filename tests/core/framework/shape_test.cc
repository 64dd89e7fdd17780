#include "core/framework/shape.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/framework/dtype.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

struct CreateCase {
  std::vector<int64_t> dims;
  std::string expected;  // the shape, or part of the message
  bool ok;
};

TEST(ShapeTest, CreateChecksNumbersFromOutside) {
  const CreateCase cases[] = {
      {{}, "[]", true},
      {{2, 3}, "[2,3]", true},
      {{0, 5}, "[0,5]", true},
      {{1, 1, 1, 1, 1, 1, 1, 1}, "[1,1,1,1,1,1,1,1]", true},
      {{1, 1, 1, 1, 1, 1, 1, 1, 1}, "rank 9", false},
      {{-1}, "extent -1 of dimension 0", false},
      {{2, -7}, "extent -7 of dimension 1", false},
      {{int64_t{1} << 58}, "[288230376151711744]", true},
      {{int64_t{1} << 59}, "too many elements", false},
      {{kMax}, "too many elements", false},
      {{int64_t{1} << 32, int64_t{1} << 32}, "too many elements", false},
      // No element, but the size of a row would overflow.
      {{0, kMax, kMax}, "too many elements", false},
  };
  for (const CreateCase& c : cases) {
    const StatusOr<Shape> shape = Shape::Create(c.dims);
    ASSERT_EQ(shape.ok(), c.ok) << c.expected << ": " << shape.status();
    if (c.ok) {
      EXPECT_EQ(shape->ToString(), c.expected);
    } else {
      EXPECT_EQ(shape.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(shape.status().message()), HasSubstr(c.expected));
    }
  }
}

TEST(ShapeTest, CountsElements) {
  EXPECT_EQ(Shape().num_elements(), 1);
  EXPECT_EQ((Shape{2, 3, 4}).num_elements(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).num_elements(), 0);
}

TEST(ShapeTest, AMistakeInTheProgramIsHarmless) {
  EXPECT_EQ((Shape{-1, 3}).ToString(), "[0]");
  EXPECT_EQ((PartialShape{1, 2, 3, 4, 5, 6, 7, 8, 9}), PartialShape());
}

TEST(PartialShapeTest, ParseReadsWhatToStringWrites) {
  for (const char* text : {"?", "[]", "[?]", "[2,3]", "[?,0,7]"}) {
    const StatusOr<PartialShape> shape = PartialShape::Parse(text);
    ASSERT_TRUE(shape.ok()) << shape.status();
    EXPECT_EQ(shape->ToString(), text);
  }
  EXPECT_EQ(PartialShape::Parse(" [ 2 , -1 ] ").value(), (PartialShape{2, -1}));
}

TEST(PartialShapeTest, ParseRefuses) {
  for (const char* text : {"", "[", "]", "[2", "2,3", "[2,]", "[a]", "[-2]", "[2]x", "??", "[2 3]",
                           "[99999999999999999999]", "[1,1,1,1,1,1,1,1,1]"}) {
    EXPECT_EQ(PartialShape::Parse(text).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(PartialShapeTest, FullOnesBecomeShapes) {
  EXPECT_EQ((PartialShape{2, 3}).ToShape().value(), (Shape{2, 3}));
  EXPECT_FALSE((PartialShape{2, -1}).ToShape().ok());
  EXPECT_FALSE(PartialShape().ToShape().ok());
  EXPECT_FALSE((PartialShape{kMax, kMax}).ToShape().ok());
}

struct PairCase {
  const char* a;
  const char* b;
  const char* expected;  // null: refused
};

void ExpectPairs(absl::Span<const PairCase> cases,
                 StatusOr<PartialShape> (*combine)(const PartialShape&, const PartialShape&)) {
  for (const PairCase& c : cases) {
    const PartialShape a = PartialShape::Parse(c.a).value();
    const PartialShape b = PartialShape::Parse(c.b).value();
    const StatusOr<PartialShape> pairs[] = {combine(a, b), combine(b, a)};
    for (const StatusOr<PartialShape>& result : pairs) {
      ASSERT_EQ(result.ok(), c.expected != nullptr) << c.a << " " << c.b << result.status();
      if (result.ok()) {
        EXPECT_EQ(result->ToString(), c.expected) << c.a << " " << c.b;
      } else {
        EXPECT_THAT(std::string(result.status().message()), HasSubstr(c.a));
        EXPECT_THAT(std::string(result.status().message()), HasSubstr(c.b));
      }
    }
  }
}

TEST(PartialShapeTest, Merge) {
  const PairCase cases[] = {
      {"?", "?", "?"},           {"?", "[2,?]", "[2,?]"}, {"[2,?]", "[?,3]", "[2,3]"},
      {"[]", "[]", "[]"},        {"[?]", "[?]", "[?]"},   {"[2]", "[3]", nullptr},
      {"[2]", "[2,1]", nullptr},
  };
  ExpectPairs(cases, [](const PartialShape& a, const PartialShape& b) {
    EXPECT_EQ(a.IsCompatibleWith(b), a.MergeWith(b).ok());
    return a.MergeWith(b);
  });
}

TEST(PartialShapeTest, Broadcast) {
  const PairCase cases[] = {
      {"[]", "[]", "[]"},
      {"[2,3]", "[]", "[2,3]"},
      {"[2,3]", "[3]", "[2,3]"},
      {"[2,1]", "[1,3]", "[2,3]"},
      {"[4,1,3]", "[2,1]", "[4,2,3]"},
      {"[0]", "[1]", "[0]"},
      {"[?]", "[1]", "[?]"},
      {"[?]", "[?]", "[?]"},
      {"[?]", "[5]", "[5]"},
      {"[?]", "[0]", "[0]"},
      {"?", "[2]", "?"},
      {"[2]", "[3]", nullptr},
      {"[2]", "[0]", nullptr},
      {"[2,3]", "[2]", nullptr},
  };
  ExpectPairs(cases, BroadcastShapes);
}

TEST(PartialShapeTest, BroadcastCannotOverflow) {
  const PartialShape a = PartialShape::Create({int64_t{1} << 40, 1}).value();
  const PartialShape b = PartialShape::Create({1, int64_t{1} << 40}).value();
  EXPECT_THAT(std::string(BroadcastShapes(a, b).status().message()),
              HasSubstr("too many elements"));
}

TEST(DTypeTest, NamesAndSizes) {
  int known = 0;
  for (int value = -1; value < 200; ++value) {
    if (!IsKnownDType(value)) continue;
    ++known;
    const auto dtype = static_cast<DType>(value);
    EXPECT_EQ(ParseDType(Name(dtype)).value(), dtype);
    EXPECT_LE(IsFloating(dtype) + IsInteger(dtype), 1);
  }
  EXPECT_EQ(known, 15);
  EXPECT_EQ(SizeOf(DType::kBfloat16), 2U);
  EXPECT_EQ(SizeOf(DType::kString), 0U);
  EXPECT_FALSE(IsInteger(DType::kBool));
  EXPECT_FALSE(IsInteger(DType::kString));
  EXPECT_FALSE(ParseDType("float32").ok());
  EXPECT_FALSE(ParseDType("invalid").ok());
  EXPECT_EQ(Name(static_cast<DType>(1000)), "invalid");
}

}  // namespace
}  // namespace millrace
