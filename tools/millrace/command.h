#ifndef TOOLS_MILLRACE_COMMAND_H_
#define TOOLS_MILLRACE_COMMAND_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"
#include "python_free_api/flags.h"

namespace millrace {

// The subcommands: what they are given follows the subcommand's name; they return the exit code.
int PlaceCommand(const std::vector<std::string>& arguments);
int ViewCommand(const std::vector<std::string>& arguments);
int InspectCommand(const std::vector<std::string>& arguments);
int RunGraphCommand(const std::vector<std::string>& arguments);
int OpsCommand(const std::vector<std::string>& arguments);
int BenchCommand(const std::vector<std::string>& arguments);

// Parses `arguments`, in which -o is short for --out, then runs. Prints the help that was asked
// for, or one line "millrace place: <message>". Exit codes: 0, 1 for an error, 2 for wrong usage.
int RunCommand(const std::string& name, const std::vector<std::string>& arguments, Flags& flags,
               absl::FunctionRef<Status()> run);

}  // namespace millrace

#endif  // TOOLS_MILLRACE_COMMAND_H_
