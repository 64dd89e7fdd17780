#ifndef TOOLS_BENCH_STEP_RUN_H_
#define TOOLS_BENCH_STEP_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

// One step of one graph, to be timed by one system in a process of its own, and what came of it.
// Both are files of JSON, so that every system is measured in the same way: by a program that takes
// the one and leaves the other.
namespace millrace::bench {

// A tensor that is fed, the same one in each step: floats in [0,1), or int32 in [0,10), of a fixed
// pattern.
struct FeedSpec {
  std::string name;
  std::string dtype;  // "float" or "int32"
  std::vector<int64_t> shape;
  int64_t elements() const;
};
std::vector<float> FloatPattern(int64_t elements);
std::vector<int32_t> Int32Pattern(int64_t elements);

struct StepRun {
  std::string graph;              // a GraphDef, binary
  std::string target;             // "": in this process; "grpc://host:port"
  std::string cluster;            // for a target that was started without a cluster spec
  int threads = 1;                // that run kernels, in process
  std::string setting;            // of the system, by its own name; "": its default
  std::vector<std::string> init;  // targets of a step that runs once, before
  std::vector<FeedSpec> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::string second_fetch;  // of a second step signature, run once; "": none
  double seconds = 1;        // of measured steps, roughly
  int64_t most_steps = 1000000;
  int64_t warm_up = 5;  // steps that are not counted

  std::string ToJson() const;
  static StatusOr<StepRun> FromJson(const std::string& text, const std::string& place);
};

struct StepTimes {
  double load = 0;            // seconds: read the file, import it, open a session
  double first = 0;           // seconds: the first step
  double second = 0;          // seconds: the first step of the second signature
  std::vector<double> steps;  // seconds each
  // The first element of the first fetch, in the first step and in the last.
  double first_value = 0;
  double last_value = 0;
  int64_t step_count = 0;  // all, warm-up included

  std::string ToJson() const;
  static StatusOr<StepTimes> FromJson(const std::string& text, const std::string& place);
};

}  // namespace millrace::bench

#endif  // TOOLS_BENCH_STEP_RUN_H_
