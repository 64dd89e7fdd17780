#include <limits>
#include <numeric>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// 0, 1, 2, ...
Tensor Counting(DType dtype, const Shape& shape) {
  std::vector<double> values(shape.num_elements());
  std::iota(values.begin(), values.end(), 0);
  for (double& v : values) v = static_cast<double>(static_cast<int64_t>(v) % 120);
  return FromDoubles(dtype, shape, values);
}

const DType kMoved[] = {DType::kFloat, DType::kDouble, DType::kInt32,
                        DType::kInt64, DType::kUint8,  DType::kInt8};

TEST(ConstantTest, ConstIdentityAndStrings) {
  KernelHarness h;
  const Tensor words = Tensor::Strings(Shape({2}), {"mill", "race"});
  const Tensor out = h.RunOwn("Const", {{"value", words}, {"dtype", DType::kString}}, {});
  EXPECT_EQ(out.string(1), "race");
  EXPECT_TRUE(h.RunOwn("Identity", {{"T", DType::kString}}, {words}).SharesBufferWith(words));
  const Tensor x = Counting(DType::kFloat, Shape({3}));
  EXPECT_TRUE(h.RunOwn("StopGradient", {{"T", DType::kFloat}}, {x}).SharesBufferWith(x));
  KernelHarness::Options own;
  own.own_outputs = 1;
  EXPECT_EQ(h.Run("Const", {}, {}, {}, own).status().code(), kInvalid);
}

TEST(ConstantTest, FillZerosOnes) {
  KernelHarness h;
  for (DType dtype : kMoved) {
    const Tensor x = Counting(dtype, Shape({2, 3}));
    ExpectNear(h.RunOne("ZerosLike", {{"T", dtype}}, {x}, dtype, x.shape()),
               std::vector<double>(6, 0), 0);
    ExpectNear(h.RunOne("OnesLike", {{"T", dtype}}, {x}, dtype, x.shape()),
               std::vector<double>(6, 1), 0);
    const Tensor seven = FromDoubles(dtype, Shape(), {7});
    ExpectNear(
        h.RunOne("Fill", {{"T", dtype}}, {Ints({50, 2000}), seven}, dtype, Shape({50, 2000})),
        std::vector<double>(100000, 7), 0);
  }
  const Tensor b = Tensor::Of<bool>(Shape({2}), {false, true});
  ExpectNear(h.RunOne("OnesLike", {{"T", DType::kBool}}, {b}, DType::kBool, Shape({2})), {1, 1}, 0);
}

TEST(ShapeTest, ShapeSizeRank) {
  KernelHarness h;
  const Tensor x = Tensor::Zeros(DType::kFloat, Shape({3, 0, 2}));
  ExpectNear(h.RunOne("Shape", {}, {x}, DType::kInt32, Shape({3})), {3, 0, 2}, 0);
  ExpectNear(h.RunOne("Shape", {}, {x}, DType::kInt64, Shape({3})), {3, 0, 2}, 0);
  ExpectNear(h.RunOne("Size", {}, {x}, DType::kInt32, Shape()), {0}, 0);
  ExpectNear(h.RunOne("Rank", {}, {x}, DType::kInt32, Shape()), {3}, 0);
}

