#include <algorithm>
#include <cmath>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/vector_reduce.h"

// Softmax over the last axis, and the cross-entropies that contain it. Each row is shifted by its
// largest element, so that no exponential overflows.
namespace millrace {
namespace {

struct Rows {
  int64_t count = 0;
  int64_t width = 0;
  int64_t grain() const {
    return std::max<int64_t>(1, kHeavyElementsPerTask / std::max<int64_t>(1, width));
  }
};

StatusOr<Rows> RowsOf(const Shape& logits) {
  if (logits.rank() < 1) return InvalidArgument("logits need a last axis, but are a scalar");
  Rows rows;
  rows.width = logits[logits.rank() - 1];
  rows.count = rows.width == 0 ? 0 : logits.num_elements() / rows.width;
  return rows;
}

// out = softmax(x); gives log(sum(exp(x - max))).
template <typename T>
T SoftmaxRow(const T* x, int64_t n, T largest, T* out) {
  const T sum = vector::ExpShifted(x, largest, out, n);
  vector::Run(vector::Binary::kDiv, vector::Operands::kScalarY, out, &sum, out, n);
  return std::log(sum);
}

template <typename T>
class SoftmaxKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(const Rows rows, RowsOf(context.input(0).shape()));
    const T* x = context.input(0).data<T>();
    T* out = context.output(0).mutable_data<T>();
    ParallelRange(context, rows.count, rows.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = x + i * rows.width;
        SoftmaxRow(row, rows.width, vector::Max(row, rows.width), out + i * rows.width);
      }
    });
    return absl::OkStatus();
  }
};

template <typename T>
class LogSoftmaxKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(const Rows rows, RowsOf(context.input(0).shape()));
    const T* x = context.input(0).data<T>();
    T* out = context.output(0).mutable_data<T>();
    ParallelRange(context, rows.count, rows.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = x + i * rows.width;
        T* to = out + i * rows.width;
        const T largest = vector::Max(row, rows.width);
        const T log_sum =
            std::log(vector::ExpShifted(row, largest, static_cast<T*>(nullptr), rows.width));
        // Two subtractions: largest + log_sum would round away a small log_sum.
        for (int64_t j = 0; j < rows.width; ++j) to[j] = (row[j] - largest) - log_sum;
      }
    });
    return absl::OkStatus();
  }
};

// Labels are classes. Outputs: losses[n] and the gradient of their sum, [n, k].
template <typename T, typename Label>
class SparseCrossEntropyKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& logits = context.input(0);
    const Tensor& labels = context.input(1);
    if (logits.shape().rank() != 2 || labels.shape() != Shape({logits.shape()[0]})) {
      return InvalidArgument("logits ", logits.shape().ToString(), " and labels ",
                             labels.shape().ToString(), " are not [n,k] and [n]");
    }
    const int64_t n = logits.shape()[0];
    const int64_t k = logits.shape()[1];
    const Label* label = labels.data<Label>();
    for (int64_t i = 0; i < n; ++i) {
      if (label[i] < 0 || static_cast<int64_t>(label[i]) >= k) {
        return InvalidArgument("label ", label[i], " of row ", i, " is not in [0, ", k, ")");
      }
    }
    const T* x = logits.data<T>();
    T* loss = context.output(0).mutable_data<T>();
    T* gradient = context.output(1).mutable_data<T>();
    ParallelRange(context, n, Rows{n, k}.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = x + i * k;
        T* to = gradient + i * k;
        const int64_t target = label[i];
        const T largest = vector::Max(row, k);
        const T shifted = row[target] - largest;
        const T log_sum = SoftmaxRow(row, k, largest, to);
        to[target] -= T(1);
        loss[i] = log_sum - shifted;
      }
    });
    return absl::OkStatus();
  }
};

// Labels are distributions [n, k].
template <typename T>
class CrossEntropyKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& logits = context.input(0);
    const Tensor& labels = context.input(1);
    if (logits.shape().rank() != 2 || labels.shape() != logits.shape()) {
      return InvalidArgument("logits ", logits.shape().ToString(), " and labels ",
                             labels.shape().ToString(), " are not both [n,k]");
    }
    const int64_t n = logits.shape()[0];
    const int64_t k = logits.shape()[1];
    T* losses = context.output(0).mutable_data<T>();
    if (k == 0) {
      std::fill_n(losses, n, T(0));
      return absl::OkStatus();
    }
    const T* x = logits.data<T>();
    const T* p = labels.data<T>();
    T* gradient = context.output(1).mutable_data<T>();
    ParallelRange(context, n, Rows{n, k}.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = x + i * k;
        const T* target = p + i * k;
        T* to = gradient + i * k;
        const T largest = vector::Max(row, k);
        const T log_sum = std::log(vector::ExpShifted(row, largest, static_cast<T*>(nullptr), k));
        T loss = 0;
        for (int64_t j = 0; j < k; ++j) loss += target[j] * (log_sum - (row[j] - largest));
        SoftmaxRow(row, k, largest, to);
        for (int64_t j = 0; j < k; ++j) to[j] -= target[j];
        losses[i] = loss;
      }
    });
    return absl::OkStatus();
  }
};

template <typename T, typename Label>
void AddSparse(KernelRegistry& registry) {
  registry.Add(KernelDef{"SparseSoftmaxCrossEntropyWithLogits",
                         "CPU",
                         {{"T", {DTypeOf<T>::value}}, {"Tlabels", {DTypeOf<Label>::value}}}},
               MakeKernel<SparseCrossEntropyKernel<T, Label>>);
}

}  // namespace

void RegisterSoftmaxKernels(KernelRegistry& registry) {
  AddTyped<SoftmaxKernel, float, double>(registry, "Softmax", "CPU");
  AddTyped<LogSoftmaxKernel, float, double>(registry, "LogSoftmax", "CPU");
  AddSparse<float, int32_t>(registry);
  AddSparse<float, int64_t>(registry);
  AddSparse<double, int32_t>(registry);
  AddSparse<double, int64_t>(registry);
  AddTyped<CrossEntropyKernel, float, double>(registry, "SoftmaxCrossEntropyWithLogits", "CPU");
}

}  // namespace millrace
