#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/runtime/byte_text.h"
#include "core/runtime/planner.h"

namespace millrace {
namespace {

// Rows of cells, padded so that columns line up; the last column is not padded.
class Table {
 public:
  void Add(std::vector<std::string> row) {
    widths_.resize(std::max(widths_.size(), row.size()));
    for (size_t i = 0; i + 1 < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].size());
    rows_.push_back(std::move(row));
  }
  void AppendTo(std::string& text) const {
    for (const std::vector<std::string>& row : rows_) {
      text += " ";
      for (size_t i = 0; i < row.size(); ++i) {
        absl::StrAppend(&text, " ", row[i]);
        if (i + 1 < row.size()) text.append(widths_[i] - row[i].size() + 1, ' ');
      }
      text += '\n';
    }
  }

 private:
  std::vector<size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

std::string DeviceFacts(const DeviceInfo& device) {
  std::vector<std::string> facts;
  if (!device.description.empty()) facts.push_back(device.description);
  if (device.memory_limit > 0) facts.push_back(StrCat(BytesText(device.memory_limit), " memory"));
  return absl::StrJoin(facts, ", ");
}

std::string Measured(const PlacementReport::Link& link) {
  if (link.measured_steps == 0) return "";
  // A transport that does not count its headers says nothing of the wire.
  const std::string wire =
      link.measured_wire_bytes == 0
          ? ""
          : StrCat(" (", BytesText(link.measured_wire_bytes / link.measured_steps),
                   " on the wire)");
  return StrCat("; measured ", BytesText(link.measured_payload_bytes / link.measured_steps),
                " a step", wire, " over ", link.measured_steps, " steps");
}

}  // namespace

std::string PlacementReport::ToText() const {
  std::map<std::string, int> nodes;
  for (const PlacementDecision& decision : decisions) ++nodes[decision.device];
  std::string text = StrCat("policy ", policy, "\n\ndevices\n");
  Table device_table;
  for (const DeviceInfo& device : devices) {
    const int count = nodes[device.name.ToString()];
    device_table.Add({device.name.ToString(), StrCat(count, count == 1 ? " node" : " nodes"),
                      DeviceFacts(device)});
  }
  device_table.AppendTo(text);
  if (!absent_tasks.empty()) {
    absl::StrAppend(&text, "  absent: ", absl::StrJoin(absent_tasks, ", "), "\n");
  }

  text += "\nnodes\n";
  Table node_table;
  for (const PlacementDecision& decision : decisions) {
    node_table.Add({decision.node, decision.op, decision.device, decision.reason});
    for (const std::string& alternative : decision.alternatives) {
      node_table.Add({"", "", "", StrCat("  not ", alternative)});
    }
  }
  node_table.AppendTo(text);

  text += links.empty() ? "\nno links: nothing crosses devices\n" : "\nlinks\n";
  for (const Link& link : links) {
    const bool all_known =
        std::all_of(link.carried.begin(), link.carried.end(),
                    [](const Link::Tensor& tensor) { return tensor.bytes >= 0; });
    absl::StrAppend(&text, "  ", link.source, " -> ", link.destination, "  ", link.tensors,
                    link.tensors == 1 ? " tensor, " : " tensors, ", all_known ? "" : "at least ",
                    BytesText(link.predicted_bytes), " a step predicted",
                    link.crosses_tasks ? "" : ", within the task", Measured(link), "\n");
    std::string tensors;
    Table tensor_table;
    for (const Link::Tensor& tensor : link.carried) {
      tensor_table.Add({tensor.name, StrCat(tensor.dtype, tensor.shape), BytesText(tensor.bytes)});
    }
    tensor_table.AppendTo(tensors);
    // Two more spaces than the link's own line.
    for (absl::string_view line : absl::StrSplit(tensors, '\n', absl::SkipEmpty())) {
      absl::StrAppend(&text, "  ", line, "\n");
    }
  }
  return text;
}

}  // namespace millrace