TEST(ShapeTest, Reshapes) {
  KernelHarness h;
  KernelHarness::Options own;
  own.own_outputs = 1;
  const Tensor x = Counting(DType::kFloat, Shape({2, 6}));
  const auto shape = [&](const char* op, const Tensor& in, const Tensor& operand,
                         AttrMap attrs = {}) {
    auto result = h.Run(op, std::move(attrs), {in, operand}, {}, own);
    return result.ok() ? (*result)[0].shape().ToString() : std::string(result.status().message());
  };
  EXPECT_EQ(shape("Reshape", x, Ints({3, 4})), "[3,4]");
  EXPECT_EQ(shape("Reshape", x, Ints({-1, 4})), "[3,4]");
  EXPECT_EQ(shape("Reshape", x, Ints({2, -1, 1})), "[2,6,1]");
  EXPECT_EQ(shape("Reshape", Tensor::Scalar<float>(1), Ints({})), "[]");
  EXPECT_EQ(shape("Reshape", Tensor::Scalar<float>(1), Ints({-1})), "[1]");
  const Tensor empty = Tensor::Zeros(DType::kFloat, Shape({0, 3}));
  EXPECT_EQ(shape("Reshape", empty, Ints({5, 0})), "[5,0]");
  EXPECT_EQ(shape("Reshape", empty, Ints({-1, 3})), "[0,3]");
  for (const Tensor& wrong :
       {Ints({5}), Ints({-1, -1}), Ints({-2, 6}), Ints({-1, 5}), Ints({0, -1}),
        Ints({2147483647, 2147483647, 2147483647, 4}), Ints({7, -1})}) {
    EXPECT_EQ(h.Run("Reshape", {}, {x, wrong}, {}, own).status().code(), kInvalid);
  }
  EXPECT_EQ(h.Run("Reshape", {}, {empty, Ints({0, -1})}, {}, own).status().code(), kInvalid);
  EXPECT_EQ(shape("ExpandDims", x, Ints({0})), "[1,2,6]");
  EXPECT_EQ(shape("ExpandDims", x, Ints({-1})), "[2,6,1]");
  EXPECT_EQ(h.Run("ExpandDims", {}, {x, Ints({3})}, {}, own).status().code(), kInvalid);
  const Tensor ones = Tensor::Zeros(DType::kFloat, Shape({1, 2, 1}));
  EXPECT_EQ(h.RunOwn("Squeeze", {}, {ones}).shape(), Shape({2}));
  EXPECT_EQ(h.RunOwn("Squeeze", {{"squeeze_dims", std::vector<int64_t>{-1}}}, {ones}).shape(),
            Shape({1, 2}));
  EXPECT_EQ(h.Run("Squeeze", {{"squeeze_dims", std::vector<int64_t>{1}}}, {ones}, {}, own)
                .status()
                .code(),
            kInvalid);
}

TEST(ShapeTest, BroadcastGradientArgs) {
  KernelHarness h;
  KernelHarness::Options own;
  own.own_outputs = 2;
  const auto axes = [&](const Tensor& a, const Tensor& b) {
    auto result = h.Run("BroadcastGradientArgs", {{"T", DType::kInt32}}, {a, b}, {}, own);
    EXPECT_TRUE(result.ok()) << result.status();
    return std::make_pair(Doubles((*result)[0]), Doubles((*result)[1]));
  };
  using V = std::vector<double>;
  EXPECT_EQ(axes(Ints({2, 3}), Ints({2, 3})), std::make_pair(V{}, V{}));
  EXPECT_EQ(axes(Ints({2, 3}), Ints({3})), std::make_pair(V{}, V{0}));
  EXPECT_EQ(axes(Ints({}), Ints({4, 3})), std::make_pair(V{0, 1}, V{}));
  EXPECT_EQ(axes(Ints({2, 1, 5}), Ints({3, 1})), std::make_pair(V{1}, V{0, 2}));
  EXPECT_EQ(axes(Ints({1, 3}), Ints({3})), std::make_pair(V{0}, V{0}));
  EXPECT_EQ(h.Run("BroadcastGradientArgs", {}, {Ints({2}), Ints({3})}, {}, own).status().code(),
            kInvalid);
}

