#include "python_free_api/dataset.h"

#include <cstring>
#include <deque>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/mutex.h"
#include "core/io/idx.h"

namespace millrace {

struct Dataset::Description {
  std::vector<Tensor> columns;
  bool shuffle = false;
  uint64_t seed = 0;
  int64_t epochs = 1;  // 0: for ever
  int64_t batch = 0;   // 0: single rows
  bool drop_last = false;
  int64_t shard_index = 0;
  int64_t shard_count = 1;
  int prefetch = 0;
  Scheduler* scheduler = nullptr;

  int64_t rows() const { return columns[0].shape().dim(0); }
  int64_t shard_rows() const { return (rows() - shard_index + shard_count - 1) / shard_count; }
  int64_t elements() const {
    if (batch == 0) return shard_rows();
    return drop_last ? shard_rows() / batch : (shard_rows() + batch - 1) / batch;
  }
};

namespace {

// SplitMix64 (Steele et al. 2014): a stream of its own for each (seed, epoch).
class Stream {
 public:
  Stream(uint64_t seed, uint64_t epoch) : state_(seed * 0x9e3779b97f4a7c15 ^ epoch) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // In [0, n), by the multiply-shift method; the bias of n / 2^64 is of no matter here.
  int64_t Below(int64_t n) {
    return static_cast<int64_t>(
        (static_cast<unsigned __int128>(Next()) * static_cast<uint64_t>(n)) >> 64);
  }

 private:
  uint64_t state_;
};

}  // namespace

std::string DatasetPosition::ToString() const { return StrCat(epoch, ":", element); }

StatusOr<DatasetPosition> DatasetPosition::Parse(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  DatasetPosition position;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &position.epoch) ||
      !absl::SimpleAtoi(parts[1], &position.element) || position.epoch < 0 ||
      position.element < 0) {
    return InvalidArgument("'", text, "' is no data set position (epoch:element)");
  }
  return position;
}

namespace {

// Gives the elements of a description one after the other. Not thread-safe.
template <typename Description>
class PlainIterator final : public DatasetIterator {
 public:
  PlainIterator(std::shared_ptr<const Description> description, DatasetPosition from)
      : d_(std::move(description)), position_(from) {
    if (d_->elements() > 0) {
      position_.epoch += position_.element / d_->elements();
      position_.element %= d_->elements();
    }
  }

  StatusOr<std::optional<Element>> Next() override {
    if (d_->elements() == 0) return std::optional<Element>();
    if (d_->epochs > 0 && position_.epoch >= d_->epochs) return std::optional<Element>();
    if (order_epoch_ != position_.epoch) DrawOrder();
    const int64_t size = d_->batch == 0 ? 1 : d_->batch;
    const int64_t begin = position_.element * size;
    const int64_t end = std::min(begin + size, static_cast<int64_t>(order_.size()));
    Element element;
    for (const Tensor& column : d_->columns) {
      MR_ASSIGN_OR_RETURN(Tensor stacked, Stack(column, begin, end));
      element.push_back(std::move(stacked));
    }
    if (++position_.element == d_->elements()) {
      position_.element = 0;
      ++position_.epoch;
    }
    return std::optional<Element>(std::move(element));
  }

  DatasetPosition position() const override { return position_; }

 private:
  void DrawOrder() {
    order_epoch_ = position_.epoch;
    std::vector<int64_t> all(d_->rows());
    std::iota(all.begin(), all.end(), 0);
    if (d_->shuffle) {
      Stream stream(d_->seed, static_cast<uint64_t>(position_.epoch));
      for (int64_t i = d_->rows() - 1; i > 0; --i) std::swap(all[i], all[stream.Below(i + 1)]);
    }
    order_.clear();
    for (int64_t i = d_->shard_index; i < d_->rows(); i += d_->shard_count) {
      order_.push_back(all[i]);
    }
  }

  // Rows order_[begin, end) of a column; without batching, the one row without its dimension.
  StatusOr<Tensor> Stack(const Tensor& column, int64_t begin, int64_t end) const {
    std::vector<int64_t> dims(column.shape().dims().begin(), column.shape().dims().end());
    if (d_->batch == 0) {
      dims.erase(dims.begin());
    } else {
      dims[0] = end - begin;
    }
    MR_ASSIGN_OR_RETURN(Shape shape, Shape::Create(dims));
    MR_ASSIGN_OR_RETURN(Tensor stacked, Tensor::Allocate(HostAllocator(), column.dtype(), shape));
    const size_t row = column.byte_size() / static_cast<size_t>(column.shape().dim(0));
    char* to = static_cast<char*>(stacked.mutable_raw_data());
    const char* from = static_cast<const char*>(column.raw_data());
    for (int64_t i = begin; i < end; ++i, to += row) std::memcpy(to, from + order_[i] * row, row);
    return stacked;
  }

