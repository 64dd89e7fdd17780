#include "core/graph/attr_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "core/graph/node_name.h"

namespace millrace {
namespace {

// Functions that are values of attributes of functions that ...: as deep as the wire form has them.
constexpr int kMaxDepth = 16;

constexpr absl::string_view kScalarKinds[] = {"string", "int",   "float",  "bool",
                                              "type",   "shape", "tensor", "func"};

StatusOr<AttrValue> ScalarFromText(TextCursor& cursor, absl::string_view kind, int depth);
StatusOr<AttrValue> ValueFromText(TextCursor& cursor, absl::string_view kind, int depth);

std::string FunctionToText(const FunctionName& function) {
  std::string text = AttrNameToText(function.name);
  if (function.attrs == nullptr || function.attrs->size() == 0) return text;
  absl::string_view separator = "{";
  for (const auto& [name, value] : *function.attrs) {
    absl::StrAppend(&text, separator, AttrNameToText(name), "=", AttrToText(value, true));
    separator = ", ";
  }
  return text + "}";
}

template <typename T, typename ToText>
std::string ListToText(const std::vector<T>& list, ToText to_text) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", to_text(list[i]));
  }
  return text + "]";
}

bool IsAmbiguous(const AttrValue& value) {
  if (value.get<PartialShape>() || value.get<FunctionName>() ||
      value.get<std::vector<PartialShape>>() || value.get<std::vector<FunctionName>>()) {
    return true;
  }
  // A list without elements is read as one of ints.
  return value.ToString() == "[]" && value.get<std::vector<int64_t>>() == nullptr;
}

StatusOr<AttrValue> IntFromText(TextCursor& cursor) {
  const int column = cursor.column();
  int64_t value = 0;
  if (absl::SimpleAtoi(cursor.TakeWord(), &value)) return AttrValue(value);
  return cursor.ErrorAt(column, "expected an integer");
}

StatusOr<AttrValue> FloatFromText(TextCursor& cursor) {
  const int column = cursor.column();
  float value = 0;
  if (absl::SimpleAtof(cursor.TakeWord(), &value)) return AttrValue(value);
  return cursor.ErrorAt(column, "expected a number");
}

StatusOr<AttrValue> BoolFromText(TextCursor& cursor) {
  const int column = cursor.column();
  const absl::string_view word = cursor.TakeWord();
  if (word == "true" || word == "false") return AttrValue(word == "true");
  return cursor.ErrorAt(column, "expected true or false");
}

StatusOr<AttrValue> TypeFromText(TextCursor& cursor) {
  const int column = cursor.column();
  const StatusOr<DType> dtype = ParseDType(cursor.TakeWord());
  if (dtype.ok()) return AttrValue(*dtype);
  return cursor.ErrorAt(column, dtype.status().message());
}

StatusOr<AttrValue> ShapeFromText(TextCursor& cursor) {
  const int column = cursor.column();
  if (cursor.Take("?")) return AttrValue(PartialShape());
  if (!cursor.Take("[")) return cursor.Error("expected a shape, as [2,?] or ?");
  const StatusOr<PartialShape> shape = PartialShape::Parse(StrCat("[", cursor.TakeUntil("]"), "]"));
  if (!shape.ok()) return cursor.ErrorAt(column, shape.status().message());
  if (!cursor.Take("]")) return cursor.Error("expected ']'");
  return AttrValue(*shape);
}

StatusOr<AttrValue> FunctionFromText(TextCursor& cursor, int depth) {
  if (depth >= kMaxDepth) return cursor.Error("functions are nested too deeply");
  FunctionName function;
  MR_ASSIGN_OR_RETURN(function.name, AttrNameFromText(cursor));
  if (!cursor.Take("{")) return AttrValue(std::move(function));
  auto attrs = std::make_shared<AttrMap>();
  do {
    MR_ASSIGN_OR_RETURN(const std::string name, AttrNameFromText(cursor));
    if (attrs->Has(name)) return cursor.Error(StrCat("attribute '", name, "' is there twice"));
    if (!cursor.Take("=")) return cursor.Error("expected '='");
    MR_ASSIGN_OR_RETURN(AttrValue value, ValueFromText(cursor, "", depth + 1));
    attrs->Set(name, std::move(value));
  } while (cursor.Take(","));
  if (!cursor.Take("}")) return cursor.Error("expected ',' or '}'");
  function.attrs = std::move(attrs);
  return AttrValue(std::move(function));
}

// The kind of a scalar by how it looks.
StatusOr<AttrValue> PlainScalarFromText(TextCursor& cursor) {
  if (cursor.Sees('"')) return ScalarFromText(cursor, "string", 0);
  if (cursor.Sees('?')) return ShapeFromText(cursor);
  if (cursor.Take("tensor(")) {
    MR_ASSIGN_OR_RETURN(Tensor tensor, TensorFromText(cursor));
    return AttrValue(std::move(tensor));
  }
  const int column = cursor.column();
  const absl::string_view word = cursor.TakeWord();
  if (word == "none") return AttrValue();
  if (word == "true" || word == "false") return AttrValue(word == "true");
  if (const StatusOr<DType> dtype = ParseDType(word); dtype.ok()) return AttrValue(*dtype);
  int64_t integer = 0;
  if (absl::SimpleAtoi(word, &integer)) return AttrValue(integer);
  float number = 0;
  if (absl::SimpleAtof(word, &number)) return AttrValue(number);
  return cursor.ErrorAt(column, "expected a value");
}

