#include "tests/fuzz/require.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace millrace::testing {

void Require(bool holds, absl::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", std::string(what).c_str());
  std::abort();
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.byte_size() == b.byte_size() &&
         (a.byte_size() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.byte_size()) == 0);
}

}  // namespace millrace::testing
