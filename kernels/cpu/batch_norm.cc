#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"

// Batch normalisation: statistics of each channel, and what is done with them. Sums are taken in
// double, block by block in an order that depends on the shape alone.
namespace millrace {
namespace {

// A tensor of channels: `outer` times `channels` times `inner` elements. NHWC has inner 1, NCHW the
// pixels.
struct ChannelLayout {
  int64_t outer = 0, channels = 0, inner = 1;
  int64_t per_channel() const { return outer * inner; }
};

class BatchNormKernelBase : public Kernel {
 public:
  explicit BatchNormKernelBase(const KernelConstruction& c)
      : epsilon_(c.attrs.GetOr("epsilon", 1e-4f)),
        training_(c.attrs.GetOr("is_training", true)),
        channels_first_(c.attrs.GetOr<std::string>("data_format", "NHWC") == "NCHW") {}

 protected:
  StatusOr<ChannelLayout> LayoutOf(const Shape& x) const {
    if (x.rank() != 4) return InvalidArgument("x must have rank 4, but has shape ", x.ToString());
    if (channels_first_) return ChannelLayout{x[0], x[1], x[2] * x[3]};
    return ChannelLayout{x[0] * x[1] * x[2], x[3], 1};
  }
  static Status CheckVector(const Tensor& tensor, const ChannelLayout& layout,
                            absl::string_view what) {
    if (tensor.num_elements() == layout.channels) return absl::OkStatus();
    return InvalidArgument(what, " has shape ", tensor.shape().ToString(), ", but x has ",
                           layout.channels, " channels");
  }

  const float epsilon_;
  const bool training_;
  const bool channels_first_;
};

// For each channel the sums over its elements of the numbers that `add(element, channel, sums)`
// adds, kSums of them: sums[channel * kSums + k].
template <int kSums, typename Add>
std::vector<double> ChannelSums(KernelContext& context, const ChannelLayout& l, const Add& add) {
  // Blocks of rows: as many as the shape says, whoever computes them.
  const int64_t row = std::max<int64_t>(1, l.channels * l.inner);
  const int64_t rows = std::max<int64_t>(1, kElementsPerTask / row);
  const int64_t blocks = std::min<int64_t>(64, CeilDiv(std::max<int64_t>(l.outer, 1), rows));
  const int64_t block_rows = CeilDiv(std::max<int64_t>(l.outer, 1), blocks);
  const int64_t width = l.channels * kSums;
  std::vector<double> partial(blocks * width, 0.0);
  ParallelRange(context, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      double* const sums = partial.data() + block * width;
      const int64_t last = std::min(l.outer, (block + 1) * block_rows);
      for (int64_t o = block * block_rows; o < last; ++o) {
        for (int64_t c = 0; c < l.channels; ++c) {
          const int64_t at = (o * l.channels + c) * l.inner;
          for (int64_t i = 0; i < l.inner; ++i) add(at + i, c, sums + c * kSums);
        }
      }
    }
  });
  for (int64_t block = 1; block < blocks; ++block) {
    for (int64_t i = 0; i < width; ++i) partial[i] += partial[block * width + i];
  }
  partial.resize(width);
  return partial;
}

// Calls body(element, channel) for all elements, in parallel.
template <typename Body>
void ForElements(KernelContext& context, const ChannelLayout& l, const Body& body) {
  const int64_t row = std::max<int64_t>(1, l.channels * l.inner);
  ParallelRange(context, l.outer, std::max<int64_t>(1, kElementsPerTask / row),
                [&](int64_t begin, int64_t end) {
                  for (int64_t o = begin; o < end; ++o) {
                    for (int64_t c = 0; c < l.channels; ++c) {
                      const int64_t at = (o * l.channels + c) * l.inner;
                      for (int64_t i = 0; i < l.inner; ++i) body(at + i, c);
                    }
                  }
                });
}

