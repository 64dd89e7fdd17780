// millrace ops: what this build can compute, as a page.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/framework/kernel.h"
#include "python_free_api/runtime.h"
#include "tools/millrace/command.h"

namespace millrace {
namespace {

struct Options {
  std::string golden;
  std::string out;
};

// Of an op: cases that another system computed, and those of them with gradients.
struct Golden {
  int cases = 0;
  int gradients = 0;
};

// Lines "op cases gradients"; '#' begins a comment.
StatusOr<std::map<std::string, Golden>> ReadGolden(FileSystem& files, const std::string& path) {
  std::map<std::string, Golden> golden;
  MR_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, path));
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    Golden counts;
    if (words.size() != 3 || !absl::SimpleAtoi(words[1], &counts.cases) ||
        !absl::SimpleAtoi(words[2], &counts.gradients)) {
      return DataLoss(path, ":", number, ": not 'op cases gradients': ", line);
    }
    golden[words[0]] = counts;
  }
  return golden;
}

std::string Names(const std::vector<DType>& dtypes) {
  std::vector<std::string> names;
  for (const DType dtype : dtypes) names.emplace_back(Name(dtype));
  return absl::StrJoin(names, ", ");
}

// Text in a cell of a table.
std::string Cell(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"|", "\\|"}, {"<", "&lt;"}, {"\n", " "}});
}

// "x: T, axis: int32 (host)"
std::string Arguments(const std::vector<ArgDef>& args) {
  std::vector<std::string> texts;
  for (const ArgDef& arg : args) {
    std::string type = !arg.type_attr.empty()        ? arg.type_attr
                       : !arg.type_list_attr.empty() ? arg.type_list_attr
                                                     : std::string(Name(arg.dtype));
    if (!arg.number_attr.empty()) type = StrCat(arg.number_attr, " × ", type);
    texts.push_back(StrCat(arg.name, ": ", type, arg.host_memory ? " (host)" : ""));
  }
  return texts.empty() ? "-" : absl::StrJoin(texts, ", ");
}

std::string Attributes(const OpDef& op) {
  std::vector<std::string> texts;
  for (const AttrDef& attr : op.attrs()) {
    std::string text = StrCat(attr.name, ": ", attr.kind);
    if (!attr.allowed_types.empty()) {
      text = StrCat(attr.name, ": ", Names(attr.allowed_types));
    } else if (!attr.allowed_strings.empty()) {
      text = StrCat(attr.name, ": '", absl::StrJoin(attr.allowed_strings, "', '"), "'");
    }
    if (attr.minimum) absl::StrAppend(&text, " ≥ ", *attr.minimum);
    if (attr.default_value) absl::StrAppend(&text, " = ", attr.default_value->ToString());
    texts.push_back(Cell(text));
  }
  return texts.empty() ? "-" : absl::StrJoin(texts, "<br>");
}

std::string Gradient(const OpDef& op) {
  if (op.gradient_fn() != nullptr) return "yes";
  return StrCat("none: ", Cell(op.not_differentiable()));
}

// The device types with a kernel.
std::string Kernels(const OpDef& op, const KernelRegistry& kernels) {
  if (op.Has(Trait::kPlaceholder)) return "is fed";
  std::set<std::string> devices;
  for (const KernelDef* kernel : kernels.All()) {
    if (kernel->op == op.name()) devices.insert(kernel->device_type);
  }
  return absl::StrJoin(devices, ", ");
}

std::string Checked(const OpDef& op, const std::map<std::string, Golden>& golden) {
  const auto found = golden.find(op.name());
  if (found == golden.end()) return "unit tests";
  std::string text = StrCat(found->second.cases, " cases");
  if (found->second.gradients > 0) {
    absl::StrAppend(&text, ", ", found->second.gradients, " with gradients");
  }
  return text;
}

std::string Page(const OpRegistry& ops, const KernelRegistry& kernels,
                 const std::map<std::string, Golden>& golden) {
  const std::vector<const OpDef*> all = ops.All();
  std::string text = StrCat(
      "# Operations\n\n"
      "Made by `millrace ops --golden tests/golden/ops.txt -o docs/ops.md`; do not edit.\n\n",
      all.size(),
      " operations, under their names in the public GraphDef op set. An input or output marked "
      "*host* lives in host memory on every device: a shape, an axis, paddings. A *gradient* of "
      "`none` comes with its reason. *Kernels* are those of this build. *Sharding*: whether the op "
      "has a rule by which a strategy may split it; else its operands are whole. *Checked*: cases "
      "that TensorFlow computed (`tests/golden`); all ops have unit tests as well, with gradients "
      "against central differences.\n\n"
      "| operation | inputs → outputs | attributes | gradient | kernels | sharding | checked |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const OpDef* op : all) {
    absl::StrAppend(&text, "| **", op->name(), "**<br>", Cell(op->doc()), " | ",
                    Cell(Arguments(op->inputs())), " → ", Cell(Arguments(op->outputs())), " | ",
                    Attributes(*op), " | ", Gradient(*op), " | ", Kernels(*op, kernels), " | ",
                    op->sharding_fn() != nullptr ? "rule" : "whole", " | ", Checked(*op, golden),
                    " |\n");
  }
  return text;
}

Status ListOps(const Options& options) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Runtime> runtime, Runtime::Create());
  FileSystem& files = *runtime->environment().files;
  std::map<std::string, Golden> golden;
  if (!options.golden.empty()) {
    MR_ASSIGN_OR_RETURN(golden, ReadGolden(files, options.golden));
  }
  const std::string page = Page(*runtime->ops(), runtime->kernels(), golden);
  if (!options.out.empty()) return WriteFile(files, options.out, page);
  std::fputs(page.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

int OpsCommand(const std::vector<std::string>& arguments) {
  constexpr char kName[] = "millrace ops";
  Options options;
  Flags flags(
      kName,
      "Lists the operations of this build as a page of Markdown: types, attributes, gradient "
      "or why\nthere is none, kernels, sharding rule, and how each was checked.\n\n"
      "  millrace ops --golden tests/golden/ops.txt -o docs/ops.md");
  flags.Add("golden", &options.golden, "counts of golden cases: lines 'op cases gradients'");
  flags.Add("out", &options.out, "the page to write; -o for short; '': standard output");
  return RunCommand(kName, arguments, flags, [&] { return ListOps(options); });
}

}  // namespace millrace
