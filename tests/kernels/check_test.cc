#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_harness.h"

// Ops that stop the step, and index ops that refuse what is out of range.
namespace millrace {
namespace {

// `own_outputs`: of an op that allocates them itself.
Status RunOp(const char* op, AttrMap attrs, std::vector<Tensor> inputs, int own_outputs,
             std::vector<OutputSpec> outputs = {}) {
  KernelHarness h;
  KernelHarness::Options options;
  options.own_outputs = own_outputs;
  return h.Run(op, std::move(attrs), std::move(inputs), std::move(outputs), options).status();
}

void ExpectRefused(const Status& status, absl::string_view text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(text), absl::string_view::npos) << status;
}

TEST(CheckTest, AssertShowsItsData) {
  const Tensor data = Tensor::Of<int32_t>(Shape({4}), {7, 8, 9, 10});
  const AttrMap attrs = {{"T", std::vector<DType>{DType::kInt32}}, {"summarize", int64_t{2}}};
  EXPECT_TRUE(RunOp("Assert", attrs, {Tensor::Scalar<bool>(true), data}, 0).ok());
  ExpectRefused(RunOp("Assert", attrs, {Tensor::Scalar<bool>(false), data}, 0),
                "assertion failed: int32[4] = 7 8");
}

TEST(CheckTest, CheckNumericsNamesTheElement) {
  const AttrMap attrs = {{"T", DType::kFloat}, {"message", "the loss"}};
  const auto check = [&](float bad) {
    return RunOp("CheckNumerics", attrs, {Tensor::Of<float>(Shape({3}), {1, bad, 2})}, 1);
  };
  EXPECT_TRUE(check(3).ok());
  ExpectRefused(check(std::numeric_limits<float>::infinity()),
                "the loss: element 1 of the [3] input is infinite");
  ExpectRefused(check(std::nanf("")), "element 1 of the [3] input is NaN");
}

TEST(CheckTest, ADefaultOfAnotherShapeIsRefused) {
  const AttrMap attrs = {{"dtype", DType::kFloat}, {"shape", PartialShape({-1, 2})}};
  const auto pass = [&](const Shape& shape) {
    return RunOp("PlaceholderWithDefault", attrs, {Tensor::Zeros(DType::kFloat, shape)}, 1);
  };
  EXPECT_TRUE(pass({3, 2}).ok());
  ExpectRefused(pass({3, 1}), "the default has shape [3,1], but the attribute 'shape' is [?,2]");
  ExpectRefused(pass({2}), "the default has shape [2]");
}

TEST(CheckTest, IndicesOutOfRangeAreNamed) {
  const Tensor x = Tensor::Of<float>(Shape({2, 2}), {1, 2, 3, 4});
  const auto ints = [](const Shape& shape, std::vector<int32_t> values) {
    return Tensor::Of<int32_t>(shape, absl::MakeConstSpan(values));
  };
  const OutputSpec row = {DType::kFloat, Shape({1, 2})};
  const OutputSpec whole = {DType::kFloat, Shape({2, 2})};
  const AttrMap gather = {{"Tparams", DType::kFloat}};
  for (const int32_t bad : {-1, 2}) {
    ExpectRefused(RunOp("GatherNd", gather, {x, ints(Shape({1, 1}), {bad})}, 0, {row}),
                  StrCat("index ", bad, " (of row 0 of indices, for dimension 0)"));
    ExpectRefused(
        RunOp("GatherV2", gather, {x, ints(Shape({1}), {bad}), ints(Shape(), {0})}, 0, {row}),
        StrCat("index ", bad, " (element 0 of indices) is not in [0, 2)"));
    ExpectRefused(RunOp("ScatterNd", {{"T", DType::kFloat}},
                        {ints(Shape({2, 1}), {0, bad}), x, ints(Shape({2}), {2, 2})}, 0, {whole}),
                  StrCat("index ", bad, " (of row 1"));
  }
  ExpectRefused(RunOp("UnsortedSegmentSum", {{"T", DType::kFloat}},
                      {x, ints(Shape({2}), {0, 2}), ints(Shape(), {2})}, 0, {whole}),
                "segment id 2 (element 1) is not below num_segments, 2");
  ExpectRefused(RunOp("DynamicStitch", {{"T", DType::kFloat}}, {ints(Shape({2}), {0, -3}), x}, 1),
                "index -3 (element 1 of indices 0) is negative");
}

TEST(CheckTest, PrintLogsItsFirstNOfStepsThatRunAtOnce) {
  for (const int64_t first_n : {0, 1, 3, -1}) {
    KernelHarness h(/*threads=*/3);
    const OpDef op("Print");
    const AttrMap attrs = {{"T", DType::kFloat}, {"message", "seen "}, {"first_n", first_n}};
    const NodeSignature signature;
    auto kernel = h.registry().Create({"node", op, attrs, signature, h.device()});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    testing::internal::CaptureStderr();
    const int64_t steps = 200;
    h.device().pool().ParallelFor(steps, 1, [&](int64_t, int64_t) {
      Tensor x = Tensor::Scalar<float>(7), out;
      Tensor* const inputs[] = {&x};
      KernelContext context(h.step(), inputs, absl::MakeSpan(&out, 1), nullptr);
      EXPECT_TRUE((*kernel)->Compute(context).ok());
      ExpectSameBits(out, x);
    });
    const std::string log = testing::internal::GetCapturedStderr();
    int64_t lines = 0;
    for (size_t at = 0; (at = log.find("seen ", at)) != std::string::npos; ++at) ++lines;
    EXPECT_EQ(lines, first_n < 0 ? steps : first_n);
  }
}

// Indices [count, 0] take no memory, whatever the count.
TEST(CheckTest, ManyIndicesOfNoDimension) {
  const int64_t many = int64_t{1} << 45;
  const Tensor indices = Tensor::Zeros(DType::kInt32, Shape({many, 0}));
  const Tensor none = Tensor::Zeros(DType::kFloat, Shape({0}));
  const Tensor two = Tensor::Zeros(DType::kFloat, Shape({2}));
  const auto size = [](int32_t n) { return Tensor::Of<int32_t>(Shape({1}), {n}); };
  const AttrMap scatter = {{"T", DType::kFloat}};
  EXPECT_EQ(RunOp("GatherNd", {{"Tparams", DType::kFloat}}, {none, indices}, 0,
                  {{DType::kFloat, Shape({many, 0})}}),
            absl::OkStatus());
  EXPECT_EQ(RunOp("ScatterNd", scatter,
                  {indices, Tensor::Zeros(DType::kFloat, Shape({many, 0})), size(0)}, 0,
                  {{DType::kFloat, Shape({0})}}),
            absl::OkStatus());
  ExpectRefused(
      RunOp("ScatterNd", scatter, {indices, two, size(2)}, 0, {{DType::kFloat, Shape({2})}}),
      "updates has shape [2], but indices [35184372088832,0] of [2] ask for "
      "35184372088832 slices of 2 elements");
}

}  // namespace
}  // namespace millrace