  const std::shared_ptr<const Description> d_;
  DatasetPosition position_;
  int64_t order_epoch_ = -1;
  std::vector<int64_t> order_;
};

// Lets a task of the scheduler make elements ahead. The state outlives the iterator while a task
// runs.
class PrefetchingIterator final : public DatasetIterator {
 public:
  PrefetchingIterator(std::unique_ptr<DatasetIterator> source, int depth, Scheduler* scheduler)
      : state_(std::make_shared<State>()) {
    state_->position = source->position();
    state_->source = std::move(source);
    state_->depth = depth;
    state_->scheduler = scheduler;
    MutexLock lock(state_->mutex);
    FillInBackground(state_);
  }
  ~PrefetchingIterator() override {
    MutexLock lock(state_->mutex);
    state_->abandoned = true;
  }

  StatusOr<std::optional<Element>> Next() override {
    MutexLock lock(state_->mutex);
    // Behind: rather make the element here than wait for a thread, of which there may be few.
    if (state_->ready.empty() && !state_->filling) MakeOne(*state_);
    while (state_->ready.empty()) state_->changed.Wait(state_->mutex);
    Made made = std::move(state_->ready.front());
    // The end and an error are given again and again.
    if (made.element.ok() && made.element->has_value()) {
      state_->ready.pop_front();
      FillInBackground(state_);
    }
    state_->position = made.after;
    return std::move(made.element);
  }

  DatasetPosition position() const override {
    MutexLock lock(state_->mutex);
    return state_->position;
  }

 private:
  struct Made {
    StatusOr<std::optional<Element>> element;
    DatasetPosition after;
  };
  struct State {
    Mutex mutex;
    CondVar changed;
    std::unique_ptr<DatasetIterator> source;  // used by whoever set `filling`, or under the mutex
    std::deque<Made> ready ABSL_GUARDED_BY(mutex);
    bool filling ABSL_GUARDED_BY(mutex) = false;
    bool ended ABSL_GUARDED_BY(mutex) = false;
    bool abandoned ABSL_GUARDED_BY(mutex) = false;
    DatasetPosition position ABSL_GUARDED_BY(mutex);
    int depth = 0;
    Scheduler* scheduler = nullptr;
  };

  static void Keep(State& state, StatusOr<std::optional<Element>> element)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
    state.ended = !element.ok() || !element->has_value();
    state.ready.push_back({std::move(element), state.source->position()});
  }
  static void MakeOne(State& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
    Keep(state, state.source->Next());
  }
  static void FillInBackground(const std::shared_ptr<State>& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state->mutex) {
    if (state->filling || state->ended) return;
    state->filling = true;
    state->scheduler->Schedule([state] { Fill(*state); });
  }
  static void Fill(State& state) {
    for (;;) {
      {
        MutexLock lock(state.mutex);
        if (state.abandoned || state.ended || static_cast<int>(state.ready.size()) >= state.depth) {
          state.filling = false;
          state.changed.NotifyAll();
          return;
        }
      }
      StatusOr<std::optional<Element>> element = state.source->Next();
      MutexLock lock(state.mutex);
      Keep(state, std::move(element));
      state.changed.NotifyAll();
    }
  }

  const std::shared_ptr<State> state_;
};

}  // namespace

Dataset::Dataset(std::shared_ptr<const Description> description)
    : description_(std::move(description)) {}

StatusOr<Dataset> Dataset::FromTensors(std::vector<Tensor> columns) {
  if (columns.empty()) return InvalidArgument("a data set needs at least one column");
  for (const Tensor& column : columns) {
    if (SizeOf(column.dtype()) == 0) {
      return InvalidArgument("a column of a data set must be numeric, but is ",
                             Name(column.dtype()));
    }
    if (column.shape().rank() == 0 || column.shape().dim(0) == 0 ||
        column.shape().dim(0) != columns[0].shape().dim(0)) {
      return InvalidArgument("columns of a data set need equal leading extents of at least 1, but ",
                             "have shapes ", columns[0].shape().ToString(), " and ",
                             column.shape().ToString());
    }
  }
  auto description = std::make_shared<Description>();
  description->columns = std::move(columns);
  return Dataset(std::move(description));
}

