#include "core/graph/shape_inference.h"

#include "absl/container/inlined_vector.h"
#include "core/framework/shape_context.h"

namespace millrace {

StatusOr<std::vector<PartialShape>> InferOutputShapes(const Graph& graph, const Node& node) {
  const NodeSignature& signature = node.signature();
  absl::InlinedVector<PartialShape, 4> shapes;
  absl::InlinedVector<const Tensor*, 4> host_values;
  shapes.reserve(node.inputs().size());
  host_values.reserve(node.inputs().size());
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    const Port port = node.inputs()[i];
    shapes.push_back(graph.shape(port));
    // Values of device inputs are never known at run time, so that they must not count here.
    const bool host = i < signature.host_inputs.size() && signature.host_inputs[i];
    host_values.push_back(host ? graph.ConstantValue(port) : nullptr);
  }
  ShapeContext context(node.attrs(), shapes, host_values, signature.inputs, node.num_outputs());
  if (node.op().shape_fn()) MR_RETURN_IF_ERROR(node.op().shape_fn()(context));
  return std::vector<PartialShape>(context.outputs().begin(), context.outputs().end());
}

Status MergeShapes(absl::Span<const PartialShape> inferred, std::vector<PartialShape>& shapes) {
  for (size_t i = 0; i < shapes.size() && i < inferred.size(); ++i) {
    StatusOr<PartialShape> merged = shapes[i].MergeWith(inferred[i]);
    if (!merged.ok()) {
      return InvalidArgument("output ", i, " has shape ", shapes[i].ToString(),
                             ", but from its inputs follows ", inferred[i].ToString());
    }
    shapes[i] = *std::move(merged);
  }
  return absl::OkStatus();
}

}  // namespace millrace
