#include "core/framework/op_spec.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace millrace {
namespace {

constexpr absl::string_view kScalarKinds[] = {"string", "int",   "float",  "bool",
                                              "type",   "shape", "tensor", "func"};

// The public grammar's names for sets of dtypes.
std::vector<DType> NumberTypes() {
  return {DType::kFloat,    DType::kDouble, DType::kInt64,  DType::kInt32,
          DType::kUint8,    DType::kInt16,  DType::kInt8,   DType::kUint16,
          DType::kBfloat16, DType::kHalf,   DType::kUint32, DType::kUint64};
}

// Reads a spec from left to right. Each method takes what it names, with blanks before it, or takes
// nothing and says so.
class Reader {
 public:
  explicit Reader(absl::string_view text) : text_(text), rest_(text) {}

  bool Take(absl::string_view token) {
    SkipBlanks();
    return absl::ConsumePrefix(&rest_, token);
  }

  bool AtEnd() {
    SkipBlanks();
    return rest_.empty();
  }

  bool TakeName(std::string* name) {
    SkipBlanks();
    size_t length = 0;
    while (length < rest_.size() && (absl::ascii_isalnum(rest_[length]) || rest_[length] == '_')) {
      ++length;
    }
    if (length == 0 || absl::ascii_isdigit(rest_[0])) return false;
    *name = std::string(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return true;
  }

  // 'SAME' or "SAME".
  bool TakeQuoted(std::string* value) {
    SkipBlanks();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return false;
    const char quote = rest_[0];
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != quote) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size() || !absl::CUnescape(rest_.substr(1, end - 1), value)) return false;
    rest_.remove_prefix(end + 1);
    return true;
  }

  // Up to one of `stops` outside, or the end.
  absl::string_view TakeUntil(absl::string_view stops) {
    SkipBlanks();
    const size_t end = std::min(rest_.find_first_of(stops), rest_.size());
    const absl::string_view taken = absl::StripAsciiWhitespace(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return taken;
  }

  absl::string_view rest() {
    SkipBlanks();
    return rest_;
  }

  void Skip(size_t length) { rest_.remove_prefix(std::min(length, rest_.size())); }

  Status Error(absl::string_view expected) const {
    return InvalidArgument("in '", text_, "': expected ", expected, " ",
                           rest_.empty() ? "at the end" : StrCat("at '", rest_, "'"));
  }

 private:
  void SkipBlanks() {
    while (!rest_.empty() && absl::ascii_isspace(rest_[0])) rest_.remove_prefix(1);
  }

  const absl::string_view text_;
  absl::string_view rest_;
};

// "{float, double}" or "{'SAME', 'VALID'}", the brace already taken.
Status ParseChoices(Reader& reader, AttrDef& def) {
  std::string item;
  do {
    if (reader.TakeQuoted(&item)) {
      def.allowed_strings.push_back(item);
    } else if (reader.TakeName(&item)) {
      MR_ASSIGN_OR_RETURN(const DType dtype, ParseDType(item));
      def.allowed_types.push_back(dtype);
    } else {
      return reader.Error("a dtype or a quoted string");
    }
  } while (reader.Take(","));
  if (!reader.Take("}")) return reader.Error("',' or '}'");
  if (!def.allowed_strings.empty() && !def.allowed_types.empty()) {
    return reader.Error("choices of one kind");
  }
  def.kind = def.allowed_types.empty() ? "string" : "type";
  return absl::OkStatus();
}

// "int", "{...}", "numbertype": the kind of a value or of a list's elements.
Status ParseScalarKind(Reader& reader, AttrDef& def) {
  if (reader.Take("{")) return ParseChoices(reader, def);
  std::string name;
  if (!reader.TakeName(&name)) return reader.Error("a kind");
  if (name == "numbertype" || name == "realnumbertype") {
    def.kind = "type";
    def.allowed_types = NumberTypes();
    return absl::OkStatus();
  }
  if (std::find(std::begin(kScalarKinds), std::end(kScalarKinds), name) == std::end(kScalarKinds)) {
    return InvalidArgument("'", name, "' is not a kind of attribute; there are ",
                           absl::StrJoin(kScalarKinds, ", "), " and list(...) of each");
  }
  def.kind = name;
  return absl::OkStatus();
}

StatusOr<AttrValue> ParseScalar(Reader& reader, absl::string_view kind) {
  std::string text;
  if (kind == "string") {
    if (!reader.TakeQuoted(&text)) return reader.Error("a quoted string");
    return AttrValue(text);
  }
  if (kind == "shape") {
    if (reader.Take("?")) return AttrValue(PartialShape());
    const absl::string_view rest = reader.rest();
    const size_t close = rest.find(']');
    if (rest.empty() || rest[0] != '[' || close == absl::string_view::npos) {
      return reader.Error("a shape");
    }
    MR_ASSIGN_OR_RETURN(const PartialShape shape, PartialShape::Parse(rest.substr(0, close + 1)));
    reader.Skip(close + 1);
    return AttrValue(shape);
  }
  if (kind == "bool") {
    if (reader.TakeName(&text) && (text == "true" || text == "false")) {
      return AttrValue(text == "true");
    }
    return reader.Error("true or false");
  }
  if (kind == "type") {
    if (!reader.TakeName(&text)) return reader.Error("a dtype");
    MR_ASSIGN_OR_RETURN(const DType dtype, ParseDType(text));
    return AttrValue(dtype);
  }
  const absl::string_view number = reader.TakeUntil(",]");
  int64_t integer = 0;
  float real = 0;
  if (kind == "int" && absl::SimpleAtoi(number, &integer)) return AttrValue(integer);
  if (kind == "float" && absl::SimpleAtof(number, &real)) return AttrValue(real);
  return InvalidArgument("'", number, "' is not a default of kind ", kind);
}

template <typename T>
StatusOr<AttrValue> ParseList(Reader& reader, absl::string_view kind) {
  std::vector<T> list;
  if (!reader.Take("[")) return reader.Error("'['");
  if (!reader.Take("]")) {
    do {
      MR_ASSIGN_OR_RETURN(const AttrValue element, ParseScalar(reader, kind));
      const T* value = element.get<T>();
      if (value == nullptr) return reader.Error(kind);
      list.push_back(*value);
    } while (reader.Take(","));
    if (!reader.Take("]")) return reader.Error("',' or ']'");
  }
  return AttrValue(std::move(list));
}

StatusOr<AttrValue> ParseDefault(Reader& reader, absl::string_view kind) {
  if (kind == "list(string)") return ParseList<std::string>(reader, "string");
  if (kind == "list(int)") return ParseList<int64_t>(reader, "int");
  if (kind == "list(float)") return ParseList<float>(reader, "float");
  if (kind == "list(bool)") return ParseList<bool>(reader, "bool");
  if (kind == "list(type)") return ParseList<DType>(reader, "type");
  if (kind == "list(shape)") return ParseList<PartialShape>(reader, "shape");
  if (kind == "tensor" || kind == "func" || absl::StartsWith(kind, "list(")) {
    return InvalidArgument("an attribute of kind ", kind, " cannot have a default");
  }
  return ParseScalar(reader, kind);
}

}  // namespace

