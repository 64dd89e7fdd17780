#include "distributed/data_plane.h"
#include "gmock/gmock.h"
#include "tests/distributed/data_plane/cluster.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kSession = Collector::kSession;

MessageKey Key(uint64_t step, uint32_t channel) { return {kSession, step, 0, channel}; }

std::string Text(const Status& status) { return std::string(status.message()); }

TEST(LinkFailureTest, ACutMidChunkTellsBothEndsAndALaterStepConnectsAgain) {
  Cluster cluster(2);
  Collector sinks[2];
  for (int task = 0; task < 2; ++task) {
    ASSERT_TRUE(cluster.plane(task).BeginStep(kSession, 1, &sinks[task], cluster.Links(task)).ok());
  }
  const LinkId link = cluster.Link(0, 1);
  cluster.plane(0).Push(link, Key(1, 1), Bytes(20 << 20, 1));
  cluster.network.CutAllAfter(9);
  ASSERT_TRUE(cluster.RunUntil([&] { return !sinks[0].downs.empty() && !sinks[1].downs.empty(); }));
  for (int task = 0; task < 2; ++task) {
    ASSERT_THAT(sinks[task].downs, SizeIs(1));
    EXPECT_EQ(sinks[task].downs[0].code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(Text(sinks[task].downs[0]), HasSubstr(Cluster::Name(1 - task)));
    EXPECT_THAT(Text(sinks[task].downs[0]), HasSubstr("connection reset"));
  }
  EXPECT_EQ(cluster.memory(1).stats().bytes_in_use, 0);
  // What the failed step still sends goes nowhere, and opens nothing.
  const int64_t connects = cluster.network.connects();
  cluster.plane(0).Push(link, Key(1, 2), Bytes(100, 2));
  cluster.RunFor(absl::Seconds(1));
  EXPECT_EQ(cluster.network.connects(), connects);
  EXPECT_THAT(sinks[1].order, IsEmpty());

  Collector next[2];
  for (int task = 0; task < 2; ++task) {
    cluster.plane(task).EndStep(kSession, 1);
    ASSERT_TRUE(cluster.plane(task).BeginStep(kSession, 2, &next[task], cluster.Links(task)).ok());
  }
  cluster.plane(0).Push(link, Key(2, 1), Bytes(3 << 20, 1));
  ASSERT_TRUE(cluster.RunUntil([&] { return next[1].tensors.size() == 1; }));
  EXPECT_TRUE(IsBytes(next[1].Get(2, 1), 3 << 20, 1));
  for (int task = 0; task < 2; ++task) {
    EXPECT_THAT(next[task].downs, IsEmpty());
    cluster.plane(task).EndStep(kSession, 2);
  }
  cluster.RunFor(absl::Seconds(1));
  cluster.ExpectNothingHeld();
}

TEST(LinkFailureTest, OnlyStepsThatUseTheLinkAreTold) {
  Cluster cluster(3);
  Collector uses;
  Collector other;
  ASSERT_TRUE(cluster.plane(0).BeginStep(kSession, 1, &uses, {cluster.Link(0, 1)}).ok());
  ASSERT_TRUE(cluster.plane(0).BeginStep(kSession, 2, &other, {cluster.Link(0, 2)}).ok());
  cluster.plane(0).Push(cluster.Link(0, 1), Key(1, 1), Bytes(10, 1));
  cluster.RunFor(absl::Seconds(1));
  cluster.Stop(1);
  ASSERT_TRUE(cluster.RunUntil([&] { return !uses.downs.empty(); }));
  cluster.RunFor(absl::Seconds(30));
  EXPECT_THAT(other.downs, IsEmpty());
}

TEST(LinkFailureTest, WhatCameEarlyOverALostStreamFailsTheStepWhenItBegins) {
  Cluster cluster(2);
  cluster.plane(0).Push(cluster.Link(0, 1), Key(1, 1), Bytes(100, 1));
  cluster.RunFor(absl::Seconds(1));
  EXPECT_EQ(cluster.plane(1).usage().early_bytes, 100);
  cluster.network.CutAll();
  cluster.RunFor(absl::Seconds(1));
  EXPECT_EQ(cluster.plane(1).usage().early_bytes, 0);
  Collector sink;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 1, &sink, cluster.Links(1)).ok());
  ASSERT_THAT(sink.downs, SizeIs(1));
  EXPECT_EQ(sink.downs[0].code(), absl::StatusCode::kUnavailable);
}

TEST(LinkFailureTest, NobodyListens) {
  Cluster cluster(2);
  const LinkId link = cluster.Link(0, 1);
  cluster.Stop(1);
  Collector sink;
  ASSERT_TRUE(cluster.plane(0).BeginStep(kSession, 1, &sink, {link}).ok());
  const int64_t start = cluster.world.environment().clock->NowNanos();
  cluster.plane(0).Push(link, Key(1, 1), Bytes(10, 1));
  ASSERT_TRUE(cluster.RunUntil([&] { return !sink.downs.empty(); }));
  const double seconds =
      static_cast<double>(cluster.world.environment().clock->NowNanos() - start) / 1e9;
  EXPECT_NEAR(seconds, 10, 0.1);
  EXPECT_GT(cluster.network.connects(), 5);
  EXPECT_EQ(sink.downs[0].code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Text(sink.downs[0]), HasSubstr("/job:worker/task:1 at host1:1"));
  EXPECT_THAT(Text(sink.downs[0]), HasSubstr("no connection within 10s: connection refused"));
  EXPECT_EQ(cluster.plane(0).usage().queued_tensors, 0);
}