TEST(MovementTest, TransposeAgainstLoops) {
  KernelHarness h;
  struct Case {
    Shape shape;
    std::vector<int32_t> perm;
  };
  const Case cases[] = {{Shape(), {}},
                        {Shape({5}), {0}},
                        {Shape({3, 4}), {1, 0}},
                        {Shape({3, 4}), {0, 1}},
                        {Shape({2, 3, 4}), {2, 0, 1}},
                        {Shape({2, 3, 4, 5}), {0, 3, 1, 2}},
                        {Shape({2, 3, 4, 5}), {3, 2, 1, 0}},
                        {Shape({2, 1, 4, 1, 3}), {4, 3, 2, 1, 0}},
                        {Shape({0, 3}), {1, 0}},
                        {Shape({300, 500}), {1, 0}},
                        {Shape({7, 128, 65}), {0, 2, 1}},
                        {Shape({65, 7, 33}), {2, 1, 0}}};
  for (const Case& c : cases) {
    for (DType dtype : kMoved) {
      SCOPED_TRACE(testing::Message() << c.shape.ToString() << Name(dtype));
      const int rank = c.shape.rank();
      std::vector<int64_t> dims(rank);
      for (int i = 0; i < rank; ++i) dims[i] = c.shape[c.perm[i]];
      const Shape out = *Shape::Create(dims);
      const Tensor x = Counting(dtype, c.shape);
      const std::vector<double> values = Doubles(x);
      std::vector<double> expected(values.size());
      for (int64_t i = 0; i < out.num_elements(); ++i) {
        std::vector<int64_t> index(rank);
        int64_t rest = i;
        for (int d = rank - 1; d >= 0; --d) {
          index[c.perm[d]] = rest % out[d];
          rest /= out[d];
        }
        int64_t at = 0;
        for (int d = 0; d < rank; ++d) at = at * c.shape[d] + index[d];
        expected[i] = values[at];
      }
      const Tensor perm = Tensor::Of<int32_t>(Shape({rank}), absl::Span<const int32_t>(c.perm));
      ExpectNear(h.RunOne("Transpose", {{"T", dtype}}, {x, perm}, dtype, out), expected, 0);
    }
  }
  const Tensor x = Counting(DType::kFloat, Shape({2, 2}));
  for (const Tensor& perm : {Ints({0, 0}), Ints({0, 2}), Ints({0}), Ints({0, 1, 2})}) {
    EXPECT_EQ(h.Run("Transpose", {}, {x, perm}, {{DType::kFloat, Shape({2, 2})}}).status().code(),
              kInvalid);
  }
}

TEST(MovementTest, ConcatAndSliceAreInverse) {
  KernelHarness h;
  for (DType dtype : kMoved) {
    const Tensor x = Counting(dtype, Shape({3, 5, 2}));
    const auto slice = [&](const Tensor& begin, const Tensor& size, const Shape& shape) {
      return h.RunOne("Slice", {{"T", dtype}}, {x, begin, size}, dtype, shape);
    };
    for (int32_t axis : {1, -2}) {
      const Tensor a = slice(Ints({0, 0, 0}), Ints({3, 2, 2}), Shape({3, 2, 2}));
      const Tensor none = slice(Ints({0, 2, 0}), Ints({3, 0, 2}), Shape({3, 0, 2}));
      const Tensor b = slice(Ints({0, 2, 0}), Ints({-1, -1, -1}), Shape({3, 3, 2}));
      ExpectSameBits(h.RunOne("ConcatV2", {{"T", dtype}, {"N", 3}},
                              {a, none, b, Tensor::Scalar<int32_t>(axis)}, dtype, x.shape()),
                     x);
    }
  }
  const Tensor x = Counting(DType::kFloat, Shape({3, 5}));
  ExpectNear(h.RunOne("Slice", {}, {x, Ints({1, 2}), Ints({2, 2})}, DType::kFloat, Shape({2, 2})),
             {7, 8, 12, 13}, 0);
  struct Wrong {
    Tensor begin, size;
  };
  for (const Wrong& w : {Wrong{Ints({-1, 0}), Ints({2, 2})}, Wrong{Ints({2, 0}), Ints({2, 2})},
                         Wrong{Ints({0, 0}), Ints({-2, 2})}, Wrong{Ints({4, 0}), Ints({-1, 2})},
                         Wrong{Ints({0}), Ints({2})}, Wrong{Ints({0, 0}), Ints({1, 2})}}) {
    EXPECT_EQ(
        h.Run("Slice", {}, {x, w.begin, w.size}, {{DType::kFloat, Shape({2, 2})}}).status().code(),
        kInvalid);
  }
  EXPECT_EQ(
      h.Run("ConcatV2", {}, {x, x, Tensor::Scalar<int32_t>(2)}, {{DType::kFloat, Shape({6, 5})}})
          .status()
          .code(),
      kInvalid);
  EXPECT_EQ(
      h.Run("ConcatV2", {}, {x, x, Tensor::Scalar<int32_t>(0)}, {{DType::kFloat, Shape({7, 5})}})
          .status()
          .code(),
      kInvalid);
}

