#ifndef DISTRIBUTED_REMOTE_SESSION_H_
#define DISTRIBUTED_REMOTE_SESSION_H_

#include <memory>
#include <string>

#include "core/runtime/session.h"
#include "distributed/master_interface.h"

namespace millrace {

struct RemoteSessionOptions {
  std::string name;         // of the master, for messages: "grpc://127.0.0.1:7000"
  Environment environment;  // entropy for request ids, scheduler for callbacks
  SessionSettings settings;
  absl::Duration connect_timeout = absl::Seconds(10);
};

// The Session interface over a master: the client's side. `master` is shared with nobody else's
// lifetime: it is kept. Re-sends a step with its request id when its outcome is not known.
StatusOr<std::unique_ptr<Session>> NewRemoteSession(const Graph& graph,
                                                    std::shared_ptr<MasterInterface> master,
                                                    RemoteSessionOptions options);

}  // namespace millrace

#endif  // DISTRIBUTED_REMOTE_SESSION_H_
