// millrace view: a page for the browser from a placed graph and its report.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/graph/graph_def.h"
#include "core/runtime/planner.h"
#include "python_free_api/placement_view.h"
#include "python_free_api/runtime.h"
#include "tools/millrace/command.h"

namespace millrace {
namespace {

constexpr char kName[] = "millrace view";
constexpr char kReportName[] = "placement.json";

struct Options {
  std::string out;
  std::string report;
  std::string title;
};

Status View(const std::string& path, const Options& options) {
  if (options.out.empty()) return InvalidArgument("-o is needed: which file to write?");
  MR_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime, Runtime::Create());
  FileSystem& files = *runtime->environment().files;
  MR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(files, path));
  MR_ASSIGN_OR_RETURN(const Graph graph, ParseGraph(bytes, path, runtime->ops()));
  PlacementReport report;
  std::string report_path = options.report;
  if (report_path.empty()) {
    report_path = JoinPath(FolderOf(path), kReportName);
    if (!files.Exists(report_path)) {
      report_path.clear();
      std::fprintf(stderr, "%s: no %s beside the graph: the page has no reasons and no bytes\n",
                   kName, kReportName);
    }
  }
  if (!report_path.empty()) {
    MR_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, report_path));
    StatusOr<PlacementReport> parsed = PlacementReportFromJson(text);
    if (!parsed.ok()) return Annotate(parsed.status(), report_path);
    report = *std::move(parsed);
  }
  const std::string title = options.title.empty() ? StrCat("Placement of ", path) : options.title;
  return WriteFile(files, options.out, PlacementView(graph, report, title));
}

}  // namespace

int ViewCommand(const std::vector<std::string>& arguments) {
  Options options;
  Flags flags(kName,
              "Makes a self-contained page that shows a placed graph: scopes that open and close, "
              "a colour\na device, bytes on the edges between devices, and for each node why it is "
              "where it is.\n\n"
              "  millrace view graph.pb -o placement.html");
  flags.Add("out", &options.out, "the page to write; -o for short");
  flags.Add("report", &options.report,
            "the placement report; '': placement.json beside the graph, if there is one");
  flags.Add("title", &options.title, "of the page");
  flags.AllowPositional(1, 1, "PLACED.pb");
  return RunCommand(kName, arguments, flags, [&] { return View(flags.positional()[0], options); });
}

}  // namespace millrace
