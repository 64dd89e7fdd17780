#include "distributed/data_plane.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "tests/distributed/data_plane/cluster.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kSession = Collector::kSession;

// Room for a few tensors only.
DataPlaneOptions Tight() {
  DataPlaneOptions limits;
  limits.small_tensor_bytes = 256;
  limits.eager_window_bytes = 2048;
  limits.chunk_bytes = 1000;
  limits.credit_window_bytes = 1000;  // one chunk
  return limits;
}

MessageKey Key(uint64_t step, uint32_t channel) { return {kSession, step, 0, channel}; }

TEST(DataPlaneTest, DeliversEveryKindOfTensor) {
  Cluster cluster(2);
  Collector sink;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 1, &sink, cluster.Links(1)).ok());
  const LinkId link = cluster.Link(0, 1);
  const auto push = [&](uint32_t channel, const Tensor& tensor) {
    cluster.plane(0).Push(link, Key(1, channel), tensor);
  };
  std::vector<std::string> many(3000, "a string of some length");
  many.back() = "the last";
  push(1, Tensor::Of<float>({2, 2}, {1, 2, 3, 4}));
  push(2, Tensor());                            // a control edge
  push(3, Tensor::Zeros(DType::kDouble, {0}));  // no elements
  push(4, Bytes(3'000'000, 4));                 // large
  push(5, Tensor::Strings({2}, {"one", ""}));
  push(6, Tensor::Strings({3000}, many));  // large
  push(7, Tensor::Of<float>({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7}).Slice(1, 3));
  push(8, Tensor::Scalar<int64_t>(-5));
  ASSERT_TRUE(cluster.RunUntil([&] { return sink.tensors.size() == 8; }));

  EXPECT_EQ(sink.Get(1, 1).ToString(), "float[2,2] = 1 2 3 4");
  EXPECT_FALSE(sink.Get(1, 2).valid());
  EXPECT_EQ(sink.Get(1, 3).ToString(), "double[0] =");
  EXPECT_TRUE(IsBytes(sink.Get(1, 4), 3'000'000, 4));
  EXPECT_EQ(sink.Get(1, 5).string(0), "one");
  EXPECT_EQ(sink.Get(1, 5).string(1), "");
  EXPECT_EQ(sink.Get(1, 6).string(2999), "the last");
  EXPECT_EQ(sink.Get(1, 7).ToString(), "float[2,2] = 2 3 4 5");
  EXPECT_EQ(sink.Get(1, 8).ToString(), "int64[] = -5");
  EXPECT_TRUE(sink.Get(1, 4).OwnsWholeBuffer());  // may be overwritten in place

  const LinkCounters sent = cluster.plane(0).Counters()[0];
  const LinkCounters received = cluster.plane(1).Counters()[0];
  EXPECT_EQ(sent.peer, "/job:worker/task:1");
  EXPECT_EQ(received.peer, "/job:worker/task:0");
  EXPECT_EQ(sent.tensors_sent, 8);
  EXPECT_EQ(received.tensors_received, 8);
  EXPECT_GT(sent.payload_bytes_sent, 3'000'000);
  EXPECT_EQ(sent.payload_bytes_sent, received.payload_bytes_received);
  EXPECT_GT(sent.wire_bytes_sent, sent.payload_bytes_sent);
  EXPECT_EQ(sent.wire_bytes_sent, received.wire_bytes_received);

  // One frame for a small tensor, headers and all; an offer and three chunks for the large one.
  EXPECT_EQ(sink.wire[1], 35 + 2 * 8 + 16);
  EXPECT_EQ(sink.wire[2], 35);
  EXPECT_EQ(sink.wire[4], (43 + 8) + 3 * 25 + 3'000'000);
  // All that went over the link belongs to some tensor, but for the greeting and what each message
  // begins with.
  int64_t of_tensors = 0;
  for (const auto& [channel, bytes] : sink.wire) of_tensors += bytes;
  EXPECT_LT(of_tensors, sent.wire_bytes_sent);
  EXPECT_GT(of_tensors, sent.wire_bytes_sent - 500);

  cluster.plane(1).EndStep(kSession, 1);
  cluster.plane(0).EndStep(kSession, 1);
  cluster.RunFor(absl::Seconds(1));
  cluster.ExpectNothingHeld();
}

