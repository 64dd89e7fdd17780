#ifndef KERNELS_PHILOX_H_
#define KERNELS_PHILOX_H_

#include <array>
#include <cstdint>

namespace millrace {

// Philox4x32-10 (Salmon et al., SC'11): a counter-based generator. The same counter and key give
// the same four words everywhere, so every element of a tensor is drawn on its own, whatever thread
// or shard draws it. constexpr, as CUDA kernels call it, too.
struct Philox {
  using Counter = std::array<uint32_t, 4>;
  using Key = std::array<uint32_t, 2>;

  static constexpr Counter Draw(Counter c, Key k) {
    for (int round = 0; round < 10; ++round) {
      const uint64_t product0 = uint64_t{0xD2511F53} * c[0];
      const uint64_t product1 = uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<uint32_t>(product1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(product1),
           static_cast<uint32_t>(product0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(product0)};
      k[0] += 0x9E3779B9;
      k[1] += 0xBB67AE85;
    }
    return c;
  }
};

// One op's random numbers of one step: key from its seed and the id of its stream, counter from the
// position and the step.
class PhiloxStream {
 public:
  constexpr PhiloxStream(uint64_t seed, uint64_t stream, uint64_t step) : step_(step) {
    const uint64_t key = Mix(seed + Mix(stream));
    key_ = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  }

  // The four words at `position` (below 2^48); `attempt` counts draws that were rejected there.
  constexpr Philox::Counter At(uint64_t position, uint32_t attempt = 0) const {
    return Philox::Draw(
        {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32) | (attempt << 16),
         static_cast<uint32_t>(step_), static_cast<uint32_t>(step_ >> 32)},
        key_);
  }

 private:
  // SplitMix64's finaliser: neighbouring seeds give unrelated keys.
  static constexpr uint64_t Mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }

  uint64_t step_;
  Philox::Key key_{};
};

// In [0, 1), all multiples of 2^-24 equally likely.
constexpr float UnitFloat(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
// In [0, 1), all multiples of 2^-53 equally likely.
constexpr double UnitDouble(uint32_t high, uint32_t low) {
  return static_cast<double>(((uint64_t{high} << 32) | low) >> 11) * 0x1p-53;
}

}  // namespace millrace

#endif  // KERNELS_PHILOX_H_
