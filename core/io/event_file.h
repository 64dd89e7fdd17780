#ifndef CORE_IO_EVENT_FILE_H_
#define CORE_IO_EVENT_FILE_H_

#include <memory>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/scheduler.h"
#include "core/framework/event.pb.h"

namespace millrace {

// TFRecord framing: u64 length, masked CRC-32C of it, the bytes, their masked CRC-32C.
void AppendRecord(absl::string_view record, std::string* file);
// DataLoss, naming `place` and the offset.
StatusOr<std::vector<std::string>> ParseRecords(absl::string_view bytes, absl::string_view place);

// Writes a TensorBoard event file: "events.out.tfevents.<seconds>.<host>". Thread-safe.
class EventWriter {
 public:
  static StatusOr<std::unique_ptr<EventWriter>> Create(FileSystem& files, const Clock& clock,
                                                       const std::string& folder);
  virtual ~EventWriter() = default;
  virtual Status AddScalar(absl::string_view tag, double value, int64_t step) = 0;
  // A serialised GraphDef, for the Graph page.
  virtual Status AddGraph(absl::string_view graph_def) = 0;
  // RunMetadata of one step, for the Graph page's compute times.
  virtual Status AddRunMetadata(absl::string_view tag, absl::string_view run_metadata,
                                int64_t step) = 0;
  virtual Status Flush() = 0;
  virtual const std::string& path() const = 0;
};

StatusOr<std::vector<Event>> ReadEvents(FileSystem& files, const std::string& path);

}  // namespace millrace

#endif  // CORE_IO_EVENT_FILE_H_
