#include "python_free_api/dataset.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/simulation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

// Rows 0, 1, ... as int32[n], and their squares as float[n,1].
Dataset Rows(int64_t n) {
  std::vector<int32_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::vector<float> squares;
  for (const int32_t i : numbers) squares.push_back(static_cast<float>(i) * static_cast<float>(i));
  return Dataset::FromTensors(
             {Tensor::Of<int32_t>({n}, numbers), Tensor::Of<float>({n, 1}, squares)})
      .value();
}

// "0 1|2 3|4": the first column of the elements from a position to the end, at most `limit` of
// them; and what else holds of every element.
std::string Read(const Dataset& dataset, DatasetPosition from = {}, int limit = 100) {
  const StatusOr<std::unique_ptr<DatasetIterator>> iterator = dataset.Iterate(from);
  if (!iterator.ok()) return iterator.status().ToString();
  std::vector<std::string> elements;
  while (static_cast<int>(elements.size()) < limit) {
    const StatusOr<std::optional<Element>> next = (*iterator)->Next();
    if (!next.ok()) return next.status().ToString();
    if (!next->has_value()) {
      // The end is given again and again.
      EXPECT_FALSE((*iterator)->Next().value().has_value());
      break;
    }
    const Element& element = **next;
    EXPECT_EQ(element.size(), 2u);
    const absl::Span<const int32_t> rows = element[0].span<int32_t>();
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(element[1].span<float>()[i], static_cast<float>(rows[i] * rows[i]))
          << "columns go together";
    }
    elements.push_back(absl::StrJoin(rows, " "));
  }
  return absl::StrJoin(elements, "|");
}

