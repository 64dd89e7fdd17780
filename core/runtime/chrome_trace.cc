#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/runtime/step_stats.h"

namespace millrace {
namespace {

// ordered_json: the same events give the same bytes.
using Json = nlohmann::ordered_json;

// Of one device; more would be sorted among those of the next one.
constexpr int kMostLanes = 10'000;

// Where an event is drawn.
struct Place {
  int process = 0;
  int lane = 0;
};

struct DeviceLanes {
  int process = 0;
  int order = 0;                   // among all devices
  std::string name;                // "CPU:0"
  std::vector<int> lanes;          // their numbers
  std::vector<int64_t> lane_ends;  // end of the last event in each
};

std::pair<std::string, std::string> SplitDevice(const std::string& device) {
  const StatusOr<DeviceName> name = DeviceName::Parse(device);
  if (!name.ok() || !name->type || !name->index) return {device, device};
  return {name->TaskString(), StrCat(*name->type, ":", *name->index)};
}

// `key` is what the format calls the value of this kind of metadata.
Json Metadata(const char* kind, int process, int lane, const char* key, const Json& value) {
  return Json{
      {"ph", "M"}, {"pid", process}, {"tid", lane}, {"name", kind}, {"args", {{key, value}}}};
}

// Valid UTF-8 whatever the names hold: bytes that are not are replaced.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string ChromeTrace(absl::Span<const KernelEvent> events) {
  std::vector<const KernelEvent*> sorted;
  std::map<std::string, int> processes;  // by task
  std::map<std::string, DeviceLanes> devices;
  for (const KernelEvent& event : events) {
    sorted.push_back(&event);
    const auto [task, name] = SplitDevice(event.device);
    processes.try_emplace(task, 0);
    devices[event.device].name = name;
  }
  int next = 0;
  for (auto& [task, process] : processes) process = next++;
  int order = 0;
  for (auto& [device, lanes] : devices) {
    lanes.process = processes[SplitDevice(device).first];
    lanes.order = order++;
  }
  std::sort(sorted.begin(), sorted.end(), [](const KernelEvent* a, const KernelEvent* b) {
    return std::tie(a->start_micros, a->end_micros, a->device, a->node) <
           std::tie(b->start_micros, b->end_micros, b->device, b->node);
  });

  // Timestamps of an epoch in microseconds are beyond what viewers' doubles show well.
  const int64_t origin = sorted.empty() ? 0 : sorted.front()->start_micros;
  Json list = Json::array();
  for (const auto& [task, process] : processes) {
    list.push_back(Metadata("process_name", process, 0, "name", task));
  }
  std::map<int64_t, std::vector<std::pair<const KernelEvent*, Place>>> channels;
  int lanes_used = 0;
  for (const KernelEvent* event : sorted) {
    DeviceLanes& device = devices[event->device];
    size_t lane = 0;
    while (lane < device.lanes.size() && device.lane_ends[lane] > event->start_micros) ++lane;
    if (lane == device.lanes.size()) {
      device.lanes.push_back(lanes_used++);
      device.lane_ends.push_back(0);
      list.push_back(Metadata("thread_name", device.process, device.lanes[lane], "name",
                              lane == 0 ? device.name : StrCat(device.name, " (", lane + 1, ")")));
      // Viewers would sort by name, "CPU:0 (10)" before "CPU:0 (2)".
      list.push_back(Metadata("thread_sort_index", device.process, device.lanes[lane], "sort_index",
                              device.order * kMostLanes + static_cast<int>(lane)));
    }
    device.lane_ends[lane] = event->end_micros;
    const Place place{device.process, device.lanes[lane]};
    list.push_back(Json{{"ph", "X"},
                        {"pid", place.process},
                        {"tid", place.lane},
                        {"ts", event->start_micros - origin},
                        {"dur", event->end_micros - event->start_micros},
                        {"name", event->op},
                        {"args",
                         {{"node", event->node},
                          {"waited_us", event->start_micros - event->ready_micros},
                          {"output_bytes", event->output_bytes}}}});
    if (event->channel >= 0) channels[event->channel].emplace_back(event, place);
  }
  // Of the two ends of a channel, the Send ends first: the Recv cannot end before it.
  for (auto& [channel, ends] : channels) {
    if (ends.size() != 2) continue;
    if (ends[0].first->end_micros > ends[1].first->end_micros) std::swap(ends[0], ends[1]);
    if (ends[0].first->op == "_Recv" && ends[1].first->op == "_Send") std::swap(ends[0], ends[1]);
    for (int end = 0; end < 2; ++end) {
      const auto& [event, place] = ends[end];
      // An arrow ends inside its event, not at its edge.
      const int64_t last = std::max(event->start_micros, event->end_micros - 1);
      Json flow{{"ph", end == 0 ? "s" : "f"},
                {"id", channel},
                {"pid", place.process},
                {"tid", place.lane},
                {"ts", (end == 0 ? event->start_micros : last) - origin},
                {"cat", "transfer"},
                {"name", "transfer"}};
      if (end == 1) flow["bp"] = "e";
      list.push_back(std::move(flow));
    }
  }
  return Dump(Json{{"displayTimeUnit", "ns"},
                   {"otherData", {{"origin_epoch_us", origin}}},
                   {"traceEvents", std::move(list)}});
}

}  // namespace millrace
