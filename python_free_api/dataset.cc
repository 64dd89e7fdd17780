#include "python_free_api/dataset.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/io/idx.h"
#include "python_free_api/prefetch.h"

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

  Status status;  // the first error of its making

  int64_t rows() const { return columns[0].shape().dim(0); }
  int64_t shard_rows() const {
    return rows() <= shard_index ? 0 : (rows() - shard_index - 1) / shard_count + 1;
  }
  int64_t elements() const {
    if (!status.ok()) return 0;
    if (batch == 0) return shard_rows();
    const int64_t full = shard_rows() / batch;
    return drop_last || shard_rows() % batch == 0 ? full : full + 1;
  }
};

namespace {

// SplitMix64 (Steele et al. 2014): a stream of its own for each (seed, epoch).
class Stream {
 public:
  // Both are mixed: neighbouring seeds and epochs, as people choose them, have nothing in common.
  Stream(uint64_t seed, uint64_t epoch) : state_(Mix(Mix(seed) + epoch)) {}
  uint64_t Next() {
    const uint64_t next = Mix(state_);
    state_ += kStep;
    return next;
  }
  // In [0, n), by the multiply-shift method; the bias of n / 2^64 is of no matter here.
  int64_t Below(int64_t n) {
    return static_cast<int64_t>(
        (static_cast<unsigned __int128>(Next()) * static_cast<uint64_t>(n)) >> 64);
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
  static uint64_t Mix(uint64_t state) {
    uint64_t z = state + kStep;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

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

// Gives the elements of a description one after the other.
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
    if (!failed_.ok()) return failed_;
    if (d_->elements() == 0) return std::optional<Element>();
    if (d_->epochs > 0 && position_.epoch >= d_->epochs) return std::optional<Element>();
    if (order_epoch_ != position_.epoch) DrawOrder();
    const int64_t size = d_->batch == 0 ? 1 : d_->batch;
    const int64_t begin = position_.element * size;
    const int64_t end = begin + std::min(size, static_cast<int64_t>(order_.size()) - begin);
    Element element;
    for (const Tensor& column : d_->columns) {
      StatusOr<Tensor> stacked = Stack(column, begin, end);
      if (!stacked.ok()) return failed_ = stacked.status();
      element.push_back(*std::move(stacked));
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
    int64_t row = d_->shard_index;
    for (int64_t i = 0; i < d_->shard_rows(); ++i, row += d_->shard_count) {
      order_.push_back(all[row]);
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
    for (int64_t i = begin; row > 0 && i < end; ++i, to += row) {
      std::memcpy(to, from + order_[i] * row, row);
    }
    return stacked;
  }

  const std::shared_ptr<const Description> d_;
  DatasetPosition position_;
  Status failed_;
  int64_t order_epoch_ = -1;
  std::vector<int64_t> order_;
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
    if (!column.IsHostMemory()) {
      return InvalidArgument("a column of a data set must be in host memory, but ",
                             column.ToString(), " is in a device's");
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

template <typename Change>
Dataset Dataset::With(const Status& error, const Change& change) const {
  auto d = std::make_shared<Description>(*description_);
  d->status.Update(error);
  if (d->status.ok()) change(*d);
  return Dataset(std::move(d));
}

Dataset Dataset::Shuffle(uint64_t seed) const {
  return With(Status(), [&](Description& d) {
    d.shuffle = true;
    d.seed = seed;
  });
}

Dataset Dataset::Repeat(int64_t epochs) const {
  Status error;
  if (epochs < 0) {
    error = InvalidArgument("Repeat takes a number of epochs, or 0 for ever, but got ", epochs);
  }
  return With(error, [&](Description& d) { d.epochs = epochs; });
}

Dataset Dataset::Batch(int64_t size, bool drop_last) const {
  Status error;
  if (size < 1) error = InvalidArgument("Batch takes at least 1 row, but got ", size);
  return With(error, [&](Description& d) {
    d.batch = size;
    d.drop_last = drop_last;
  });
}

Dataset Dataset::Shard(int64_t index, int64_t count) const {
  Status error;
  if (count < 1 || index < 0 || index >= count) {
    error = InvalidArgument("Shard takes an index below the count of shards, but got ", index,
                            " of ", count);
  }
  return With(error, [&](Description& d) {
    d.shard_index = index;
    d.shard_count = count;
  });
}

Dataset Dataset::Prefetch(int elements, Scheduler* scheduler) const {
  Status error;
  if (elements < 0 || (elements > 0 && scheduler == nullptr)) {
    error = InvalidArgument("Prefetch takes a number of elements and a scheduler, but got ",
                            elements, scheduler == nullptr ? " and no scheduler" : "");
  }
  return With(error, [&](Description& d) {
    d.prefetch = elements;
    d.scheduler = scheduler;
  });
}

const Status& Dataset::status() const { return description_->status; }
int64_t Dataset::elements_per_epoch() const { return description_->elements(); }
int64_t Dataset::batch_size() const { return description_->batch; }

StatusOr<std::unique_ptr<DatasetIterator>> Dataset::Iterate(DatasetPosition from) const {
  const Description& d = *description_;
  MR_RETURN_IF_ERROR(d.status);
  // So that epochs can be added to it without overflow.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;
  if (from.epoch < 0 || from.element < 0 || from.epoch > kMost || from.element > kMost) {
    return InvalidArgument("a data set cannot be iterated from position ", from.ToString());
  }
  std::unique_ptr<DatasetIterator> iterator =
      std::make_unique<PlainIterator<Description>>(description_, from);
  if (d.prefetch == 0) return iterator;
  return PrefetchIterator(std::move(iterator), d.prefetch, *d.scheduler);
}

StatusOr<ImageClasses> ReadMnist(FileSystem& files, const std::string& folder,
                                 const std::string& split) {
  auto find = [&](const char* kind) -> StatusOr<std::string> {
    const std::string plain = JoinPath(folder, StrCat(split, kind));
    const std::string zipped = StrCat(plain, ".gz");
    if (files.Exists(plain)) return plain;
    if (files.Exists(zipped)) return zipped;
    return NotFound("there is neither ", plain, " nor ", zipped);
  };
  MR_ASSIGN_OR_RETURN(const std::string images_path, find("-images-idx3-ubyte"));
  MR_ASSIGN_OR_RETURN(const std::string labels_path, find("-labels-idx1-ubyte"));
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