TEST(LinkFailureTest, APeerThatListensLateIsFound) {
  Cluster cluster(2);
  cluster.network.Listen(Cluster::Address(1), nullptr);
  Collector sink;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 1, &sink, cluster.Links(1)).ok());
  cluster.plane(0).Push(cluster.Link(0, 1), Key(1, 1), Bytes(10, 1));
  cluster.RunFor(absl::Seconds(5));
  cluster.network.Listen(Cluster::Address(1), &cluster.plane(1));
  EXPECT_TRUE(cluster.RunUntil([&] { return sink.tensors.size() == 1; }));
}

TEST(LinkFailureTest, ARestartedPeerIsAborted) {
  Cluster cluster(2);
  const LinkId link = cluster.Link(0, 1);
  Collector first;
  ASSERT_TRUE(cluster.plane(0).BeginStep(kSession, 1, &first, {link}).ok());
  cluster.plane(0).Push(link, Key(1, 1), Bytes(10, 1));
  cluster.RunFor(absl::Seconds(1));
  cluster.Restart(1);
  ASSERT_TRUE(cluster.RunUntil([&] { return !first.downs.empty(); }));
  EXPECT_EQ(first.downs[0].code(), absl::StatusCode::kUnavailable);
  cluster.plane(0).EndStep(kSession, 1);

  // The link is to the incarnation before.
  Collector second;
  ASSERT_TRUE(cluster.plane(0).BeginStep(kSession, 2, &second, {link}).ok());
  cluster.plane(0).Push(link, Key(2, 1), Bytes(10, 1));
  ASSERT_TRUE(cluster.RunUntil([&] { return !second.downs.empty(); }));
  EXPECT_EQ(second.downs[0].code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Text(second.downs[0]), HasSubstr("restarted"));
  EXPECT_EQ(cluster.plane(1).usage().steps, 0);

  Collector third;
  ASSERT_NE(cluster.Link(0, 1), link);
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 3, &third, cluster.Links(1)).ok());
  cluster.plane(0).Push(cluster.Link(0, 1), Key(3, 1), Bytes(10, 1));
  EXPECT_TRUE(cluster.RunUntil([&] { return third.tensors.size() == 1; }));
}

// A late close of an old stream does not hurt the steps that use its successor.
TEST(LinkFailureTest, AReceiverThatNoticesLate) {
  Cluster cluster(2);
  Collector first;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 1, &first, cluster.Links(1)).ok());
  const LinkId link = cluster.Link(0, 1);
  cluster.plane(0).Push(link, Key(1, 1), Bytes(10, 1));
  ASSERT_TRUE(cluster.RunUntil([&] { return first.tensors.size() == 1; }));
  cluster.plane(1).EndStep(kSession, 1);
  cluster.network.CutForOpeners();
  cluster.RunFor(absl::Seconds(1));  // the sender knows, the receiver does not

  cluster.plane(0).Push(link, Key(2, 1), Bytes(10, 1));
  cluster.RunFor(absl::Seconds(1));
  Collector second;
  ASSERT_TRUE(cluster.plane(1).BeginStep(kSession, 2, &second, cluster.Links(1)).ok());
  EXPECT_EQ(second.tensors.size(), 1u);
  cluster.network.TellAcceptors();
  cluster.RunFor(absl::Seconds(1));
  EXPECT_THAT(second.downs, IsEmpty());
  cluster.plane(0).Push(link, Key(2, 2), Bytes(10, 2));
  EXPECT_TRUE(cluster.RunUntil([&] { return second.tensors.size() == 2; }));
}

TEST(LinkFailureTest, APlaneGoesWithAllUnderWay) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Cluster cluster(2, seed);
    Collector sinks[2];
    for (int task = 0; task < 2; ++task) {
      ASSERT_TRUE(
          cluster.plane(task).BeginStep(kSession, 1, &sinks[task], cluster.Links(task)).ok());
      for (int i = 0; i < 10; ++i) {
        cluster.plane(task).Push(cluster.Link(task, 1 - task), Key(1, i),
                                 Bytes(i % 2 == 0 ? 100 : 4 << 20, i));
      }
    }
    cluster.RunFor(absl::Microseconds(100 * seed));
    cluster.Stop(0);
    sinks[0].ended = true;
    ASSERT_TRUE(cluster.RunUntil([&] { return !sinks[1].downs.empty(); })) << "seed " << seed;
    cluster.plane(1).EndStep(kSession, 1);
    sinks[1].ended = true;
    cluster.RunFor(absl::Minutes(1));
    EXPECT_EQ(cluster.plane(1).usage().queued_tensors, 0);
    sinks[1].tensors.clear();
    EXPECT_EQ(cluster.memory(1).stats().bytes_in_use, 0);
  }
}

}  // namespace
}  // namespace millrace
