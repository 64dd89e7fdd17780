#include "kernels/cpu/reduction.h"

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/vector_reduce.h"
#include "kernels/host_values.h"

namespace millrace {
namespace {

// A reduction is taken as one or more passes over [outer, reduced, inner]. Long sums are cut into
// segments of about this many elements, whose results are reduced in their order.
constexpr int64_t kSegment = 65536;
constexpr int64_t kColumns = 4096;

// How to combine elements. Row: all n elements of x. Rows: element by element, `rows` rows of
// `width` columns that are `stride` apart.
template <typename T, template <typename> class F>
struct Fold {
  static T Row(const T* x, int64_t n, T initial) {
    T result = initial;
    for (int64_t i = 0; i < n; ++i) result = F<T>()(result, x[i]);
    return result;
  }
  static void Rows(const T* x, int64_t rows, int64_t stride, int64_t width, T initial, T* out) {
    std::fill_n(out, width, initial);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < width; ++j) out[j] = F<T>()(out[j], x[i * stride + j]);
    }
  }
};

template <typename T>
struct SumOf : Fold<T, functor::Add> {
  static constexpr T kInitial = T(0);
  static T Row(const T* x, int64_t n, T initial) {
    if constexpr (kIsVectorType<T>) return vector::Sum(x, n);
    return Fold<T, functor::Add>::Row(x, n, initial);
  }
  static void Rows(const T* x, int64_t rows, int64_t stride, int64_t width, T initial, T* out) {
    if constexpr (kIsVectorType<T>) {
      vector::SumRows(x, rows, stride, width, out);
    } else {
      Fold<T, functor::Add>::Rows(x, rows, stride, width, initial, out);
    }
  }
};
template <typename T>
struct MaxOf : Fold<T, functor::Maximum> {
  static constexpr T kInitial = std::numeric_limits<T>::has_infinity
                                    ? -std::numeric_limits<T>::infinity()
                                    : std::numeric_limits<T>::lowest();
  static T Row(const T* x, int64_t n, T initial) {
    if constexpr (kIsVectorType<T>) return vector::Max(x, n);
    return Fold<T, functor::Maximum>::Row(x, n, initial);
  }
};
template <typename T>
struct MinOf : Fold<T, functor::Minimum> {
  static constexpr T kInitial = std::numeric_limits<T>::has_infinity
                                    ? std::numeric_limits<T>::infinity()
                                    : std::numeric_limits<T>::max();
};
template <typename T>
struct ProdOf : Fold<T, functor::Mul> {
  static constexpr T kInitial = T(1);
};

// Bytes of 0 and 1, which the compiler combines many at once.
template <typename T>
struct AllOf {
  static constexpr bool kInitial = true;
  static bool Row(const bool* x, int64_t n, bool initial) {
    bool all = initial;
    for (int64_t i = 0; i < n; ++i) all &= x[i];
    return all;
  }
  static void Rows(const bool* x, int64_t rows, int64_t stride, int64_t width, bool initial,
                   bool* out) {
    std::fill_n(out, width, initial);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < width; ++j) out[j] &= x[i * stride + j];
    }
  }
};
template <typename T>
struct AnyOf {
  static constexpr bool kInitial = false;
  static bool Row(const bool* x, int64_t n, bool initial) {
    bool any = initial;
    for (int64_t i = 0; i < n; ++i) any |= x[i];
    return any;
  }
  static void Rows(const bool* x, int64_t rows, int64_t stride, int64_t width, bool initial,
                   bool* out) {
    std::fill_n(out, width, initial);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < width; ++j) out[j] |= x[i * stride + j];
    }
  }
};

