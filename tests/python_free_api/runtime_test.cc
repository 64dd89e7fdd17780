#include "python_free_api/runtime.h"

#include <climits>
#include <memory>
#include <string>
#include <vector>

#include "core/framework/kernel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/python_free_api/program.h"

namespace millrace::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalidArgument = absl::StatusCode::kInvalidArgument;

TEST(RuntimeTest, NumbersOutOfRangeAreNamed) {
  const struct {
    void (*change)(RuntimeOptions&);
    const char* message;
  } cases[] = {
      {[](RuntimeOptions& o) { o.cpu_devices = 0; }, "cpu_devices is 0"},
      {[](RuntimeOptions& o) { o.cpu_devices = -3; }, "cpu_devices is -3"},
      {[](RuntimeOptions& o) { o.cpu_devices = INT_MAX; }, "cpu_devices is 2147483647"},
      {[](RuntimeOptions& o) { o.threads = -1; }, "threads is -1"},
      {[](RuntimeOptions& o) { o.threads = INT_MAX; }, "threads is 2147483647"},
      {[](RuntimeOptions& o) { o.memory_limit = -1; }, "memory_limit is -1"},
      {[](RuntimeOptions& o) { o.task = -1; }, "a task is numbered from 0, but is -1"},
  };
  for (const auto& c : cases) {
    RuntimeOptions options;
    c.change(options);
    const Status status = Runtime::Create(options).status();
    EXPECT_EQ(status.code(), kInvalidArgument) << c.message;
    EXPECT_THAT(MessageOf(status), HasSubstr(c.message));
  }
}

TEST(RuntimeTest, DevicesAreThoseThatAreAskedFor) {
  RuntimeOptions options;
  options.cpu_devices = 2;
  options.job = "worker";
  options.task = 3;
  const auto runtime = Runtime::Create(options);
  ASSERT_EQ(runtime.status(), Status());
  std::vector<std::string> names;
  for (Device* device : (*runtime)->devices()) names.push_back(device->info().name.ToString());
  EXPECT_EQ(names, (std::vector<std::string>{"/job:worker/task:3/device:CPU:0",
                                             "/job:worker/task:3/device:CPU:1"}));
}

TEST(RuntimeTest, AMemoryLimitIsKept) {
  RuntimeOptions options;
  options.memory_limit = 1 << 20;
  Program p(options);
  const Value x = Fill(IntVector(p.b, {1 << 20}), Placeholder(p.b, DType::kFloat, {}, "x"));
  const Status status = p.Run({{"x", Tensor::Scalar(1.0F)}}, {x}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

// What a broadcast makes of few strings is limited as well.
TEST(RuntimeTest, AMemoryLimitIsKeptByStrings) {
  RuntimeOptions options;
  options.memory_limit = 1 << 20;
  const Tensor text = Tensor::Strings({}, {"some text"});
  for (const int64_t count : {1 << 10, 1 << 20}) {
    Program p(options);
    const Value x = BroadcastTo(Placeholder(p.b, DType::kString, {}, "x"), IntVector(p.b, {count}));
    const auto result = p.Run({{"x", text}}, {x});
    EXPECT_EQ(result.status().code(),
              count > 1 << 10 ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kOk)
        << result.status();
  }
}

// Twice its input.
class TwiceKernel final : public Kernel {
 public:
  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction&) {
    return std::unique_ptr<Kernel>(new TwiceKernel);
  }
  Status Compute(KernelContext& context) const override {
    const absl::Span<const float> x = context.input(0).span<float>();
    for (size_t i = 0; i < x.size(); ++i) {
      context.output(0).mutable_data<float>()[i] = 2 * x[i];
    }
    return absl::OkStatus();
  }
};

void RegisterTwice(OpRegistry& registry) {
  registry.Add(OpDef("Twice")
                   .Input("x: float")
                   .Output("y: float")
                   .Shape([](ShapeContext& c) {
                     c.set_output(0, c.input(0));
                     return Status();
                   })
                   .NotDifferentiable("it is a test's"));
}

TEST(RuntimeTest, AProgramsOwnOpsRunBesideTheOthers) {
  RuntimeOptions options;
  options.register_ops = RegisterTwice;
  options.register_kernels = [](KernelRegistry& registry) {
    registry.Add("Twice", "CPU", TwiceKernel::Create);
  };
  Program p(options);
  const Value x = Placeholder(p.b, DType::kFloat, {2}, "x");
  const Value y = Relu(p.b.AddOne("Twice", {x}, {}, SourceLocation::Current()));
  EXPECT_EQ(p.Numbers(y, {{"x", Tensor::Of<float>({2}, {-1, 3})}}), (std::vector<double>{0, 6}));
}

TEST(RuntimeTest, OwnOpsThatAreMalformedOrThereAlreadyAreNamed) {
  RuntimeOptions options;
  options.register_ops = [](OpRegistry& registry) { registry.Add(OpDef("MatMul")); };
  EXPECT_THAT(MessageOf(Runtime::Create(options).status()), HasSubstr("MatMul"));
  options.register_ops = nullptr;
  options.register_kernels = [](KernelRegistry& registry) {
    registry.Add("Twice", "CPU", nullptr);
  };
  EXPECT_THAT(MessageOf(Runtime::Create(options).status()), HasSubstr("Twice"));
}

TEST(RuntimeTest, ATargetIsThisProcessOrAGrpcAddress) {
  Program p;
  for (const char* target : {"http://127.0.0.1:1", "127.0.0.1:1", "local"}) {
    SessionOptions options;
    options.target = target;
    const Status status = p.runtime->OpenSession(p.b, options).status();
    EXPECT_EQ(status.code(), kInvalidArgument);
    EXPECT_THAT(MessageOf(status), HasSubstr(target));
  }
}

TEST(RuntimeTest, AMasterThatIsNotThereIsUnavailableWithinItsTime) {
  Program p;
  SessionOptions options;
  options.target = "grpc://127.0.0.1:1";
  options.connect_timeout = absl::Milliseconds(300);
  const Status status = p.runtime->OpenSession(p.b, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(MessageOf(status), HasSubstr("127.0.0.1:1"));
}

TEST(RuntimeTest, PassesCanBeWatchedAndLeftOut) {
  for (const bool disabled : {false, true}) {
    Program p;
    const Value x = Placeholder(p.b, DType::kFloat, {2}, "x");
    const Value y = x * (Scalar(p.b, 2) + Scalar(p.b, 3));
    SessionOptions options;
    std::vector<std::string> passes;
    if (disabled) options.disabled_passes = {"constant_folding"};
    options.dump_pass = [&](const std::string& pass, const Graph&, const Graph&) {
      passes.push_back(pass);
    };
    const auto session = p.runtime->OpenSession(p.b, options);
    ASSERT_EQ(session.status(), Status());
    const auto run = RunStep(**session, {{"x", Tensor::Of<float>({2}, {1, 2})}}, {y.name()});
    ASSERT_EQ(run.status(), Status());
    EXPECT_EQ(NumbersOf((*run)[0]), (std::vector<double>{5, 10}));
    EXPECT_EQ(std::count(passes.begin(), passes.end(), "constant_folding") > 0, !disabled);
  }
}

}  // namespace
}  // namespace millrace::testing
