#include "core/framework/tensor.h"

namespace millrace {
namespace {

constexpr size_t kOffset = sizeof(uint64_t);

uint64_t LoadOffset(const void* offsets, int64_t i) {
  uint64_t value;
  std::memcpy(&value, static_cast<const char*>(offsets) + i * kOffset, kOffset);
  return value;
}

size_t NumericBytes(DType dtype, const Shape& shape) {
  return static_cast<size_t>(shape.num_elements()) * SizeOf(dtype);  // fits: see Shape
}

// Whether `size` bytes at `data` are `count` strings as Tensor keeps them.
bool AreStrings(const void* data, size_t size, int64_t count) {
  const size_t header = (static_cast<size_t>(count) + 1) * kOffset;
  if (data == nullptr || size < header || LoadOffset(data, 0) != 0) return false;
  uint64_t last = 0;
  for (int64_t i = 1; i <= count; ++i) {
    const uint64_t offset = LoadOffset(data, i);
    if (offset < last) return false;
    last = offset;
  }
  return last <= size - header;
}

// Memory for `count` strings with `characters` bytes in all, the first offset set.
StatusOr<char*> AllocateStrings(Allocator& allocator, int64_t count, size_t characters) {
  const size_t size = (static_cast<size_t>(count) + 1) * kOffset + characters;
  auto* data = static_cast<char*>(allocator.Allocate(size));
  if (data == nullptr) {
    return ResourceExhausted("no memory for ", count, " strings (", size, " bytes)");
  }
  std::memset(data, 0, kOffset);
  return data;
}

}  // namespace

void Buffer::Unref() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (allocator_ != nullptr) {
    allocator_->Deallocate(data_, size_);
  } else if (release_) {
    std::move(release_)();
  }
  delete this;
}

Tensor::Tensor(const Tensor& other)
    : dtype_(other.dtype_), shape_(other.shape_), buffer_(other.buffer_), data_(other.data_) {
  if (buffer_ != nullptr) buffer_->Ref();
}

Tensor::Tensor(Tensor&& other) noexcept
    : dtype_(std::exchange(other.dtype_, DType::kInvalid)),
      shape_(std::exchange(other.shape_, Shape())),
      buffer_(std::exchange(other.buffer_, nullptr)),
      data_(std::exchange(other.data_, nullptr)) {}

Tensor& Tensor::operator=(Tensor other) noexcept {
  std::swap(dtype_, other.dtype_);
  std::swap(shape_, other.shape_);
  std::swap(buffer_, other.buffer_);
  std::swap(data_, other.data_);
  return *this;
}

Tensor::~Tensor() {
  if (buffer_ != nullptr) buffer_->Unref();
}

StatusOr<Tensor> Tensor::Allocate(Allocator& allocator, DType dtype, const Shape& shape) {
  if (SizeOf(dtype) == 0) {
    return InvalidArgument("a tensor of dtype ", Name(dtype), " has no uninitialised form");
  }
  const size_t size = NumericBytes(dtype, shape);
  void* data = allocator.Allocate(size);
  if (data == nullptr) {
    const AllocatorStats stats = allocator.stats();
    return ResourceExhausted("no memory for ", Name(dtype), shape.ToString(), " (", size,
                             " bytes): ", stats.bytes_in_use, " bytes are in use",
                             stats.limit > 0 ? StrCat(" of ", stats.limit, " allowed") : "");
  }
  return Tensor(dtype, shape, new Buffer(data, size, allocator), data);
}

Tensor Tensor::Adopt(DType dtype, const Shape& shape, void* data, size_t size,
                     Buffer::Release release) {
  bool fits = false;
  if (dtype == DType::kString) {
    fits = AreStrings(data, size, shape.num_elements());
  } else if (SizeOf(dtype) > 0) {
    fits = size >= NumericBytes(dtype, shape) &&
           reinterpret_cast<uintptr_t>(data) % SizeOf(dtype) == 0 &&
           (data != nullptr || shape.num_elements() == 0);
  }
  if (!fits) {
    if (release) std::move(release)();
    return Tensor();
  }
  return Tensor(dtype, shape, new Buffer(data, size, std::move(release)), data);
}

Tensor Tensor::Strings(const Shape& shape, absl::Span<const std::string> values) {
  const int64_t count = shape.num_elements();
  const size_t given = std::min(values.size(), static_cast<size_t>(count));
  size_t characters = 0;
  for (size_t i = 0; i < given; ++i) characters += values[i].size();
  StatusOr<char*> data = AllocateStrings(HostAllocator(), count, characters);
  if (!data.ok()) return Tensor();
  const size_t header = (static_cast<size_t>(count) + 1) * kOffset;
  uint64_t end = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (const auto at = static_cast<size_t>(i); at < given && !values[at].empty()) {
      std::memcpy(*data + header + end, values[at].data(), values[at].size());
      end += values[at].size();
    }
    std::memcpy(*data + (i + 1) * kOffset, &end, kOffset);
  }
  return Tensor(DType::kString, shape, new Buffer(*data, header + characters, HostAllocator()),
                *data);
}

