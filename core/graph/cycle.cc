#include "core/graph/cycle.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace millrace {
namespace {

constexpr size_t kMostNames = 16;

}  // namespace

std::string DescribeCycle(
    absl::Span<const int32_t> pending,
    absl::FunctionRef<void(int32_t node, absl::FunctionRef<void(int32_t input)> visit)> inputs,
    absl::FunctionRef<std::string(int32_t node)> name) {
  const auto first = std::find_if(pending.begin(), pending.end(), [](int32_t n) { return n > 0; });
  int32_t node = static_cast<int32_t>(first - pending.begin());
  // Going back from such a node to such an input never ends, so it meets itself.
  std::vector<int32_t> seen_at(pending.size(), -1);
  std::vector<int32_t> path;
  while (seen_at[node] < 0) {
    seen_at[node] = static_cast<int32_t>(path.size());
    path.push_back(node);
    int32_t next = -1;
    inputs(node, [&](int32_t input) {
      if (next < 0 && pending[input] > 0) next = input;
    });
    node = next;
  }
  std::vector<int32_t> cycle(path.begin() + seen_at[node], path.end());
  std::reverse(cycle.begin(), cycle.end());
  // A message that does not depend on where the search began.
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  std::string text;
  for (size_t i = 0; i < cycle.size() && i < kMostNames; ++i) {
    absl::StrAppend(&text, name(cycle[i]), " -> ");
  }
  if (cycle.size() > kMostNames) {
    absl::StrAppend(&text, "(", cycle.size() - kMostNames, " more) -> ");
  }
  return absl::StrCat(text, name(cycle[0]));
}

}  // namespace millrace
