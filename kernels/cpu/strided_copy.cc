#include "kernels/cpu/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/string_output.h"

namespace millrace {

void StridedCopy::Add(int64_t extent, int64_t in_stride, int64_t out_stride) {
  if (extent == 0) empty_ = true;
  if (extent <= 1) return;
  if (rank_ > 0) {
    Dim& last = dims_[rank_ - 1];
    if (last.in == in_stride * extent && last.out == out_stride * extent) {
      last = {last.extent * extent, in_stride, out_stride};
      return;
    }
  }
  dims_[rank_++] = {extent, in_stride, out_stride};
}

// The loops, for elements of type T.
struct StridedCopyRunner {
  using Dim = StridedCopy::Dim;

  template <typename T>
  static void Row(const Dim& d, const T* in, T* out) {
    if (d.in == 1 && d.out == 1) {
      std::memcpy(out, in, d.extent * sizeof(T));
    } else if (d.in == 0 && d.out == 1) {
      std::fill_n(out, d.extent, *in);
    } else {
      for (int64_t i = 0; i < d.extent; ++i) out[i * d.out] = in[i * d.in];
    }
  }

  // Two dimensions of which one is contiguous in `in` and the other in `out`: by squares that stay
  // in the cache.
  template <typename T>
  static void Plane(const Dim& a, const Dim& b, const T* in, T* out) {
    constexpr int64_t kSide = 16;
    for (int64_t i = 0; i < a.extent; i += kSide) {
      const int64_t end_i = std::min(a.extent, i + kSide);
      for (int64_t j = 0; j < b.extent; j += kSide) {
        const int64_t end_j = std::min(b.extent, j + kSide);
        for (int64_t k = i; k < end_i; ++k) {
          for (int64_t l = j; l < end_j; ++l) {
            out[k * a.out + l * b.out] = in[k * a.in + l * b.in];
          }
        }
      }
    }
  }

  template <typename T>
  static void Run(KernelContext& context, const StridedCopy& copy, const T* in, T* out) {
    std::array<Dim, StridedCopy::kMaxDims> dims = copy.dims_;
    int rank = copy.rank_;
    if (rank == 0) {
      *out = *in;
      return;
    }
    // A transpose: the dimension that is contiguous in `in` comes next to the innermost, and both
    // make a plane.
    const Dim& innermost = dims[rank - 1];
    int contiguous = -1;
    for (int i = 0; i < rank - 1; ++i) {
      if (dims[i].in == 1) contiguous = i;
    }
    const bool plane = contiguous >= 0 && innermost.in != 1 && innermost.in != 0;
    if (plane) {
      std::rotate(dims.begin() + contiguous, dims.begin() + contiguous + 1,
                  dims.begin() + rank - 1);
      // A large plane is cut along its first dimension, so that there are tasks enough.
      constexpr int64_t kCut = 64;
      Dim& first = dims[rank - 2];
      const int64_t pieces = first.extent / kCut;
      if (pieces > 1 && first.extent % kCut == 0 && rank < StridedCopy::kMaxDims) {
        dims[rank] = dims[rank - 1];
        dims[rank - 1] = {kCut, first.in, first.out};
        dims[rank - 2] = {pieces, first.in * kCut, first.out * kCut};
        ++rank;
      }
    }
    const int outer_rank = rank - (plane ? 2 : 1);
    int64_t outer = 1;
    for (int i = 0; i < outer_rank; ++i) outer *= dims[i].extent;
    const int64_t inner = dims[rank - 1].extent * (plane ? dims[rank - 2].extent : 1);
    const int64_t grain = std::max<int64_t>(1, kElementsPerTask / inner);
    ParallelRange(context, outer, grain, [&](int64_t begin, int64_t end) {
      std::array<int64_t, StridedCopy::kMaxDims> index;
      int64_t at_in = 0, at_out = 0;
      int64_t rest = begin;
      for (int i = outer_rank - 1; i >= 0; --i) {
        index[i] = rest % dims[i].extent;
        rest /= dims[i].extent;
        at_in += index[i] * dims[i].in;
        at_out += index[i] * dims[i].out;
      }
      for (int64_t n = begin; n < end; ++n) {
        if (plane) {
          Plane(dims[rank - 2], dims[rank - 1], in + at_in, out + at_out);
        } else {
          Row(dims[rank - 1], in + at_in, out + at_out);
        }
        for (int i = outer_rank - 1; i >= 0; --i) {
          at_in += dims[i].in;
          at_out += dims[i].out;
          if (++index[i] < dims[i].extent) break;
          index[i] = 0;
          at_in -= dims[i].extent * dims[i].in;
          at_out -= dims[i].extent * dims[i].out;
        }
      }
    });
  }
};

Status StridedCopy::Run(KernelContext& context, size_t size, const void* in, void* out) const {
  const auto run = [&]<typename T>(const T* from) {
    StridedCopyRunner::Run(context, *this, from, static_cast<T*>(out));
    return absl::OkStatus();
  };
  if (empty_) return absl::OkStatus();
  switch (size) {
    case 1:
      return run(static_cast<const uint8_t*>(in));
    case 2:
      return run(static_cast<const uint16_t*>(in));
    case 4:
      return run(static_cast<const uint32_t*>(in));
    case 8:
      return run(static_cast<const uint64_t*>(in));
    default:
      return Unimplemented("elements of this dtype cannot be moved");
  }
}

Status StridedCopy::Run(KernelContext& context, const Tensor& x, int64_t offset,
                        const Shape& shape) const {
  if (x.dtype() != DType::kString) {
    const size_t size = SizeOf(x.dtype());
    return Run(context, size, static_cast<const char*>(x.raw_data()) + offset * size,
               context.output(0).mutable_raw_data());
  }
  // Where each string comes from is found by moving their numbers.
  MR_ASSIGN_OR_RETURN(Tensor numbers, context.AllocateScratch(DType::kInt64, x.shape()));
  MR_ASSIGN_OR_RETURN(Tensor from, context.AllocateScratch(DType::kInt64, shape));
  auto* const first = numbers.mutable_data<int64_t>();
  std::iota(first, first + numbers.num_elements(), 0);
  MR_RETURN_IF_ERROR(Run(context, sizeof(int64_t), first + offset, from.mutable_raw_data()));
  return OutputStrings(context, 0, shape,
                       [&](int64_t i) { return x.string(from.data<int64_t>()[i]); });
}

std::array<int64_t, kMaxRank> RowMajorStrides(const Shape& shape) {
  std::array<int64_t, kMaxRank> strides{};
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

}  // namespace millrace
