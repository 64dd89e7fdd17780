#ifndef TESTS_CORE_RUNTIME_EXECUTOR_FIXTURE_H_
#define TESTS_CORE_RUNTIME_EXECUTOR_FIXTURE_H_

#include "absl/strings/str_join.h"
#include "core/base/mutex.h"
#include "core/base/simulation.h"
#include "core/base/thread_pool.h"
#include "core/runtime/executor.h"
#include "core/runtime/local_rendezvous.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/runtime/test_program.h"

// A plan compiled from graph text, and ways to run it.
namespace millrace::testing {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

inline constexpr char kCpu[] = "/job:local/task:0/device:CPU:0";

inline ThreadPool::Options FourThreads() {
  ThreadPool::Options options;
  options.threads = 4;
  return options;
}

inline Tensor Floats(std::initializer_list<float> values) {
  return Tensor::Of<float>(Shape({static_cast<int64_t>(values.size())}), values);
}

inline std::vector<float> Values(const Tensor& tensor) {
  const auto span = tensor.span<float>();
  return std::vector<float>(span.begin(), span.end());
}

class ExecutorTest : public ::testing::Test {
 protected:
  ExecutorTest() : pool_(FourThreads()), device_(kCpu, pool_) {
    hooks_.call["pass"] = [](KernelContext& c) {
      std::copy_n(c.input(0).data<float>(), c.input(0).num_elements(),
                  c.output(0).mutable_data<float>());
      return absl::OkStatus();
    };
    hooks_.call["fail"] = [](KernelContext&) { return Status(InvalidArgument("it broke")); };
    hooks_.call["nothing"] = [](KernelContext&) { return absl::OkStatus(); };
    hooks_.wait["now"] = [](KernelContext&, AsyncKernel::Done done) {
      std::move(done)(absl::OkStatus());
    };
    hooks_.wait["later"] = [this](KernelContext&, AsyncKernel::Done done) {
      auto shared = std::make_shared<AsyncKernel::Done>(std::move(done));
      pool_.Schedule([shared] { std::move (*shared)(absl::OkStatus()); });
    };
  }
  ~ExecutorTest() override {
    executor_.reset();
    plan_.reset();
    EXPECT_EQ(device_.bytes_in_use(), 0);
  }

  Status TryCompile(absl::string_view text, const std::vector<std::string>& feeds,
                    const std::vector<std::string>& fetches) {
    if (kernels_.All().empty()) RegisterTestKernels(kernels_, hooks_);
    MR_ASSIGN_OR_RETURN(
        plan_, ExecutionPlan::Create(WholePartition(GraphOrFail(text), kCpu, feeds, fetches),
                                     device_, kernels_));
    executor_ = std::make_unique<Executor>(*plan_, pool_);
    return absl::OkStatus();
  }
  void Compile(absl::string_view text, const std::vector<std::string>& feeds,
               const std::vector<std::string>& fetches) {
    const Status status = TryCompile(text, feeds, fetches);
    ASSERT_TRUE(status.ok()) << status;
  }

  StatusOr<std::vector<Tensor>> Run(std::vector<Tensor> feeds) {
    ExecutorRun run;
    run.feeds = std::move(feeds);
    return Run(std::move(run));
  }
  StatusOr<std::vector<Tensor>> Run(ExecutorRun run) {
    Notification ended;
    StatusOr<std::vector<Tensor>> result = std::vector<Tensor>();
    run.context.step_id = 1;
    run.caller_runs = caller_runs_;
    executor_->Run(std::move(run), [&](Status status, std::vector<Tensor> fetches) {
      if (status.ok()) {
        result = std::move(fetches);
      } else {
        result = std::move(status);
      }
      ended.Notify();
    });
    ended.Wait();
    return result;
  }
  // The fetches' values, or the error.
  std::string RunText(std::vector<Tensor> feeds) {
    const StatusOr<std::vector<Tensor>> fetches = Run(std::move(feeds));
    if (!fetches.ok()) return std::string(fetches.status().message());
    std::vector<std::string> texts;
    for (const Tensor& fetch : *fetches) texts.push_back(fetch.ToString());
    return absl::StrJoin(texts, "; ");
  }

  bool caller_runs_ = false;
  ThreadPool pool_;
  FakeDevice device_;
  Hooks hooks_;
  KernelRegistry kernels_;
  std::unique_ptr<ExecutionPlan> plan_;
  std::unique_ptr<Executor> executor_;
};

// Both ways to start a step.
class ExecutorStartTest : public ExecutorTest, public ::testing::WithParamInterface<bool> {
 protected:
  ExecutorStartTest() { caller_runs_ = GetParam(); }
};

}  // namespace millrace::testing

#endif  // TESTS_CORE_RUNTIME_EXECUTOR_FIXTURE_H_