// A byte that is neither 0 nor 1 must not become a bool, whoever sends it and in which frames.
TEST(DataPlaneTest, BoolsAreOneOrZero) {
  Cluster cluster(2);
  Collector sink;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 1, &sink, cluster.Links(1)).ok());
  for (const int64_t size : {3, 300'000}) {
    Tensor tensor = Tensor::Zeros(DType::kBool, {size});
    static_cast<unsigned char*>(tensor.mutable_raw_data())[size - 1] = 2;
    cluster.plane(0).Push(cluster.Link(0, 1), Key(1, static_cast<uint32_t>(size)), tensor);
  }
  ASSERT_TRUE(cluster.RunUntil([&] { return sink.tensors.size() == 2; }));
  for (const uint32_t size : {3u, 300'000u}) {
    const auto* bytes = static_cast<const unsigned char*>(sink.Get(1, size).raw_data());
    EXPECT_EQ(bytes[0], 0);
    EXPECT_EQ(bytes[size - 1], 1);
  }
}

TEST(DataPlaneTest, LinksAreTheSameForEqualArguments) {
  Cluster cluster(3);
  EXPECT_EQ(cluster.Link(0, 1), cluster.Link(0, 1));
  EXPECT_NE(cluster.Link(0, 1), cluster.Link(0, 2));
  EXPECT_EQ(cluster.network.connects(), 0);  // until something is sent
}

// The receiver takes one chunk at a time and a handful of small ones; both directions at once.
TEST(DataPlaneTest, AWindowOfOneChunkBoundsMemoryAndCannotDeadlock) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Cluster cluster(2, seed, Tight());
    cluster.network.set_max_delay(absl::Milliseconds(5));
    Collector sinks[2];
    constexpr int kTensors = 60;
    const auto size = [](int i) -> int64_t { return i % 3 == 0 ? 5000 + i : 10 * (i % 25); };
    for (int task = 0; task < 2; ++task) {
      ASSERT_TRUE(
          cluster.plane(task).BeginStep(kSession, 1, &sinks[task], cluster.Links(task)).ok());
    }
    for (int i = 0; i < kTensors; ++i) {
      for (int task = 0; task < 2; ++task) {
        cluster.plane(task).Push(cluster.Link(task, 1 - task), Key(1, i), Bytes(size(i), i));
      }
    }
    const bool done = cluster.RunUntil([&] {
      for (int task = 0; task < 2; ++task) {
        const StreamDataPlane::Usage usage = cluster.plane(task).usage();
        EXPECT_LE(usage.eager_used, 2048);
        EXPECT_LE(usage.eager_held + usage.eager_unsent, 2048);
        EXPECT_LE(usage.credit_outstanding, 1000);
        EXPECT_LE(usage.queued_tensors, kTensors);
      }
      return sinks[0].tensors.size() == kTensors && sinks[1].tensors.size() == kTensors;
    });
    ASSERT_TRUE(done) << "seed " << seed;
    for (int i = 0; i < kTensors; ++i) {
      ASSERT_TRUE(IsBytes(sinks[0].Get(1, i), size(i), i));
      ASSERT_TRUE(IsBytes(sinks[1].Get(1, i), size(i), i));
    }
    for (int task = 0; task < 2; ++task) cluster.plane(task).EndStep(kSession, 1);
    cluster.RunFor(absl::Seconds(1));
    cluster.ExpectNothingHeld();
  }
}

TEST(DataPlaneTest, ASlowReceiverBoundsWhatIsBuffered) {
  Cluster cluster(2, 1, Tight());
  const LinkId link = cluster.Link(0, 1);
  for (int i = 0; i < 100; ++i) {
    cluster.plane(0).Push(link, Key(1, i), Bytes(i % 2 == 0 ? 100 : 10'000, i));
  }
  cluster.RunFor(absl::Seconds(5));
  // Its step has not begun: the window is full, large ones have no memory at all.
  EXPECT_LE(cluster.plane(1).usage().eager_held, 2048);
  EXPECT_GT(cluster.plane(1).usage().early_bytes, 0);
  EXPECT_EQ(cluster.plane(1).usage().early_bytes, cluster.memory(1).stats().bytes_in_use);
  EXPECT_GT(cluster.plane(0).usage().queued_tensors, 80);

  Collector sink;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 1, &sink, cluster.Links(1)).ok());
  EXPECT_THAT(sink.order, Not(IsEmpty())) << "early ones are delivered at once";
  ASSERT_TRUE(cluster.RunUntil([&] { return sink.tensors.size() == 100; }));
}

