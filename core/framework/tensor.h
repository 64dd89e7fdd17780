#ifndef CORE_FRAMEWORK_TENSOR_H_
#define CORE_FRAMEWORK_TENSOR_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/types/span.h"
#include "core/framework/allocator.h"
#include "core/framework/dtype.h"
#include "core/framework/shape.h"

namespace millrace {

class Resource;  // resource.h

// Reference-counted memory behind one or more tensors.
class Buffer {
 public:
  using Release = absl::AnyInvocable<void()>;
  Buffer(void* data, size_t size, Release release)
      : data_(data), size_(size), release_(std::move(release)) {}
  // Memory of `allocator`, given back after the last use. (Not a Release: that would cost an
  // allocation of its own for each buffer.)
  Buffer(void* data, size_t size, Allocator& allocator)
      : data_(data), size_(size), allocator_(&allocator) {}
  void* data() const { return data_; }
  size_t size() const { return size_; }
  // Null for adopted memory, which is the host's.
  Allocator* allocator() const { return allocator_; }
  void Ref() { references_.fetch_add(1, std::memory_order_relaxed); }
  void Unref();
  bool IsUnique() const { return references_.load(std::memory_order_acquire) == 1; }

 private:
  ~Buffer() = default;
  std::atomic<int32_t> references_{1};
  void* data_;
  size_t size_;
  Allocator* allocator_ = nullptr;
  Release release_;
};

// A typed, shaped view of a reference-counted buffer; copies share it. A tensor that more than one
// holder can see is read only. Elements are row-major and contiguous; only element alignment may be
// assumed. Strings are one flat immutable buffer: num_elements()+1 uint64 offsets, then the bytes.
// A kResource scalar holds a shared pointer to a Resource of its device.
class Tensor {
 public:
  Tensor() = default;  // invalid: dtype kInvalid
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor other) noexcept;
  ~Tensor();

  // Uninitialised memory for a numeric dtype; ResourceExhausted (with sizes) if there is none.
  static StatusOr<Tensor> Allocate(Allocator& allocator, DType dtype, const Shape& shape);
  // Takes over writable host memory of at least the tensor's size, aligned for the element type;
  // `release` runs after the last use. Safe for bytes from outside: if the memory is too small or
  // not aligned, or the offsets of strings do not ascend within it, the tensor is invalid (and
  // `release` has run).
  static Tensor Adopt(DType dtype, const Shape& shape, void* data, size_t size,
                      Buffer::Release release);
  // From values in the program, on the host allocator; missing values are zero. These give an
  // invalid tensor if there is no memory.
  template <typename T>
  static Tensor Of(const Shape& shape, absl::Span<const T> values);
  template <typename T>
  static Tensor Of(const Shape& shape, std::initializer_list<T> values) {
    return Of<T>(shape, absl::Span<const T>(values.begin(), values.size()));
  }
  template <typename T>
  static Tensor Scalar(T value) {
    return Of<T>(Shape(), absl::Span<const T>(&value, 1));
  }
  static Tensor Strings(const Shape& shape, absl::Span<const std::string> values);
  static Tensor OfResource(std::shared_ptr<Resource> resource);
  // Empty strings for kString; invalid for kResource.
  static Tensor Zeros(DType dtype, const Shape& shape);

  bool valid() const { return dtype_ != DType::kInvalid; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t num_elements() const { return shape_.num_elements(); }
  // Bytes of the elements; for strings, of offsets and characters.
  size_t byte_size() const;

  const void* raw_data() const { return data_; }
  void* mutable_raw_data() { return data_; }
  // REQUIRES: T is the dtype's C++ type (uint16_t for half and bfloat16).
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(data_);
  }
  template <typename T>
  T* mutable_data() {
    return static_cast<T*>(data_);
  }
  template <typename T>
  absl::Span<const T> span() const {
    return absl::Span<const T>(data<T>(), static_cast<size_t>(num_elements()));
  }
  // REQUIRES: kString and 0 <= i < num_elements(); else "".
  absl::string_view string(int64_t i) const;
  // REQUIRES: kResource; else null.
  const std::shared_ptr<Resource>& resource() const;

  // Whether this tensor alone holds its whole buffer, so that it may be overwritten or resized in
  // place. False for views that were cut from a larger buffer, for strings and for resources.
  bool OwnsWholeBuffer() const;
  // False for elements in a device's memory, which the processor cannot read.
  bool IsHostMemory() const {
    return buffer_ == nullptr || buffer_->allocator() == nullptr ||
           buffer_->allocator()->IsHostMemory();
  }
  bool SharesBufferWith(const Tensor& other) const {
    return buffer_ != nullptr && buffer_ == other.buffer_;
  }

  // Rows [begin, end) along dimension 0, without a copy (a copy of strings, whose buffer is one
  // piece). REQUIRES: rank >= 1, 0 <= begin <= end <= dim(0); the bounds are clamped to that.
  Tensor Slice(int64_t begin, int64_t end) const;
  // A tensor in a part of this one's memory, from the byte `offset` on, which it keeps alive.
  // REQUIRES: numeric dtypes, `offset` aligned for `dtype`, and room for the elements; else
  // invalid.
  Tensor View(size_t offset, DType dtype, const Shape& shape) const;
  // The same elements under another shape. REQUIRES: equal number of elements; else invalid.
  Tensor Reshaped(const Shape& shape) const;
  // A deep copy from `allocator`, which is of the same device. A resource is shared.
  StatusOr<Tensor> Copy(Allocator& allocator) const;

  // "float[2,3] = 1 2 3 ..." with the first few values; for messages and logs. Values in device
  // memory are left out.
  std::string ToString(int max_values = 6) const;

 private:
  // Takes over one reference.
  Tensor(DType dtype, const Shape& shape, Buffer* buffer, void* data)
      : dtype_(dtype), shape_(shape), buffer_(buffer), data_(data) {}
  DType dtype_ = DType::kInvalid;
  Shape shape_;
  Buffer* buffer_ = nullptr;
  void* data_ = nullptr;
};

template <typename T>
Tensor Tensor::Of(const Shape& shape, absl::Span<const T> values) {
  Tensor t = Zeros(DTypeOf<T>::value, shape);
  const size_t n = std::min(values.size(), static_cast<size_t>(t.num_elements()));
  if (n > 0 && t.valid()) std::memcpy(t.mutable_raw_data(), values.data(), n * sizeof(T));
  return t;
}

}  // namespace millrace

#endif  // CORE_FRAMEWORK_TENSOR_H_
