#include "tools/millrace/command.h"

#include <cstdio>

namespace millrace {

int RunCommand(const std::string& name, const std::vector<std::string>& arguments, Flags& flags,
               absl::FunctionRef<Status()> run) {
  std::vector<std::string> expanded = arguments;
  for (std::string& argument : expanded) {
    if (argument == "-o") argument = "--out";
  }
  const Status parsed = flags.Parse(expanded);
  if (flags.help_wanted()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  const Status status = parsed.ok() ? run() : parsed;
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", name.c_str(), std::string(status.message()).c_str());
  return parsed.ok() ? 1 : 2;
}

}  // namespace millrace