TEST(DataPlaneTest, ASmallTensorOvertakesALargeOne) {
  Cluster cluster(2);
  Collector sink;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 1, &sink, cluster.Links(1)).ok());
  const LinkId link = cluster.Link(0, 1);
  int messages = 0;
  cluster.network.set_observer([&](bool forward, const std::string&) { messages += forward; });
  cluster.plane(0).Push(link, Key(1, 0), Bytes(20 << 20, 0));
  ASSERT_TRUE(cluster.RunUntil([&] { return messages == 6; }));  // under way

  cluster.plane(0).Push(link, Key(1, 1), Bytes(100, 1));
  ASSERT_TRUE(cluster.RunUntil([&] { return sink.Has(1); }));
  EXPECT_LE(messages, 8) << "it waits for the chunk on its way, at most";
  ASSERT_TRUE(cluster.RunUntil([&] { return sink.Has(0); }));
  EXPECT_THAT(sink.order, ElementsAre(1, 0));
}

TEST(DataPlaneTest, LargeTensorsTakeTurns) {
  Cluster cluster(2, 1, Tight());
  Collector sink;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 1, &sink, cluster.Links(1)).ok());
  const LinkId link = cluster.Link(0, 1);
  cluster.plane(0).Push(link, Key(1, 0), Bytes(50'000, 0));
  cluster.plane(0).Push(link, Key(1, 1), Bytes(5000, 1));
  cluster.plane(0).Push(link, Key(1, 2), Bytes(5000, 2));
  ASSERT_TRUE(cluster.RunUntil([&] { return sink.tensors.size() == 3; }));
  EXPECT_EQ(sink.order.back(), 0u);
}

TEST(DataPlaneTest, AnUnknownStepWaitsUntilItBegins) {
  Cluster cluster(2);
  const LinkId link = cluster.Link(0, 1);
  cluster.plane(0).Push(link, Key(7, 1), Bytes(100, 1));
  cluster.plane(0).Push(link, Key(7, 2), Bytes(1 << 20, 2));
  cluster.RunFor(absl::Seconds(30));
  EXPECT_EQ(cluster.plane(1).usage().offers, 1);
  EXPECT_EQ(cluster.plane(1).usage().credit_outstanding, 0);
  EXPECT_EQ(cluster.memory(1).stats().bytes_in_use, 100) << "none for the large one yet";

  Collector sink;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 7, &sink, cluster.Links(1)).ok());
  EXPECT_THAT(sink.order, ElementsAre(1));
  ASSERT_TRUE(cluster.RunUntil([&] { return sink.tensors.size() == 2; }));
  EXPECT_TRUE(IsBytes(sink.Get(7, 2), 1 << 20, 2));
  EXPECT_THAT(sink.downs, IsEmpty());
}

TEST(DataPlaneTest, AnUnknownStepExpiresAndThenCannotComplete) {
  Cluster cluster(2);
  const LinkId link = cluster.Link(0, 1);
  cluster.plane(0).Push(link, Key(7, 1), Bytes(100, 1));
  cluster.plane(0).Push(link, Key(7, 2), Bytes(1 << 20, 2));
  cluster.RunFor(absl::Seconds(61));
  EXPECT_EQ(cluster.plane(1).usage().early_bytes, 0);
  EXPECT_EQ(cluster.plane(1).usage().eager_held, 0);
  EXPECT_EQ(cluster.plane(0).usage().queued_tensors, 0) << "the offer was refused";
  // More of it is dropped, too.
  cluster.plane(0).Push(link, Key(7, 3), Bytes(100, 3));
  cluster.RunFor(absl::Seconds(1));
  EXPECT_EQ(cluster.plane(1).usage().early_bytes, 0);

  Collector sink;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 7, &sink, cluster.Links(1)).ok());
  cluster.RunFor(absl::Seconds(1));
  ASSERT_THAT(sink.downs, SizeIs(1)) << "better told than left waiting";
  EXPECT_THAT(std::string(sink.downs[0].message()), HasSubstr("did not begin within 60 s"));
  EXPECT_THAT(sink.order, IsEmpty());
  cluster.plane(1).EndStep(kSession, 7);
  cluster.plane(0).EndStep(kSession, 7);
  cluster.RunFor(absl::Seconds(1));
  cluster.ExpectNothingHeld();
}

