#ifndef TOOLS_BENCH_SAMPLES_H_
#define TOOLS_BENCH_SAMPLES_H_

#include <vector>

namespace millrace::bench {

// What was measured of one thing, several times; smaller is better.
struct Summary {
  double median = 0;
  double p10 = 0;  // the value that a tenth of the samples do not exceed
  int count = 0;
};
// Of no samples: zeros. Each sample is divided by `per` (nodes of a step, bytes, ...).
Summary Summarize(std::vector<double> samples, double per = 1);

}  // namespace millrace::bench

#endif  // TOOLS_BENCH_SAMPLES_H_
