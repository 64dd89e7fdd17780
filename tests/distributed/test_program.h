#ifndef TESTS_DISTRIBUTED_TEST_PROGRAM_H_
#define TESTS_DISTRIBUTED_TEST_PROGRAM_H_

#include <memory>
#include <string>

#include "core/framework/kernel.h"
#include "core/framework/op_def.h"
#include "core/graph/graph.h"

namespace millrace::testing {

// All ops and kernels, and some that tests need:
//   Gate(x) {name}            x, once the gate of that name is open; ends when its step does
//   Check(x)                  x, or the error "told to fail" if its first element is above 0
//   FailingUpdate(handle)     counts as an update of the variable, and fails
std::shared_ptr<const OpRegistry> TestOps();
const KernelRegistry& TestKernels();

// Gates stay open until closed. A new gate is closed.
void OpenGate(const std::string& name);
void CloseGate(const std::string& name);
// Steps that wait at it now.
int WaitingAt(const std::string& name);

// The graph of a text; a failure of the test if it is none.
Graph ParseGraphText(absl::string_view text);

// Data-parallel training of w (4 floats) on ps 0, by workers 0 and 1, each with its own target:
//   init            target: w = 0
//   loss            fetch: the sum of both workers' squared distances
//   train           target: w moves to the mean of the targets
//   w_value         fetch: w
//   extra           feed of worker 1 (4 floats), added to its target
extern const char kTrainingGraph[];

}  // namespace millrace::testing

#endif  // TESTS_DISTRIBUTED_TEST_PROGRAM_H_
