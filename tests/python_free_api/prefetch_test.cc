#include "python_free_api/prefetch.h"

#include <atomic>
#include <memory>
#include <vector>

#include "core/base/simulation.h"
#include "core/base/thread_pool.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

// The numbers 0, 1, ... below `count`; then the end, or an error whose text is another each time it
// is asked for.
class Counter final : public DatasetIterator {
 public:
  struct Shared {
    std::atomic<int> made{0};
    std::atomic<int> inside{0};
    std::atomic<bool> alive{true};
  };
  Counter(int count, bool fails, std::shared_ptr<Shared> shared)
      : count_(count), fails_(fails), shared_(std::move(shared)) {}
  ~Counter() override { shared_->alive = false; }

  StatusOr<std::optional<Element>> Next() override {
    EXPECT_EQ(shared_->inside++, 0) << "two threads at once";
    const int number = shared_->made++;
    StatusOr<std::optional<Element>> result = std::optional<Element>();
    if (number < count_) {
      result = std::optional<Element>(Element{Tensor::Scalar<int32_t>(number)});
      ++position_.element;
    } else if (fails_) {
      result = DataLoss("attempt ", number - count_, " failed");
    }
    --shared_->inside;
    return result;
  }
  DatasetPosition position() const override { return position_; }

 private:
  const int count_;
  const bool fails_;
  const std::shared_ptr<Shared> shared_;
  DatasetPosition position_;
};

struct Prefetched {
  std::shared_ptr<Counter::Shared> shared = std::make_shared<Counter::Shared>();
  std::unique_ptr<DatasetIterator> iterator;
};
Prefetched Make(int count, bool fails, int elements, Scheduler& scheduler) {
  Prefetched made;
  made.iterator =
      PrefetchIterator(std::make_unique<Counter>(count, fails, made.shared), elements, scheduler);
  return made;
}

void ExpectNumbers(DatasetIterator& iterator, int from, int to) {
  for (int i = from; i < to; ++i) {
    EXPECT_EQ(iterator.position().element, i);
    const StatusOr<std::optional<Element>> next = iterator.Next();
    ASSERT_EQ(next.status(), Status());
    ASSERT_TRUE(next->has_value());
    EXPECT_EQ((**next)[0].data<int32_t>()[0], i);
  }
  EXPECT_EQ(iterator.position().element, to);
}

// Of a scheduler that runs nothing while the caller has the thread, or never comes to it.
TEST(PrefetchTest, DoesNotWaitForATaskThatHasNotBegun) {
  Simulation world(1);
  const Prefetched p = Make(5, false, 2, *world.environment().scheduler);
  ExpectNumbers(*p.iterator, 0, 5);
  EXPECT_FALSE(p.iterator->Next().value().has_value());
}

TEST(PrefetchTest, MakesAsManyAheadAsItIsTold) {
  Simulation world(1);
  const Prefetched p = Make(10, false, 3, *world.environment().scheduler);
  EXPECT_EQ(p.shared->made, 0);
  world.RunFor(kLong);
  EXPECT_EQ(p.shared->made, 3);
  ExpectNumbers(*p.iterator, 0, 1);
  EXPECT_EQ(p.shared->made, 3) << "the one that was ready was taken";
  world.RunFor(kLong);
  EXPECT_EQ(p.shared->made, 4);
  ExpectNumbers(*p.iterator, 1, 10);
}

TEST(PrefetchTest, TurnsOfTheSchedulerChangeNothing) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Simulation world(seed);
    Entropy& entropy = *world.environment().entropy;
    const Prefetched p = Make(30, false, 4, *world.environment().scheduler);
    for (int i = 0; i < 30; ++i) {
      if (entropy.Next() % 2 == 0) world.RunFor(kLong);
      ExpectNumbers(*p.iterator, i, i + 1);
    }
    EXPECT_FALSE(p.iterator->Next().value().has_value());
  }
}

TEST(PrefetchTest, TheFirstErrorIsGivenAgainAndAgain) {
  for (const bool ahead : {false, true}) {
    Simulation world(1);
    const Prefetched p = Make(2, true, 5, *world.environment().scheduler);
    if (ahead) world.RunFor(kLong);
    ExpectNumbers(*p.iterator, 0, 2);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(p.iterator->Next().status(), DataLoss("attempt 0 failed"));
      EXPECT_EQ(p.iterator->position().element, 2);
      world.RunFor(kLong);
    }
    EXPECT_EQ(p.shared->made, 3) << "nothing is made after an error";
  }
}

TEST(PrefetchTest, TheEndIsGivenAgainAndAgain) {
  Simulation world(1);
  const Prefetched p = Make(1, false, 5, *world.environment().scheduler);
  world.RunFor(kLong);
  ExpectNumbers(*p.iterator, 0, 1);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(p.iterator->Next().value().has_value());
  EXPECT_EQ(p.shared->made, 2);
}

TEST(PrefetchTest, ATaskThatComesTooLateFindsNothingToDo) {
  Simulation world(1);
  Prefetched p = Make(5, false, 2, *world.environment().scheduler);
  p.iterator = nullptr;
  EXPECT_FALSE(p.shared->alive);
  world.RunFor(kLong);
  EXPECT_EQ(p.shared->made, 0);
}

TEST(PrefetchTest, OnThreadsTheOrderIsThatOfTheSource) {
  ThreadPool::Options options;
  options.threads = 2;
  ThreadPool pool(options);
  for (int depth = 1; depth <= 3; ++depth) {
    Prefetched p = Make(500, false, depth, pool);
    ExpectNumbers(*p.iterator, 0, 500);
    EXPECT_FALSE(p.iterator->Next().value().has_value());
    // One that is dropped midway leaves its source alone at once.
    Prefetched dropped = Make(1 << 30, false, depth, pool);
    ExpectNumbers(*dropped.iterator, 0, 20);
    dropped.iterator = nullptr;
    EXPECT_FALSE(dropped.shared->alive);
    EXPECT_EQ(dropped.shared->inside, 0);
  }
}

TEST(PrefetchTest, ADatasetUsesIt) {
  Simulation world(1);
  const Dataset rows = Dataset::FromTensors({Tensor::Of<int32_t>({3}, {0, 1, 2})}).value();
  const auto iterator = rows.Prefetch(2, world.environment().scheduler).Iterate().value();
  ExpectNumbers(*iterator, 0, 2);
}

}  // namespace
}  // namespace millrace
