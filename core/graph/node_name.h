#ifndef CORE_GRAPH_NODE_NAME_H_
#define CORE_GRAPH_NODE_NAME_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace millrace {

// Whether a node may have that name: letters, digits and "_.-/\>", of which '-', '/', '\' and '>'
// do not come first. So names need no quotes in the text form, and ':' and '^' can be told from
// them.
bool IsNodeName(absl::string_view text);

// "x:1" as {"x", 1}, "x" as {"x", 0}; anything else as {text, 0}, which names no node.
struct PortName {
  absl::string_view node;
  int index = 0;
};
PortName SplitPortName(absl::string_view text);

// Finds the name most like a wanted one that does not exist, for messages.
class NearestName {
 public:
  explicit NearestName(absl::string_view wanted);
  void Consider(absl::string_view candidate);
  // "; did you mean 'x'?", or "" if nothing is near. Of equally near ones, the first.
  std::string Suggestion() const;

 private:
  std::string wanted_;
  std::string best_;
  size_t best_distance_;
};

}  // namespace millrace

#endif  // CORE_GRAPH_NODE_NAME_H_
