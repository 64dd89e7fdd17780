#ifndef CORE_GRAPH_TEXT_CURSOR_H_
#define CORE_GRAPH_TEXT_CURSOR_H_

#include <cstddef>
#include <string>

#include "core/base/status.h"

namespace millrace {

// Reads one line of the text form from left to right. Each method skips blanks and then takes what
// it names, or takes nothing and says so.
class TextCursor {
 public:
  // `text` outlives this.
  TextCursor(absl::string_view text, int line) : text_(text), line_(line) {}

  // Whether nothing but a comment is left.
  bool AtEnd();
  bool Take(absl::string_view token);
  // Whether `c` comes next; it is not taken.
  bool Sees(char c);
  // Letters, digits, and what else names hold ("_.-/\>"), perhaps none. The view is into the text.
  absl::string_view TakeName();
  // What comes before a blank or one of ",:=()[]{}#", perhaps nothing.
  absl::string_view TakeWord() { return TakeUntil(" \t\r,:=()[]{}#"); }
  // What comes before one of `stops` or the end.
  absl::string_view TakeUntil(absl::string_view stops);
  // "..." with C escapes.
  StatusOr<std::string> TakeQuoted();

  int line() const { return line_; }
  int column() const { return static_cast<int>(at_) + 1; }
  // InvalidArgument "line 3, column 14: expected ')'", where the cursor is or at `column`.
  Status Error(absl::string_view what) const { return ErrorAt(column(), what); }
  Status ErrorAt(int column, absl::string_view what) const;

 private:
  void SkipBlanks();

  const absl::string_view text_;
  const int line_;
  size_t at_ = 0;
};

}  // namespace millrace

#endif  // CORE_GRAPH_TEXT_CURSOR_H_
