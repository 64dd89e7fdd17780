#ifndef PYTHON_FREE_API_DATASET_H_
#define PYTHON_FREE_API_DATASET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/scheduler.h"
#include "core/framework/tensor.h"

namespace millrace {

// One element of a data set: the components of an example, or of a batch of them.
using Element = std::vector<Tensor>;

// Where an iterator is: enough to go on exactly there. Text, for a checkpoint's metadata.
struct DatasetPosition {
  int64_t epoch = 0;
  int64_t element = 0;  // elements given in this epoch
  std::string ToString() const;
  static StatusOr<DatasetPosition> Parse(absl::string_view text);
};

// Not thread-safe.
class DatasetIterator {
 public:
  virtual ~DatasetIterator() = default;
  // The next element; nullopt after the last one. After the end or an error: the same again.
  virtual StatusOr<std::optional<Element>> Next() = 0;
  // After the element that Next gave last.
  virtual DatasetPosition position() const = 0;
};

// A description of a sequence of elements; immutable, cheap to copy. Each iterator starts anew.
// Whatever the order of the calls, an epoch's rows are shuffled, sharded, then batched; a later
// call replaces an earlier one of its kind. Numbers out of range give a data set that has no
// elements and says why (status); Iterate gives the same error.
//
//   Dataset train = Dataset::FromTensors({images, labels}).Shuffle(seed).Repeat(3).Batch(128)
//                       .Prefetch(2, scheduler);
class Dataset {
 public:
  // One element a row of the tensors, which are numeric, in host memory, and have equal leading
  // extents of at least 1.
  static StatusOr<Dataset> FromTensors(std::vector<Tensor> columns);

  // Rows in an order drawn anew for each epoch from (seed, epoch), the same on every machine: a
  // Fisher-Yates shuffle of all rows, which swaps row i, from the last to the second, with one of
  // [0, i]. It draws from SplitMix64 (Steele et al. 2014) with the state mix(mix(seed) + epoch)
  // where mix is that generator's first number from a state.
  Dataset Shuffle(uint64_t seed) const;
  // `epochs` times over; 0: for ever.
  Dataset Repeat(int64_t epochs) const;
  // Rows stacked `size` (at least 1) at a time within an epoch; a short last batch is given unless
  // `drop_last`. Without it an element is one row, without the leading dimension.
  Dataset Batch(int64_t size, bool drop_last = false) const;
  // Every `count`th row of the epoch's order, from row `index`, which is in [0, count): the shards
  // of one description and count have each row once.
  Dataset Shard(int64_t index, int64_t count) const;
  // Makes up to `elements` ahead on `scheduler`, which outlives the iterators (PrefetchIterator);
  // 0: none.
  Dataset Prefetch(int elements, Scheduler* scheduler) const;

  // InvalidArgument, naming number and call, for the first call that was given one out of range.
  const Status& status() const;
  // Elements past an epoch's end count on into the next ones.
  StatusOr<std::unique_ptr<DatasetIterator>> Iterate(DatasetPosition from = {}) const;
  // Elements an epoch; 0 if status() is an error, or no batch is full.
  int64_t elements_per_epoch() const;
  // As given to Batch; 0: elements are single rows.
  int64_t batch_size() const;

 private:
  struct Description;
  explicit Dataset(std::shared_ptr<const Description> description);
  // A copy that `change` may alter; `error`, if not OK, is its status unless it has one.
  template <typename Change>
  Dataset With(const Status& error, const Change& change) const;
  std::shared_ptr<const Description> description_;
};

// Images as float NHWC in [0,1] and int32 labels, from the four IDX files of (Fashion-)MNIST.
struct ImageClasses {
  Tensor images;  // float[n,h,w,1]
  Tensor labels;  // int32[n]
};
// `split` is "train" or "t10k"; the files may be gzipped. NotFound, or DataLoss that names the
// file, for files that are missing, damaged or do not belong together.
StatusOr<ImageClasses> ReadMnist(FileSystem& files, const std::string& folder,
                                 const std::string& split);

}  // namespace millrace

#endif  // PYTHON_FREE_API_DATASET_H_
