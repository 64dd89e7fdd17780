#include "tests/testing/op_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/graph/graph_text.h"
#include "ops/register.h"

namespace millrace::testing {
namespace {

// The attributes of a Const: "(0,1)" gives {dtype=int32, value=tensor(int32[2]: 0 1)}.
std::string ConstAttrs(absl::string_view dtype, std::string shape, absl::string_view elements) {
  return StrCat("{dtype=", dtype, ", value=tensor(", dtype, shape, ": ",
                absl::StrReplaceAll(elements, {{",", " "}, {"(", ""}, {")", ""}}), ")}");
}

int64_t Commas(absl::string_view text) { return std::count(text.begin(), text.end(), ','); }

std::string Vector(absl::string_view dtype, absl::string_view list) {
  const absl::string_view inner = list.substr(1, list.size() - 2);
  if (!inner.empty() && inner[0] == '(') {
    const int64_t rows = std::count(inner.begin(), inner.end(), '(');
    const int64_t columns = (Commas(inner) + 1) / rows;
    return ConstAttrs(dtype, StrCat("[", rows, ",", columns, "]"), inner);
  }
  return ConstAttrs(dtype, StrCat("[", inner.empty() ? 0 : Commas(inner) + 1, "]"), inner);
}

// The node that makes one input, without its name.
std::string InputText(absl::string_view spec) {
  const size_t mark = spec.find_first_of("[(=?");
  if (mark == absl::string_view::npos) return StrCat("not an input: ", spec);
  const absl::string_view rest = spec.substr(mark);
  std::string dtype(spec.substr(0, mark));
  if (rest[0] == '=' || rest[0] == '(') {
    if (dtype.empty()) dtype = "int32";
    return StrCat("Const() ",
                  rest[0] == '=' ? ConstAttrs(dtype, "[]", rest.substr(1)) : Vector(dtype, rest));
  }
  if (dtype == "resource") return StrCat("VarHandleOp() {dtype=float, shape=", rest, "}");
  return StrCat("Placeholder() {dtype=", dtype.empty() ? "float" : dtype, ", shape=", rest, "}");
}

}  // namespace

std::shared_ptr<const OpRegistry> AllOps() {
  static const auto& ops = *new std::shared_ptr<const OpRegistry>([] {
    auto registry = std::make_shared<OpRegistry>();
    RegisterAllOps(*registry);
    return registry;
  }());
  return ops;
}

std::string OpText(absl::string_view op, absl::string_view attrs, absl::string_view inputs) {
  std::string text;
  std::vector<std::string> names;
  if (!absl::StripAsciiWhitespace(inputs).empty()) {
    for (absl::string_view spec : absl::StrSplit(inputs, ';')) {
      names.push_back(StrCat("x", names.size()));
      absl::StrAppend(&text, names.back(), " = ", InputText(absl::StripAsciiWhitespace(spec)),
                      "\n");
    }
  }
  absl::StrAppend(&text, "y = ", op, "(", absl::StrJoin(names, ", "), ")");
  if (!attrs.empty()) absl::StrAppend(&text, " {", attrs, "}");
  return text + "\n";
}

StatusOr<Graph> OpGraph(absl::string_view op, absl::string_view attrs, absl::string_view inputs) {
  return GraphFromText(OpText(op, attrs, inputs), AllOps());
}

std::string OutputShapes(const Node& node) {
  std::vector<std::string> shapes;
  for (int i = 0; i < node.num_outputs(); ++i) shapes.push_back(node.output_shape(i).ToString());
  return absl::StrJoin(shapes, ";");
}

}  // namespace millrace::testing
