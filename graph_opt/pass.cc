#include "graph_opt/pass.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/graph/verify.h"

namespace millrace {

std::vector<std::string> Pipeline::names() const {
  std::vector<std::string> names;
  for (const auto& pass : passes_) names.push_back(pass->name());
  return names;
}

Status Pipeline::Run(PrunedGraph& pruned) const {
  const std::vector<std::string> known = names();
  for (const std::string& name : options_.disabled) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return InvalidArgument("there is no pass '", name, "' to disable; the passes are ",
                             absl::StrJoin(known, ", "));
    }
  }
  for (const auto& pass : passes_) {
    if (options_.disabled.count(pass->name()) > 0) continue;
    // A copy is made only for who wants to look.
    Graph before = options_.dump ? Graph(pruned.graph) : Graph(pruned.graph.shared_ops());
    StatusOr<bool> changed = pass->Run(pruned);
    if (!changed.ok()) return Annotate(changed.status(), StrCat("pass ", pass->name()));
    if (!*changed) continue;
    if (options_.verify) {
      const Status sound = Verify(pruned.graph);
      if (!sound.ok()) {
        return Internal("pass ", pass->name(), " left an unsound graph: ", sound.message());
      }
    }
    if (options_.dump) options_.dump(pass->name(), before, pruned.graph);
  }
  return absl::OkStatus();
}

Pipeline DefaultPipeline(Evaluator evaluator, PipelineOptions options) {
  Pipeline pipeline(std::move(options));
  pipeline.Add(NewConstantFoldingPass(std::move(evaluator)));
  pipeline.Add(NewCommonSubexpressionPass());
  pipeline.Add(NewPrunePass());
  return pipeline;
}

}  // namespace millrace
