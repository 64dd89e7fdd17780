#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/string_output.h"
#include "kernels/host_values.h"

// Tensors as sets of their elements: which are there, which differ, which are largest.
namespace millrace {
namespace {

// How elements of a dtype are compared and made into outputs again.
template <typename T>
struct Elements {
  using Key = T;
  static Key At(const Tensor& x, int64_t i) { return x.data<T>()[i]; }
  static Status Make(KernelContext& context, int output, const Tensor& from,
                     const std::vector<int64_t>& places) {
    const Shape shape{static_cast<int64_t>(places.size())};
    MR_RETURN_IF_ERROR(context.AllocateOutput(output, from.dtype(), shape));
    T* const to = context.output(output).mutable_data<T>();
    for (size_t i = 0; i < places.size(); ++i) to[i] = from.data<T>()[places[i]];
    return absl::OkStatus();
  }
};

template <>
struct Elements<std::string> {
  using Key = absl::string_view;
  static Key At(const Tensor& x, int64_t i) { return x.string(i); }
  static Status Make(KernelContext& context, int output, const Tensor& from,
                     const std::vector<int64_t>& places) {
    return OutputStrings(context, output, Shape{static_cast<int64_t>(places.size())},
                         [&](int64_t i) { return from.string(places[i]); });
  }
};

Status CheckVector(const Tensor& x, absl::string_view what) {
  if (x.shape().rank() == 1) return absl::OkStatus();
  return InvalidArgument(what, " must be a vector, but has shape ", x.shape().ToString());
}

// `numbers` as output `output`, which is of `dtype`.
Status OutputNumbers(KernelContext& context, int output, DType dtype,
                     const std::vector<int64_t>& numbers) {
  MR_RETURN_IF_ERROR(
      context.AllocateOutput(output, dtype, Shape{static_cast<int64_t>(numbers.size())}));
  for (size_t i = 0; i < numbers.size(); ++i) {
    MR_RETURN_IF_ERROR(SetHostInt(context.output(output), static_cast<int64_t>(i), numbers[i]));
  }
  return absl::OkStatus();
}

class SetKernel : public Kernel {
 public:
  explicit SetKernel(const KernelConstruction& c)
      : index_(c.attrs.GetOr("out_idx", DType::kInt32)) {}

 protected:
  const DType index_;
};

template <typename T>
class UniqueKernel final : public SetKernel {
 public:
  using SetKernel::SetKernel;
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    MR_RETURN_IF_ERROR(CheckVector(x, "x"));
    absl::flat_hash_map<typename Elements<T>::Key, int64_t> known;
    std::vector<int64_t> places, which;
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const auto [at, is_new] =
          known.try_emplace(Elements<T>::At(x, i), static_cast<int64_t>(places.size()));
      if (is_new) places.push_back(i);
      which.push_back(at->second);
    }
    MR_RETURN_IF_ERROR(Elements<T>::Make(context, 0, x, places));
    return OutputNumbers(context, 1, index_, which);
  }
};

template <typename T>
class ListDiffKernel final : public SetKernel {
 public:
  using SetKernel::SetKernel;
  Status Compute(KernelContext& context) const override {
    const Tensor &x = context.input(0), &y = context.input(1);
    MR_RETURN_IF_ERROR(CheckVector(x, "x"));
    MR_RETURN_IF_ERROR(CheckVector(y, "y"));
    absl::flat_hash_map<typename Elements<T>::Key, bool> taken;
    for (int64_t i = 0; i < y.num_elements(); ++i) taken.try_emplace(Elements<T>::At(y, i), true);
    std::vector<int64_t> places;
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      if (!taken.contains(Elements<T>::At(x, i))) places.push_back(i);
    }
    MR_RETURN_IF_ERROR(Elements<T>::Make(context, 0, x, places));
    return OutputNumbers(context, 1, index_, places);
  }
};

