#include "distributed/cluster_spec.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/framework/cluster.pb.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace millrace {
namespace {

using Json = nlohmann::json;

// A name that device strings can hold.
Status CheckJobName(absl::string_view job) {
  if (job.empty()) return InvalidArgument("a job has no name");
  const bool good = absl::ascii_isalpha(job[0]) && std::all_of(job.begin(), job.end(), [](char c) {
                      return absl::ascii_isalnum(c) || c == '_';
                    });
  if (good) return absl::OkStatus();
  return InvalidArgument("job '", job,
                         "': a job's name starts with a letter and holds letters, digits and '_'");
}

// A number without blanks, sign or needless zeros, of which SimpleAtoi takes all.
bool ReadNumber(absl::string_view text, int64_t* number) {
  return absl::SimpleAtoi(text, number) && StrCat(*number) == text;
}

bool IsHostCharacter(char c, bool bracketed) {
  return absl::ascii_isalnum(c) || absl::StrContains("-._", c) ||
         (bracketed && (c == ':' || c == '%'));
}

Status CheckAddress(absl::string_view task, absl::string_view address) {
  if (address.empty()) return InvalidArgument(task, " has no address");
  const size_t colon = address.rfind(':');
  int64_t port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !ReadNumber(address.substr(colon + 1), &port) || port < 1 ||
      port > std::numeric_limits<uint16_t>::max()) {
    return InvalidArgument(task, ": address '", address,
                           "' is not of the form host:port with a port from 1 to 65535");
  }
  absl::string_view host = address.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (!bracketed && host.find(':') != absl::string_view::npos) {
    return InvalidArgument(task, ": address '", address,
                           "': an IPv6 address goes in brackets: [::1]:2222");
  }
  if (bracketed) host = host.substr(1, host.size() - 2);
  for (const char c : host) {
    if (!IsHostCharacter(c, bracketed)) {
      return InvalidArgument(task, ": address '", address, "' has a character that no host has");
    }
  }
  return absl::OkStatus();
}

// "worker=h:p,h:p;ps=h:p"
StatusOr<ClusterSpec> ParseList(absl::string_view text) {
  ClusterSpec spec;
  for (absl::string_view part : absl::StrSplit(text, ';')) {
    part = absl::StripAsciiWhitespace(part);
    if (part.empty()) continue;
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const absl::string_view job = absl::StripAsciiWhitespace(halves.first);
    if (part.find('=') == absl::string_view::npos) {
      return InvalidArgument("cluster spec: '", part,
                             "' is not of the form job=host:port,host:port");
    }
    std::vector<std::string> addresses;
    for (absl::string_view address : absl::StrSplit(halves.second, ',')) {
      addresses.emplace_back(absl::StripAsciiWhitespace(address));
    }
    MR_RETURN_IF_ERROR(spec.AddJob(std::string(job), std::move(addresses)));
  }
  return spec;
}

// Puts the addresses of numbered tasks in order; `tasks` holds each number once.
StatusOr<std::vector<std::string>> InOrder(absl::string_view job,
                                           const std::map<int64_t, std::string>& tasks) {
  std::vector<std::string> addresses;
  for (const auto& [number, address] : tasks) {
    const int64_t expected = static_cast<int64_t>(addresses.size());
    if (number != expected) {
      return InvalidArgument("job '", job, "' has a task ", number, " but no task ", expected,
                             ": tasks are numbered from 0 without gaps");
    }
    addresses.push_back(address);
  }
  return addresses;
}

// Keeps the first complaint instead of logging all.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

StatusOr<ClusterSpec> ParseTextProto(absl::string_view text) {
  ClusterDef def;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(std::string(text), &def)) {
    return InvalidArgument("cluster spec as a ClusterDef: ", error.text());
  }
  ClusterSpec spec;
  for (const JobDef& job : def.job()) {
    std::map<int64_t, std::string> tasks(job.tasks().begin(), job.tasks().end());
    MR_ASSIGN_OR_RETURN(std::vector<std::string> addresses, InOrder(job.name(), tasks));
    MR_RETURN_IF_ERROR(spec.AddJob(job.name(), std::move(addresses)));
  }
  return spec;
}

// A job's tasks in JSON: a list of addresses, or an object from numbers to addresses.
StatusOr<std::vector<std::string>> JsonAddresses(const std::string& job, const Json& value) {
  if (value.is_array()) {
    std::vector<std::string> addresses;
    for (const Json& address : value) {
      if (!address.is_string()) {
        return InvalidArgument(TaskName(job, static_cast<int>(addresses.size())),
                               ": the address is no string, but of type ", address.type_name());
      }
      addresses.push_back(address.get<std::string>());
    }
    return addresses;
  }
  if (value.is_object()) {
    std::map<int64_t, std::string> tasks;
    for (const auto& [key, address] : value.items()) {
      int64_t number = 0;
      if (!ReadNumber(key, &number) || !address.is_string()) {
        return InvalidArgument("job '", job, "': '", key, "' is not a task number with an address");
      }
      tasks[number] = address.get<std::string>();
    }
    return InOrder(job, tasks);
  }
  return InvalidArgument("job '", job, "' is neither a list of addresses nor an object");
}