TEST(DatasetTest, GivesElementsInADocumentedOrder) {
  const struct {
    const char* what;
    Dataset dataset;
    int64_t elements_per_epoch;
    const char* elements;
  } cases[] = {
      {"single rows", Rows(4), 4, "0|1|2|3"},
      {"batches, the last one short", Rows(5).Batch(2), 3, "0 1|2 3|4"},
      {"full batches only", Rows(5).Batch(2, /*drop_last=*/true), 2, "0 1|2 3"},
      {"batches that fit", Rows(4).Batch(2), 2, "0 1|2 3"},
      {"one batch larger than the data", Rows(3).Batch(7), 1, "0 1 2"},
      {"no full batch", Rows(3).Batch(7, true), 0, ""},
      {"the largest batch there is", Rows(2).Batch(INT64_MAX), 1, "0 1"},
      {"epochs do not run into each other", Rows(3).Batch(2).Repeat(2), 2, "0 1|2|0 1|2"},
      {"a shard", Rows(5).Shard(1, 2), 2, "1|3"},
      {"shards, then batches, whatever the order of the calls", Rows(6).Batch(2).Shard(0, 2), 2,
       "0 2|4"},
      {"a shard without rows", Rows(2).Shard(2, 3), 0, ""},
      {"a shard of very many", Rows(2).Shard(1, INT64_MAX), 1, "1"},
      {"a later call replaces an earlier one", Rows(4).Batch(3).Batch(2).Repeat(5).Repeat(1), 2,
       "0 1|2 3"},
      {"nothing made ahead", Rows(2).Prefetch(0, nullptr), 2, "0|1"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(c.dataset.status(), Status()) << c.what;
    EXPECT_EQ(c.dataset.elements_per_epoch(), c.elements_per_epoch) << c.what;
    EXPECT_EQ(Read(c.dataset), c.elements) << c.what;
  }
}

TEST(DatasetTest, RepeatsForEverButNotWithoutElements) {
  EXPECT_EQ(Read(Rows(2).Repeat(0), {}, 5), "0|1|0|1|0");
  EXPECT_EQ(Read(Rows(2).Batch(3, true).Repeat(0), {}, 5), "");
}

TEST(DatasetTest, ShapesAreThoseOfRowsOrOfBatches) {
  const Dataset rows = Rows(3);
  EXPECT_EQ(rows.batch_size(), 0);
  Element element = *(*rows.Iterate())->Next().value();
  EXPECT_EQ(element[0].shape().ToString(), "[]");
  EXPECT_EQ(element[1].shape().ToString(), "[1]");
  const Dataset batches = rows.Batch(2);
  EXPECT_EQ(batches.batch_size(), 2);
  element = *(*batches.Iterate())->Next().value();
  EXPECT_EQ(element[0].shape().ToString(), "[2]");
  EXPECT_EQ(element[1].shape().ToString(), "[2,1]");
}

TEST(DatasetTest, ColumnsWithEmptyRowsHaveTheirShape) {
  const Dataset dataset =
      Dataset::FromTensors({Tensor::Zeros(DType::kFloat, {3, 0})}).value().Batch(2);
  EXPECT_EQ((**(*dataset.Iterate())->Next())[0].shape().ToString(), "[2,0]");
}

TEST(DatasetTest, NumbersOutOfRangeAreNamed) {
  Simulation world(1);
  Scheduler* scheduler = world.environment().scheduler;
  const struct {
    Dataset dataset;
    const char* message;
  } cases[] = {
      {Rows(3).Shard(0, 0), "Shard takes an index below the count of shards, but got 0 of 0"},
      {Rows(3).Shard(2, 2), "Shard takes an index below the count of shards, but got 2 of 2"},
      {Rows(3).Shard(-1, 2), "Shard takes an index below the count of shards, but got -1 of 2"},
      {Rows(3).Shard(0, -2), "Shard takes an index below the count of shards, but got 0 of -2"},
      {Rows(3).Batch(0), "Batch takes at least 1 row, but got 0"},
      {Rows(3).Batch(-4, true), "Batch takes at least 1 row, but got -4"},
      {Rows(3).Repeat(-1), "Repeat takes a number of epochs, or 0 for ever, but got -1"},
      {Rows(3).Prefetch(-1, scheduler),
       "Prefetch takes a number of elements and a scheduler, but got -1"},
      {Rows(3).Prefetch(1, nullptr),
       "Prefetch takes a number of elements and a scheduler, but got 1 and no scheduler"},
      {Rows(3).Batch(0).Shard(0, 0).Batch(2).Shuffle(1), "Batch takes at least 1 row, but got 0"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(c.dataset.status().code(), kInvalidArgument) << c.message;
    EXPECT_EQ(c.dataset.status().message(), c.message);
    EXPECT_EQ(c.dataset.elements_per_epoch(), 0) << c.message;
    EXPECT_EQ(c.dataset.Iterate().status(), c.dataset.status());
  }
}

TEST(DatasetTest, ColumnsThatDoNotGoTogetherAreRefused) {
  const Tensor three = Tensor::Zeros(DType::kFloat, {3, 2});
  const struct {
    std::vector<Tensor> columns;
    const char* message;
  } cases[] = {
      {{}, "at least one column"},
      {{Tensor()}, "must be numeric"},
      {{Tensor::Strings({1}, {"a"})}, "must be numeric, but is string"},
      {{Tensor::Scalar(1.0F)}, "have shapes [] and []"},
      {{Tensor::Zeros(DType::kFloat, {0, 2})}, "have shapes [0,2] and [0,2]"},
      {{three, Tensor::Zeros(DType::kInt32, {4})}, "have shapes [3,2] and [4]"},
  };
  for (const auto& c : cases) {
    const Status status = Dataset::FromTensors(c.columns).status();
    EXPECT_EQ(status.code(), kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

// The order as dataset.h documents it, computed anew.
class ShuffleTest : public ::testing::Test {
 protected:
  static uint64_t FirstOf(uint64_t state) {
    uint64_t z = state + kGolden;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  static std::vector<int> Order(int rows, uint64_t seed, uint64_t epoch) {
    std::vector<int> order(rows);
    std::iota(order.begin(), order.end(), 0);
    uint64_t state = FirstOf(FirstOf(seed) + epoch);
    for (int i = rows - 1; i > 0; --i, state += kGolden) {
      const auto drawn = static_cast<unsigned __int128>(FirstOf(state)) * (i + 1);
      std::swap(order[i], order[static_cast<int>(drawn >> 64)]);
    }
    return order;
  }
  static std::string Epoch(const Dataset& dataset, int64_t epoch) {
    return Read(dataset.Repeat(0), {epoch, 0}, static_cast<int>(dataset.elements_per_epoch()));
  }
};

TEST_F(ShuffleTest, IsTheDocumentedOne) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{12345}, ~uint64_t{0}}) {
    for (const int64_t epoch : {0, 1, 7}) {
      EXPECT_EQ(Epoch(Rows(50).Shuffle(seed), epoch),
                absl::StrJoin(Order(50, seed, static_cast<uint64_t>(epoch)), "|"));
    }
  }
}

TEST_F(ShuffleTest, IsTheSameInEachIteratorAndOtherInEachEpoch) {
  const Dataset dataset = Rows(20).Shuffle(3).Repeat(2).Batch(20);
  const std::string both = Read(dataset);
  EXPECT_EQ(both, Read(dataset));
  const std::vector<std::string> epochs = absl::StrSplit(both, '|');
  EXPECT_NE(epochs[0], epochs[1]);
}

// People choose seeds 1, 2, 3: what these draw must have nothing in common, in any two epochs.
TEST_F(ShuffleTest, NeighbouringSeedsAndEpochsShareNoStream) {
  constexpr int kRows = 64;
  std::vector<std::vector<std::string>> orders;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      orders.push_back(absl::StrSplit(Epoch(Rows(kRows).Shuffle(seed), epoch), '|'));
    }
  }
  for (size_t i = 0; i < orders.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      // One order may be the other, or be moved by some places: for unrelated orders about one row
      // in kRows agrees at each distance.
      for (int distance = 0; distance < kRows; ++distance) {
        int equal = 0;
        for (int k = 0; k < kRows; ++k) equal += orders[i][k] == orders[j][(k + distance) % kRows];
        EXPECT_LT(equal, 12) << "orders " << i << " and " << j << " at distance " << distance;
      }
    }
  }
}