TEST(MovementTest, PadTileBroadcastTo) {
  KernelHarness h;
  for (DType dtype : kMoved) {
    const Tensor x = FromDoubles(dtype, Shape({2, 2}), {1, 2, 3, 4});
    const Tensor paddings = Tensor::Of<int32_t>(Shape({2, 2}), {1, 0, 0, 2});
    ExpectNear(h.RunOne("Pad", {}, {x, paddings}, dtype, Shape({3, 4})),
               {0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0}, 0);
    ExpectNear(h.RunOne("Tile", {}, {x, Ints({2, 3})}, dtype, Shape({4, 6})),
               {1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4, 1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4}, 0);
    const Tensor column = FromDoubles(dtype, Shape({2, 1}), {5, 6});
    ExpectNear(h.RunOne("BroadcastTo", {}, {column, Ints({2, 2, 3})}, dtype, Shape({2, 2, 3})),
               {5, 5, 5, 6, 6, 6, 5, 5, 5, 6, 6, 6}, 0);
    ExpectNear(h.RunOne("BroadcastTo", {}, {FromDoubles(dtype, Shape(), {3}), Ints({4})}, dtype,
                        Shape({4})),
               {3, 3, 3, 3}, 0);
  }
  const Tensor x = Counting(DType::kFloat, Shape({2, 2}));
  const auto code = [&](const char* op, const Tensor& operand, const Shape& out) {
    return h.Run(op, {}, {x, operand}, {{DType::kFloat, out}}).status().code();
  };
  EXPECT_EQ(code("Pad", Tensor::Of<int32_t>(Shape({2, 2}), {1, -1, 0, 0}), Shape({2, 2})),
            kInvalid);
  EXPECT_EQ(code("Pad", Tensor::Of<int32_t>(Shape({2, 2}), {1, 0, 0, 0}), Shape({2, 2})), kInvalid);
  EXPECT_EQ(code("Pad", Ints({1, 0}), Shape({3, 2})), kInvalid);
  EXPECT_EQ(code("Tile", Ints({-1, 1}), Shape({2, 2})), kInvalid);
  EXPECT_EQ(code("Tile", Ints({1, 2}), Shape({2, 2})), kInvalid);
  EXPECT_EQ(code("Tile", Ints({0, 2}), Shape({0, 4})), absl::StatusCode::kOk);
  EXPECT_EQ(code("BroadcastTo", Ints({2, 3}), Shape({2, 3})), kInvalid);
  EXPECT_EQ(code("BroadcastTo", Ints({2}), Shape({2})), kInvalid);
}

TEST(IndexTest, InvertPermutation) {
  KernelHarness h;
  ExpectNear(h.RunOne("InvertPermutation", {{"T", DType::kInt32}}, {Ints({2, 0, 3, 1})},
                      DType::kInt32, Shape({4})),
             {1, 3, 0, 2}, 0);
  for (const Tensor& wrong : {Ints({0, 0}), Ints({0, 2}), Ints({-1, 0})}) {
    EXPECT_EQ(
        h.Run("InvertPermutation", {}, {wrong}, {{DType::kInt32, Shape({2})}}).status().code(),
        kInvalid);
  }
}

TEST(IndexTest, Range) {
  KernelHarness h;
  const auto range = [&](DType dtype, double start, double limit, double delta) {
    return Doubles(
        h.RunOwn("Range", {{"Tidx", dtype}},
                 {FromDoubles(dtype, Shape(), {start}), FromDoubles(dtype, Shape(), {limit}),
                  FromDoubles(dtype, Shape(), {delta})}));
  };
  using V = std::vector<double>;
  EXPECT_EQ(range(DType::kInt32, 3, 10, 3), (V{3, 6, 9}));
  EXPECT_EQ(range(DType::kInt64, 3, -4, -3), (V{3, 0, -3}));
  EXPECT_EQ(range(DType::kInt32, 3, 3, 1), V{});
  EXPECT_EQ(range(DType::kInt32, 3, 4, -1), V{});
  EXPECT_EQ(range(DType::kFloat, 0, 1, 0.25), (V{0, 0.25, 0.5, 0.75}));
  KernelHarness::Options own;
  own.own_outputs = 1;
  const auto code = [&](const Tensor& a, const Tensor& b, const Tensor& d) {
    return h.Run("Range", {{"Tidx", a.dtype()}}, {a, b, d}, {}, own).status().code();
  };
  const auto number = [](float v) { return Tensor::Scalar<float>(v); };
  EXPECT_EQ(code(number(0), number(1), number(0)), kInvalid);
  EXPECT_EQ(code(number(0), number(std::numeric_limits<float>::infinity()), number(1)), kInvalid);
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(code(Tensor::Scalar<int64_t>(-kMax), Tensor::Scalar<int64_t>(kMax),
                    Tensor::Scalar<int64_t>(1)) == absl::StatusCode::kOk);
}

