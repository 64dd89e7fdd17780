#include "tools/bench/samples.h"

#include <algorithm>

namespace millrace::bench {

Summary Summarize(std::vector<double> samples, double per) {
  Summary summary;
  if (samples.empty()) return summary;
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  summary.median = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  summary.p10 = samples[(n - 1) / 10];
  summary.median /= per;
  summary.p10 /= per;
  summary.count = static_cast<int>(n);
  return summary;
}

}  // namespace millrace::bench
