#ifndef DISTRIBUTED_GRPC_HANDOVER_H_
#define DISTRIBUTED_GRPC_HANDOVER_H_

#include <atomic>

namespace millrace {

// States the order that gRPC guarantees: what a thread did before it gave an object to gRPC happens
// before the reaction, perhaps in another thread, in which gRPC gives it back. gRPC's own locks see
// to that, but ThreadSanitizer does not know them, as the library is not instrumented: without this
// it reports each of our objects that went through gRPC.
class Handover {
 public:
  Handover() = default;
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  // Before the call that gives it.
  void Give() { turns_.fetch_add(1, std::memory_order_acq_rel); }
  // First thing in the reaction.
  void Take() const { turns_.load(std::memory_order_acquire); }

 private:
  std::atomic<unsigned> turns_{0};
};

}  // namespace millrace

#endif  // DISTRIBUTED_GRPC_HANDOVER_H_
