#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "core/base/crc32c.h"
#include "core/io/event_file.h"
#include "core/runtime/byte_text.h"
#include "tools/millrace/inspect.h"
#include "tools/millrace/table.h"

namespace millrace {
namespace {

struct Tag {
  int64_t values = 0;
  int64_t last_step = 0;
  std::string last;
};

std::string ValueText(const Summary::Value& value) {
  switch (value.value_case()) {
    case Summary::Value::kSimpleValue:
      return absl::StrFormat("%.6g", value.simple_value());
    case Summary::Value::kHisto:
      return absl::StrFormat("histogram of %g values from %.6g to %.6g", value.histo().num(),
                             value.histo().min(), value.histo().max());
    case Summary::Value::kImage:
      return StrCat("image of ", value.image().width(), "x", value.image().height());
    default:
      return "(not a scalar)";
  }
}

}  // namespace

bool LooksLikeEvents(absl::string_view bytes) {
  constexpr size_t kLength = 8;
  constexpr size_t kHeader = kLength + 4;
  if (bytes.size() < kHeader) return false;
  uint32_t crc = 0;
  for (size_t i = kHeader; i-- > kLength;) crc = crc << 8 | static_cast<uint8_t>(bytes[i]);
  return crc == MaskedCrc32c(bytes.substr(0, kLength));
}

StatusOr<std::string> DescribeEvents(FileSystem& files, const std::string& path) {
  MR_ASSIGN_OR_RETURN(const std::vector<Event> events, ReadEvents(files, path));
  std::map<std::string, Tag> tags;
  std::string others;
  double first_time = 0;
  double last_time = 0;
  for (const Event& event : events) {
    if (first_time == 0) first_time = event.wall_time();
    last_time = std::max(last_time, event.wall_time());
    if (event.what_case() == Event::kGraphDef) {
      absl::StrAppend(&others, "  a graph of ",
                      BytesText(static_cast<int64_t>(event.graph_def().size())), "\n");
    } else if (event.what_case() == Event::kTaggedRunMetadata) {
      absl::StrAppend(&others, "  statistics '", event.tagged_run_metadata().tag(), "' of step ",
                      event.step(), "\n");
    }
    for (const Summary::Value& value : event.summary().value()) {
      Tag& tag = tags[value.tag()];
      ++tag.values;
      tag.last_step = event.step();
      tag.last = ValueText(value);
    }
  }
  Table table;
  table.Add({"tag", "values", "last step", "last value"});
  for (const auto& [name, tag] : tags) {
    table.Add({name, StrCat(tag.values), StrCat(tag.last_step), tag.last});
  }
  return StrCat("event file of ", events.size(), " records, written from ",
                absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixMicros(first_time * 1e6),
                                 absl::LocalTimeZone()),
                " on, over ", absl::StrFormat("%.1f s", last_time - first_time), "\n\n",
                table.ToString(), others);
}

}  // namespace millrace
