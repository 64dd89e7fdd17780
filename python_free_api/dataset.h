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

class DatasetIterator {
 public:
  virtual ~DatasetIterator() = default;
  // The next element; nullopt after the last one.
  virtual StatusOr<std::optional<Element>> Next() = 0;
  // After the element that Next gave last.
  virtual DatasetPosition position() const = 0;
};

// A description of a sequence of elements; immutable, cheap to copy. Each iterator starts anew.
//
//   Dataset train = Dataset::FromTensors({images, labels}).Shuffle(seed).Repeat(3).Batch(128)
//                       .Prefetch(2, scheduler);
class Dataset {
 public:
  // One element a row of the tensors, which have equal leading extents.
  static StatusOr<Dataset> FromTensors(std::vector<Tensor> columns);

  // Rows in an order drawn anew for each epoch from (seed, epoch): a Fisher-Yates shuffle of all
  // rows.
  Dataset Shuffle(uint64_t seed) const;
  // `epochs` times over; 0: for ever.
  Dataset Repeat(int64_t epochs) const;
  // Rows stacked `size` at a time within an epoch; a short last batch is given unless `drop_last`.
  Dataset Batch(int64_t size, bool drop_last = false) const;
  // Every `count`th row of the epoch's order, from row `index`.
  Dataset Shard(int64_t index, int64_t count) const;
  // Makes up to `elements` ahead on `scheduler`, which outlives the iterators.
  Dataset Prefetch(int elements, Scheduler* scheduler) const;

  StatusOr<std::unique_ptr<DatasetIterator>> Iterate(DatasetPosition from = {}) const;
  // Elements an epoch.
  int64_t elements_per_epoch() const;

 private:
  struct Description;
  explicit Dataset(std::shared_ptr<const Description> description);
  std::shared_ptr<const Description> description_;
};

// Images as float NHWC in [0,1] and int32 labels, from the four IDX files of (Fashion-)MNIST.
struct ImageClasses {
  Tensor images;  // float[n,h,w,1]
  Tensor labels;  // int32[n]
};
// `split` is "train" or "t10k"; the files may be gzipped.
StatusOr<ImageClasses> ReadMnist(FileSystem& files, const std::string& folder,
                                 const std::string& split);

}  // namespace millrace

#endif  // PYTHON_FREE_API_DATASET_H_
