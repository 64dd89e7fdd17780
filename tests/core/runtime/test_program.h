#ifndef TESTS_CORE_RUNTIME_TEST_PROGRAM_H_
#define TESTS_CORE_RUNTIME_TEST_PROGRAM_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/framework/kernel.h"
#include "core/graph/algorithms.h"
#include "core/graph/graph.h"
#include "core/runtime/planner.h"
#include "tests/testing/fake_device.h"

// A small set of ops with kernels, for tests of the runtime alone.
namespace millrace::testing {

// What tests do from within kernels, by the attribute "hook" of the ops Call and Wait.
struct Hooks {
  std::map<std::string, std::function<Status(KernelContext&)>> call;
  std::map<std::string, std::function<void(KernelContext&, AsyncKernel::Done)>> wait;
  std::atomic<int> prepared{0};  // calls of Prepare of the op Fill
};

// Placeholder, Const, NoOp, VarHandleOp, ReadVariableOp, AssignVariableOp, AssignAddVariableOp,
// ResourceApplyGradientDescent, _Send, _Recv as in the public set, floats only; and
//   Neg(x), Add(x, y)      cheap, in place; Add broadcasts
//   Slow(x)                -x, expensive, in place
//   Identity(x)            passes its input on
//   MatMul(a, b)           without a kernel, for placement
//   ArgMax(x) {T}          likewise
//   Fill(dims, value)      `value` in the shape that the host input `dims` says; has a Prepare
//   Draw() {seed}          the step's random counter, as a float
//   Call(x...) {hook}      Hooks::call, cheap; outputs like the first input, or one float scalar
//   CallSlow(x...) {hook}  the same, expensive
//   Wait(x) {hook}         Hooks::wait, asynchronous; passes x on when done
//   Claim(x) {shape}       passes x on and says that it has that shape
std::shared_ptr<const OpRegistry> TestOps();

// Their kernels for CPU. `hooks` outlives the registry's kernels.
void RegisterTestKernels(KernelRegistry& registry, Hooks& hooks);

// A graph, or a failure of the test.
Graph GraphOrFail(absl::string_view text);
DeviceName Name(absl::string_view device);
std::vector<DeviceInfo> Devices(std::vector<std::string> names);
// The whole graph on one device, as a partition. Feeds and fetches are names of ports.
Partition WholePartition(Graph graph, absl::string_view device,
                         const std::vector<std::string>& feeds,
                         const std::vector<std::string>& fetches);

}  // namespace millrace::testing

#endif  // TESTS_CORE_RUNTIME_TEST_PROGRAM_H_
