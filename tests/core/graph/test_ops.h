#ifndef TESTS_CORE_GRAPH_TEST_OPS_H_
#define TESTS_CORE_GRAPH_TEST_OPS_H_

#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "core/graph/graph_builder.h"

// A handful of ops to build graphs from, so that the graph is tested without the real ops. The
// registry is made anew at each call.
namespace millrace {

std::shared_ptr<const OpRegistry> TestOps();

// A graph of these ops; the test fails, and the graph is empty, if the text is malformed.
Graph ParseOrFail(absl::string_view text, std::shared_ptr<const OpRegistry> ops = TestOps());

// x*y and x+y, of equal shapes.
Value Mul(Value x, Value y);
Value Add(Value x, Value y);

// A graph of `n` nodes: x, then a chain of Neg, n0 to n<n-2>.
std::string ChainText(int n);

// Fails the test if, from its making to its end, the process has worked for more than a few seconds
// of processor time: waiting for a busy machine does not count, and sanitizers get more. What is
// quadratic in 100,000 nodes takes far longer.
class ProcessorTimeLimit {
 public:
  ProcessorTimeLimit();
  ProcessorTimeLimit(const ProcessorTimeLimit&) = delete;
  ProcessorTimeLimit& operator=(const ProcessorTimeLimit&) = delete;
  ~ProcessorTimeLimit();

 private:
  const double limit_;
};

}  // namespace millrace

#endif  // TESTS_CORE_GRAPH_TEST_OPS_H_
