#include <cmath>
#include <numbers>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/host_values.h"
#include "kernels/philox.h"

// Draws keyed by (seed, stream, step) with the element's index as the counter: the number of
// threads, and where a tensor is cut, do not matter.
namespace millrace {
namespace {

constexpr int64_t kGrain = 4096;

// Two independent normal numbers (Box & Muller 1958). 1-u is in (0, 1], so the logarithm is finite.
template <typename T>
struct NormalPair {
  NormalPair(T u, T v) {
    const T radius = std::sqrt(T(-2) * std::log(T(1) - u));
    const T angle = T(2) * std::numbers::pi_v<T> * v;
    first = radius * std::cos(angle);
    second = radius * std::sin(angle);
  }
  T first, second;
};

// The numbers of one position: 4 floats or 2 doubles.
template <typename T>
struct Draws;
template <>
struct Draws<float> {
  static constexpr int kCount = 4;
  static void Uniform(const Philox::Counter& words, float (&out)[kCount]) {
    for (int i = 0; i < kCount; ++i) out[i] = UnitFloat(words[i]);
  }
};
template <>
struct Draws<double> {
  static constexpr int kCount = 2;
  static void Uniform(const Philox::Counter& words, double (&out)[kCount]) {
    for (int i = 0; i < kCount; ++i) out[i] = UnitDouble(words[2 * i], words[2 * i + 1]);
  }
};

template <typename T>
void Normal(const Philox::Counter& words, T (&out)[Draws<T>::kCount]) {
  Draws<T>::Uniform(words, out);
  for (int i = 0; i < Draws<T>::kCount; i += 2) {
    const NormalPair<T> pair(out[i], out[i + 1]);
    out[i] = pair.first;
    out[i + 1] = pair.second;
  }
}

// Each fills the elements [begin, end) of the output.
template <typename T>
struct UniformDistribution {
  static constexpr bool kByElement = false;
  static void Position(const PhiloxStream& stream, uint64_t position, T (&out)[Draws<T>::kCount]) {
    Draws<T>::Uniform(stream.At(position), out);
  }
};
template <typename T>
struct NormalDistribution {
  static constexpr bool kByElement = false;
  static void Position(const PhiloxStream& stream, uint64_t position, T (&out)[Draws<T>::kCount]) {
    Normal(stream.At(position), out);
  }
};
template <typename T>
struct TruncatedDistribution {
  static constexpr bool kByElement = true;
  // The first of this element's draws that is within two deviations.
  static T Element(const PhiloxStream& stream, uint64_t element) {
    constexpr uint32_t kMostAttempts = 1000;  // one in 22 fails: never reached
    for (uint32_t attempt = 0; attempt < kMostAttempts; ++attempt) {
      T draws[Draws<T>::kCount];
      Normal(stream.At(element, attempt), draws);
      for (T draw : draws) {
        if (std::abs(draw) <= T(2)) return draw;
      }
    }
    return T(0);
  }
};

template <typename T, template <typename> class Distribution>
void Fill(const PhiloxStream& stream, int64_t begin, int64_t end, T* out) {
  using D = Distribution<T>;
  if constexpr (D::kByElement) {
    for (int64_t i = begin; i < end; ++i) out[i] = D::Element(stream, i);
  } else {
    constexpr int64_t kCount = Draws<T>::kCount;
    for (int64_t i = begin; i < end;) {
      T draws[kCount];
      D::Position(stream, i / kCount, draws);
      for (int64_t j = i % kCount; j < kCount && i < end; ++j, ++i) out[i] = draws[j];
    }
  }
}

// Fills output 0.
template <typename T, template <typename> class Distribution>
void Draw(const PhiloxStream& stream, KernelContext& context) {
  T* out = context.output(0).mutable_data<T>();
  ParallelRange(context, context.output(0).num_elements(), kGrain, [&](int64_t begin, int64_t end) {
    Fill<T, Distribution>(stream, begin, end, out);
  });
}

template <typename T, template <typename> class Distribution>
class RandomKernel final : public Kernel {
 public:
  RandomKernel(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& c) {
    const int64_t seed = c.attrs.GetOr<int64_t>("seed", 0);
    const int64_t seed2 = c.attrs.GetOr<int64_t>("seed2", 0);
    const int64_t stream = c.attrs.GetOr<int64_t>("_millrace_stream", seed2);
    return std::unique_ptr<Kernel>(
        new RandomKernel(static_cast<uint64_t>(seed), static_cast<uint64_t>(stream)));
  }

  Status Compute(KernelContext& context) const override {
    Draw<T, Distribution>(PhiloxStream(seed_, stream_, context.step().random_counter), context);
    return absl::OkStatus();
  }

 private:
  const uint64_t seed_;
  const uint64_t stream_;
};

// Of the stream and the place in it that input 1 holds.
template <typename T, template <typename> class Distribution>
class StatelessRandomKernel final : public Kernel {
 public:
  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction&) {
    return std::unique_ptr<Kernel>(new StatelessRandomKernel);
  }

  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(const IntVector seed, HostInts(context.input(1), "seed"));
    if (seed.size() != 2) return InvalidArgument("seed has ", seed.size(), " elements, not 2");
    Draw<T, Distribution>(
        PhiloxStream(static_cast<uint64_t>(seed[0]), 0, static_cast<uint64_t>(seed[1])), context);
    return absl::OkStatus();
  }
};

// `op` draws by the step, `stateless` by its inputs.
template <template <typename> class Distribution, typename... Ts>
void AddRandom(KernelRegistry& registry, absl::string_view op, absl::string_view stateless) {
  (registry.Add(KernelDef{std::string(op), "CPU", {{"dtype", {DTypeOf<Ts>::value}}}},
                RandomKernel<Ts, Distribution>::Create),
   ...);
  (registry.Add(KernelDef{std::string(stateless), "CPU", {{"dtype", {DTypeOf<Ts>::value}}}},
                StatelessRandomKernel<Ts, Distribution>::Create),
   ...);
}

}  // namespace

void RegisterRandomKernels(KernelRegistry& registry) {
  AddRandom<UniformDistribution, float, double>(registry, "RandomUniform",
                                                "StatelessRandomUniform");
  AddRandom<NormalDistribution, float, double>(registry, "RandomStandardNormal",
                                               "StatelessRandomNormal");
  AddRandom<TruncatedDistribution, float, double>(registry, "TruncatedNormal",
                                                  "StatelessTruncatedNormal");
}

}  // namespace millrace
