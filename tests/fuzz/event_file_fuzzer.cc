#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/io/event_file.h"
#include "tests/fuzz/require.h"

namespace millrace::testing {
namespace {

// Any bytes are read or refused as lost data; the records that are read make up the whole file.
void RunOne(absl::string_view bytes) {
  const StatusOr<std::vector<std::string>> records = ParseRecords(bytes, "input");
  if (records.ok()) {
    std::string again;
    for (const std::string& record : *records) AppendRecord(record, &again);
    Require(again == bytes, "the records are the whole file");
  } else {
    Require(absl::IsDataLoss(records.status()), "a refusal is DataLoss");
  }
  // As one record, so that there is more to read than a checksum that does not fit.
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  std::string file;
  AppendRecord(bytes, &file);
  Require(WriteFile(*files, "events", file).ok(), "the file is written");
  const StatusOr<std::vector<Event>> events = ReadEvents(*files, "events");
  Require(events.ok() ? events->size() == 1 : absl::IsDataLoss(events.status()),
          "a record is an event or DataLoss");
}

}  // namespace
}  // namespace millrace::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::testing::RunOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
