#include "python_free_api/flags.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

namespace millrace {
namespace {

// Edits (insert, remove, replace) that make `a` of `b`.
int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row[b.size()];
}

}  // namespace

void Flags::Add(std::string name, std::string* value, std::string help) {
  flags_.push_back({std::move(name), std::move(help),
                    value->empty() ? "" : StrCat("'", *value, "'"), false,
                    [value](const std::string& text) {
                      *value = text;
                      return true;
                    }});
}

void Flags::Add(std::string name, int64_t* value, std::string help) {
  flags_.push_back({std::move(name), std::move(help), StrCat(*value), false,
                    [value](const std::string& text) { return absl::SimpleAtoi(text, value); }});
}

void Flags::Add(std::string name, double* value, std::string help) {
  flags_.push_back({std::move(name), std::move(help), StrCat(*value), false,
                    [value](const std::string& text) { return absl::SimpleAtod(text, value); }});
}

void Flags::Add(std::string name, bool* value, std::string help) {
  flags_.push_back({std::move(name), std::move(help), *value ? "true" : "", true,
                    [value](const std::string& text) { return absl::SimpleAtob(text, value); }});
}

void Flags::AllowPositional(int minimum, int maximum, std::string usage) {
  minimum_ = minimum;
  maximum_ = maximum;
  positional_usage_ = std::move(usage);
}

Status Flags::SetFlag(const std::vector<std::string>& arguments, size_t* index) {
  const std::string& argument = arguments[*index];
  const size_t equals = argument.find('=');
  std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
  std::replace(name.begin(), name.end(), '-', '_');
  auto flag =
      std::find_if(flags_.begin(), flags_.end(), [&](const Flag& f) { return f.name == name; });
  if (flag == flags_.end()) {
    auto nearest =
        std::min_element(flags_.begin(), flags_.end(), [&](const Flag& a, const Flag& b) {
          return EditDistance(name, a.name) < EditDistance(name, b.name);
        });
    const std::string hint =
        nearest == flags_.end() ? "" : StrCat("; did you mean --", nearest->name, "?");
    return InvalidArgument("unknown flag --", name, hint, " (", program_, " --help lists them)");
  }
  std::string value = "true";
  if (equals != std::string::npos) {
    value = argument.substr(equals + 1);
  } else if (!flag->is_switch) {
    if (*index + 1 >= arguments.size()) return InvalidArgument("--", name, " needs a value");
    value = arguments[++*index];
  }
  if (!flag->set(value)) return InvalidArgument("--", name, " cannot be '", value, "'");
  return absl::OkStatus();
}

Status Flags::Parse(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      help_wanted_ = true;
      return absl::OkStatus();
    }
    if (absl::StartsWith(argument, "--") && argument.size() > 2) {
      MR_RETURN_IF_ERROR(SetFlag(arguments, &i));
    } else {
      positional_.push_back(argument);
    }
  }
  const int count = static_cast<int>(positional_.size());
  if (count < minimum_ || count > maximum_) {
    return InvalidArgument(
        program_,
        maximum_ == 0 ? " takes no arguments besides flags" : StrCat(" takes ", positional_usage_),
        ", but got ", count, ": '", absl::StrJoin(positional_, "' '"), "'");
  }
  return absl::OkStatus();
}

std::string Flags::Help() const {
  std::string text = StrCat(purpose_, "\n\nUsage: ", program_, flags_.empty() ? "" : " [flags]",
                            positional_usage_.empty() ? "" : " ", positional_usage_, "\n");
  size_t width = 0;
  for (const Flag& f : flags_) width = std::max(width, f.name.size());
  for (const Flag& f : flags_) {
    absl::StrAppend(&text, "  --", f.name, std::string(width - f.name.size() + 2, ' '), f.help);
    if (!f.default_text.empty()) absl::StrAppend(&text, " (default ", f.default_text, ")");
    absl::StrAppend(&text, "\n");
  }
  return text;
}

std::vector<std::string> Arguments(int argc, char** argv) {
  return std::vector<std::string>(argv + std::min(argc, 1), argv + argc);
}

}  // namespace millrace
