#ifndef CORE_FRAMEWORK_ATTR_H_
#define CORE_FRAMEWORK_ATTR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/framework/dtype.h"
#include "core/framework/shape.h"
#include "core/framework/tensor.h"

namespace millrace {

class AttrMap;

// The name of a function in the graph's library, with values for its attributes.
struct FunctionName {
  std::string name;
  std::shared_ptr<const AttrMap> attrs;  // may be null
  friend bool operator==(const FunctionName& a, const FunctionName& b);
};

// The value of an attribute of a node: what the public AttrValue can hold.
class AttrValue {
 public:
  using Variant =
      std::variant<std::monostate, std::string, int64_t, float, bool, DType, PartialShape, Tensor,
                   FunctionName, std::vector<std::string>, std::vector<int64_t>, std::vector<float>,
                   std::vector<bool>, std::vector<DType>, std::vector<PartialShape>,
                   std::vector<Tensor>, std::vector<FunctionName>>;
  AttrValue() = default;
  AttrValue(const char* v) : value_(std::string(v)) {}              // NOLINT: values convert
  AttrValue(std::string v) : value_(std::move(v)) {}                // NOLINT
  AttrValue(int v) : value_(static_cast<int64_t>(v)) {}             // NOLINT
  AttrValue(int64_t v) : value_(v) {}                               // NOLINT
  AttrValue(float v) : value_(v) {}                                 // NOLINT
  AttrValue(double v) : value_(static_cast<float>(v)) {}            // NOLINT
  AttrValue(bool v) : value_(v) {}                                  // NOLINT
  AttrValue(DType v) : value_(v) {}                                 // NOLINT
  AttrValue(PartialShape v) : value_(std::move(v)) {}               // NOLINT
  AttrValue(Shape v) : value_(PartialShape(v)) {}                   // NOLINT
  AttrValue(Tensor v) : value_(std::move(v)) {}                     // NOLINT
  AttrValue(FunctionName v) : value_(std::move(v)) {}               // NOLINT
  AttrValue(std::vector<std::string> v) : value_(std::move(v)) {}   // NOLINT
  AttrValue(std::vector<int64_t> v) : value_(std::move(v)) {}       // NOLINT
  AttrValue(std::vector<float> v) : value_(std::move(v)) {}         // NOLINT
  AttrValue(std::vector<bool> v) : value_(std::move(v)) {}          // NOLINT
  AttrValue(std::vector<DType> v) : value_(std::move(v)) {}         // NOLINT
  AttrValue(std::vector<PartialShape> v) : value_(std::move(v)) {}  // NOLINT
  AttrValue(std::vector<Tensor> v) : value_(std::move(v)) {}        // NOLINT
  AttrValue(std::vector<FunctionName> v) : value_(std::move(v)) {}  // NOLINT

  const Variant& variant() const { return value_; }
  // Null if it holds another kind.
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&value_);
  }
  // "string", "int", "list(shape)", ...: the spelling of op signatures.
  absl::string_view kind() const;
  std::string ToString() const;  // the text form's spelling
  friend bool operator==(const AttrValue& a, const AttrValue& b);

 private:
  Variant value_;
};

// The attributes of one node, by name, sorted. Names that start with '_' are annotations: kept,
// passed on, and ignored unless the system knows them.
class AttrMap {
 public:
  AttrMap() = default;
  AttrMap(std::initializer_list<std::pair<const std::string, AttrValue>> list) : values_(list) {}

  const AttrValue* Find(absl::string_view name) const;
  void Set(absl::string_view name, AttrValue value) {
    values_[std::string(name)] = std::move(value);
  }
  void Erase(absl::string_view name) { values_.erase(std::string(name)); }
  bool Has(absl::string_view name) const { return Find(name) != nullptr; }

  // InvalidArgument naming the attribute if it is missing or of another kind. T as in AttrValue.
  template <typename T>
  StatusOr<T> Get(absl::string_view name) const {
    const AttrValue* value = Find(name);
    if (value == nullptr) return InvalidArgument("attribute '", name, "' is missing");
    if (const T* held = value->get<T>()) return *held;
    return InvalidArgument("attribute '", name, "' has an unexpected kind: ", value->kind());
  }
  // `fallback` if missing or of another kind.
  template <typename T>
  T GetOr(absl::string_view name, T fallback) const {
    const AttrValue* value = Find(name);
    if (value == nullptr) return fallback;
    const T* held = value->get<T>();
    return held == nullptr ? fallback : *held;
  }

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  size_t size() const { return values_.size(); }
  friend bool operator==(const AttrMap& a, const AttrMap& b) { return a.values_ == b.values_; }

 private:
  std::map<std::string, AttrValue, std::less<>> values_;
};

}  // namespace millrace

#endif  // CORE_FRAMEWORK_ATTR_H_
