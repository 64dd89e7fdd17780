#ifndef GRAPH_OPT_PASS_H_
#define GRAPH_OPT_PASS_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/graph/algorithms.h"

namespace millrace {

// A rewrite that keeps what the step computes: its feeds, fetches and targets, and every effect.
class Pass {
 public:
  virtual ~Pass() = default;
  virtual std::string name() const = 0;  // "constant_folding"
  // True if it changed something.
  virtual StatusOr<bool> Run(PrunedGraph& pruned) const = 0;
};

// Computes the values of ports of `graph`, which holds constants and what is computed from them,
// and requests no devices. Handed in by whoever knows kernels.
using Evaluator =
    std::function<StatusOr<std::vector<Tensor>>(const Graph& graph, absl::Span<const Port> ports)>;

struct PipelineOptions {
  std::set<std::string> disabled;  // names of passes to leave out
  // Runs Verify after each pass that changed something; a breach is Internal and names the pass.
  bool verify = true;
  // Sees the graph before and after each pass that changed something. May be null.
  std::function<void(const std::string& pass, const Graph& before, const Graph& after)> dump;
};

// Passes in their order.
class Pipeline {
 public:
  explicit Pipeline(PipelineOptions options = {}) : options_(std::move(options)) {}
  void Add(std::unique_ptr<Pass> pass) { passes_.push_back(std::move(pass)); }
  // Errors are annotated with the pass. InvalidArgument if `disabled` names no pass.
  Status Run(PrunedGraph& pruned) const;
  std::vector<std::string> names() const;

 private:
  PipelineOptions options_;
  std::vector<std::unique_ptr<Pass>> passes_;
};

// Removes nodes that no fetch, target or effect needs. Effects are those of stateful ops: whatever
// else became of their results, they run once a step. (Handles and reads of variables have none.)
std::unique_ptr<Pass> NewPrunePass();
// Replaces nodes whose inputs are constants (and Shape, Size, Rank of known shapes) by constants,
// up to `max_bytes` each. Stateful ops are kept, and so is what cannot be computed ahead: its error
// is one of the step.
std::unique_ptr<Pass> NewConstantFoldingPass(Evaluator evaluator, int64_t max_bytes = 1 << 20);
// Merges stateless nodes of equal op, attributes, inputs, control inputs and requested device.
// Constants of more than 4 KB are not compared.
std::unique_ptr<Pass> NewCommonSubexpressionPass();

// constant_folding, common_subexpression, prune: the order of every program. Prune comes last, as
// the others leave nodes that nobody needs.
Pipeline DefaultPipeline(Evaluator evaluator, PipelineOptions options = {});

}  // namespace millrace

#endif  // GRAPH_OPT_PASS_H_
