#include <algorithm>
#include <cstring>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/indices.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/variable_input.h"
#include "kernels/host_values.h"

// Slices added to those that indices name. Slices of one name are added in their order, whatever
// the number of threads.
namespace millrace {
namespace {

template <typename T>
struct Updates {
  const T* data;
  bool scalar = false;  // one number for all elements
  bool subtract = false;
};

// to[slices[i]] += updates[i] for slices of `inner` elements; a negative name counts nowhere. In
// parallel over the elements of a slice.
template <typename T>
void AddSlices(KernelContext& context, const std::vector<int64_t>& slices, int64_t inner,
               const Updates<T>& updates, T* to) {
  const auto count = static_cast<int64_t>(slices.size());
  if (count == 0) return;
  constexpr int64_t kLine = 16;  // elements of a cache line, more or less
  ParallelRange(context, inner, std::max(kLine, kElementsPerTask / count),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = 0; i < count; ++i) {
                    if (slices[i] < 0) continue;
                    T* const row = to + slices[i] * inner;
                    const T* const x = updates.scalar ? updates.data : updates.data + i * inner;
                    for (int64_t k = begin; k < end; ++k) {
                      const T value = updates.scalar ? *x : x[k];
                      row[k] = updates.subtract ? functor::WrapSub(row[k], value)
                                                : functor::WrapAdd(row[k], value);
                    }
                  }
                });
}

template <typename T>
class SegmentSumKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& data = context.input(0);
    const Tensor& ids = context.input(1);
    Tensor& out = context.output(0);
    MR_ASSIGN_OR_RETURN(const int64_t segments, HostInt(context.input(2), "num_segments"));
    bool fits = ids.shape().rank() <= data.shape().rank();
    int64_t inner = 1;
    for (int i = 0; fits && i < data.shape().rank(); ++i) {
      if (i < ids.shape().rank()) {
        fits = data.shape()[i] == ids.shape()[i];
      } else {
        inner *= data.shape()[i];
      }
    }
    if (!fits || out.num_elements() != segments * inner) {
      return InvalidArgument("data ", data.shape().ToString(), " and segment_ids ",
                             ids.shape().ToString(), " do not give ", segments,
                             " segments of shape ", out.shape().ToString());
    }
    std::vector<int64_t> slices(ids.num_elements());
    for (int64_t i = 0; i < ids.num_elements(); ++i) {
      slices[i] = IndexAt(ids, i);
      if (slices[i] >= segments) {
        return InvalidArgument("segment id ", slices[i], " (element ", i,
                               ") is not below num_segments, ", segments);
      }
    }
    T* const to = out.mutable_data<T>();
    std::fill_n(to, out.num_elements(), T(0));
    AddSlices<T>(context, slices, inner, {data.data<T>()}, to);
    return absl::OkStatus();
  }
};

template <typename T>
class ScatterNdKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& updates = context.input(1);
    Tensor& out = context.output(0);
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> slices,
                        SlicesNamedBy(context.input(0), out.shape(), updates.shape(), "updates"));
    T* const to = out.mutable_data<T>();
    std::fill_n(to, out.num_elements(), T(0));
    const auto count = static_cast<int64_t>(slices.size());
    if (count == 0) return absl::OkStatus();
    const int64_t inner = updates.num_elements() / count;
    AddSlices<T>(context, slices, inner, {updates.data<T>()}, to);
    return absl::OkStatus();
  }
};

template <typename T, bool subtract>
class ResourceScatterKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(Variable * variable, VariableInput(context, 0));
    const Tensor& indices = context.input(1);
    const Tensor& updates = context.input(2);
    return variable->Update(
        context.device().allocator(), context.step().step_id, [&](Tensor& value) -> Status {
          const Shape& shape = value.shape();
          if (value.dtype() != DTypeOf<T>::value || shape.rank() == 0) {
            return InvalidArgument("variable '", variable->name(), "' is ", Name(value.dtype()),
                                   shape.ToString(), ": it has no rows of ",
                                   Name(DTypeOf<T>::value));
          }
          int64_t inner = 1;
          for (int i = 1; i < shape.rank(); ++i) inner *= shape[i];
          const bool scalar = updates.shape().rank() == 0;
          if (!scalar && updates.num_elements() != indices.num_elements() * inner) {
            return InvalidArgument("updates has shape ", updates.shape().ToString(),
                                   ", but indices ", indices.shape().ToString(), " of variable '",
                                   variable->name(), "' ", shape.ToString(), " ask for ",
                                   indices.num_elements() * inner, " elements");
          }
          MR_RETURN_IF_ERROR(CheckIndices(indices, shape[0]));
          std::vector<int64_t> rows(indices.num_elements());
          for (int64_t i = 0; i < indices.num_elements(); ++i) rows[i] = IndexAt(indices, i);
          AddSlices<T>(context, rows, inner, {updates.data<T>(), scalar, subtract},
                       value.mutable_data<T>());
          return absl::OkStatus();
        });
  }
};

template <bool subtract, typename... Ts>
void AddResourceScatter(KernelRegistry& registry, absl::string_view op) {
  (registry.Add(KernelDef{std::string(op), "CPU", {{"dtype", {DTypeOf<Ts>::value}}}},
                MakeKernel<ResourceScatterKernel<Ts, subtract>>),
   ...);
}

}  // namespace

void RegisterScatterKernels(KernelRegistry& registry) {
  AddTyped<SegmentSumKernel, float, double, int32_t, int64_t>(registry, "UnsortedSegmentSum",
                                                              "CPU");
  AddTyped<ScatterNdKernel, float, double, int32_t, int64_t>(registry, "ScatterNd", "CPU");
  AddResourceScatter<false, float, double, int32_t, int64_t>(registry, "ResourceScatterAdd");
  AddResourceScatter<true, float, double, int32_t, int64_t>(registry, "ResourceScatterSub");
}

}  // namespace millrace
