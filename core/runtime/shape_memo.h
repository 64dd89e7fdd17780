#ifndef CORE_RUNTIME_SHAPE_MEMO_H_
#define CORE_RUNTIME_SHAPE_MEMO_H_

#include <atomic>
#include <memory>
#include <vector>

#include "core/framework/kernel.h"

namespace millrace {

// What holds for one node and one set of input shapes and host input values. Immutable.
struct ShapeFacts {
  // The key.
  std::vector<Shape> inputs;
  std::vector<Tensor> host_values;  // of the host inputs, in order
  // What follows from it.
  std::vector<Shape> outputs;  // empty for ops that allocate their outputs
  std::unique_ptr<PreparedShapes> prepared;

  const ShapeFacts* next = nullptr;  // of its memo
};

// A few ShapeFacts of one node. Reading takes no lock: an immutable list that grows at its head.
// Thread-safe.
class ShapeMemo {
 public:
  // What does not fit any more is made for each run: a loop over ever new shapes must not fill the
  // memory, and needs a few shapes (full and last batch, training and evaluation) in practice.
  static constexpr int kMostEntries = 8;
  // Host inputs are shapes, axes, paddings; a larger value is not worth keeping.
  static constexpr size_t kMostHostBytes = 4096;

  ShapeMemo() = default;
  ~ShapeMemo();
  ShapeMemo(const ShapeMemo&) = delete;
  ShapeMemo& operator=(const ShapeMemo&) = delete;

  // Null if there are none. `shapes` are those of all inputs, `host_inputs` the indices into
  // `inputs` of those whose values count.
  template <typename ShapeOf>
  const ShapeFacts* Find(int num_inputs, ShapeOf shape_of, absl::Span<Tensor* const> inputs,
                         absl::Span<const int32_t> host_inputs) const {
    for (const ShapeFacts* facts = head_.load(std::memory_order_acquire); facts != nullptr;
         facts = facts->next) {
      bool equal = true;
      for (int i = 0; i < num_inputs && equal; ++i) equal = facts->inputs[i] == shape_of(i);
      if (!equal) continue;
      if (host_inputs.empty() || HostValuesEqual(*facts, inputs, host_inputs)) return facts;
    }
    return nullptr;
  }

  // Takes `facts` over and returns it, or an equal one that was added meanwhile; if it is full,
  // leaves `facts` with the caller.
  const ShapeFacts* Add(std::unique_ptr<ShapeFacts>& facts);

 private:
  static bool HostValuesEqual(const ShapeFacts& facts, absl::Span<Tensor* const> inputs,
                              absl::Span<const int32_t> host_inputs);
  std::atomic<const ShapeFacts*> head_{nullptr};
};

}  // namespace millrace

#endif  // CORE_RUNTIME_SHAPE_MEMO_H_
