#ifndef TOOLS_BENCH_TCP_H_
#define TOOLS_BENCH_TCP_H_

#include <vector>

#include "core/base/scheduler.h"
#include "core/base/status.h"

namespace millrace::bench {

// Ports of the loopback interface that were free a moment ago.
StatusOr<std::vector<int>> FreePorts(int count);

// What a plain TCP connection over loopback takes: seconds from a one-byte request until `bytes`
// bytes have been read into one buffer, `rounds` times. The sender is a task of `environment`'s
// scheduler; the congestion control is the system's, as for all other connections.
StatusOr<std::vector<double>> TimeTcp(int64_t bytes, int rounds, const Environment& environment);

}  // namespace millrace::bench

#endif  // TOOLS_BENCH_TCP_H_
