#include <algorithm>
#include <cstring>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"

namespace millrace {
namespace {

class ConstKernel final : public Kernel {
 public:
  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& c) {
    MR_ASSIGN_OR_RETURN(Tensor value, c.attrs.Get<Tensor>("value"));
    if (!value.valid()) return InvalidArgument("attribute 'value' holds no tensor");
    return std::unique_ptr<Kernel>(new ConstKernel(std::move(value)));
  }
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& context) const override {
    context.set_output(0, value_);
    return absl::OkStatus();
  }

 private:
  explicit ConstKernel(Tensor value) : value_(std::move(value)) {}
  const Tensor value_;
};

// Writes the element of `size` bytes at `value` to all n elements of `out`.
void FillElements(const void* value, size_t size, int64_t n, void* out) {
  switch (size) {
    case 1: {
      uint8_t v;
      std::memcpy(&v, value, size);
      std::fill_n(static_cast<uint8_t*>(out), n, v);
      return;
    }
    case 2: {
      uint16_t v;
      std::memcpy(&v, value, size);
      std::fill_n(static_cast<uint16_t*>(out), n, v);
      return;
    }
    case 4: {
      uint32_t v;
      std::memcpy(&v, value, size);
      std::fill_n(static_cast<uint32_t*>(out), n, v);
      return;
    }
    default: {
      uint64_t v;
      std::memcpy(&v, value, size);
      std::fill_n(static_cast<uint64_t*>(out), n, v);
      return;
    }
  }
}

Status FillTensor(KernelContext& context, const void* value, Tensor& out) {
  const size_t size = SizeOf(out.dtype());
  if (size == 0) return Unimplemented("no filling of ", Name(out.dtype()), " tensors");
  char* data = static_cast<char*>(out.mutable_raw_data());
  ParallelRange(context, out.num_elements(), kElementsPerTask, [&](int64_t begin, int64_t end) {
    FillElements(value, size, end - begin, data + begin * static_cast<int64_t>(size));
  });
  return absl::OkStatus();
}

class FillKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& value = context.input(1);
    Tensor& out = context.output(0);
    if (value.num_elements() != 1 || value.dtype() != out.dtype()) {
      return InvalidArgument("the value must be one ", Name(out.dtype()), ", but is ",
                             Name(value.dtype()), value.shape().ToString());
    }
    return FillTensor(context, value.raw_data(), out);
  }
};

class ZerosLikeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    constexpr uint64_t kZero = 0;  // of every fixed-size dtype
    return FillTensor(context, &kZero, context.output(0));
  }
};

class OnesLikeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    Tensor& out = context.output(0);
    MR_ASSIGN_OR_RETURN(const uint64_t one, One(out.dtype()));
    return FillTensor(context, &one, out);
  }

 private:
  // The bytes of a 1 of that dtype, first.
  static StatusOr<uint64_t> One(DType dtype) {
    uint64_t bytes = 0;
    switch (dtype) {
      case DType::kFloat: {
        const float one = 1;
        std::memcpy(&bytes, &one, sizeof(one));
        return bytes;
      }
      case DType::kDouble: {
        const double one = 1;
        std::memcpy(&bytes, &one, sizeof(one));
        return bytes;
      }
      case DType::kHalf:
        return uint64_t{0x3c00};
      case DType::kBfloat16:
        return uint64_t{0x3f80};
      default:
        if (!IsInteger(dtype) && dtype != DType::kBool) {
          return Unimplemented("no 1 of dtype ", Name(dtype));
        }
        return uint64_t{1};  // little-endian, as all formats here are
    }
  }
};

}  // namespace

void RegisterConstantKernels(KernelRegistry& registry) {
  registry.Add("Const", "CPU", ConstKernel::Create);
  registry.Add("Fill", "CPU", MakeKernel<FillKernel>);
  registry.Add("ZerosLike", "CPU", MakeKernel<ZerosLikeKernel>);
  registry.Add("OnesLike", "CPU", MakeKernel<OnesLikeKernel>);
}

}  // namespace millrace
