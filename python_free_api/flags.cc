#include "python_free_api/flags.h"

#include <algorithm>
#include <cmath>
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

// Writes `text` to `value` if `parse` can read all of it.
template <typename T, typename Parse>
std::function<bool(const std::string&)> Setter(T* value, Parse parse) {
  return [value, parse](const std::string& text) {
    T parsed{};
    if (!parse(text, &parsed)) return false;
    *value = std::move(parsed);
    return true;
  };
}

// Whether an argument can be the value of the flag before it: "-5" can, "--resume" cannot.
bool IsValue(const std::string& argument) {
  double number = 0;
  return !absl::StartsWith(argument, "-") || argument == "-" || absl::SimpleAtod(argument, &number);
}

}  // namespace

void Flags::AddFlag(Flag flag) {
  for (const Flag& f : flags_) {
    if (f.name == flag.name) defined_.Update(Internal("flag --", flag.name, " is defined twice"));
  }
  flags_.push_back(std::move(flag));
}

void Flags::Add(std::string name, std::string* value, std::string help) {
  AddFlag({std::move(name), std::move(help), value->empty() ? "" : StrCat("'", *value, "'"), false,
           "a text", Setter(value, [](const std::string& text, std::string* parsed) {
             *parsed = text;
             return true;
           })});
}

void Flags::Add(std::string name, int64_t* value, std::string help) {
  AddFlag({std::move(name), std::move(help), StrCat(*value), false, "a whole number of 64 bits",
           Setter(value, [](const std::string& text, int64_t* parsed) {
             return absl::SimpleAtoi(text, parsed);
           })});
}

void Flags::Add(std::string name, double* value, std::string help) {
  AddFlag({std::move(name), std::move(help), StrCat(*value), false, "a finite number",
           Setter(value, [](const std::string& text, double* parsed) {
             return absl::SimpleAtod(text, parsed) && std::isfinite(*parsed);
           })});
}

void Flags::Add(std::string name, bool* value, std::string help) {
  AddFlag({std::move(name), std::move(help), *value ? "true" : "", true, "true or false",
           Setter(value, [](const std::string& text, bool* parsed) {
             return absl::SimpleAtob(text, parsed);
           })});
}

void Flags::AllowPositional(int minimum, int maximum, std::string usage) {
  minimum_ = minimum;
  maximum_ = maximum;
  positional_usage_ = std::move(usage);
}

std::string Flags::Hint(absl::string_view name) const {
  auto nearest = std::min_element(flags_.begin(), flags_.end(), [&](const Flag& a, const Flag& b) {
    // What was begun is nearer than what is short.
    const auto distance = [&](const Flag& f) {
      return std::make_pair(!absl::StartsWith(f.name, name), EditDistance(name, f.name));
    };
    return distance(a) < distance(b);
  });
  return nearest == flags_.end() ? "" : StrCat("; did you mean --", nearest->name, "?");
}

Status Flags::SetFlag(const std::vector<std::string>& arguments, size_t* index) {
  const std::string& argument = arguments[*index];
  const size_t equals = argument.find('=');
  std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
  std::replace(name.begin(), name.end(), '-', '_');
  auto flag =
      std::find_if(flags_.begin(), flags_.end(), [&](const Flag& f) { return f.name == name; });
  if (flag == flags_.end()) {
    return InvalidArgument("unknown flag --", name, Hint(name), " (", program_,
                           " --help lists them)");
  }
  if (flag->given) return InvalidArgument("--", name, " is given twice");
  flag->given = true;
  std::string value = "true";
  if (equals != std::string::npos) {
    value = argument.substr(equals + 1);
  } else if (!flag->is_switch) {
    if (*index + 1 >= arguments.size()) return InvalidArgument("--", name, " needs a value");
    const std::string& next = arguments[*index + 1];
    if (!IsValue(next)) {
      return InvalidArgument("--", name, " needs a value, but '", next,
                             "' follows; if that is it, ", "write --", name, "=", next);
    }
    value = next;
    ++*index;
  }
  if (!flag->set(value)) {
    return InvalidArgument("--", name, " cannot be '", value, "': it takes ", flag->kind);
  }
  return absl::OkStatus();
}

Status Flags::Parse(const std::vector<std::string>& arguments) {
  MR_RETURN_IF_ERROR(defined_);
  positional_.clear();
  for (Flag& flag : flags_) flag.given = false;
  bool only_positional = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (only_positional) {
      positional_.push_back(argument);
    } else if (argument == "--help" || argument == "-h") {
      help_wanted_ = true;
      return absl::OkStatus();
    } else if (argument == "--") {
      only_positional = true;
    } else if (absl::StartsWith(argument, "--")) {
      MR_RETURN_IF_ERROR(SetFlag(arguments, &i));
    } else if (!IsValue(argument)) {
      return InvalidArgument("unknown flag ", argument, ": flags begin with two dashes",
                             Hint(argument.substr(1, argument.find('=') - 1)), " (", program_,
                             " --help lists them)");
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
