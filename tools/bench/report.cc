#include "tools/bench/report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace millrace::bench {
namespace {

// Three figures.
std::string Number(double value) {
  if (value >= 100) return absl::StrFormat("%.0f", value);
  if (value >= 10) return absl::StrFormat("%.1f", value);
  return absl::StrFormat("%.2f", value);
}

std::string Figures(const Summary& summary) {
  return absl::StrCat(Number(summary.median), " (", Number(summary.p10), "; ", summary.count, ")");
}

nlohmann::ordered_json Json(const Summary& summary) {
  return {{"median", summary.median}, {"p10", summary.p10}, {"count", summary.count}};
}

}  // namespace

std::string ToMarkdown(const std::vector<Row>& rows) {
  std::string text = "| what | unit | Millrace | peer | ratio | aim |\n|---|---|---|---|---|---|\n";
  for (const Row& row : rows) {
    const bool peer = !row.peer_name.empty();
    absl::StrAppend(&text, "| ", row.name, " | ", row.unit, " | ", Figures(row.ours), " | ",
                    peer ? absl::StrCat(Figures(row.peer), " ", row.peer_name) : "-", " | ",
                    peer ? absl::StrFormat("%.2f", row.ratio()) : "-", " | ",
                    row.aim == 0 ? "-"
                                 : absl::StrCat("≤ ", absl::StrFormat("%.2f", row.aim),
                                                !peer       ? ""
                                                : row.met() ? ", met"
                                                            : ", **missed**"),
                    " |\n");
  }
  return text;
}

std::string ToJson(const std::vector<Row>& rows) {
  nlohmann::ordered_json list = nlohmann::json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json json = {
        {"name", row.name}, {"unit", row.unit}, {"millrace", Json(row.ours)}};
    if (!row.peer_name.empty()) {
      json["peer"] = Json(row.peer);
      json["peer"]["name"] = row.peer_name;
      json["ratio"] = row.ratio();
    }
    if (row.aim > 0) json["aim"] = row.aim;
    list.push_back(std::move(json));
  }
  return list.dump(1) + "\n";
}

std::string ReplaceSection(const std::string& document, const std::string& name,
                           const std::string& text) {
  const std::string begin = absl::StrCat("<!-- begin ", name, " -->\n");
  const std::string end = absl::StrCat("<!-- end ", name, " -->\n");
  const size_t from = document.find(begin);
  const size_t to = from == std::string::npos ? from : document.find(end, from);
  if (to == std::string::npos) return absl::StrCat(document, begin, text, end);
  return absl::StrCat(document.substr(0, from), begin, text, document.substr(to));
}

}  // namespace millrace::bench