// out[outer, inner] = the reduction of x[outer, reduced, inner] over the middle.
template <typename R, typename T>
Status ReducePass(KernelContext& context, const T* x, int64_t outer, int64_t reduced, int64_t inner,
                  T* out) {
  const int64_t blocks = std::max<int64_t>(1, CeilDiv(inner, kColumns));
  // The reduced dimension is cut only where the others give too few tasks.
  constexpr int64_t kEnoughTasks = 16;
  constexpr int64_t kFewestRows = 64;
  const int64_t rows = outer * blocks >= kEnoughTasks
                           ? std::max<int64_t>(reduced, 1)
                           : std::max(kFewestRows, kSegment / std::max<int64_t>(1, inner));
  const int64_t segments = std::max<int64_t>(1, CeilDiv(reduced, rows));
  // One segment a row or column block: straight to the output. More: to partial[outer, segments,
  // inner] first.
  T* to = out;
  Tensor partial;
  if (segments > 1) {
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create({outer, segments, inner}));
    MR_ASSIGN_OR_RETURN(partial, context.AllocateScratch(DTypeOf<T>::value, shape));
    to = partial.mutable_data<T>();
  }
  const int64_t units = outer * segments * blocks;
  const int64_t unit_size = std::min(reduced, rows) * std::min(inner, kColumns);
  const int64_t grain = std::max<int64_t>(1, kSegment / std::max<int64_t>(1, unit_size));
  ParallelRange(context, units, grain, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t block = unit % blocks;
      const int64_t segment = unit / blocks % segments;
      const int64_t o = unit / blocks / segments;
      const int64_t first = segment * rows;
      const int64_t count = std::min(rows, reduced - first);
      const T* from = x + (o * reduced + first) * inner + block * kColumns;
      T* result = to + (o * segments + segment) * inner + block * kColumns;
      if (inner == 1) {
        *result = R::Row(from, count, R::kInitial);
      } else {
        R::Rows(from, count, inner, std::min(kColumns, inner - block * kColumns), R::kInitial,
                result);
      }
    }
  });
  if (segments == 1) return absl::OkStatus();
  return ReducePass<R>(context, to, outer, segments, inner, out);
}

// Neighbouring dimensions that are all reduced, or all kept, are one.
struct Runs {
  absl::InlinedVector<int64_t, kMaxRank> extents;
  absl::InlinedVector<bool, kMaxRank> reduced;
  int64_t count = 1;  // elements that make up one of the result
};

StatusOr<Runs> MakeRuns(const Shape& shape, const Tensor& axes) {
  MR_ASSIGN_OR_RETURN(const IntVector given, HostInts(axes, "the axes"));
  std::array<bool, kMaxRank> reduce{};
  for (int64_t a : given) {
    MR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(a, shape.rank()));
    if (reduce[axis]) return InvalidArgument("axis ", a, " is named twice");
    reduce[axis] = true;
  }
  Runs runs;
  for (int i = 0; i < shape.rank(); ++i) {
    if (reduce[i]) runs.count *= shape[i];
    if (shape[i] == 1) continue;
    if (!runs.extents.empty() && runs.reduced.back() == reduce[i]) {
      runs.extents.back() *= shape[i];
    } else {
      runs.extents.push_back(shape[i]);
      runs.reduced.push_back(reduce[i]);
    }
  }
  return runs;
}

// Passes from the last reduced run to the first.
template <typename R, typename T>
Status Reduce(KernelContext& context, const Tensor& input, Runs runs, T* out) {
  const T* x = input.data<T>();
  Tensor held;
  int passes = static_cast<int>(std::count(runs.reduced.begin(), runs.reduced.end(), true));
  if (passes == 0) {
    std::copy_n(x, input.num_elements(), out);
    return absl::OkStatus();
  }
  for (; passes > 0; --passes) {
    int at = static_cast<int>(runs.extents.size()) - 1;
    while (!runs.reduced[at]) --at;
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < at; ++i) outer *= runs.extents[i];
    for (int i = at + 1; i < static_cast<int>(runs.extents.size()); ++i) inner *= runs.extents[i];
    T* to = out;
    Tensor next;
    if (passes > 1) {
      MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create({outer, inner}));
      MR_ASSIGN_OR_RETURN(next, context.AllocateScratch(DTypeOf<T>::value, shape));
      to = next.mutable_data<T>();
    }
    if (outer * inner > 0) {
      MR_RETURN_IF_ERROR((ReducePass<R>(context, x, outer, runs.extents[at], inner, to)));
    }
    runs.extents[at] = 1;
    runs.reduced[at] = false;
    held = std::move(next);
    x = to;
  }
  return absl::OkStatus();
}

