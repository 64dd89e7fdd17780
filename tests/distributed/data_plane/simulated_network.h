#ifndef TESTS_DISTRIBUTED_DATA_PLANE_SIMULATED_NETWORK_H_
#define TESTS_DISTRIBUTED_DATA_PLANE_SIMULATED_NETWORK_H_

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/base/scheduler.h"
#include "distributed/frame_stream.h"

namespace millrace {

// Streams in memory, driven by a Simulation. Messages take a random time, come in random pieces,
// and can be held up or lost with their stream. A writer may write again when its message was
// taken.
class SimulatedNetwork final : public FrameStreamFactory {
 public:
  SimulatedNetwork(const Environment& environment, uint64_t seed);
  ~SimulatedNetwork() override;

  // Connections to `address` go to `acceptor` from now on; null: are refused.
  void Listen(const std::string& address, FrameStreamAcceptor* acceptor);

  std::shared_ptr<FrameStream> Connect(const std::string& address,
                                       std::shared_ptr<FrameStream::Handler> handler) override;

  // Each message takes up to so long.
  void set_max_delay(absl::Duration delay) { max_delay_ = delay; }
  // Messages that go to whom the streams were opened to (or back) are held up while set.
  void StallForward(bool stalled);
  void StallBack(bool stalled);
  // All streams break, with what is on its way; at once, or after so many more messages.
  void CutAll();
  // All streams break, but only the openers notice; the others do when told to.
  void CutForOpeners();
  void TellAcceptors();
  void CutAllAfter(int messages) { messages_to_cut_ = messages; }

  // Sees each message before it is delivered.
  void set_observer(std::function<void(bool forward, const std::string& bytes)> observer) {
    observer_ = std::move(observer);
  }
  int64_t connects() const { return connects_; }

 private:
  class Pipe;
  class End;

  absl::Duration Delay();
  void Resume();

  const Environment environment_;
  std::mt19937_64 random_;
  std::map<std::string, FrameStreamAcceptor*> listeners_;
  std::vector<std::shared_ptr<Pipe>> pipes_;
  std::vector<std::shared_ptr<Pipe>> half_open_;
  absl::Duration max_delay_ = absl::Microseconds(200);
  bool stalled_[2] = {false, false};
  int messages_to_cut_ = -1;
  int64_t connects_ = 0;
  std::function<void(bool, const std::string&)> observer_;
};

}  // namespace millrace

#endif  // TESTS_DISTRIBUTED_DATA_PLANE_SIMULATED_NETWORK_H_
