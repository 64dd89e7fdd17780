#ifndef TESTS_GRAPH_OPT_PASS_CASE_H_
#define TESTS_GRAPH_OPT_PASS_CASE_H_

#include <ostream>
#include <string>

#include "graph_opt/pass.h"

// Passes as tables: the text of a step's graph before and after.
namespace millrace::testing {

struct PassCase {
  const char* name;
  // Names, separated by blanks: "feeds | fetches | targets".
  const char* step;
  // The text form; lines may be indented.
  const char* graph;
  // The same of the result, with a line "-> y, z/folded" for what the fetches became and one
  // "run step" for what the targets did, if there are any. Null: as before, and not changed.
  const char* expected;
};

inline std::ostream& operator<<(std::ostream& out, const PassCase& c) { return out << c.name; }

// The pruned graph of the case; fails the test if there is none.
PrunedGraph PrunedOrFail(const PassCase& c);
// The text, as in `expected`.
std::string TextOf(const PrunedGraph& pruned);
// `text` without indentation and empty lines.
std::string Unindented(absl::string_view text);
// Runs the pass and, if `then_prune`, the prune pass; expects what the case says, and a sound
// graph.
void ExpectPass(const Pass& pass, const PassCase& c, bool then_prune = false);

}  // namespace millrace::testing

#endif  // TESTS_GRAPH_OPT_PASS_CASE_H_