template <template <typename> class R, typename T>
class ReduceKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    MR_ASSIGN_OR_RETURN(Runs runs, MakeRuns(x.shape(), context.input(1)));
    return Reduce<R<T>>(context, x, std::move(runs), context.output(0).mutable_data<T>());
  }
};

template <typename T>
class MeanKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    MR_ASSIGN_OR_RETURN(Runs runs, MakeRuns(x.shape(), context.input(1)));
    const T count = static_cast<T>(runs.count);
    if (std::is_integral_v<T> && count == T(0)) {
      return InvalidArgument("the mean of no integers, over axes of ", x.shape().ToString());
    }
    T* out = context.output(0).mutable_data<T>();
    MR_RETURN_IF_ERROR(Reduce<SumOf<T>>(context, x, std::move(runs), out));
    ParallelRange(context, context.output(0).num_elements(), kElementsPerTask,
                  [&](int64_t begin, int64_t end) {
                    BinaryRow<functor::Div<T>>(out + begin, 1, &count, 0, out + begin, end - begin);
                  });
    return absl::OkStatus();
  }
};

template <template <typename> class R, typename... Ts>
void AddReduce(KernelRegistry& registry, absl::string_view op) {
  (registry.Add(KernelDef{std::string(op), "CPU", {{"T", {DTypeOf<Ts>::value}}}},
                MakeKernel<ReduceKernel<R, Ts>>),
   ...);
}

// Half the sum of squares.
template <typename T>
class L2LossKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& t = context.input(0);
    const T* x = t.data<T>();
    const int64_t n = t.num_elements();
    T* out = context.output(0).mutable_data<T>();
    const int64_t segments = CeilDiv(n, kSegment);
    if (segments <= 1) {
      *out = vector::SumOfSquares(x, n) / T(2);
      return absl::OkStatus();
    }
    MR_ASSIGN_OR_RETURN(Tensor partial,
                        context.AllocateScratch(DTypeOf<T>::value, Shape({segments})));
    T* sums = partial.mutable_data<T>();
    ParallelRange(context, n, kSegment, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += kSegment) {
        sums[at / kSegment] = vector::SumOfSquares(x + at, std::min(kSegment, end - at));
      }
    });
    *out = vector::Sum(sums, segments) / T(2);
    return absl::OkStatus();
  }
};

}  // namespace

Status SumMiddle(KernelContext& context, const float* x, int64_t outer, int64_t reduced,
                 int64_t inner, float* out) {
  return ReducePass<SumOf<float>>(context, x, outer, reduced, inner, out);
}
Status SumMiddle(KernelContext& context, const double* x, int64_t outer, int64_t reduced,
                 int64_t inner, double* out) {
  return ReducePass<SumOf<double>>(context, x, outer, reduced, inner, out);
}

void RegisterReductionKernels(KernelRegistry& registry) {
  AddReduce<SumOf, float, double, int32_t, int64_t>(registry, "Sum");
  AddReduce<MaxOf, float, double, int32_t, int64_t>(registry, "Max");
  AddReduce<MinOf, float, double, int32_t, int64_t>(registry, "Min");
  AddReduce<ProdOf, float, double, int32_t, int64_t>(registry, "Prod");
  AddTyped<MeanKernel, float, double, int32_t, int64_t>(registry, "Mean", "CPU");
  registry.Add("All", "CPU", MakeKernel<ReduceKernel<AllOf, bool>>);
  registry.Add("Any", "CPU", MakeKernel<ReduceKernel<AnyOf, bool>>);
  AddTyped<L2LossKernel, float, double>(registry, "L2Loss", "CPU");
}

}  // namespace millrace
