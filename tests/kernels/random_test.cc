#include <cmath>

#include "gtest/gtest.h"
#include "kernels/philox.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

// The known answers of Random123's kat_vectors.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox::Draw({0, 0, 0, 0}, {0, 0}),
            (Philox::Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(
      Philox::Draw({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
      (Philox::Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      Philox::Draw({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (Philox::Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

const char* const kOps[] = {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"};

Tensor Draw(KernelHarness& h, const char* op, DType dtype, int64_t n, int64_t seed,
            int64_t stream) {
  const Tensor shape = Tensor::Of<int64_t>(Shape({1}), {n});
  return h.RunOne(op, {{"dtype", dtype}, {"seed", seed}, {"_millrace_stream", stream}}, {shape},
                  dtype, Shape({n}));
}

TEST(RandomTest, DependsOnSeedStreamAndStepOnly) {
  KernelHarness one(1), three(3);
  for (const char* op : kOps) {
    for (DType dtype : {DType::kFloat, DType::kDouble}) {
      SCOPED_TRACE(op);
      const int64_t n = 100001;
      const Tensor a = Draw(one, op, dtype, n, 5, 6);
      ExpectSameBits(a, Draw(three, op, dtype, n, 5, 6));
      // The first elements of a longer draw are those of a shorter one.
      ExpectSameBits(a.Slice(0, 1001), Draw(one, op, dtype, 1001, 5, 6));
      const auto differs = [&](const Tensor& b) {
        const std::vector<double> x = Doubles(a), y = Doubles(b);
        int equal = 0;
        for (size_t i = 0; i < x.size(); ++i) equal += x[i] == y[i];
        EXPECT_LT(equal, 20);
      };
      differs(Draw(one, op, dtype, n, 6, 6));
      differs(Draw(one, op, dtype, n, 5, 7));
      one.step().random_counter = 1;
      differs(Draw(one, op, dtype, n, 5, 6));
      one.step().random_counter = 0;
    }
  }
}

TEST(RandomTest, StatelessDrawsDependOnTheirInputsOnly) {
  KernelHarness one(1), three(3);
  three.step().random_counter = 9;
  const int64_t n = 10001;
  const Tensor shape = Tensor::Of<int64_t>(Shape({1}), {n});
  for (const char* op :
       {"StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"}) {
    for (DType dtype : {DType::kFloat, DType::kDouble}) {
      SCOPED_TRACE(op);
      const auto draw = [&](KernelHarness& h, const Tensor& seed) {
        return h.RunOne(op, {{"dtype", dtype}}, {shape, seed}, dtype, Shape({n}));
      };
      const Tensor a = draw(one, Tensor::Of<int64_t>({2}, {5, 6}));
      ExpectSameBits(a, draw(three, Tensor::Of<int64_t>({2}, {5, 6})));
      ExpectSameBits(a, draw(three, Tensor::Of<int32_t>({2}, {5, 6})));
      for (const Tensor& other :
           {Tensor::Of<int64_t>({2}, {6, 6}), Tensor::Of<int64_t>({2}, {5, 7})}) {
        const std::vector<double> x = Doubles(a), y = Doubles(draw(one, other));
        int equal = 0;
        for (size_t i = 0; i < x.size(); ++i) equal += x[i] == y[i];
        EXPECT_LT(equal, 20);
      }
    }
  }
  EXPECT_FALSE(one.Run("StatelessRandomUniform", {{"dtype", DType::kFloat}},
                       {shape, Tensor::Of<int64_t>({3}, {1, 2, 3})}, {{DType::kFloat, {n}}})
                   .ok());
}

TEST(RandomTest, Distributions) {
  KernelHarness h;
  const int64_t n = 400000;
  for (DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const char* op : kOps) {
      SCOPED_TRACE(op);
      const std::vector<double> x = Doubles(Draw(h, op, dtype, n, 1, 2));
      double mean = 0, square = 0, cube = 0, product = 0, lowest = 1e9, highest = -1e9;
      for (int64_t i = 0; i < n; ++i) {
        mean += x[i] / n;
        lowest = std::min(lowest, x[i]);
        highest = std::max(highest, x[i]);
      }
      for (int64_t i = 0; i < n; ++i) {
        const double d = x[i] - mean;
        square += d * d / n;
        cube += d * d * d / n;
        if (i > 0) product += d * (x[i - 1] - mean) / n;
      }
      const std::string name = op;
      const double expected_mean = name == "RandomUniform" ? 0.5 : 0;
      // Of a normal number within two deviations: 1 - 4 pdf(2) / (2 cdf(2) - 1).
      const double variance = name == "RandomUniform"     ? 1.0 / 12
                              : name == "TruncatedNormal" ? 0.7737413
                                                          : 1;
      // Five deviations of each estimate.
      EXPECT_NEAR(mean, expected_mean, 5 * std::sqrt(variance / n));
      EXPECT_NEAR(square, variance, 5 * std::sqrt(2.0 / n) * variance);
      EXPECT_NEAR(cube, 0, 5 * std::sqrt(15.0 / n));
      EXPECT_NEAR(product, 0, 5 * variance / std::sqrt(n));
      if (name == "RandomUniform") {
        EXPECT_GE(lowest, 0);
        EXPECT_LT(highest, 1);
        EXPECT_GT(highest - lowest, 0.9999);
      } else if (name == "TruncatedNormal") {
        EXPECT_LE(std::max(-lowest, highest), 2);
        EXPECT_GT(std::min(-lowest, highest), 1.99);
      } else {
        EXPECT_GT(std::min(-lowest, highest), 3.5);
      }
    }
  }
}

}  // namespace
}  // namespace millrace
