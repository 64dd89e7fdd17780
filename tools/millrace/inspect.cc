// millrace inspect: what is in a file? It is told by its content, not by its name.
#include "tools/millrace/inspect.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/graph/graph_def.h"
#include "core/io/idx.h"
#include "core/io/safetensors.h"
#include "core/runtime/planner.h"
#include "nlohmann/json.hpp"
#include "python_free_api/runtime.h"
#include "tools/millrace/command.h"
#include "tools/millrace/table.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 64;  // far above what our files have

constexpr absl::string_view kIndexSuffix = ".index";

bool LooksLikeIdx(absl::string_view bytes) {
  if (bytes.size() < 4) return false;
  if (absl::StartsWith(bytes, "\x1f\x8b")) return true;  // gzip: nothing else here is packed
  return bytes[0] == 0 && bytes[1] == 0 && bytes[2] >= 0x08 && bytes[2] <= 0x0e && bytes[3] != 0;
}

// The header is a JSON object behind its length.
bool LooksLikeSafetensors(absl::string_view bytes) {
  constexpr size_t kLength = 8;
  if (bytes.size() <= kLength || bytes[kLength] != '{') return false;
  uint64_t length = 0;
  for (size_t i = kLength; i-- > 0;) length = length << 8 | static_cast<uint8_t>(bytes[i]);
  return length <= bytes.size() - kLength;
}

// A line a member; of long lists the end, of files the names.
std::string DescribeSummary(const Json& summary) {
  constexpr size_t kMostShown = 10;
  Table table;
  for (const auto& [key, value] : summary.items()) {
    std::string text;
    if (value.is_array() && value.size() > kMostShown) {
      text = StrCat(value.size(), " values, the last ", value.back().dump());
    } else if (value.is_object()) {
      for (const auto& [name, unused] : value.items()) absl::StrAppend(&text, name, " ");
    } else {
      text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    table.Add({key, text});
  }
  return StrCat("summary of a training run\n\n", table.ToString());
}

StatusOr<std::string> DescribeJson(FileSystem& files, const std::string& path,
                                   const std::string& text) {
  // Values are written out by recursion, which the stack must hold.
  bool too_deep = false;
  const auto bound_depth = [&too_deep](int depth, Json::parse_event_t, const Json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  const Json json = Json::parse(text, bound_depth, /*allow_exceptions=*/false);
  if (too_deep) return DataLoss(path, ": JSON nested deeper than ", kMaxDepth);
  if (json.is_discarded()) return DataLoss(path, ": damaged or truncated JSON");
  if (json.contains("manifest")) {
    return DescribeCheckpoint(files, std::string(absl::StripSuffix(path, kIndexSuffix)));
  }
  if (json.contains("traceEvents") && json["traceEvents"].is_array()) {
    return StrCat("Chrome trace of ", json["traceEvents"].size(),
                  " events: open it in chrome://tracing or ui.perfetto.dev\n");
  }
  if (json.contains("test_accuracy") && json.contains("tasks")) return DescribeSummary(json);
  StatusOr<PlacementReport> report = PlacementReportFromJson(text);
  if (!report.ok()) return Annotate(report.status(), path);
  return StrCat("placement report\n\n", report->ToText());
}

StatusOr<std::string> Describe(Runtime& runtime, const std::string& path) {
  FileSystem& files = *runtime.environment().files;
  if (absl::EndsWith(path, kIndexSuffix) || files.Exists(StrCat(path, kIndexSuffix))) {
    return DescribeCheckpoint(files, std::string(absl::StripSuffix(path, kIndexSuffix)));
  }
  MR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(files, path));
  if (LooksLikeEvents(bytes)) return DescribeEvents(files, path);
  if (LooksLikeIdx(bytes)) {
    MR_ASSIGN_OR_RETURN(const Tensor tensor, ParseIdx(bytes, path));
    return StrCat("IDX file\n\n", DescribeTensors({{path, tensor}}));
  }
  if (LooksLikeSafetensors(bytes)) {
    MR_ASSIGN_OR_RETURN(const Safetensors file, ParseSafetensors(bytes, path));
    return StrCat("safetensors file (no checksums of its own)\n\n", DescribeTensors(file.tensors));
  }
  if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(bytes), "{")) {
    return DescribeJson(files, path, bytes);
  }
  if (bytes.empty()) return DataLoss(path, " is empty");
  MR_ASSIGN_OR_RETURN(const Graph graph, ParseGraph(bytes, path, runtime.ops()));
  return DescribeGraph(graph);
}

Status Inspect(const std::string& path) {
  MR_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime, Runtime::Create());
  MR_ASSIGN_OR_RETURN(const std::string text, Describe(*runtime, path));
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

int InspectCommand(const std::vector<std::string>& arguments) {
  constexpr char kName[] = "millrace inspect";
  Flags flags(kName,
              "Says what is in a file, whatever its name: a graph (GraphDef, binary or text), a "
              "checkpoint (its\nprefix or .index; checksums are verified), a safetensors file, a "
              "TensorBoard event file, a\nplacement report, a training run's summary, a Chrome "
              "trace, an IDX "
              "file (packed or not).\n\n"
              "  millrace inspect runs/today/checkpoint-1404");
  flags.AllowPositional(1, 1, "FILE");
  return RunCommand(kName, arguments, flags, [&] { return Inspect(flags.positional()[0]); });
}

}  // namespace millrace
