#include "core/graph/node_name.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace millrace {
namespace {

// Longer names are compared by nobody, and would make a message slow to come.
constexpr size_t kLongestCompared = 100;

// Insertions, deletions and replacements that lead from `a` to `b`; `limit` if there are more.
size_t EditDistance(absl::string_view a, absl::string_view b, size_t limit) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) >= limit) return limit;
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    size_t least = row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1] ? 1 : 0);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
      least = std::min(least, row[j]);
    }
    if (least >= limit) return limit;
  }
  return std::min(row[b.size()], limit);
}

}  // namespace

bool IsNodeName(absl::string_view text) {
  if (text.empty()) return false;
  const auto is_word = [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; };
  if (!is_word(text[0])) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return is_word(c) || c == '-' || c == '/' || c == '\\' || c == '>';
  });
}

PortName SplitPortName(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return {text, 0};
  const absl::string_view digits = text.substr(colon + 1);
  int index = 0;
  // SimpleAtoi would take spaces and signs, too.
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(digits, &index)) {
    return {text, 0};
  }
  return {text.substr(0, colon), index};
}

NearestName::NearestName(absl::string_view wanted)
    : wanted_(wanted),
      // Something of the name must be right.
      best_distance_(std::min<size_t>({wanted.size() / 3 + 2, wanted.size(), 6})) {}

void NearestName::Consider(absl::string_view candidate) {
  if (wanted_.size() > kLongestCompared || candidate.size() > kLongestCompared) return;
  const size_t distance = EditDistance(wanted_, candidate, best_distance_);
  if (distance >= best_distance_) return;
  best_distance_ = distance;
  best_ = std::string(candidate);
}

std::string NearestName::Suggestion() const {
  return best_.empty() ? "" : absl::StrCat("; did you mean '", best_, "'?");
}

}  // namespace millrace