Dataset Dataset::Shuffle(uint64_t seed) const {
  auto d = std::make_shared<Description>(*description_);
  d->shuffle = true;
  d->seed = seed;
  return Dataset(std::move(d));
}

Dataset Dataset::Repeat(int64_t epochs) const {
  auto d = std::make_shared<Description>(*description_);
  d->epochs = epochs;
  return Dataset(std::move(d));
}

Dataset Dataset::Batch(int64_t size, bool drop_last) const {
  auto d = std::make_shared<Description>(*description_);
  d->batch = size;
  d->drop_last = drop_last;
  return Dataset(std::move(d));
}

Dataset Dataset::Shard(int64_t index, int64_t count) const {
  auto d = std::make_shared<Description>(*description_);
  d->shard_index = index;
  d->shard_count = count;
  return Dataset(std::move(d));
}

Dataset Dataset::Prefetch(int elements, Scheduler* scheduler) const {
  auto d = std::make_shared<Description>(*description_);
  d->prefetch = elements;
  d->scheduler = scheduler;
  return Dataset(std::move(d));
}

int64_t Dataset::elements_per_epoch() const { return description_->elements(); }

StatusOr<std::unique_ptr<DatasetIterator>> Dataset::Iterate(DatasetPosition from) const {
  const Description& d = *description_;
  if (d.batch < 0 || d.epochs < 0 || d.shard_count < 1 || d.shard_index < 0 ||
      d.shard_index >= d.shard_count || d.prefetch < 0 || from.epoch < 0 || from.element < 0) {
    return InvalidArgument("data set with batch ", d.batch, ", ", d.epochs, " epochs, shard ",
                           d.shard_index, " of ", d.shard_count, ", prefetch ", d.prefetch,
                           ", from ", from.ToString(), ": a number is out of range");
  }
  std::unique_ptr<DatasetIterator> iterator =
      std::make_unique<PlainIterator<Description>>(description_, from);
  if (d.prefetch > 0 && d.scheduler != nullptr) {
    iterator = std::make_unique<PrefetchingIterator>(std::move(iterator), d.prefetch, d.scheduler);
  }
  return iterator;
}

StatusOr<ImageClasses> ReadMnist(FileSystem& files, const std::string& folder,
                                 const std::string& split) {
  auto path = [&](const char* kind) {
    const std::string plain = JoinPath(folder, StrCat(split, kind));
    return files.Exists(plain) ? plain : StrCat(plain, ".gz");
  };
  const std::string images_path = path("-images-idx3-ubyte");
  const std::string labels_path = path("-labels-idx1-ubyte");
  MR_ASSIGN_OR_RETURN(Tensor images, ReadIdx(files, images_path));
  MR_ASSIGN_OR_RETURN(Tensor labels, ReadIdx(files, labels_path));
  if (images.dtype() != DType::kUint8 || images.shape().rank() != 3) {
    return DataLoss(images_path, ": expected uint8[n,h,w], but it holds ", Name(images.dtype()),
                    images.shape().ToString());
  }
  if (labels.dtype() != DType::kUint8 || labels.shape().rank() != 1 ||
      labels.shape().dim(0) != images.shape().dim(0)) {
    return DataLoss(labels_path, ": expected uint8[", images.shape().dim(0), "], but it holds ",
                    Name(labels.dtype()), labels.shape().ToString());
  }
  const Shape& shape = images.shape();
  MR_ASSIGN_OR_RETURN(Shape with_channel,
                      Shape::Create({shape.dim(0), shape.dim(1), shape.dim(2), 1}));
  ImageClasses result;
  MR_ASSIGN_OR_RETURN(result.images,
                      Tensor::Allocate(HostAllocator(), DType::kFloat, with_channel));
  for (int64_t i = 0; i < images.num_elements(); ++i) {
    result.images.mutable_data<float>()[i] = images.data<uint8_t>()[i] / 255.0F;
  }
  MR_ASSIGN_OR_RETURN(result.labels,
                      Tensor::Allocate(HostAllocator(), DType::kInt32, labels.shape()));
  for (int64_t i = 0; i < labels.num_elements(); ++i) {
    result.labels.mutable_data<int32_t>()[i] = labels.data<uint8_t>()[i];
  }
  return result;
}

}  // namespace millrace
