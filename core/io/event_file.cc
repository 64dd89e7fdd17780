#include "core/io/event_file.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/crc32c.h"
#include "core/base/mutex.h"
#include "core/base/process.h"

namespace millrace {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kCrcBytes = 4;

void AppendLittleEndian(uint64_t value, size_t bytes, std::string* out) {
  for (size_t i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t ReadLittleEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return value;
}

class EventFile final : public EventWriter {
 public:
  EventFile(std::unique_ptr<WritableFile> file, const Clock& clock, std::string path)
      : file_(std::move(file)), clock_(clock), path_(std::move(path)) {}

  Status AddScalar(absl::string_view tag, double value, int64_t step) override {
    Event event;
    event.set_step(step);
    Summary::Value* entry = event.mutable_summary()->add_value();
    entry->set_tag(std::string(tag));
    entry->set_simple_value(static_cast<float>(value));
    return Append(event);
  }
  Status AddGraph(absl::string_view graph_def) override {
    Event event;
    event.set_graph_def(std::string(graph_def));
    return Append(event);
  }
  Status AddRunMetadata(absl::string_view tag, absl::string_view run_metadata,
                        int64_t step) override {
    Event event;
    event.set_step(step);
    event.mutable_tagged_run_metadata()->set_tag(std::string(tag));
    event.mutable_tagged_run_metadata()->set_run_metadata(std::string(run_metadata));
    return Append(event);
  }
  Status Flush() override {
    MutexLock lock(mutex_);
    return file_->Flush();
  }
  const std::string& path() const override { return path_; }

  // The first event of a file says its version.
  Status AppendVersion() {
    Event event;
    event.set_file_version("brain.Event:2");
    return Append(event);
  }

 private:
  Status Append(Event& event) {
    event.set_wall_time(static_cast<double>(clock_.WallMicros()) / 1e6);
    std::string record;
    AppendRecord(event.SerializeAsString(), &record);
    MutexLock lock(mutex_);
    return file_->Append(record);
  }

  Mutex mutex_;
  std::unique_ptr<WritableFile> file_ ABSL_GUARDED_BY(mutex_);
  const Clock& clock_;
  const std::string path_;
};

}  // namespace

void AppendRecord(absl::string_view record, std::string* file) {
  std::string length;
  AppendLittleEndian(record.size(), kLengthBytes, &length);
  *file += length;
  AppendLittleEndian(MaskedCrc32c(length), kCrcBytes, file);
  file->append(record.data(), record.size());
  AppendLittleEndian(MaskedCrc32c(record), kCrcBytes, file);
}

StatusOr<std::vector<std::string>> ParseRecords(absl::string_view bytes, absl::string_view place) {
  std::vector<std::string> records;
  size_t at = 0;
  while (at < bytes.size()) {
    if (bytes.size() - at < kLengthBytes + kCrcBytes) {
      return DataLoss(place, ": truncated record header at byte ", at);
    }
    const absl::string_view length = bytes.substr(at, kLengthBytes);
    if (ReadLittleEndian(bytes.substr(at + kLengthBytes, kCrcBytes)) != MaskedCrc32c(length)) {
      return DataLoss(place, ": damaged record length at byte ", at);
    }
    const uint64_t size = ReadLittleEndian(length);
    const size_t start = at + kLengthBytes + kCrcBytes;
    if (size > bytes.size() - start || bytes.size() - start - size < kCrcBytes) {
      return DataLoss(place, ": truncated record of ", size, " bytes at byte ", at);
    }
    const absl::string_view record = bytes.substr(start, size);
    if (ReadLittleEndian(bytes.substr(start + size, kCrcBytes)) != MaskedCrc32c(record)) {
      return DataLoss(place, ": damaged record at byte ", at);
    }
    records.emplace_back(record.data(), record.size());
    at = start + size + kCrcBytes;
  }
  return records;
}

StatusOr<std::unique_ptr<EventWriter>> EventWriter::Create(FileSystem& files, const Clock& clock,
                                                           const std::string& folder) {
  MR_RETURN_IF_ERROR(files.CreateFolder(folder));
  const std::string path =
      JoinPath(folder, absl::StrFormat("events.out.tfevents.%010d.millrace.%d",
                                       clock.WallMicros() / 1'000'000, CurrentProcessId()));
  MR_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.OpenForAppend(path));
  auto writer = std::make_unique<EventFile>(std::move(file), clock, path);
  MR_RETURN_IF_ERROR(writer->AppendVersion());
  return std::unique_ptr<EventWriter>(std::move(writer));
}

StatusOr<std::vector<Event>> ReadEvents(FileSystem& files, const std::string& path) {
  MR_ASSIGN_OR_RETURN(std::string bytes, ReadFile(files, path));
  MR_ASSIGN_OR_RETURN(std::vector<std::string> records, ParseRecords(bytes, path));
  std::vector<Event> events(records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    if (!events[i].ParseFromString(records[i])) {
      return DataLoss(path, ": record ", i, " is no event");
    }
  }
  return events;
}

}  // namespace millrace
