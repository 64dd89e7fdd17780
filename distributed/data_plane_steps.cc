#include "distributed/data_plane_steps.h"

#include <algorithm>

namespace millrace {
namespace {

constexpr size_t kMaxEndedAboveFloor = 1024;
constexpr size_t kMaxEndedSessions = 4096;
constexpr size_t kMaxLost = 1024;

}  // namespace

bool StepRecord::Uses(LinkId link) const {
  return std::find(links.begin(), links.end(), link) != links.end();
}

bool StepTable::Ended(const StepId& id) const {
  if (ended_sessions_.contains(id.session)) return true;
  const auto found = sessions_.find(id.session);
  if (found == sessions_.end()) return false;
  const Session& session = found->second;
  if (session.steps.contains(id.step)) return false;
  return id.step < session.floor || session.ended.contains(id.step);
}

StepRecord* StepTable::Find(const StepId& id) {
  const auto session = sessions_.find(id.session);
  if (session == sessions_.end()) return nullptr;
  const auto step = session->second.steps.find(id.step);
  return step == session->second.steps.end() ? nullptr : step->second.get();
}

StepRecord& StepTable::FindOrAdd(const StepId& id, int64_t now_nanos) {
  std::unique_ptr<StepRecord>& record = sessions_[id.session].steps[id.step];
  if (record == nullptr) {
    record = std::make_unique<StepRecord>();
    record->first_seen_nanos = now_nanos;
  }
  return *record;
}

StatusOr<StepRecord*> StepTable::Begin(const StepId& id, TensorSink* sink,
                                       std::vector<LinkId> links) {
  if (Ended(id)) {
    return FailedPrecondition("step ", id.step, " of session ", id.session, " has ended");
  }
  StepRecord& record = FindOrAdd(id, 0);
  if (record.begun()) {
    return AlreadyExists("step ", id.step, " of session ", id.session, " has begun before");
  }
  record.gate = std::make_shared<SinkGate>(sink);
  record.ordinal = ++last_ordinal_;
  record.links = std::move(links);
  return &record;
}

std::unique_ptr<StepRecord> StepTable::End(const StepId& id) {
  if (ended_sessions_.contains(id.session)) return nullptr;
  Session& session = sessions_[id.session];
  std::unique_ptr<StepRecord> record;
  if (const auto found = session.steps.find(id.step); found != session.steps.end()) {
    record = std::move(found->second);
    session.steps.erase(found);
  }
  if (id.step < session.floor) return record;
  session.ended.insert(id.step);
  if (session.ended.size() > kMaxEndedAboveFloor) session.floor = *session.ended.begin();
  while (!session.ended.empty() && *session.ended.begin() == session.floor) {
    session.ended.erase(session.ended.begin());
    ++session.floor;
  }
  return record;
}

std::vector<std::pair<StepId, std::unique_ptr<StepRecord>>> StepTable::EndSession(
    uint64_t session) {
  std::vector<std::pair<StepId, std::unique_ptr<StepRecord>>> records;
  if (const auto found = sessions_.find(session); found != sessions_.end()) {
    for (auto& [step, record] : found->second.steps) {
      records.emplace_back(StepId(session, step), std::move(record));
    }
    sessions_.erase(found);
  }
  if (ended_sessions_.insert(session).second) {
    ended_order_.push_back(session);
    if (ended_order_.size() > kMaxEndedSessions) {
      ended_sessions_.erase(ended_order_.front());
      ended_order_.pop_front();
    }
  }
  return records;
}

void StepTable::MarkLost(const StepId& id, const Status& reason) {
  StepRecord* record = Find(id);
  if (record == nullptr || record->begun() || !record->lost.ok()) return;
  record->lost = reason;
  lost_.push_back(id);
  if (lost_.size() <= kMaxLost) return;
  const StepId oldest = lost_.front();
  lost_.pop_front();
  record = Find(oldest);
  if (record != nullptr && !record->begun()) Forget(oldest);
}

void StepTable::ForgetIfIdle(const StepId& id) {
  const StepRecord* record = Find(id);
  if (record != nullptr && record->idle()) Forget(id);
}

void StepTable::Forget(const StepId& id) {
  const auto session = sessions_.find(id.session);
  Session& state = session->second;
  state.steps.erase(id.step);
  // A session of which nothing has ever begun here may be a peer's invention.
  if (state.steps.empty() && state.ended.empty() && state.floor == 0) sessions_.erase(session);
}

void StepTable::ForEach(absl::FunctionRef<void(const StepId&, StepRecord&)> visit) {
  for (auto& [session, state] : sessions_) {
    for (auto& [step, record] : state.steps) visit({session, step}, *record);
  }
}

void StepTable::ForEach(absl::FunctionRef<void(const StepId&, const StepRecord&)> visit) const {
  for (const auto& [session, state] : sessions_) {
    for (const auto& [step, record] : state.steps) visit({session, step}, *record);
  }
}

int64_t StepTable::size() const {
  int64_t size = 0;
  for (const auto& [session, state] : sessions_) size += static_cast<int64_t>(state.steps.size());
  return size;
}

}  // namespace millrace
