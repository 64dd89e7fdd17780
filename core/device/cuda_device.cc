#include "core/device/cuda_device.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "core/device/pooled_allocator.h"
#include "core/framework/resource.h"

namespace millrace {
namespace {

Status ToStatus(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  return Internal(what, ": ", cudaGetErrorString(error));
}

// Makes a device the thread's current one for a while.
class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal) {
    error_ = cudaGetDevice(&before_);
    if (error_ == cudaSuccess) error_ = cudaSetDevice(ordinal);
  }
  ~CurrentDevice() {
    if (error_ == cudaSuccess) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  cudaError_t error() const { return error_; }

 private:
  cudaError_t error_;
  int before_ = 0;
};

// The memory of one device, and the stream whose order its reuse follows. The stream is here since
// memory may outlive the device.
class CudaMemorySource final : public MemorySource {
 public:
  static StatusOr<std::unique_ptr<CudaMemorySource>> Create(int ordinal) {
    const CurrentDevice current(ordinal);
    MR_RETURN_IF_ERROR(ToStatus(current.error(), StrCat("CUDA device ", ordinal)));
    cudaStream_t stream = nullptr;
    // Not ordered with the default stream, which belongs to nobody.
    MR_RETURN_IF_ERROR(ToStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                                StrCat("a stream of CUDA device ", ordinal)));
    return std::make_unique<CudaMemorySource>(ordinal, stream);
  }

  CudaMemorySource(int ordinal, cudaStream_t stream) : ordinal_(ordinal), stream_(stream) {}
  ~CudaMemorySource() override {
    const CurrentDevice current(ordinal_);
    cudaStreamDestroy(stream_);
  }

  cudaStream_t stream() const { return stream_; }

  void* Take(size_t bytes) override {
    const CurrentDevice current(ordinal_);
    void* memory = nullptr;
    if (current.error() == cudaSuccess && cudaMalloc(&memory, bytes) == cudaSuccess) return memory;
    // No memory is an answer; left standing, the error would be taken for the next kernel's.
    cudaGetLastError();
    return nullptr;
  }

  void Give(void* memory, size_t bytes) override {
    static_cast<void>(bytes);
    const CurrentDevice current(ordinal_);
    cudaFree(memory);  // waits for what still uses it
  }

  bool IsHostMemory() const override { return false; }

  Status Copy(void* to, const void* from, size_t bytes) override {
    const CurrentDevice current(ordinal_);
    return ToStatus(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_),
                    "a copy in CUDA memory");
  }

 private:
  const int ordinal_;
  const cudaStream_t stream_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(DeviceInfo info, Scheduler& pool, std::unique_ptr<CudaMemorySource> source)
      : info_(std::move(info)),
        pool_(pool),
        stream_(source->stream()),
        allocator_(PooledAllocator::Create(info_.memory_limit, std::move(source))) {}

  ~CudaDevice() override {
    const CurrentDevice current(*info_.name.index);
    cudaStreamSynchronize(stream_);  // kernels that still run use memory that goes now
  }

  const DeviceInfo& info() const override { return info_; }
  Allocator& allocator() override { return *allocator_; }
  ResourceStore& resources() override { return resources_; }
  Scheduler& pool() override { return pool_; }
  void* stream() override { return stream_; }

 private:
  const DeviceInfo info_;
  Scheduler& pool_;
  const cudaStream_t stream_;
  const PooledAllocator::Ptr allocator_;
  ResourceStore resources_;  // last, so that what it holds goes before the memory that it is in
};

}  // namespace

StatusOr<std::vector<std::unique_ptr<Device>>> MakeCudaDevices(const CudaDeviceOptions& options,
                                                               Scheduler& pool) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    cudaGetLastError();
    return Unavailable("no CUDA device: ", cudaGetErrorString(error));
  }
  if (count == 0) return Unavailable("no CUDA device: the system shows none");
  if (options.max_count > 0) count = std::min(count, options.max_count);
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    MR_RETURN_IF_ERROR(
        ToStatus(cudaGetDeviceProperties(&properties, i), StrCat("CUDA device ", i)));
    MR_ASSIGN_OR_RETURN(std::unique_ptr<CudaMemorySource> source, CudaMemorySource::Create(i));
    const auto total = static_cast<int64_t>(properties.totalGlobalMem);
    DeviceInfo info;
    info.name.job = options.job;
    info.name.task = options.task;
    info.name.type = "CUDA";
    info.name.index = i;
    info.memory_limit = options.memory_limit > 0 ? std::min(options.memory_limit, total) : total;
    info.incarnation = options.incarnation;
    info.description = properties.name;
    devices.push_back(std::make_unique<CudaDevice>(std::move(info), pool, std::move(source)));
  }
  return devices;
}

}  // namespace millrace
