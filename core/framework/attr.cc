#include "core/framework/attr.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

namespace millrace {
namespace {

// In the order of AttrValue::Variant.
constexpr absl::string_view kKinds[] = {
    "none",       "string",     "int",         "float",        "bool",      "type",
    "shape",      "tensor",     "func",        "list(string)", "list(int)", "list(float)",
    "list(bool)", "list(type)", "list(shape)", "list(tensor)", "list(func)"};
static_assert(std::size(kKinds) == std::variant_size_v<AttrValue::Variant>);

// Values are equal if they cannot be told apart: NaN equals itself, 0 and -0 differ. So equal nodes
// can be merged.
bool Same(float a, float b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

bool Same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.raw_data() == b.raw_data()) return true;
  if (a.dtype() == DType::kResource) return a.resource() == b.resource();
  if (a.dtype() == DType::kInvalid) return true;
  const size_t size = a.byte_size();
  return size == b.byte_size() && (size == 0 || std::memcmp(a.raw_data(), b.raw_data(), size) == 0);
}

template <typename T>
bool Same(const T& a, const T& b) {
  return a == b;
}

template <typename T>
bool Same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!Same(static_cast<const T&>(a[i]), static_cast<const T&>(b[i]))) return false;
  }
  return true;
}

std::string Text(std::monostate) { return "none"; }
std::string Text(const std::string& v) { return StrCat("\"", absl::CHexEscape(v), "\""); }
std::string Text(int64_t v) { return StrCat(v); }
std::string Text(bool v) { return v ? "true" : "false"; }
std::string Text(DType v) { return std::string(Name(v)); }
std::string Text(const PartialShape& v) { return v.ToString(); }
std::string Text(const Tensor& v) { return v.ToString(); }

// The shortest digits that read back as the same float, and never those of an int.
std::string Text(float v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), v);
  std::string text(digits, error == std::errc() ? end : digits);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string Text(const FunctionName& v) {
  if (v.attrs == nullptr || v.attrs->size() == 0) return v.name;
  return StrCat(v.name, "{",
                absl::StrJoin(*v.attrs, ", ",
                              [](std::string* out, const auto& attr) {
                                absl::StrAppend(out, attr.first, "=", attr.second.ToString());
                              }),
                "}");
}

template <typename T>
std::string Text(const std::vector<T>& list) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", Text(static_cast<const T&>(list[i])));
  }
  return text + "]";
}

}  // namespace

bool operator==(const FunctionName& a, const FunctionName& b) {
  if (a.name != b.name) return false;
  static const AttrMap& none = *new AttrMap;
  return (a.attrs == nullptr ? none : *a.attrs) == (b.attrs == nullptr ? none : *b.attrs);
}

absl::string_view AttrValue::kind() const { return kKinds[value_.index()]; }

std::string AttrValue::ToString() const {
  return std::visit([](const auto& value) { return Text(value); }, value_);
}

bool operator==(const AttrValue& a, const AttrValue& b) {
  if (a.value_.index() != b.value_.index()) return false;
  return std::visit(
      [&b](const auto& value) {
        return Same(value, *std::get_if<std::decay_t<decltype(value)>>(&b.value_));
      },
      a.value_);
}

const AttrValue* AttrMap::Find(absl::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

}  // namespace millrace
