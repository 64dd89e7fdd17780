#include "tools/bench/step_run.h"

#include "nlohmann/json.hpp"

namespace millrace::bench {
namespace {

using Json = nlohmann::ordered_json;

// The member `name` of `json` into `to`; false if it is missing or of another kind.
template <typename T>
void Read(const Json& json, const char* name, T* to) {
  *to = json.at(name).get<T>();
}

// Reads by `read`, which may throw as the library does.
template <typename T, typename F>
StatusOr<T> Parse(const std::string& text, const std::string& place, F read) {
  try {
    const Json json = Json::parse(text);
    T value;
    read(json, &value);
    return value;
  } catch (const Json::exception& error) {
    return InvalidArgument(place, ": ", error.what());
  }
}

}  // namespace

int64_t FeedSpec::elements() const {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

std::vector<float> FloatPattern(int64_t elements) {
  std::vector<float> values(elements);
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / 16777216.0f;
  }
  return values;
}

std::vector<int32_t> Int32Pattern(int64_t elements) {
  std::vector<int32_t> values(elements);
  for (int64_t i = 0; i < elements; ++i) values[i] = static_cast<int32_t>(i * 7 % 10);
  return values;
}

std::string StepRun::ToJson() const {
  Json json;
  json["graph"] = graph;
  json["target"] = target;
  json["cluster"] = cluster;
  json["threads"] = threads;
  json["setting"] = setting;
  json["init"] = init;
  json["feeds"] = Json::array();
  for (const FeedSpec& feed : feeds) {
    json["feeds"].push_back({{"name", feed.name}, {"dtype", feed.dtype}, {"shape", feed.shape}});
  }
  json["fetches"] = fetches;
  json["targets"] = targets;
  json["second_fetch"] = second_fetch;
  json["seconds"] = seconds;
  json["most_steps"] = most_steps;
  json["warm_up"] = warm_up;
  return json.dump(1);
}

StatusOr<StepRun> StepRun::FromJson(const std::string& text, const std::string& place) {
  return Parse<StepRun>(text, place, [](const Json& json, StepRun* run) {
    Read(json, "graph", &run->graph);
    Read(json, "target", &run->target);
    Read(json, "cluster", &run->cluster);
    Read(json, "threads", &run->threads);
    Read(json, "setting", &run->setting);
    Read(json, "init", &run->init);
    for (const Json& feed : json.at("feeds")) {
      FeedSpec spec;
      Read(feed, "name", &spec.name);
      Read(feed, "dtype", &spec.dtype);
      Read(feed, "shape", &spec.shape);
      run->feeds.push_back(std::move(spec));
    }
    Read(json, "fetches", &run->fetches);
    Read(json, "targets", &run->targets);
    Read(json, "second_fetch", &run->second_fetch);
    Read(json, "seconds", &run->seconds);
    Read(json, "most_steps", &run->most_steps);
    Read(json, "warm_up", &run->warm_up);
  });
}

std::string StepTimes::ToJson() const {
  Json json;
  json["load"] = load;
  json["first"] = first;
  json["second"] = second;
  json["first_value"] = first_value;
  json["last_value"] = last_value;
  json["step_count"] = step_count;
  json["steps"] = steps;
  return json.dump();
}

StatusOr<StepTimes> StepTimes::FromJson(const std::string& text, const std::string& place) {
  return Parse<StepTimes>(text, place, [](const Json& json, StepTimes* times) {
    Read(json, "load", &times->load);
    Read(json, "first", &times->first);
    Read(json, "second", &times->second);
    Read(json, "first_value", &times->first_value);
    Read(json, "last_value", &times->last_value);
    Read(json, "step_count", &times->step_count);
    Read(json, "steps", &times->steps);
  });
}

}  // namespace millrace::bench
