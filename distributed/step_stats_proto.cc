#include "distributed/step_stats_proto.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace millrace {
namespace {

constexpr absl::string_view kChannel = "channel=";

std::string Label(const KernelEvent& event) {
  const std::string channel =
      event.channel < 0 ? std::string() : absl::StrCat(kChannel, event.channel);
  return absl::StrCat(event.node, " = ", event.op, "(", channel, ")");
}

// "node = Op(...)"
void ReadLabel(absl::string_view label, KernelEvent* event) {
  const size_t equals = label.find(" = ");
  if (equals == absl::string_view::npos) return;
  label.remove_prefix(equals + 3);
  const size_t bracket = label.find('(');
  event->op = std::string(label.substr(0, bracket));
  if (bracket == absl::string_view::npos) return;
  label.remove_prefix(bracket + 1);
  absl::ConsumeSuffix(&label, ")");
  if (!absl::ConsumePrefix(&label, kChannel) || !absl::SimpleAtoi(label, &event->channel)) {
    event->channel = -1;
  }
}

}  // namespace

void EventsToProto(absl::Span<const KernelEvent> events, StepStats* stats) {
  std::map<std::string, DeviceStepStats*> devices;
  for (const KernelEvent& event : events) {
    DeviceStepStats*& device = devices[event.device];
    if (device == nullptr) {
      device = stats->add_dev_stats();
      device->set_device(event.device);
    }
    NodeExecStats* node = device->add_node_stats();
    node->set_node_name(event.node);
    node->set_timeline_label(Label(event));
    node->set_scheduled_micros(event.ready_micros);
    node->set_all_start_micros(event.start_micros);
    node->set_op_end_rel_micros(event.end_micros - event.start_micros);
    node->set_all_end_rel_micros(event.end_micros - event.start_micros);
    node->add_output()
        ->mutable_tensor_description()
        ->mutable_allocation_description()
        ->set_requested_bytes(event.output_bytes);
  }
}

std::vector<KernelEvent> EventsFromProto(const StepStats& stats) {
  std::vector<KernelEvent> events;
  for (const DeviceStepStats& device : stats.dev_stats()) {
    for (const NodeExecStats& node : device.node_stats()) {
      KernelEvent event;
      event.device = device.device();
      event.node = node.node_name();
      ReadLabel(node.timeline_label(), &event);
      event.ready_micros = node.scheduled_micros();
      event.start_micros = node.all_start_micros();
      event.end_micros = node.all_start_micros() + node.all_end_rel_micros();
      for (const NodeOutput& output : node.output()) {
        event.output_bytes +=
            output.tensor_description().allocation_description().requested_bytes();
      }
      events.push_back(std::move(event));
    }
  }
  return events;
}

}  // namespace millrace