// The indices of what is not zero; NaN is not.
template <typename T>
class WhereKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    const int rank = x.shape().rank();
    if (rank == 0) return InvalidArgument("a scalar has no indices");
    const T* const values = x.data<T>();
    const int64_t n = x.num_elements();
    const int64_t found = n - std::count(values, values + n, T(0));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create({found, rank}));
    MR_RETURN_IF_ERROR(context.AllocateOutput(0, DType::kInt64, shape));
    int64_t* to = context.output(0).mutable_data<int64_t>();
    for (int64_t i = 0; i < n; ++i) {
      if (values[i] == T(0)) continue;
      int64_t rest = i;
      for (int k = rank - 1; k >= 0; --k) {
        to[k] = rest % x.shape()[k];
        rest /= x.shape()[k];
      }
      to += rank;
    }
    return absl::OkStatus();
  }
};

// Whether a comes before b among the largest; NaN counts as the largest of all.
template <typename T>
bool IsLarger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  }
  return a > b;
}

template <typename T>
class TopKKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    MR_ASSIGN_OR_RETURN(const int64_t k, HostInt(context.input(1), "k"));
    const int rank = x.shape().rank();
    const int64_t n = rank == 0 ? 0 : x.shape()[rank - 1];
    Tensor &values = context.output(0), &indices = context.output(1);
    if (rank == 0 || k < 0 || k > n || values.shape()[rank - 1] != k) {
      return InvalidArgument("there are no ", k, " largest elements in rows of ",
                             x.shape().ToString());
    }
    if (values.num_elements() == 0) return absl::OkStatus();
    const int64_t rows = values.num_elements() / k;
    const T* const from = x.data<T>();
    T* const to = values.mutable_data<T>();
    if (n > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("rows of ", n, " elements are too long");
    }
    ParallelRange(context, rows, std::max<int64_t>(1, kHeavyElementsPerTask / n),
                  [&](int64_t begin, int64_t end) {
                    std::vector<int32_t> order(n);
                    for (int64_t row = begin; row < end; ++row) {
                      const T* const in = from + row * n;
                      std::iota(order.begin(), order.end(), 0);
                      std::partial_sort(order.begin(), order.begin() + k, order.end(),
                                        [in](int32_t a, int32_t b) {
                                          if (IsLarger(in[a], in[b])) return true;
                                          return !IsLarger(in[b], in[a]) && a < b;
                                        });
                      for (int64_t i = 0; i < k; ++i) {
                        to[row * k + i] = in[order[i]];
                        if (indices.dtype() == DType::kInt64) {
                          indices.mutable_data<int64_t>()[row * k + i] = order[i];
                        } else {
                          indices.mutable_data<int32_t>()[row * k + i] = order[i];
                        }
                      }
                    }
                  });
    return absl::OkStatus();
  }
};

class DynamicStitchKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const int count = context.num_inputs() / 2;
    int64_t largest = -1;
    for (int i = 0; i < count; ++i) {
      const Tensor& indices = context.input(i);
      const int32_t* const values = indices.data<int32_t>();
      for (int64_t k = 0; k < indices.num_elements(); ++k) {
        if (values[k] < 0) {
          return InvalidArgument("index ", values[k], " (element ", k, " of indices ", i,
                                 ") is negative");
        }
        largest = std::max<int64_t>(largest, values[k]);
      }
    }
    // The shape of an element, which all data agree on.
    IntVector dims = {largest + 1};
    int64_t inner = 1;
    for (int i = 0; i < count; ++i) {
      const Shape &own = context.input(count + i).shape(), &outer = context.input(i).shape();
      bool fits = own.rank() >= outer.rank();
      for (int k = 0; fits && k < outer.rank(); ++k) fits = own[k] == outer[k];
      IntVector rest = {largest + 1};
      for (int k = outer.rank(); fits && k < own.rank(); ++k) rest.push_back(own[k]);
      if (!fits || (i > 0 && rest != dims)) {
        return InvalidArgument("data ", i, " of shape ", own.ToString(), " and indices of shape ",
                               outer.ToString(), " do not fit each other, or those before");
      }
      dims = rest;
    }
    for (size_t k = 1; k < dims.size(); ++k) inner *= dims[k];
    const DType dtype = context.input(count).dtype();
    const auto bytes = inner * static_cast<int64_t>(SizeOf(dtype));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    if (dtype == DType::kString) return StitchStrings(context, shape, inner);
    if (SizeOf(dtype) == 0) return Unimplemented("no stitching of ", Name(dtype), " tensors");
    MR_RETURN_IF_ERROR(context.AllocateOutput(0, dtype, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    char* const to = static_cast<char*>(context.output(0).mutable_raw_data());
    std::memset(to, 0, (largest + 1) * bytes);
    for (int i = 0; i < count; ++i) {
      const Tensor& indices = context.input(i);
      const char* const from = static_cast<const char*>(context.input(count + i).raw_data());
      for (int64_t k = 0; k < indices.num_elements(); ++k) {
        std::memcpy(to + indices.data<int32_t>()[k] * bytes, from + k * bytes, bytes);
      }
    }
    return absl::OkStatus();
  }

 private:
  // Slices of `inner` strings each; places that no index names are empty.
  static Status StitchStrings(KernelContext& context, const Shape& shape, int64_t inner) {
    const int count = context.num_inputs() / 2;
    // Which string each is, counted through all data; -1: none.
    MR_ASSIGN_OR_RETURN(Tensor numbers, context.AllocateScratch(DType::kInt64, shape));
    auto* const chosen = numbers.mutable_data<int64_t>();
    std::fill_n(chosen, shape.num_elements(), -1);
    std::vector<int64_t> starts = {0};  // of each datum
    for (int i = 0; i < count; ++i) {
      const Tensor& indices = context.input(i);
      for (int64_t k = 0; k < indices.num_elements(); ++k) {
        int64_t* const slice = chosen + indices.data<int32_t>()[k] * inner;
        std::iota(slice, slice + inner, starts.back() + k * inner);
      }
      starts.push_back(starts.back() + context.input(count + i).num_elements());
    }
    return OutputStrings(context, 0, shape, [&](int64_t i) -> absl::string_view {
      if (chosen[i] < 0) return "";
      const auto after = std::upper_bound(starts.begin(), starts.end(), chosen[i]);
      const auto datum = static_cast<int>(after - starts.begin()) - 1;
      return context.input(count + datum).string(chosen[i] - starts[datum]);
    });
  }
};

template <template <typename> class K, typename... Ts>
void AddSet(KernelRegistry& registry, absl::string_view op) {
  (registry.Add(KernelDef{std::string(op), "CPU", {{"T", {DTypeOf<Ts>::value}}}},
                MakeKernel<K<Ts>>),
   ...);
}

template <template <typename> class K>
void AddStringSet(KernelRegistry& registry, absl::string_view op) {
  registry.Add(KernelDef{std::string(op), "CPU", {{"T", {DType::kString}}}},
               MakeKernel<K<std::string>>);
}

}  // namespace

void RegisterSetKernels(KernelRegistry& registry) {
  AddTyped<WhereKernel, float, double, int32_t, int64_t, uint8_t, int8_t, bool>(registry, "Where",
                                                                                "CPU");
  AddSet<UniqueKernel, float, double, int32_t, int64_t, uint8_t, int8_t, bool>(registry, "Unique");
  AddStringSet<UniqueKernel>(registry, "Unique");
  AddSet<ListDiffKernel, float, double, int32_t, int64_t, uint8_t, int8_t, bool>(registry,
                                                                                 "ListDiff");
  AddStringSet<ListDiffKernel>(registry, "ListDiff");
  AddTyped<TopKKernel, float, double, int32_t, int64_t, uint8_t, int8_t>(registry, "TopKV2", "CPU");
  registry.Add("DynamicStitch", "CPU", MakeKernel<DynamicStitchKernel>);
}

}  // namespace millrace
