#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/planner.h"

namespace millrace {
namespace {

// ordered_json: equal reports give equal text.
using Json = nlohmann::ordered_json;

Json ToJsonValue(const DeviceInfo& device) {
  return Json{{"name", device.name.ToString()},
              {"memory_limit", device.memory_limit},
              {"incarnation", device.incarnation},
              {"description", device.description}};
}

Json ToJsonValue(const PlacementDecision& decision) {
  return Json{{"node", decision.node},
              {"op", decision.op},
              {"device", decision.device},
              {"reason", decision.reason},
              {"alternatives", decision.alternatives}};
}

Json ToJsonValue(const PlacementReport::Link& link) {
  Json carried = Json::array();
  for (const PlacementReport::Link::Tensor& tensor : link.carried) {
    carried.push_back(Json{{"channel", tensor.channel},
                           {"name", tensor.name},
                           {"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"bytes", tensor.bytes}});
  }
  return Json{{"source", link.source},
              {"destination", link.destination},
              {"crosses_tasks", link.crosses_tasks},
              {"tensors", link.tensors},
              {"predicted_bytes", link.predicted_bytes},
              {"measured_steps", link.measured_steps},
              {"measured_payload_bytes", link.measured_payload_bytes},
              {"measured_wire_bytes", link.measured_wire_bytes},
              {"carried", std::move(carried)}};
}

template <typename T>
Json ToJsonList(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(ToJsonValue(value));
  return list;
}

// Reads the members of one object. The first thing that does not fit is kept as the error; what
// follows reads as empty.
class Reader {
 public:
  Reader(const Json& json, std::string place, Status& error)
      : json_(json), place_(std::move(place)), error_(error) {
    if (!json.is_object()) Fail(place_.empty() ? "the text" : place_, "an object");
  }

  void Get(const char* name, std::string& value) {
    const Json* member = Find(name);
    if (member == nullptr) return;
    if (!member->is_string()) return Fail(Path(name), "a string");
    value = member->get_ref<const std::string&>();
  }
  void Get(const char* name, bool& value) {
    const Json* member = Find(name);
    if (member == nullptr) return;
    if (!member->is_boolean()) return Fail(Path(name), "true or false");
    value = member->get<bool>();
  }
  template <typename Int>
  void GetInt(const char* name, Int& value) {
    const Json* member = Find(name);
    if (member == nullptr) return;
    if (!member->is_number_integer()) return Fail(Path(name), "an integer");
    value = member->get<Int>();
  }
  void Get(const char* name, std::vector<std::string>& values) {
    ForEach(name, [&](const Json& item, const std::string& place) {
      if (!item.is_string()) return Fail(place, "a string");
      values.push_back(item.get<std::string>());
    });
  }
  // Calls `read` with a Reader for each object of the list.
  template <typename Read>
  void GetObjects(const char* name, Read read) {
    ForEach(name, [&](const Json& item, const std::string& place) {
      Reader reader(item, place, error_);
      if (error_.ok()) read(reader);
    });
  }
  void Fail(const std::string& place, absl::string_view wanted) {
    if (error_.ok()) error_ = InvalidArgument("placement report: ", place, " is not ", wanted);
  }
  std::string Path(const char* name) const {
    return place_.empty() ? name : StrCat(place_, ".", name);
  }

 private:
  template <typename Visit>
  void ForEach(const char* name, Visit visit) {
    const Json* member = Find(name);
    if (member == nullptr) return;
    if (!member->is_array()) return Fail(Path(name), "a list");
    for (size_t i = 0; i < member->size() && error_.ok(); ++i) {
      visit((*member)[i], StrCat(Path(name), "[", i, "]"));
    }
  }

  const Json* Find(const char* name) {
    if (!error_.ok()) return nullptr;
    const auto found = json_.find(name);
    if (found == json_.end()) {
      error_ = InvalidArgument("placement report: ", Path(name), " is missing");
      return nullptr;
    }
    return &*found;
  }

  const Json& json_;
  const std::string place_;
  Status& error_;
};

DeviceInfo ReadDevice(Reader& reader) {
  DeviceInfo device;
  std::string name;
  reader.Get("name", name);
  reader.GetInt("memory_limit", device.memory_limit);
  reader.GetInt("incarnation", device.incarnation);
  reader.Get("description", device.description);
  StatusOr<DeviceName> parsed = DeviceName::Parse(name);
  if (parsed.ok()) {
    device.name = *std::move(parsed);
  } else {
    reader.Fail(reader.Path("name"), "a device name");
  }
  return device;
}

PlacementDecision ReadDecision(Reader& reader) {
  PlacementDecision decision;
  reader.Get("node", decision.node);
  reader.Get("op", decision.op);
  reader.Get("device", decision.device);
  reader.Get("reason", decision.reason);
  reader.Get("alternatives", decision.alternatives);
  return decision;
}

PlacementReport::Link ReadLink(Reader& reader) {
  PlacementReport::Link link;
  reader.Get("source", link.source);
  reader.Get("destination", link.destination);
  reader.Get("crosses_tasks", link.crosses_tasks);
  reader.GetInt("tensors", link.tensors);
  reader.GetInt("predicted_bytes", link.predicted_bytes);
  reader.GetInt("measured_steps", link.measured_steps);
  reader.GetInt("measured_payload_bytes", link.measured_payload_bytes);
  reader.GetInt("measured_wire_bytes", link.measured_wire_bytes);
  reader.GetObjects("carried", [&](Reader& item) {
    PlacementReport::Link::Tensor tensor{};
    item.GetInt("channel", tensor.channel);
    item.Get("name", tensor.name);
    item.Get("dtype", tensor.dtype);
    item.Get("shape", tensor.shape);
    item.GetInt("bytes", tensor.bytes);
    link.carried.push_back(std::move(tensor));
  });
  return link;
}

}  // namespace

std::string PlacementReport::ToJson() const {
  // Names of an imported graph may hold anything: bytes that are not UTF-8 are replaced.
  return Json{{"policy", policy},
              {"devices", ToJsonList(devices)},
              {"absent_tasks", absent_tasks},
              {"decisions", ToJsonList(decisions)},
              {"links", ToJsonList(links)}}
      .dump(1, ' ', false, Json::error_handler_t::replace);
}

StatusOr<PlacementReport> PlacementReportFromJson(absl::string_view text) {
  // No exceptions: a value that is no JSON is "discarded". nlohmann's parser does not recurse.
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return InvalidArgument("placement report: not JSON");
  Status error;
  PlacementReport report;
  Reader reader(json, "", error);
  reader.Get("policy", report.policy);
  reader.Get("absent_tasks", report.absent_tasks);
  reader.GetObjects("devices", [&](Reader& r) { report.devices.push_back(ReadDevice(r)); });
  reader.GetObjects("decisions", [&](Reader& r) { report.decisions.push_back(ReadDecision(r)); });
  reader.GetObjects("links", [&](Reader& r) { report.links.push_back(ReadLink(r)); });
  MR_RETURN_IF_ERROR(error);
  return report;
}

}  // namespace millrace