StatusOr<AttrValue> ScalarFromText(TextCursor& cursor, absl::string_view kind, int depth) {
  cursor.AtEnd();  // so that columns are those of what comes next
  if (kind == "string") {
    MR_ASSIGN_OR_RETURN(std::string text, cursor.TakeQuoted());
    return AttrValue(std::move(text));
  }
  if (kind == "int") return IntFromText(cursor);
  if (kind == "float") return FloatFromText(cursor);
  if (kind == "bool") return BoolFromText(cursor);
  if (kind == "type") return TypeFromText(cursor);
  if (kind == "shape") return ShapeFromText(cursor);
  if (kind == "func") return FunctionFromText(cursor, depth);
  if (kind == "tensor") {
    if (!cursor.Take("tensor(")) return cursor.Error("expected a tensor, as tensor(float[2]: 1 2)");
    MR_ASSIGN_OR_RETURN(Tensor tensor, TensorFromText(cursor));
    return AttrValue(std::move(tensor));
  }
  return PlainScalarFromText(cursor);
}

// A list whose elements are of one kind, T.
template <typename T>
StatusOr<AttrValue> ListOf(TextCursor& cursor, const std::vector<AttrValue>& elements) {
  std::vector<T> list;
  list.reserve(elements.size());
  for (const AttrValue& element : elements) {
    const T* value = element.get<T>();
    if (value == nullptr) return cursor.Error("the elements of a list must be of one kind");
    list.push_back(*value);
  }
  return AttrValue(std::move(list));
}

StatusOr<AttrValue> ListFromText(TextCursor& cursor, absl::string_view kind, int depth) {
  if (!cursor.Take("[")) return cursor.Error("expected '['");
  std::vector<AttrValue> elements;
  if (!cursor.Take("]")) {
    do {
      MR_ASSIGN_OR_RETURN(AttrValue element, ScalarFromText(cursor, kind, depth));
      if (kind.empty()) kind = element.kind();
      elements.push_back(std::move(element));
    } while (cursor.Take(","));
    if (!cursor.Take("]")) return cursor.Error("expected ',' or ']'");
  }
  if (kind == "string") return ListOf<std::string>(cursor, elements);
  if (kind == "int" || kind.empty()) return ListOf<int64_t>(cursor, elements);
  if (kind == "float") return ListOf<float>(cursor, elements);
  if (kind == "bool") return ListOf<bool>(cursor, elements);
  if (kind == "type") return ListOf<DType>(cursor, elements);
  if (kind == "shape") return ListOf<PartialShape>(cursor, elements);
  if (kind == "tensor") return ListOf<Tensor>(cursor, elements);
  if (kind == "func") return ListOf<FunctionName>(cursor, elements);
  return cursor.Error("a list cannot have such elements");
}

// A kind before the value, as in "list(shape):[[2]]"; "" if there is none.
absl::string_view KindFromText(TextCursor& cursor, std::string* storage) {
  for (const absl::string_view kind : kScalarKinds) {
    for (const bool list : {false, true}) {
      *storage = list ? StrCat("list(", kind, ")") : std::string(kind);
      if (cursor.Take(StrCat(*storage, ":"))) return *storage;
    }
  }
  return "";
}

StatusOr<AttrValue> ValueFromText(TextCursor& cursor, absl::string_view kind, int depth) {
  std::string storage;
  if (kind.empty()) kind = KindFromText(cursor, &storage);
  absl::string_view element = kind;
  if (absl::ConsumePrefix(&element, "list(")) {
    absl::ConsumeSuffix(&element, ")");
    return ListFromText(cursor, element, depth);
  }
  if (kind.empty() && cursor.Sees('[')) return ListFromText(cursor, "", depth);
  return ScalarFromText(cursor, kind, depth);
}

}  // namespace

std::string AttrToText(const AttrValue& value, bool with_kind) {
  const std::string kind = with_kind && IsAmbiguous(value) ? StrCat(value.kind(), ":") : "";
  if (const auto* tensor = value.get<Tensor>()) return kind + TensorToText(*tensor);
  if (const auto* tensors = value.get<std::vector<Tensor>>()) {
    return kind + ListToText(*tensors, TensorToText);
  }
  if (const auto* function = value.get<FunctionName>()) return kind + FunctionToText(*function);
  if (const auto* functions = value.get<std::vector<FunctionName>>()) {
    return kind + ListToText(*functions, FunctionToText);
  }
  return kind + value.ToString();
}

StatusOr<AttrValue> AttrFromText(TextCursor& cursor, absl::string_view kind) {
  return ValueFromText(cursor, kind, 0);
}

std::string AttrNameToText(absl::string_view name) {
  return IsNodeName(name) ? std::string(name) : StrCat("\"", absl::CHexEscape(name), "\"");
}

StatusOr<std::string> AttrNameFromText(TextCursor& cursor) {
  if (cursor.Sees('"')) return cursor.TakeQuoted();
  const absl::string_view name = cursor.TakeName();
  if (name.empty()) return cursor.Error("expected a name");
  return std::string(name);
}

}  // namespace millrace
