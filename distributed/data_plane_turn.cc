#include <utility>

#include "distributed/data_plane_core.h"

namespace millrace {

DataPlaneCore::Turn::Turn(DataPlaneCore& core) : core_(core) { core_.mutex_.Lock(); }

// What the peer waits for goes first, as sinks may compute for long.
DataPlaneCore::Turn::~Turn() {
  core_.mutex_.Unlock();
  for (auto& [stream, message] : writes_) stream->Write(std::move(message));
  for (const auto& [link, generation] : connects_) core_.Connect(link, generation);
  for (const auto& [stream, reason] : closes_) stream->Close(reason);
  for (Delivery& delivery : deliveries_) {
    delivery.gate->Deliver(delivery.key, std::move(delivery.tensor), delivery.wire_bytes);
  }
  for (const auto& [gate, reason] : downs_) gate->TellDown(reason);
  for (const std::shared_ptr<SinkGate>& gate : gates_) gate->Close();
}

void DataPlaneCore::Turn::Deliver(std::shared_ptr<SinkGate> gate, const MessageKey& key,
                                  Tensor tensor, int64_t wire_bytes) {
  deliveries_.push_back({std::move(gate), key, std::move(tensor), wire_bytes});
}

void DataPlaneCore::Turn::TellDown(std::shared_ptr<SinkGate> gate, const Status& reason) {
  downs_.emplace_back(std::move(gate), reason);
}

void DataPlaneCore::Turn::CloseGate(std::shared_ptr<SinkGate> gate) {
  gates_.push_back(std::move(gate));
}

void DataPlaneCore::Turn::Write(std::shared_ptr<FrameStream> stream, Message message) {
  writes_.emplace_back(std::move(stream), std::move(message));
}

void DataPlaneCore::Turn::Close(std::shared_ptr<FrameStream> stream, const Status& reason) {
  closes_.emplace_back(std::move(stream), reason);
}

void DataPlaneCore::Turn::Connect(LinkId link, uint64_t generation) {
  connects_.emplace_back(link, generation);
}

}  // namespace millrace