TEST_F(ShuffleTest, PutsEachRowAnywhereEquallyOften) {
  constexpr int kRows = 5;
  constexpr int kEpochs = 5000;
  int at[kRows][kRows] = {};
  const Dataset dataset = Rows(kRows).Shuffle(11).Repeat(kEpochs).Batch(kRows);
  const auto iterator = dataset.Iterate().value();
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const Element element = **iterator->Next();
    for (int i = 0; i < kRows; ++i) ++at[i][element[0].span<int32_t>()[i]];
  }
  const double expected = kEpochs / kRows;
  for (const auto& row : at) {
    for (const int count : row) EXPECT_NEAR(count, expected, 5 * std::sqrt(expected));
  }
}

TEST_F(ShuffleTest, ShardsHaveEachRowOnceInEachEpoch) {
  for (const int64_t count : {1, 2, 3, 7}) {
    for (const int64_t epoch : {0, 1}) {
      std::vector<std::string> seen;
      for (int64_t index = 0; index < count; ++index) {
        const Dataset shard = Rows(20).Shuffle(5).Shard(index, count);
        const std::vector<std::string> part = absl::StrSplit(Epoch(shard, epoch), '|');
        // Every count-th row of the order of all.
        const std::vector<int> all = Order(20, 5, static_cast<uint64_t>(epoch));
        for (size_t i = 0; i < part.size(); ++i) {
          EXPECT_EQ(part[i], StrCat(all[index + static_cast<int64_t>(i) * count]));
        }
        seen.insert(seen.end(), part.begin(), part.end());
      }
      EXPECT_EQ(seen.size(), 20u);
      std::sort(seen.begin(), seen.end());
      EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end()) << count << " shards";
    }
  }
}

TEST(DatasetPositionTest, AnIteratorGoesOnFromWhereAnotherWas) {
  const Dataset dataset = Rows(7).Shuffle(2).Batch(2).Repeat(3);
  const std::vector<std::string> all = absl::StrSplit(Read(dataset), '|');
  ASSERT_EQ(all.size(), 12u);
  const auto iterator = dataset.Iterate().value();
  for (size_t i = 0; i <= all.size(); ++i) {
    const StatusOr<DatasetPosition> position =
        DatasetPosition::Parse(iterator->position().ToString());
    ASSERT_EQ(position.status(), Status());
    EXPECT_EQ(Read(dataset, *position),
              absl::StrJoin(all.begin() + static_cast<std::ptrdiff_t>(i), all.end(), "|"));
    EXPECT_EQ(iterator->Next().value().has_value(), i < all.size());
  }
}

TEST(DatasetPositionTest, ElementsPastTheEpochCountOn) {
  EXPECT_EQ(Read(Rows(3).Repeat(3), {0, 4}), "1|2|0|1|2");
  EXPECT_EQ(Read(Rows(3).Repeat(2), {0, 600}), "");
  EXPECT_EQ(Read(Rows(3).Repeat(2), {INT64_MAX / 2, INT64_MAX / 2}), "");
}

TEST(DatasetPositionTest, OnlyPositionsAreRead) {
  EXPECT_EQ(DatasetPosition::Parse("3:14")->ToString(), "3:14");
  for (const char* text : {"", "3", "3:", ":4", "3:4:5", "a:1", "-1:0", "0:-1", "1:2x"}) {
    EXPECT_EQ(DatasetPosition::Parse(text).status().code(), kInvalidArgument) << text;
  }
  for (const DatasetPosition from :
       {DatasetPosition{-1, 0}, DatasetPosition{0, -1}, DatasetPosition{INT64_MAX, 0}}) {
    EXPECT_EQ(Rows(3).Iterate(from).status().code(), kInvalidArgument) << from.ToString();
  }
}

}  // namespace
}  // namespace millrace
