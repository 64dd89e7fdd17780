#include "core/runtime/local_rendezvous.h"

#include <atomic>
#include <memory>

#include "core/base/mutex.h"
#include "core/base/thread_pool.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

ThreadPool::Options FourThreads() {
  ThreadPool::Options options;
  options.threads = 4;
  return options;
}

// What a Recv of that channel got: a value, an error's message, or "" if it still waits.
std::shared_ptr<std::string> Recv(LocalRendezvous& rendezvous, ChannelId channel) {
  auto result = std::make_shared<std::string>();
  rendezvous.RecvAsync(channel, [result](StatusOr<Tensor> tensor) {
    *result = tensor.ok() ? tensor->ToString() : std::string(tensor.status().message());
  });
  return result;
}

TEST(LocalRendezvousTest, PassesOnInEitherOrder) {
  LocalRendezvous rendezvous(2);
  EXPECT_TRUE(rendezvous.Send(0, Tensor::Scalar(1)).ok());
  EXPECT_EQ(*Recv(rendezvous, 0), "int32[] = 1");
  const auto second = Recv(rendezvous, 1);
  EXPECT_EQ(*second, "");
  EXPECT_TRUE(rendezvous.Send(1, Tensor::Scalar(2)).ok());
  EXPECT_EQ(*second, "int32[] = 2");
}

TEST(LocalRendezvousTest, ATensorIsNotHeldAfterItWasReceived) {
  LocalRendezvous rendezvous(1);
  Tensor tensor = Tensor::Scalar(1);
  EXPECT_TRUE(rendezvous.Send(0, tensor).ok());
  EXPECT_FALSE(tensor.OwnsWholeBuffer());
  Recv(rendezvous, 0);
  EXPECT_TRUE(tensor.OwnsWholeBuffer());
}

TEST(LocalRendezvousTest, AbortEndsWhatWaitsAndWhatComesLater) {
  LocalRendezvous rendezvous(3);
  const auto waiting = Recv(rendezvous, 0);
  EXPECT_TRUE(rendezvous.Send(1, Tensor::Scalar(1)).ok());
  rendezvous.Abort(Cancelled("first"));
  rendezvous.Abort(Cancelled("second"));
  EXPECT_EQ(*waiting, "first");
  EXPECT_EQ(*Recv(rendezvous, 1), "first");
  EXPECT_EQ(*Recv(rendezvous, 2), "first");
  EXPECT_EQ(rendezvous.Send(2, Tensor::Scalar(1)), Cancelled("first"));
}

TEST(LocalRendezvousTest, DestructionEndsWhatWaits) {
  auto rendezvous = std::make_unique<LocalRendezvous>(1);
  const auto waiting = Recv(*rendezvous, 0);
  rendezvous.reset();
  EXPECT_EQ(*waiting, "the step has ended");
}

TEST(LocalRendezvousTest, MisuseIsAnError) {
  LocalRendezvous rendezvous(1);
  EXPECT_EQ(rendezvous.Send(1, Tensor()).message(), "there is no channel 1 among 1");
  EXPECT_EQ(*Recv(rendezvous, 7), "there is no channel 7 among 1");
  EXPECT_TRUE(rendezvous.Send(0, Tensor::Scalar(1)).ok());
  EXPECT_EQ(rendezvous.Send(0, Tensor()).message(), "channel 0 was sent to twice in one step");
  Recv(rendezvous, 0);
  EXPECT_EQ(*Recv(rendezvous, 0), "channel 0 was received from twice in one step");
}

TEST(LocalRendezvousTest, EveryRecvEndsOnceHoweverSendRecvAndAbortMeet) {
  ThreadPool pool(FourThreads());
  for (int round = 0; round < 200; ++round) {
    constexpr int kChannels = 16;
    LocalRendezvous rendezvous(kChannels);
    std::atomic<int> ended{0};
    std::atomic<int> tasks{3};
    Notification all;
    const auto finish = [&] {
      if (tasks.fetch_sub(1) == 1) all.Notify();
    };
    pool.Schedule([&] {
      for (ChannelId i = 0; i < kChannels; ++i) {
        rendezvous.RecvAsync(i, [&](StatusOr<Tensor> tensor) {
          EXPECT_TRUE(tensor.ok() || tensor.status() == Cancelled("enough"));
          ended.fetch_add(1);
        });
      }
      finish();
    });
    pool.Schedule([&] {
      for (ChannelId i = 0; i < kChannels; ++i) {
        rendezvous.Send(i, Tensor::Scalar(1)).IgnoreError();
      }
      finish();
    });
    pool.Schedule([&] {
      rendezvous.Abort(Cancelled("enough"));
      finish();
    });
    all.Wait();
    EXPECT_EQ(ended, kChannels);
  }
}

}  // namespace
}  // namespace millrace