TEST(DataPlaneTest, EndStepDropsWhatIsQueuedAndWhatComesLate) {
  Cluster cluster(2, 1, Tight());
  Collector sink;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 5, &sink, cluster.Links(1)).ok());
  const LinkId link = cluster.Link(0, 1);
  for (int i = 0; i < 50; ++i) {
    cluster.plane(0).Push(link, Key(5, i), Bytes(i % 2 == 0 ? 100 : 10'000, i));
  }
  ASSERT_TRUE(cluster.RunUntil([&] { return sink.tensors.size() >= 10; }));
  cluster.plane(1).EndStep(kSession, 5);
  sink.ended = true;
  cluster.RunFor(absl::Seconds(1));
  EXPECT_EQ(cluster.plane(0).usage().queued_tensors, 0) << "refused and dropped";
  cluster.plane(0).Push(link, Key(5, 60), Bytes(100, 60));
  cluster.RunFor(absl::Seconds(1));
  cluster.plane(0).EndStep(kSession, 5);
  cluster.plane(0).Push(link, Key(5, 61), Bytes(100, 61));  // after its end
  cluster.RunFor(absl::Seconds(1));
  cluster.ExpectNothingHeld();

  EXPECT_EQ(cluster.plane(1).BeginStep(kSession, 5, &sink, {}).code(),
            absl::StatusCode::kFailedPrecondition);
  // Those before and after are not touched.
  Collector other;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 4, &other, cluster.Links(1)).ok());
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 6, &other, cluster.Links(1)).ok());
  cluster.plane(0).Push(link, Key(4, 1), Bytes(100, 1));
  cluster.plane(0).Push(link, Key(6, 1), Bytes(10'000, 1));
  EXPECT_TRUE(cluster.RunUntil([&] { return other.tensors.size() == 2; }));
}

TEST(DataPlaneTest, TheSendersEndTakesItsOffersBack) {
  Cluster cluster(2, 1, Tight());
  Collector sink;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 1, &sink, cluster.Links(1)).ok());
  const LinkId link = cluster.Link(0, 1);
  cluster.plane(0).Push(link, Key(1, 1), Bytes(100'000, 1));
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.memory(1).stats().bytes_in_use >= 100'000; }));
  cluster.plane(0).EndStep(kSession, 1);
  cluster.RunFor(absl::Seconds(1));
  EXPECT_EQ(cluster.memory(1).stats().bytes_in_use, 0);
  cluster.plane(1).EndStep(kSession, 1);
  cluster.RunFor(absl::Seconds(1));
  cluster.ExpectNothingHeld();
}

// Thousands of steps, of which this task sees every third.
TEST(DataPlaneTest, StepsWithGapsAreForgotten) {
  Cluster cluster(2);
  const LinkId link = cluster.Link(0, 1);
  Collector sink;
  Collector sender;
  // One that runs long.
  ASSERT_TRUE(cluster.plane(0).BeginStep(kSession, 2, &sender, cluster.Links(0)).ok());
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 2, &sink, cluster.Links(1)).ok());
  for (uint64_t step = 3; step < 12'000; step += 3) {
    Collector brief;
    ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, step, &brief, cluster.Links(1)).ok());
    cluster.plane(0).Push(link, Key(step, 1), Bytes(10, step));
    ASSERT_TRUE(cluster.RunUntil([&] { return brief.tensors.size() == 1; }));
    cluster.plane(1).EndStep(kSession, step);
    cluster.plane(0).EndStep(kSession, step);
  }
  EXPECT_EQ(cluster.plane(1).BeginStep(kSession, 3, &sink, {}).code(),
            absl::StatusCode::kFailedPrecondition);
  cluster.plane(0).Push(link, Key(2, 1), Bytes(10, 1));
  EXPECT_TRUE(cluster.RunUntil([&] { return sink.tensors.size() == 1; })) << "it is still known";
  cluster.plane(1).EndStep(kSession, 2);
  cluster.plane(0).EndStep(kSession, 2);
  cluster.RunFor(absl::Seconds(1));
  cluster.ExpectNothingHeld();
}

