#ifndef TOOLS_BENCH_REPORT_H_
#define TOOLS_BENCH_REPORT_H_

#include <string>
#include <vector>

#include "core/base/status.h"
#include "tools/bench/samples.h"

namespace millrace::bench {

// One line of the table: what was measured here and of a peer, smaller being better.
struct Row {
  std::string name;
  std::string unit;
  Summary ours;
  std::string peer_name;  // "" if none was measured
  Summary peer;
  double aim = 0;  // the ratio of the medians that is aimed at: at most this; 0: none
  double ratio() const { return peer.median > 0 ? ours.median / peer.median : 0; }
  bool met() const { return aim == 0 || ratio() <= aim; }
};

// As a table of Markdown, and as JSON.
std::string ToMarkdown(const std::vector<Row>& rows);
std::string ToJson(const std::vector<Row>& rows);

// `document` with what stands between the lines "<!-- begin NAME -->" and "<!-- end NAME -->"
// replaced by `text`; both are added at its end if it lacks them.
std::string ReplaceSection(const std::string& document, const std::string& name,
                           const std::string& text);

}  // namespace millrace::bench

#endif  // TOOLS_BENCH_REPORT_H_
