#ifndef CORE_FRAMEWORK_EXCHANGE_H_
#define CORE_FRAMEWORK_EXCHANGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/types/span.h"
#include "core/base/cancellation.h"
#include "core/framework/tensor.h"

// How kernels reach other devices: Send, Recv, collectives, If and While are ordinary kernels over
// these interfaces, so kernels know neither executor nor transport.
namespace millrace {

// The dense number of one (tensor, destination device) pair of a placed program, agreed when the
// program is registered.
using ChannelId = uint32_t;

// Passes tensors from Send to Recv within one step. Thread-safe.
class Rendezvous {
 public:
  using RecvDone = absl::AnyInvocable<void(StatusOr<Tensor>)>;
  virtual ~Rendezvous() = default;
  // Never blocks. Once a step and channel. After an abort: the reason.
  virtual Status Send(ChannelId channel, Tensor tensor) = 0;
  // `done` runs once, perhaps in this call, with the tensor or the reason of the abort. Once a step
  // and channel; before or after Send.
  virtual void RecvAsync(ChannelId channel, RecvDone done) = 0;
  // Ends every pending and later call with `reason`. The first abort wins.
  virtual void Abort(const Status& reason) = 0;
};

enum class CollectiveKind {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kAllToAll,
  kBarrier
};

struct CollectiveCall {
  CollectiveKind kind;
  uint32_t instance = 0;  // fixed at compile time, the same on all ranks
  int root = 0;           // of a broadcast
};

// The ranks of one device group. Thread-safe.
class CollectiveGroup {
 public:
  virtual ~CollectiveGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // `done` runs once with the result or an error that names the rank at fault.
  virtual void Run(const CollectiveCall& call, Tensor input, Rendezvous::RecvDone done) = 0;
};

// Runs a function body of the program on this device.
class SubgraphRunner {
 public:
  using Done = absl::AnyInvocable<void(Status, std::vector<Tensor> outputs)>;
  virtual ~SubgraphRunner() = default;
  virtual void Run(absl::string_view function, std::vector<Tensor> inputs, Done done) = 0;
};

}  // namespace millrace

#endif  // CORE_FRAMEWORK_EXCHANGE_H_
