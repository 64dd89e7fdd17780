#include "distributed/strategy/program.h"

#include "absl/strings/str_join.h"
#include "core/graph/graph_text.h"

namespace millrace {

std::string Program::ToText() const {
  std::string text = StrCat("# program of ", strategy, "\n");
  for (const StepLoop& loop : loops) {
    absl::StrAppend(&text, "# loop '", loop.name, "': feeds ", loop.signature.feeds.size(),
                    ", fetches [", absl::StrJoin(loop.signature.fetches, ", "), "], targets [",
                    absl::StrJoin(loop.signature.targets, ", "), "]\n");
  }
  for (const Feed& feed : feeds) {
    absl::StrAppend(&text, "# feed '", feed.logical, "'");
    for (const Feed::Piece& piece : feed.pieces) {
      absl::StrAppend(&text, " -> ", piece.port);
      if (feed.dim >= 0) absl::StrAppend(&text, " rows [", piece.begin, ",", piece.end, ")");
    }
    absl::StrAppend(&text, "\n");
  }
  for (const Layout& layout : layouts) {
    if (layout.sharding.kind == Sharding::kReplicated && layout.device.empty()) continue;
    absl::StrAppend(&text, "# layout ", layout.logical, ": ", layout.sharding.ToString());
    if (!layout.device.empty()) absl::StrAppend(&text, " @", layout.device);
    absl::StrAppend(&text, "\n");
  }
  absl::StrAppend(&text, GraphToText(graph));
  return text;
}

}  // namespace millrace