TEST(DataPlaneTest, EndSessionEndsItsStepsAndRefusesTheSession) {
  Cluster cluster(2);
  Collector sink;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 1, &sink, cluster.Links(1)).ok());
  const LinkId link = cluster.Link(0, 1);
  cluster.plane(0).Push(link, Key(1, 1), Bytes(20 << 20, 1));
  cluster.plane(0).Push(link, Key(2, 1), Bytes(100, 1));
  cluster.RunFor(absl::Milliseconds(1));
  cluster.plane(1).EndSession(kSession);
  sink.ended = true;
  cluster.plane(0).EndSession(kSession);
  cluster.RunFor(absl::Seconds(1));
  cluster.ExpectNothingHeld();
  EXPECT_FALSE(cluster.plane(1).BeginStep(kSession, 3, &sink, {}).ok());
  cluster.plane(0).Push(link, Key(3, 1), Bytes(100, 1));
  cluster.RunFor(absl::Seconds(1));
  cluster.ExpectNothingHeld();
}

TEST(DataPlaneTest, EndStepFromWithinTheSink) {
  class Ending final : public Collector {
   public:
    explicit Ending(StreamDataPlane& plane) : plane_(plane) {}
    void OnTensor(const MessageKey& key, Tensor tensor, int64_t wire_bytes) override {
      Collector::OnTensor(key, std::move(tensor), wire_bytes);
      plane_.EndStep(key.session, key.step);
      ended = true;
    }

   private:
    StreamDataPlane& plane_;
  };
  Cluster cluster(2);
  Ending sink(cluster.plane(1));
  for (int i = 0; i < 5; ++i) cluster.plane(0).Push(cluster.Link(0, 1), Key(1, i), Bytes(10, i));
  cluster.RunFor(absl::Seconds(1));
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 1, &sink, cluster.Links(1)).ok());
  cluster.RunFor(absl::Seconds(1));
  EXPECT_THAT(sink.order, ElementsAre(0));
  cluster.plane(0).EndStep(kSession, 1);
  cluster.RunFor(absl::Seconds(1));
  cluster.ExpectNothingHeld();
}

TEST(DataPlaneTest, RefusesWrongSteps) {
  Cluster cluster(1);
  Collector sink;
  EXPECT_EQ(cluster.plane(0).BeginStep(kSession, 1, &sink, {3}).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(cluster.plane(0).BeginStep(kSession, 1, &sink, {}).ok());
  EXPECT_EQ(cluster.plane(0).BeginStep(kSession, 1, &sink, {}).code(),
            absl::StatusCode::kAlreadyExists);
  cluster.plane(0).Push(12, Key(1, 1), Bytes(10, 1));  // no such link: ignored
}

TEST(DataPlaneTest, NoMemoryFailsTheStepByName) {
  Cluster cluster(2);
  cluster.memory(1).set_limit(1000);
  Collector large;
  Collector small;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 1, &large, cluster.Links(1)).ok());
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 2, &small, cluster.Links(1)).ok());
  const LinkId link = cluster.Link(0, 1);
  cluster.plane(0).Push(link, Key(1, 1), Bytes(1 << 20, 1));
  cluster.plane(0).Push(link, Key(2, 1), Bytes(2000, 1));
  ASSERT_TRUE(cluster.RunUntil([&] { return !large.downs.empty() && !small.downs.empty(); }));
  for (const Status& down : {large.downs[0], small.downs[0]}) {
    EXPECT_EQ(down.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(down.message()), HasSubstr("/job:worker/task:0"));
  }
  for (uint64_t step : {1, 2}) {
    cluster.plane(1).EndStep(kSession, step);
    cluster.plane(0).EndStep(kSession, step);
  }
  cluster.RunFor(absl::Seconds(1));
  cluster.ExpectNothingHeld();
}

}  // namespace
}  // namespace millrace