TEST(IndexTest, OneHot) {
  KernelHarness h;
  const Tensor on = Tensor::Scalar<float>(5), off = Tensor::Scalar<float>(-1);
  const Tensor depth = Tensor::Scalar<int32_t>(3);
  for (DType index : {DType::kInt32, DType::kInt64, DType::kInt8}) {
    const Tensor indices = FromDoubles(index, Shape({3}), {2, -1, 0});
    ExpectNear(h.RunOne("OneHot", {{"T", DType::kFloat}, {"TI", index}, {"axis", -1}},
                        {indices, depth, on, off}, DType::kFloat, Shape({3, 3})),
               {-1, -1, 5, -1, -1, -1, 5, -1, -1}, 0);
    ExpectNear(h.RunOne("OneHot", {{"T", DType::kFloat}, {"TI", index}, {"axis", 0}},
                        {indices, depth, on, off}, DType::kFloat, Shape({3, 3})),
               {-1, -1, 5, -1, -1, -1, 5, -1, -1}, 0);
  }
  EXPECT_EQ(h.Run("OneHot", {{"T", DType::kFloat}, {"axis", 3}}, {Ints({0}), depth, on, off},
                  {{DType::kFloat, Shape({1, 3})}})
                .status()
                .code(),
            kInvalid);
}

TEST(IndexTest, Gather) {
  KernelHarness h;
  const Tensor zero = Tensor::Scalar<int32_t>(0), one = Tensor::Scalar<int32_t>(1);
  for (DType dtype : kMoved) {
    const Tensor x = Counting(dtype, Shape({3, 4}));
    ExpectNear(h.RunOne("GatherV2", {{"Tparams", dtype}}, {x, Ints({2, 0, 2}), zero}, dtype,
                        Shape({3, 4})),
               {8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11}, 0);
    ExpectNear(
        h.RunOne("GatherV2", {{"Tparams", dtype}},
                 {x, Tensor::Of<int64_t>(Shape({1, 2}), {3, 1}), one}, dtype, Shape({3, 1, 2})),
        {3, 1, 7, 5, 11, 9}, 0);
    ExpectNear(h.RunOne("GatherV2", {{"Tparams", dtype}, {"batch_dims", 1}},
                        {x, Tensor::Of<int32_t>(Shape({3, 2}), {3, 1, 0, 0, 2, 1}), one}, dtype,
                        Shape({3, 2})),
               {3, 1, 4, 4, 10, 9}, 0);
  }
  const Tensor x = Counting(DType::kFloat, Shape({3, 4}));
  for (int32_t wrong : {3, -1}) {
    const auto result =
        h.Run("GatherV2", {}, {x, Ints({0, wrong}), zero}, {{DType::kFloat, Shape({2, 4})}});
    EXPECT_EQ(result.status().message(),
              StrCat("index ", wrong, " (element 1 of indices) is not in [0, 3)"));
  }
  EXPECT_EQ(h.Run("GatherV2", {}, {x, Ints({0}), Tensor::Scalar<int32_t>(2)},
                  {{DType::kFloat, Shape({3, 1})}})
                .status()
                .code(),
            kInvalid);
  // Nothing of nothing.
  const Tensor none = Tensor::Zeros(DType::kFloat, Shape({0, 4}));
  h.RunOne("GatherV2", {}, {none, Ints({}), zero}, DType::kFloat, Shape({0, 4}));
}

}  // namespace
}  // namespace millrace