template <typename T, typename U>
class BatchNormKernel final : public BatchNormKernelBase {
 public:
  explicit BatchNormKernel(const KernelConstruction& c)
      : BatchNormKernelBase(c), factor_(c.attrs.GetOr("exponential_avg_factor", 1.0f)) {}

  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    MR_ASSIGN_OR_RETURN(const ChannelLayout l, LayoutOf(x.shape()));
    const bool uses_statistics = !training_ || factor_ != 1.0f;
    constexpr absl::string_view kNames[] = {"", "scale", "offset", "mean", "variance"};
    for (int i = 1; i < (uses_statistics ? 5 : 3); ++i) {
      MR_RETURN_IF_ERROR(CheckVector(context.input(i), l, kNames[i]));
    }
    const T* const in = x.data<T>();
    std::vector<double> mean(l.channels), variance(l.channels);
    if (training_) {
      Statistics(context, l, in, &mean, &variance);
    } else {
      std::copy_n(context.input(3).data<U>(), l.channels, mean.begin());
      std::copy_n(context.input(4).data<U>(), l.channels, variance.begin());
    }
    WriteStatistics(context, l, mean, variance);
    // y = x * factor + shift
    std::vector<T> factor(l.channels), shift(l.channels);
    const U *const scale = context.input(1).data<U>(), *const offset = context.input(2).data<U>();
    for (int64_t c = 0; c < l.channels; ++c) {
      const double f = scale[c] / std::sqrt(variance[c] + epsilon_);
      factor[c] = static_cast<T>(f);
      shift[c] = static_cast<T>(mean[c]);
    }
    T* const out = context.output(0).mutable_data<T>();
    // The mean is taken off first: a large one would cost digits otherwise.
    ForElements(context, l, [&](int64_t at, int64_t c) {
      out[at] = (in[at] - shift[c]) * factor[c] + static_cast<T>(offset[c]);
    });
    return absl::OkStatus();
  }

 private:
  static void Statistics(KernelContext& context, const ChannelLayout& l, const T* in,
                         std::vector<double>* mean, std::vector<double>* variance) {
    const double n = static_cast<double>(l.per_channel());
    if (n == 0) return;
    *mean = ChannelSums<1>(context, l, [in](int64_t at, int64_t, double* sum) { *sum += in[at]; });
    for (double& m : *mean) m /= n;
    const double* const m = mean->data();
    *variance = ChannelSums<1>(context, l, [in, m](int64_t at, int64_t c, double* sum) {
      const double d = in[at] - m[c];
      *sum += d * d;
    });
    for (double& v : *variance) v /= n;
  }

  // The running statistics, with an unbiased variance, and those that the gradient needs.
  void WriteStatistics(KernelContext& context, const ChannelLayout& l,
                       const std::vector<double>& mean, const std::vector<double>& variance) const {
    const auto n = static_cast<double>(l.per_channel());
    const double unbiased = training_ && n > 1 ? n / (n - 1) : 1;
    U* out[5];
    for (int i = 1; i < 5; ++i) out[i] = context.output(i).mutable_data<U>();
    for (int64_t c = 0; c < l.channels; ++c) {
      double new_mean = mean[c], new_variance = variance[c] * unbiased;
      if (training_ && factor_ != 1.0f) {
        new_mean = (1 - factor_) * context.input(3).data<U>()[c] + factor_ * new_mean;
        new_variance = (1 - factor_) * context.input(4).data<U>()[c] + factor_ * new_variance;
      }
      out[1][c] = static_cast<U>(new_mean);
      out[2][c] = static_cast<U>(new_variance);
      out[3][c] = static_cast<U>(mean[c]);
      out[4][c] = static_cast<U>(variance[c]);
    }
  }

  const float factor_;
};

template <typename T, typename U>
class BatchNormGradKernel final : public BatchNormKernelBase {
 public:
  using BatchNormKernelBase::BatchNormKernelBase;

  Status Compute(KernelContext& context) const override {
    const Tensor &d_out = context.input(0), &x = context.input(1);
    MR_ASSIGN_OR_RETURN(const ChannelLayout l, LayoutOf(x.shape()));
    if (d_out.shape() != x.shape()) {
      return InvalidArgument("y_backprop has shape ", d_out.shape().ToString(), ", but x has ",
                             x.shape().ToString());
    }
    constexpr absl::string_view kNames[] = {"", "", "scale", "reserve_space_1", "reserve_space_2"};
    for (int i = 2; i < 5; ++i) MR_RETURN_IF_ERROR(CheckVector(context.input(i), l, kNames[i]));
    const T *const dy = d_out.data<T>(), *const in = x.data<T>();
    const U* const scale = context.input(2).data<U>();
    std::vector<double> mean(l.channels), inverse(l.channels);
    for (int64_t c = 0; c < l.channels; ++c) {
      mean[c] = context.input(3).data<U>()[c];
      inverse[c] = 1 / std::sqrt(static_cast<double>(context.input(4).data<U>()[c]) + epsilon_);
    }
    const std::vector<double> sums =
        ChannelSums<2>(context, l, [&](int64_t at, int64_t c, double* sum) {
          sum[0] += dy[at];
          sum[1] += dy[at] * (in[at] - mean[c]);
        });
    U* const d_scale = context.output(1).mutable_data<U>();
    U* const d_offset = context.output(2).mutable_data<U>();
    // dx = factor * (dy - mean_dy - (x - mean) * slope), of which the last two terms come from the
    // batch's own statistics.
    std::vector<T> factor(l.channels), mean_dy(l.channels), slope(l.channels), center(l.channels);
    const double n = std::max<double>(1, static_cast<double>(l.per_channel()));
    for (int64_t c = 0; c < l.channels; ++c) {
      d_offset[c] = static_cast<U>(sums[2 * c]);
      d_scale[c] = static_cast<U>(sums[2 * c + 1] * inverse[c]);
      factor[c] = static_cast<T>(scale[c] * inverse[c]);
      center[c] = static_cast<T>(mean[c]);
      if (!training_) continue;
      mean_dy[c] = static_cast<T>(sums[2 * c] / n);
      slope[c] = static_cast<T>(sums[2 * c + 1] / n * inverse[c] * inverse[c]);
    }
    T* const dx = context.output(0).mutable_data<T>();
    ForElements(context, l, [&](int64_t at, int64_t c) {
      dx[at] = factor[c] * (dy[at] - mean_dy[c] - (in[at] - center[c]) * slope[c]);
    });
    return absl::OkStatus();
  }
};

template <template <typename, typename> class K, typename T, typename U>
void AddPair(KernelRegistry& registry, absl::string_view op) {
  registry.Add(
      KernelDef{std::string(op), "CPU", {{"T", {DTypeOf<T>::value}}, {"U", {DTypeOf<U>::value}}}},
      MakeKernel<K<T, U>>);
}

template <template <typename, typename> class K>
void AddAll(KernelRegistry& registry, absl::string_view op) {
  AddPair<K, float, float>(registry, op);
  AddPair<K, float, double>(registry, op);
  AddPair<K, double, float>(registry, op);
  AddPair<K, double, double>(registry, op);
}

}  // namespace

void RegisterBatchNormKernels(KernelRegistry& registry) {
  AddAll<BatchNormKernel>(registry, "FusedBatchNormV3");
  AddAll<BatchNormGradKernel>(registry, "FusedBatchNormGradV3");
}

}  // namespace millrace
