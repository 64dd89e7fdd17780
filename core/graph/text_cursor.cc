#include "core/graph/text_cursor.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"

namespace millrace {
namespace {

constexpr absl::string_view kBlanks = " \t\r";

}  // namespace

void TextCursor::SkipBlanks() {
  at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
}

bool TextCursor::AtEnd() {
  SkipBlanks();
  return at_ == text_.size() || text_[at_] == '#';
}

bool TextCursor::Take(absl::string_view token) {
  SkipBlanks();
  if (!absl::StartsWith(text_.substr(at_), token)) return false;
  at_ += token.size();
  return true;
}

bool TextCursor::Sees(char c) {
  SkipBlanks();
  return at_ < text_.size() && text_[at_] == c;
}

absl::string_view TextCursor::TakeName() {
  SkipBlanks();
  const size_t begin = at_;
  while (at_ < text_.size() &&
         (absl::ascii_isalnum(text_[at_]) || absl::StrContains("_.-/\\>", text_[at_]))) {
    ++at_;
  }
  return text_.substr(begin, at_ - begin);
}

absl::string_view TextCursor::TakeUntil(absl::string_view stops) {
  SkipBlanks();
  const size_t begin = at_;
  at_ = std::min(text_.find_first_of(stops, at_), text_.size());
  return text_.substr(begin, at_ - begin);
}

StatusOr<std::string> TextCursor::TakeQuoted() {
  if (!Sees('"')) return Error("expected a string in double quotes");
  size_t end = at_ + 1;
  while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
  if (end >= text_.size()) return Error("the string has no end");
  std::string value;
  std::string error;
  if (!absl::CUnescape(text_.substr(at_ + 1, end - at_ - 1), &value, &error)) return Error(error);
  at_ = end + 1;
  return value;
}

Status TextCursor::ErrorAt(int column, absl::string_view what) const {
  return InvalidArgument("line ", line_, ", column ", column, ": ", what);
}

}  // namespace millrace
