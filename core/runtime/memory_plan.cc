#include "core/runtime/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "core/framework/allocator.h"

namespace millrace {
namespace {

constexpr int64_t kAlignment = Allocator::kAlignment;

// Which nodes have ended before a node starts, in whatever order the nodes run.
class Ancestors {
 public:
  explicit Ancestors(absl::Span<const std::vector<int32_t>> predecessors) {
    rows_.reserve(predecessors.size());
    for (size_t i = 0; i < predecessors.size(); ++i) {
      std::vector<uint64_t> row(i / 64 + 1, 0);
      for (int32_t from : predecessors[i]) {
        const std::vector<uint64_t>& other = rows_[from];
        for (size_t word = 0; word < other.size(); ++word) row[word] |= other[word];
        row[from / 64] |= uint64_t{1} << (from % 64);
      }
      rows_.push_back(std::move(row));
    }
  }

  bool Contain(int32_t node, int32_t earlier) const {
    return earlier < node && (rows_[node][earlier / 64] >> (earlier % 64) & 1) != 0;
  }

 private:
  std::vector<std::vector<uint64_t>> rows_;  // by node: bit j, for node j
};

// Values that take over one another's memory, from the first to the last.
struct Block {
  int64_t bytes = 0;
  int32_t producer = 0;               // of the first
  const std::vector<int32_t>* users;  // of the last: whoever uses another one ends before them
  int32_t last_user = 0;              // the highest of them
  int64_t offset = -1;
};

int64_t Padded(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class MemoryPlanner {
 public:
  MemoryPlanner(absl::Span<const std::vector<int32_t>> predecessors,
                absl::Span<const PlannedValue> values)
      : ancestors_(predecessors), values_(values) {}

  MemoryPlan Run() {
    JoinInPlace();
    PlaceBySize();
    plan_.offsets.reserve(values_.size());
    for (int32_t block : block_of_) plan_.offsets.push_back(blocks_[block].offset);
    return std::move(plan_);
  }

 private:
  bool MayTakeOver(const PlannedValue& value, const PlannedValue& old) const {
    return Padded(old.bytes) == Padded(value.bytes) &&
           std::all_of(old.readers.begin(), old.readers.end(), [&](int32_t reader) {
             return reader == value.producer || ancestors_.Contain(value.producer, reader);
           });
  }

  void JoinInPlace() {
    plan_.takes_over.assign(values_.size(), -1);
    std::vector<bool> is_taken(values_.size(), false);
    for (size_t i = 0; i < values_.size(); ++i) {
      const PlannedValue& value = values_[i];
      for (int32_t old : value.in_place_of) {
        if (is_taken[old] || !MayTakeOver(value, values_[old])) continue;
        is_taken[old] = true;
        plan_.takes_over[i] = old;
        break;
      }
      const int32_t old = plan_.takes_over[i];
      block_of_.push_back(old < 0 ? static_cast<int32_t>(blocks_.size()) : block_of_[old]);
      if (old < 0) blocks_.push_back({Padded(value.bytes), value.producer, nullptr});
      Block& block = blocks_[block_of_.back()];
      block.users = &value.readers;
      block.last_user = value.producer;  // that of a value that nobody reads
      for (int32_t reader : value.readers) block.last_user = std::max(block.last_user, reader);
    }
  }

  bool EndsBefore(const Block& first, const Block& second) const {
    if (first.last_user >= second.producer) return false;
    if (first.users->empty()) return ancestors_.Contain(second.producer, first.last_user);
    return std::all_of(first.users->begin(), first.users->end(),
                       [&](int32_t user) { return ancestors_.Contain(second.producer, user); });
  }

  void PlaceBySize() {
    std::vector<int32_t> by_size(blocks_.size());
    std::iota(by_size.begin(), by_size.end(), 0);
    std::stable_sort(by_size.begin(), by_size.end(),
                     [&](int32_t a, int32_t b) { return blocks_[a].bytes > blocks_[b].bytes; });
    std::vector<const Block*> placed;  // by offset
    for (int32_t index : by_size) {
      Block& block = blocks_[index];
      block.offset = LowestGap(placed, block);
      plan_.bytes = std::max(plan_.bytes, block.offset + block.bytes);
      const auto place =
          std::upper_bound(placed.begin(), placed.end(), &block,
                           [](const Block* a, const Block* b) { return a->offset < b->offset; });
      placed.insert(place, &block);
    }
  }

  int64_t LowestGap(const std::vector<const Block*>& placed, const Block& block) const {
    int64_t offset = 0;
    for (const Block* other : placed) {
      if (other->offset >= offset + block.bytes) break;
      if (other->offset + other->bytes <= offset) continue;
      if (EndsBefore(*other, block) || EndsBefore(block, *other)) continue;
      offset = other->offset + other->bytes;
    }
    return offset;
  }

  const Ancestors ancestors_;
  const absl::Span<const PlannedValue> values_;
  MemoryPlan plan_;
  std::vector<Block> blocks_;
  std::vector<int32_t> block_of_;  // by value
};

}  // namespace

MemoryPlan PlanMemory(absl::Span<const std::vector<int32_t>> predecessors,
                      absl::Span<const PlannedValue> values) {
  return MemoryPlanner(predecessors, values).Run();
}

}  // namespace millrace
