#include "core/runtime/execution_plan.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "core/framework/resource.h"
#include "core/runtime/compiled_plan.h"

namespace millrace {

void CompiledPlan::MarkTorn(uint64_t step) const {
  for (const auto& [container, name] : updated_keys_) {
    const auto variable =
        std::dynamic_pointer_cast<Variable>(device_.resources().Lookup(container, name));
    if (variable != nullptr) variable->MarkTorn(step);
  }
}

Status CompiledPlan::CheckFeeds(absl::Span<const Tensor> feeds) const {
  if (feeds.size() != feed_indices_.size()) {
    return InvalidArgument("the step has ", feed_indices_.size(), " feeds on ",
                           device_name().ToString(), ", but got ", feeds.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    const Tensor& feed = feeds[i];
    const int index = static_cast<int>(i);
    if (feed.dtype() == feed_dtype(index) && feed_shape(index).IsCompatibleWith(feed.shape())) {
      continue;
    }
    return InvalidArgument(
        "feed '", feed_name(index), "': expected ", Name(feed_dtype(index)),
        feed_shape(index).ToString(), ", but got ",
        feed.valid() ? StrCat(Name(feed.dtype()), feed.shape().ToString()) : "no tensor");
  }
  return absl::OkStatus();
}

absl::Span<const int32_t> CompiledPlan::HostInputs(const PlanNode& planned) const {
  const auto [begin, end] = host_spans_[&planned - nodes.data()];
  return absl::MakeConstSpan(host_inputs_).subspan(begin, end - begin);
}

StatusOr<std::unique_ptr<ShapeFacts>> CompiledPlan::MakeFacts(
    const PlanNode& planned, absl::Span<const Shape> shapes,
    absl::Span<const Tensor* const> inputs) const {
  const Node& node = this->node(planned);
  auto facts = std::make_unique<ShapeFacts>();
  facts->inputs.assign(shapes.begin(), shapes.end());
  std::vector<const Tensor*> host_values(shapes.size(), nullptr);
  for (int32_t i : HostInputs(planned)) {
    // A copy: the value may lie in memory that a client lent for this step.
    MR_ASSIGN_OR_RETURN(Tensor copy, inputs[i]->Copy(HostAllocator()));
    facts->host_values.push_back(std::move(copy));
  }
  for (size_t i = 0; i < facts->host_values.size(); ++i) {
    host_values[HostInputs(planned)[i]] = &facts->host_values[i];
  }
  if (!node.op().Has(Trait::kAllocatesOutputs) && node.num_outputs() > 0) {
    const std::vector<PartialShape> partial(shapes.begin(), shapes.end());
    ShapeContext context(node.attrs(), partial, host_values, node.signature().inputs,
                         node.num_outputs());
    MR_RETURN_IF_ERROR(node.op().shape_fn()(context));
    for (int i = 0; i < node.num_outputs(); ++i) {
      StatusOr<Shape> shape = context.output(i).ToShape();
      if (!shape.ok()) {
        return Internal("the shape of output ", i, " is ", context.output(i).ToString(),
                        " even with all inputs at hand");
      }
      facts->outputs.push_back(*shape);
    }
  }
  PrepareContext prepare;
  prepare.inputs = facts->inputs;
  prepare.outputs = facts->outputs;
  prepare.host_values = host_values;
  MR_ASSIGN_OR_RETURN(facts->prepared, planned.kernel->Prepare(prepare));
  prepared_count_.fetch_add(1, std::memory_order_relaxed);
  return facts;
}

Status CompiledPlan::NodeError(const PlanNode& planned, const Status& status,
                               absl::Span<const Tensor* const> inputs) const {
  const Node& node = this->node(planned);
  std::vector<std::string> shapes;
  for (const Tensor* input : inputs) {
    const bool known = input != nullptr && input->valid();
    shapes.push_back(known ? StrCat(Name(input->dtype()), input->shape().ToString()) : "?");
  }
  Status result(
      status.code(),
      StrCat(node.op().name(), " '", node.name(), "' on ", device_name().ToString(), ": ",
             status.message(),
             shapes.empty() ? "" : StrCat(" (inputs: ", absl::StrJoin(shapes, ", "), ")")));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
  return result;
}

}  // namespace millrace
