#ifndef PYTHON_FREE_API_FLAGS_H_
#define PYTHON_FREE_API_FLAGS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace millrace {

// The command line of a program: "--name=value", "--name value", "--switch". Dashes and underscores
// within a name are the same. What follows a "--" of its own is no flag; neither is "-". Values are
// written to variables of the caller; their present values are the defaults that help shows. Not
// thread-safe.
//
//   int64_t epochs = 3;
//   Flags flags("fashion_mnist", "Trains LeNet on Fashion-MNIST.");
//   flags.Add("epochs", &epochs, "times that the training set is seen");
//   Status status = flags.Parse(arguments);
class Flags {
 public:
  Flags(std::string program, std::string purpose)
      : program_(std::move(program)), purpose_(std::move(purpose)) {}

  void Add(std::string name, std::string* value, std::string help);
  void Add(std::string name, int64_t* value, std::string help);
  void Add(std::string name, double* value, std::string help);
  // A switch: "--resume", "--resume=false".
  void Add(std::string name, bool* value, std::string help);
  // Allows `minimum` to `maximum` arguments that are no flags; `usage` names them in help.
  void AllowPositional(int minimum, int maximum, std::string usage);

  // InvalidArgument, naming the flag, for one that is unknown (with the nearest one), begins with a
  // single dash, is given twice, lacks its value or has one that does not fit; and for too few or
  // many positional arguments. Variables of flags that were not read keep their values. With
  // "--help" or "-h" help_wanted() is set, and the rest is not read.
  Status Parse(const std::vector<std::string>& arguments);
  bool help_wanted() const { return help_wanted_; }
  const std::vector<std::string>& positional() const { return positional_; }
  std::string Help() const;

 private:
  struct Flag {
    std::string name;
    std::string help;
    std::string default_text;
    bool is_switch;
    const char* kind;  // "a whole number"
    std::function<bool(const std::string&)> set;
    bool given = false;
  };
  void AddFlag(Flag flag);
  // The one nearest to `name` in "; did you mean --x?", or "".
  std::string Hint(absl::string_view name) const;
  Status SetFlag(const std::vector<std::string>& arguments, size_t* index);

  std::string program_;
  std::string purpose_;
  std::string positional_usage_;
  int minimum_ = 0;
  int maximum_ = 0;
  Status defined_;  // whether the flags make sense themselves
  std::vector<Flag> flags_;
  std::vector<std::string> positional_;
  bool help_wanted_ = false;
};

// argv[1..] of main.
std::vector<std::string> Arguments(int argc, char** argv);

}  // namespace millrace

#endif  // PYTHON_FREE_API_FLAGS_H_
