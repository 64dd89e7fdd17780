#include <random>
#include <set>

#include "distributed/data_plane.h"
#include "gmock/gmock.h"
#include "tests/distributed/data_plane/cluster.h"

namespace millrace {
namespace {

constexpr uint64_t kSession = Collector::kSession;
constexpr int kTasks = 3;
constexpr int kSteps = 12;

uint64_t Mark(int from, int to, uint64_t step, uint32_t channel) {
  return ((step * 16 + from) * 16 + to) * 1000 + channel;
}

// One world: tasks begin and end steps at times of their own, push to each other, and end some
// early; in some worlds streams break.
class Soak {
 public:
  explicit Soak(uint64_t seed)
      : random_(seed), breaks_(seed % 4 == 3), cluster_(kTasks, seed, Limits()) {
    cluster_.network.set_max_delay(absl::Microseconds(1 + random_() % 3000));
  }

  void Run() {
    for (uint64_t step = 1; step <= kSteps; ++step) {
      const absl::Duration start = absl::Milliseconds(10 * step);
      const bool doomed = random_() % 4 == 0;  // one task ends early
      const int culprit = static_cast<int>(random_() % kTasks);
      for (int task = 0; task < kTasks; ++task) {
        At(start + Random(20), [this, step, task] { Begin(step, task); });
        // Sends may come before the step begins where they arrive, and even here.
        const int sends = static_cast<int>(random_() % 12);
        for (int i = 0; i < sends; ++i) Send(start + Random(25), step, task, i);
        if (doomed && task == culprit) {
          At(start + Random(30), [this, step, task] { End(step, task, /*early=*/true); });
        }
      }
    }
    if (breaks_) {
      for (int i = 0; i < 3; ++i) At(Random(150), [this] { Cut(); });
    }
    cluster_.RunFor(absl::Seconds(50));
    CheckDelivered();
    for (uint64_t step = 1; step <= kSteps; ++step) {
      for (int task = 0; task < kTasks; ++task) End(step, task, /*early=*/false);
    }
    cluster_.RunFor(absl::Seconds(50));
    cluster_.ExpectNothingHeld();
    sinks_.clear();
    for (int task = 0; task < kTasks; ++task) {
      EXPECT_EQ(cluster_.memory(task).stats().bytes_in_use, 0);
    }
  }

 private:
  struct Sent {
    int from;
    int to;
    uint64_t step;
    uint32_t channel;
    int64_t size;
  };

  static DataPlaneOptions Limits() {
    DataPlaneOptions limits;
    limits.small_tensor_bytes = 500;
    limits.eager_window_bytes = 3000;
    limits.chunk_bytes = 700;
    limits.credit_window_bytes = 1500;
    limits.unknown_step_seconds = 5;
    return limits;
  }
  absl::Duration Random(int max_milliseconds) {
    return absl::Microseconds(random_() % (1000 * max_milliseconds));
  }
  void At(absl::Duration when, Task task) {
    cluster_.world.environment().timers->After(when, std::move(task));
  }
  Collector& Sink(uint64_t step, int task) { return sinks_[{step, task}]; }

  void Begin(uint64_t step, int task) {
    if (Sink(step, task).ended) return;
    ASSERT_TRUE(cluster_.plane(task)
                    .BeginStep(kSession, step, &Sink(step, task), cluster_.Links(task))
                    .ok());
  }
  void Send(absl::Duration when, uint64_t step, int from, int i) {
    Sent sent{from, static_cast<int>((from + 1 + random_() % (kTasks - 1)) % kTasks), step,
              static_cast<uint32_t>(from * 100 + i), 0};
    sent.size = static_cast<int64_t>(random_() % (i % 3 == 0 ? 6000 : 400));
    At(when, [this, sent] {
      const Tensor tensor = Bytes(sent.size, Mark(sent.from, sent.to, sent.step, sent.channel));
      if (!Sink(sent.step, sent.from).ended) sent_.push_back(sent);
      cluster_.plane(sent.from).Push(cluster_.Link(sent.from, sent.to),
                                     {kSession, sent.step, 0, sent.channel}, tensor);
    });
  }
  void End(uint64_t step, int task, bool early) {
    if (early) ended_early_.insert(step);
    cluster_.plane(task).EndStep(kSession, step);
    Sink(step, task).ended = true;
  }
  void Cut() {
    was_cut_ = true;
    cluster_.network.CutAll();
  }

  // All of each step that no one ended early and no cut could hit; and of the others, nothing that
  // was not sent.
  void CheckDelivered() {
    std::set<std::pair<int, Collector::Key>> expected;
    for (const Sent& sent : sent_) {
      const Collector::Key key(kSession, sent.step, 0, sent.channel);
      Collector& sink = Sink(sent.step, sent.to);
      expected.emplace(sent.to, key);
      const auto found = sink.tensors.find(key);
      if (found != sink.tensors.end()) {
        EXPECT_TRUE(
            IsBytes(found->second, sent.size, Mark(sent.from, sent.to, sent.step, sent.channel)));
      } else {
        EXPECT_TRUE(was_cut_ || ended_early_.contains(sent.step))
            << "step " << sent.step << " channel " << sent.channel << " of " << sent.size
            << " bytes never came";
      }
    }
    for (const auto& [id, sink] : sinks_) {
      for (const auto& [key, tensor] : sink.tensors) {
        EXPECT_TRUE(expected.contains({id.second, key}));
        EXPECT_EQ(std::get<1>(key), id.first) << "a tensor of another step";
      }
      EXPECT_TRUE(sink.downs.empty() || was_cut_ || ended_early_.contains(id.first));
    }
  }

  std::mt19937_64 random_;
  const bool breaks_;
  std::map<std::pair<uint64_t, int>, Collector> sinks_;  // outlives the planes
  std::vector<Sent> sent_;
  std::set<uint64_t> ended_early_;
  bool was_cut_ = false;
  Cluster cluster_;
};

TEST(SoakTest, AllIsDeliveredOrEndedAndNothingLeaks) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    Soak(seed).Run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace millrace