StatusOr<ClusterSpec> ParseJson(absl::string_view text) {
  // The parser keeps the last of equal keys; this sees them all.
  std::vector<std::vector<std::string>> keys_by_depth;
  std::string twice;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const size_t level = static_cast<size_t>(std::max(depth, 0));
    if (event == Json::parse_event_t::object_start) {
      keys_by_depth.resize(level + 2);
      keys_by_depth[level + 1].clear();
    } else if (event == Json::parse_event_t::key && level < keys_by_depth.size()) {
      const std::string& key = parsed.get_ref<const std::string&>();
      std::vector<std::string>& seen = keys_by_depth[level];
      if (std::find(seen.begin(), seen.end(), key) != seen.end()) twice = key;
      seen.push_back(key);
    }
    return true;
  };
  const Json json = Json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    return InvalidArgument("cluster spec starts with '{' but is no JSON object");
  }
  if (!twice.empty()) return InvalidArgument("cluster spec: '", twice, "' is there twice");

  const auto found = json.find("cluster");
  const Json& cluster = found == json.end() ? json : *found;
  if (!cluster.is_object()) return InvalidArgument("cluster spec: 'cluster' is no JSON object");
  ClusterSpec spec;
  for (const auto& [job, value] : cluster.items()) {
    MR_ASSIGN_OR_RETURN(std::vector<std::string> addresses, JsonAddresses(job, value));
    MR_RETURN_IF_ERROR(spec.AddJob(job, std::move(addresses)));
  }
  return spec;
}

}  // namespace

StatusOr<ClusterSpec> ClusterSpec::Parse(absl::string_view text) {
  const absl::string_view stripped = absl::StripAsciiWhitespace(text);
  StatusOr<ClusterSpec> spec = absl::StartsWith(stripped, "{")    ? ParseJson(stripped)
                               : absl::StrContains(stripped, '{') ? ParseTextProto(stripped)
                                                                  : ParseList(stripped);
  if (spec.ok() && spec->empty()) return InvalidArgument("cluster spec names no job");
  return spec;
}

Status ClusterSpec::AddJob(const std::string& job, std::vector<std::string> addresses) {
  MR_RETURN_IF_ERROR(CheckJobName(job));
  if (jobs_.contains(job)) return InvalidArgument("job '", job, "' is there twice");
  if (addresses.empty()) return InvalidArgument("job '", job, "' has no tasks");
  std::map<std::string, std::string> tasks;  // by address
  for (const auto& [task, address] : Tasks()) tasks[address] = task;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const std::string task = TaskName(job, static_cast<int>(i));
    MR_RETURN_IF_ERROR(CheckAddress(task, addresses[i]));
    const auto [other, added] = tasks.emplace(addresses[i], task);
    if (!added) {
      return InvalidArgument("address ", addresses[i], " belongs to ", other->second, " and to ",
                             task);
    }
  }
  jobs_[job] = std::move(addresses);
  return absl::OkStatus();
}

StatusOr<std::string> ClusterSpec::Address(const std::string& job, int task) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) {
    std::vector<std::string> names;
    for (const auto& [name, addresses] : jobs_) names.push_back(name);
    return NotFound("the cluster has no job '", job, "'; it has ",
                    names.empty() ? "none" : absl::StrJoin(names, ", "));
  }
  const int size = static_cast<int>(found->second.size());
  if (task < 0 || task >= size) {
    return NotFound("job '", job, "' has no task ", task, "; it has tasks 0 to ", size - 1);
  }
  return found->second[task];
}

std::vector<std::pair<std::string, std::string>> ClusterSpec::Tasks() const {
  std::vector<std::pair<std::string, std::string>> tasks;
  for (const auto& [job, addresses] : jobs_) {
    for (size_t i = 0; i < addresses.size(); ++i) {
      tasks.emplace_back(TaskName(job, static_cast<int>(i)), addresses[i]);
    }
  }
  return tasks;
}

int ClusterSpec::num_tasks() const {
  size_t count = 0;
  for (const auto& [job, addresses] : jobs_) count += addresses.size();
  return static_cast<int>(count);
}

std::string ClusterSpec::ToString() const {
  return absl::StrJoin(jobs_, ";", [](std::string* out, const auto& job) {
    absl::StrAppend(out, job.first, "=", absl::StrJoin(job.second, ","));
  });
}

std::string TaskName(absl::string_view job, int task) {
  return StrCat("/job:", job, "/task:", task);
}

}  // namespace millrace