Tensor Tensor::OfResource(std::shared_ptr<Resource> resource) {
  auto* held = new std::shared_ptr<Resource>(std::move(resource));
  return Tensor(DType::kResource, Shape(), new Buffer(held, 0, [held] { delete held; }), held);
}

Tensor Tensor::Zeros(DType dtype, const Shape& shape) {
  if (dtype == DType::kString) return Strings(shape, {});
  StatusOr<Tensor> tensor = Allocate(HostAllocator(), dtype, shape);
  if (!tensor.ok()) return Tensor();
  std::memset(tensor->data_, 0, tensor->byte_size());
  return *std::move(tensor);
}

size_t Tensor::byte_size() const {
  if (dtype_ != DType::kString) return NumericBytes(dtype_, shape_);
  const int64_t count = num_elements();
  return (static_cast<size_t>(count) + 1) * kOffset + LoadOffset(data_, count);
}

absl::string_view Tensor::string(int64_t i) const {
  const int64_t count = num_elements();
  if (dtype_ != DType::kString || i < 0 || i >= count) return "";
  const char* characters = static_cast<const char*>(data_) + (count + 1) * kOffset;
  const uint64_t begin = LoadOffset(data_, i);
  return {characters + begin, LoadOffset(data_, i + 1) - begin};
}

const std::shared_ptr<Resource>& Tensor::resource() const {
  static const auto& null = *new std::shared_ptr<Resource>();
  if (dtype_ != DType::kResource) return null;
  return *static_cast<const std::shared_ptr<Resource>*>(data_);
}

bool Tensor::OwnsWholeBuffer() const {
  return SizeOf(dtype_) > 0 && buffer_ != nullptr && data_ == buffer_->data() &&
         byte_size() == buffer_->size() && buffer_->IsUnique();
}

Tensor Tensor::Slice(int64_t begin, int64_t end) const {
  if (!valid() || shape_.rank() == 0) return *this;
  end = std::clamp<int64_t>(end, 0, shape_.dim(0));
  begin = std::clamp<int64_t>(begin, 0, end);
  if (begin == 0 && end == shape_.dim(0)) return *this;
  std::array<int64_t, kMaxRank> dims;
  std::copy(shape_.dims().begin(), shape_.dims().end(), dims.begin());
  dims[0] = end - begin;
  int64_t row = 1;
  for (int i = 1; i < shape_.rank(); ++i) row *= dims[i];
  const StatusOr<Shape> shape = Shape::Create({dims.data(), static_cast<size_t>(shape_.rank())});
  if (!shape.ok()) return Tensor();  // not reached: no extent has grown
  if (dtype_ == DType::kString) {
    std::vector<std::string> rows;
    rows.reserve(shape->num_elements());
    for (int64_t i = begin * row; i < end * row; ++i) rows.emplace_back(string(i));
    return Strings(*shape, rows);
  }
  buffer_->Ref();
  return Tensor(dtype_, *shape, buffer_,
                static_cast<char*>(data_) + static_cast<size_t>(begin * row) * SizeOf(dtype_));
}

Tensor Tensor::View(size_t offset, DType dtype, const Shape& shape) const {
  const size_t element = SizeOf(dtype);
  if (SizeOf(dtype_) == 0 || element == 0 || offset % element != 0) return Tensor();
  const size_t room = NumericBytes(dtype_, shape_);
  if (offset > room || NumericBytes(dtype, shape) > room - offset) return Tensor();
  buffer_->Ref();
  return Tensor(dtype, shape, buffer_, static_cast<char*>(data_) + offset);
}

Tensor Tensor::Reshaped(const Shape& shape) const {
  if (!valid() || shape.num_elements() != num_elements()) return Tensor();
  Tensor result = *this;
  result.shape_ = shape;
  return result;
}

StatusOr<Tensor> Tensor::Copy(Allocator& allocator) const {
  if (!valid() || dtype_ == DType::kResource) return *this;
  const size_t size = byte_size();
  if (dtype_ == DType::kString) {
    MR_ASSIGN_OR_RETURN(char* data, AllocateStrings(allocator, num_elements(),
                                                    size - (num_elements() + 1) * kOffset));
    std::memcpy(data, data_, size);
    return Tensor(dtype_, shape_, new Buffer(data, size, allocator), data);
  }
  MR_ASSIGN_OR_RETURN(Tensor copy, Allocate(allocator, dtype_, shape_));
  MR_RETURN_IF_ERROR(allocator.Copy(copy.data_, data_, size));
  return copy;
}

}  // namespace millrace
