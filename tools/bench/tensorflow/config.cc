#include "tools/bench/tensorflow/config.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_split.h"

namespace millrace::bench {
namespace {

// A message being written: https://protobuf.dev/programming-guides/encoding
class Message {
 public:
  Message& Number(int field, int64_t value) {
    Varint(static_cast<uint64_t>(field) << 3);
    Varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& Bytes(int field, const std::string& value) {
    Varint(static_cast<uint64_t>(field) << 3 | 2);
    Varint(value.size());
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

}  // namespace

StatusOr<std::string> ConfigProtoFor(const std::string& setting, int threads) {
  Message config;
  config.Number(2, threads);  // intra_op_parallelism_threads
  config.Number(5, threads);  // inter_op_parallelism_threads
  if (setting == "optimized") return config.bytes();
  if (setting != "" && setting != "caller_runs" && setting != "single_threaded") {
    return InvalidArgument("there is no setting '", setting, "' of TensorFlow");
  }
  Message optimizer, rewriter, graph;
  optimizer.Number(3, -1);  // opt_level: L0
  rewriter.Number(19, 1);   // disable_meta_optimizer
  graph.Bytes(3, optimizer.bytes()).Bytes(10, rewriter.bytes());
  config.Bytes(10, graph.bytes());
  if (setting == "single_threaded") {
    Message experimental;
    experimental.Bytes(3, "SINGLE_THREADED_EXECUTOR");  // executor_type
    config.Bytes(16, experimental.bytes());
  }
  return config.bytes();
}

std::string RunOptionsFor(const std::string& setting) {
  Message options;
  if (setting == "caller_runs") options.Number(3, -1);  // inter_op_thread_pool
  return options.bytes();
}

StatusOr<std::string> ServerDefFor(const std::string& cluster, const std::string& job, int task,
                                   const std::string& config) {
  Message cluster_def;
  for (const absl::string_view part : absl::StrSplit(cluster, ';')) {
    const std::vector<std::string> sides = absl::StrSplit(part, '=');
    if (sides.size() != 2) return InvalidArgument("'", part, "' is not job=host:port,...");
    Message job_def;
    job_def.Bytes(1, sides[0]);
    int64_t number = 0;
    for (const absl::string_view address : absl::StrSplit(sides[1], ',')) {
      Message entry;
      entry.Number(1, number++).Bytes(2, std::string(address));
      job_def.Bytes(2, entry.bytes());
    }
    cluster_def.Bytes(1, job_def.bytes());
  }
  Message server;
  server.Bytes(1, cluster_def.bytes()).Bytes(2, job).Number(3, task).Bytes(4, config);
  server.Bytes(5, "grpc");
  return server.bytes();
}

}  // namespace millrace::bench