StatusOr<ArgDef> ParseArgSpec(absl::string_view spec) {
  Reader reader(spec);
  ArgDef arg;
  if (!reader.TakeName(&arg.name)) return reader.Error("a name");
  if (!reader.Take(":")) return reader.Error("':'");
  std::string type;
  if (!reader.TakeName(&type)) return reader.Error("a type");
  if (reader.Take("*")) {
    arg.number_attr = type;
    if (!reader.TakeName(&type)) return reader.Error("a type");
  }
  if (!reader.AtEnd()) return reader.Error("the end");
  if (const StatusOr<DType> dtype = ParseDType(type); dtype.ok()) {
    arg.dtype = *dtype;
  } else {
    arg.type_attr = type;
  }
  return arg;
}

StatusOr<AttrDef> ParseAttrSpec(absl::string_view spec) {
  Reader reader(spec);
  AttrDef def;
  if (!reader.TakeName(&def.name)) return reader.Error("a name");
  if (!reader.Take(":")) return reader.Error("':'");
  if (reader.Take("list(")) {
    MR_RETURN_IF_ERROR(ParseScalarKind(reader, def));
    if (!reader.Take(")")) return reader.Error("')'");
    def.kind = StrCat("list(", def.kind, ")");
  } else {
    MR_RETURN_IF_ERROR(ParseScalarKind(reader, def));
  }
  if (reader.Take(">=")) {
    if (def.kind != "int" && !absl::StartsWith(def.kind, "list(")) {
      return InvalidArgument("in '", spec, "': only an int or a list has a minimum");
    }
    int64_t minimum = 0;
    const absl::string_view number = reader.TakeUntil("=");
    if (!absl::SimpleAtoi(number, &minimum)) {
      return InvalidArgument("in '", spec, "': '", number, "' is not a minimum");
    }
    def.minimum = minimum;
  }
  if (reader.Take("=")) {
    StatusOr<AttrValue> value = ParseDefault(reader, def.kind);
    if (!value.ok()) return Annotate(value.status(), StrCat("in '", spec, "'"));
    if (Status status = CheckAttrValue(def, *value); !status.ok()) {
      return Annotate(status, StrCat("in '", spec, "'"));
    }
    def.default_value = *std::move(value);
  }
  if (!reader.AtEnd()) return reader.Error("the end");
  return def;
}

}  // namespace millrace
