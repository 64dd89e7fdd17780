#include <algorithm>
#include <utility>
#include <vector>

#include "core/runtime/byte_text.h"
#include "tools/millrace/inspect.h"
#include "tools/millrace/table.h"

namespace millrace {
namespace {

// Most frequent first.
std::string Counts(const std::map<std::string, int>& counts) {
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table;
  for (const auto& [name, count] : sorted) table.Add({name, StrCat(count)});
  return table.ToString();
}

std::string DeviceOf(const Node& node) {
  if (node.assigned_device().IsFull()) return node.assigned_device().ToString();
  return node.requested_device().empty() ? "(any)" : node.requested_device();
}

// What the variable holds; the shape of a handle's output is that of the variable behind it.
DType VariableDType(const Node& node) {
  const AttrValue* dtype = node.attrs().Find("dtype");
  const DType* value = dtype == nullptr ? nullptr : dtype->get<DType>();
  return value == nullptr ? node.output_dtype(0) : *value;
}

}  // namespace

std::string DescribeGraph(const Graph& graph) {
  std::map<std::string, int> ops;
  std::map<std::string, int> devices;
  Table placeholders;
  Table variables;
  int num_placeholders = 0;
  int num_variables = 0;
  int64_t variable_bytes = 0;
  int64_t variable_elements = 0;
  int64_t constant_bytes = 0;
  bool all_known = true;
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (!graph.IsLive(id)) continue;
    const Node& node = *graph.node(id);
    ++ops[node.op().name()];
    ++devices[DeviceOf(node)];
    if (node.op().Has(Trait::kPlaceholder) && node.num_outputs() > 0) {
      ++num_placeholders;
      placeholders.Add(
          {node.name(), StrCat(Name(node.output_dtype(0)), node.output_shape(0).ToString())});
    } else if (node.op().Has(Trait::kVariable) && node.num_outputs() > 0) {
      ++num_variables;
      const DType dtype = VariableDType(node);
      const StatusOr<Shape> shape = node.output_shape(0).ToShape();
      std::string size = "?";
      if (shape.ok()) {
        const int64_t bytes = shape->num_elements() * static_cast<int64_t>(SizeOf(dtype));
        variable_elements += shape->num_elements();
        variable_bytes += bytes;
        size = BytesText(bytes);
      } else {
        all_known = false;
      }
      variables.Add({node.name(), StrCat(Name(dtype), node.output_shape(0).ToString()), size,
                     DeviceOf(node)});
    } else if (const Tensor* value =
                   node.num_outputs() > 0 ? graph.ConstantValue(Port{id, 0}) : nullptr;
               value != nullptr && node.op().Has(Trait::kConstant)) {
      constant_bytes += static_cast<int64_t>(value->byte_size());
    }
  }
  std::string text = StrCat("graph of ", graph.num_nodes(), " nodes\n\nops\n", Counts(ops),
                            "\ndevices\n", Counts(devices));
  if (num_placeholders > 0) {
    absl::StrAppend(&text, "\nplaceholders\n", placeholders.ToString());
  }
  if (num_variables > 0) {
    absl::StrAppend(&text, "\nvariables\n", variables.ToString(), "  in all ", num_variables, ": ",
                    all_known ? "" : "at least ", variable_elements, " elements, ",
                    BytesText(variable_bytes), "\n");
  }
  if (constant_bytes > 0) {
    absl::StrAppend(&text, "\nconstants hold ", BytesText(constant_bytes), "\n");
  }
  if (!graph.library().empty()) {
    absl::StrAppend(&text, "\na library of functions of ",
                    BytesText(static_cast<int64_t>(graph.library().size())), "\n");
  }
  return text;
}

}  // namespace millrace
