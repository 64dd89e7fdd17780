#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/framework/op_spec.h"

namespace millrace {
namespace {

// More ports than this are a mistake or an attack: their number comes with the graph.
constexpr int64_t kMaxPorts = 1 << 16;

std::string Join(const std::vector<DType>& dtypes) {
  return absl::StrJoin(dtypes, ", ",
                       [](std::string* out, DType dtype) { absl::StrAppend(out, Name(dtype)); });
}

// The length of a list value, -1 of any other.
int64_t ListLength(const AttrValue& value) {
  return std::visit(
      [](const auto& held) -> int64_t {
        using T = std::decay_t<decltype(held)>;
        if constexpr (requires { typename T::allocator_type; } && !std::is_same_v<T, std::string>) {
          return static_cast<int64_t>(held.size());
        } else {
          return -1;
        }
      },
      value.variant());
}

Status CheckType(const AttrDef& def, DType dtype) {
  if (!IsKnownDType(static_cast<int32_t>(dtype))) {
    return InvalidArgument("attribute '", def.name, "' holds an unknown dtype (",
                           static_cast<int32_t>(dtype), ")");
  }
  const auto& allowed = def.allowed_types;
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), dtype) != allowed.end()) {
    return absl::OkStatus();
  }
  return InvalidArgument("attribute '", def.name, "' is ", Name(dtype), ", but must be one of ",
                         Join(allowed));
}

Status CheckString(const AttrDef& def, const std::string& text) {
  const auto& allowed = def.allowed_strings;
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), text) != allowed.end()) {
    return absl::OkStatus();
  }
  return InvalidArgument("attribute '", def.name, "' is '", text, "', but must be one of '",
                         absl::StrJoin(allowed, "', '"), "'");
}

// A list without elements, as the wire form has it, does not say of which kind it is.
AttrValue EmptyList(absl::string_view kind) {
  if (kind == "list(string)") return std::vector<std::string>();
  if (kind == "list(float)") return std::vector<float>();
  if (kind == "list(bool)") return std::vector<bool>();
  if (kind == "list(type)") return std::vector<DType>();
  if (kind == "list(shape)") return std::vector<PartialShape>();
  if (kind == "list(tensor)") return std::vector<Tensor>();
  if (kind == "list(func)") return std::vector<FunctionName>();
  return std::vector<int64_t>();
}

Status CompleteAttr(const AttrDef& def, AttrMap& attrs) {
  const AttrValue* value = attrs.Find(def.name);
  if (value == nullptr) {
    if (!def.default_value) {
      return InvalidArgument("attribute '", def.name, "' (", def.kind, ") is missing");
    }
    attrs.Set(def.name, *def.default_value);
    return absl::OkStatus();
  }
  if (value->kind() != def.kind && absl::StartsWith(def.kind, "list(") && ListLength(*value) == 0) {
    attrs.Set(def.name, EmptyList(def.kind));
    value = attrs.Find(def.name);
  }
  return CheckAttrValue(def, *value);
}

Status AppendPorts(const ArgDef& arg, const AttrMap& attrs, std::vector<DType>& dtypes,
                   std::vector<bool>& host) {
  int64_t count = 1;
  if (!arg.type_list_attr.empty()) {
    const AttrValue* list = attrs.Find(arg.type_list_attr);
    const auto* types = list == nullptr ? nullptr : list->get<std::vector<DType>>();
    if (types == nullptr) return InvalidArgument("attribute '", arg.type_list_attr, "' is missing");
    count = static_cast<int64_t>(types->size());
    dtypes.insert(dtypes.end(), types->begin(), types->end());
  } else {
    DType dtype = arg.dtype;
    if (!arg.type_attr.empty()) {
      const AttrValue* type = attrs.Find(arg.type_attr);
      const auto* held = type == nullptr ? nullptr : type->get<DType>();
      if (held == nullptr) return InvalidArgument("attribute '", arg.type_attr, "' is missing");
      dtype = *held;
    }
    if (!arg.number_attr.empty()) {
      const AttrValue* number = attrs.Find(arg.number_attr);
      const auto* held = number == nullptr ? nullptr : number->get<int64_t>();
      if (held == nullptr) return InvalidArgument("attribute '", arg.number_attr, "' is missing");
      if (*held < 0 || *held > kMaxPorts) {
        return InvalidArgument("attribute '", arg.number_attr, "' is ", *held,
                               ", but must be from 0 to ", kMaxPorts);
      }
      count = *held;
    }
    dtypes.insert(dtypes.end(), count, dtype);
  }
  host.insert(host.end(), count, arg.host_memory);
  return absl::OkStatus();
}

}  // namespace

Status CheckAttrValue(const AttrDef& def, const AttrValue& value) {
  if (value.kind() != def.kind) {
    return InvalidArgument("attribute '", def.name, "' is ", value.ToString(), " (", value.kind(),
                           "), but must be of kind ", def.kind);
  }
  if (const auto* type = value.get<DType>()) {
    MR_RETURN_IF_ERROR(CheckType(def, *type));
  } else if (const auto* types = value.get<std::vector<DType>>()) {
    for (DType type : *types) MR_RETURN_IF_ERROR(CheckType(def, type));
  } else if (const auto* text = value.get<std::string>()) {
    MR_RETURN_IF_ERROR(CheckString(def, *text));
  } else if (const auto* texts = value.get<std::vector<std::string>>()) {
    for (const std::string& text : *texts) MR_RETURN_IF_ERROR(CheckString(def, text));
  }
  if (!def.minimum) return absl::OkStatus();
  if (const auto* number = value.get<int64_t>(); number != nullptr && *number < *def.minimum) {
    return InvalidArgument("attribute '", def.name, "' is ", *number, ", but must be at least ",
                           *def.minimum);
  }
  const int64_t length = ListLength(value);
  if (length >= 0 && length < *def.minimum) {
    return InvalidArgument("attribute '", def.name, "' has ", length,
                           " elements, but must have at least ", *def.minimum);
  }
  return absl::OkStatus();
}

StatusOr<NodeSignature> ResolveSignature(const OpDef& op, AttrMap& attrs) {
  for (const AttrDef& def : op.attrs()) MR_RETURN_IF_ERROR(CompleteAttr(def, attrs));
  for (const auto& [name, value] : attrs) {
    if (!absl::StartsWith(name, "_") && op.FindAttr(name) == nullptr) {
      return InvalidArgument("op '", op.name(), "' has no attribute '", name, "'");
    }
  }
  NodeSignature signature;
  for (const ArgDef& arg : op.inputs()) {
    MR_RETURN_IF_ERROR(AppendPorts(arg, attrs, signature.inputs, signature.host_inputs));
  }
  for (const ArgDef& arg : op.outputs()) {
    MR_RETURN_IF_ERROR(AppendPorts(arg, attrs, signature.outputs, signature.host_outputs));
  }
  return signature;
}

}  // namespace millrace
