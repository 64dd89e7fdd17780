#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_join.h"
#include "core/framework/op_def.h"

namespace millrace {
namespace {

// How many inputs an argument takes, or the attribute that would say so.
struct Extent {
  std::optional<int64_t> count;
  std::string attr;
};

StatusOr<Extent> ExtentOf(const ArgDef& arg, const AttrMap& attrs) {
  Extent extent;
  if (!arg.type_list_attr.empty()) {
    extent.attr = arg.type_list_attr;
    if (attrs.Has(extent.attr)) {
      const AttrValue* value = attrs.Find(extent.attr);
      const auto* types = value->get<std::vector<DType>>();
      if (types == nullptr) {
        return InvalidArgument("attribute '", extent.attr, "' is ", value->kind(),
                               ", but must be of kind list(type)");
      }
      extent.count = static_cast<int64_t>(types->size());
    }
  } else if (!arg.number_attr.empty()) {
    extent.attr = arg.number_attr;
    if (attrs.Has(extent.attr)) {
      MR_ASSIGN_OR_RETURN(extent.count, attrs.Get<int64_t>(extent.attr));
    }
  } else {
    extent.count = 1;
  }
  return extent;
}

// The number of inputs of each argument. What the attributes leave open follows from the total, if
// only one attribute is open.
StatusOr<std::vector<int64_t>> CountInputs(const OpDef& op, int64_t total, const AttrMap& attrs) {
  std::vector<int64_t> counts;
  std::string open;
  int64_t open_args = 0;
  int64_t known = 0;
  for (const ArgDef& arg : op.inputs()) {
    MR_ASSIGN_OR_RETURN(const Extent extent, ExtentOf(arg, attrs));
    if (extent.count) {
      if (!extent.attr.empty() && (*extent.count < 0 || *extent.count > total)) {
        return InvalidArgument("op '", op.name(), "' has ", total, " inputs, but '", extent.attr,
                               "' says that '", arg.name, "' alone has ", *extent.count);
      }
      known += *extent.count;
    } else if (open_args > 0 && open != extent.attr) {
      return InvalidArgument("op '", op.name(), "': set attribute '", open, "' or '", extent.attr,
                             "', as the inputs alone do not tell them");
    } else {
      open = extent.attr;
      ++open_args;
    }
    counts.push_back(extent.count.value_or(-1));
  }
  const int64_t left = total - known;
  if (left < 0 || (open_args == 0 ? left != 0 : left % open_args != 0)) {
    const std::string names =
        absl::StrJoin(op.inputs(), ", ", [](std::string* out, const ArgDef& arg) {
          absl::StrAppend(out, arg.name,
                          arg.number_attr.empty() && arg.type_list_attr.empty() ? "" : "...");
        });
    return InvalidArgument("op '", op.name(), "' is given ", total, " inputs, which do not fit (",
                           names, ")");
  }
  for (int64_t& count : counts) {
    if (count < 0) count = left / open_args;
  }
  return counts;
}

// Which inferred attribute follows from which input, for messages.
struct Origin {
  const std::string* attr;
  const std::string* input;
};

// Gives attribute `name` the value, or checks that it has it.
Status Agree(const OpDef& op, const std::string& name, AttrValue value, const ArgDef& arg,
             AttrMap& attrs, absl::InlinedVector<Origin, 4>& inferred) {
  const AttrValue* present = attrs.Find(name);
  if (present == nullptr) {
    attrs.Set(name, std::move(value));
    inferred.push_back({&name, &arg.name});
    return absl::OkStatus();
  }
  if (*present == value) return absl::OkStatus();
  std::string reason;
  for (const Origin& origin : inferred) {
    if (*origin.attr == name) reason = StrCat(" (from input '", *origin.input, "')");
  }
  return InvalidArgument("op '", op.name(), "': input '", arg.name, "' is ", value.ToString(),
                         ", but attribute '", name, "' is ", present->ToString(), reason);
}

}  // namespace

Status InferTypeAttrs(const OpDef& op, absl::Span<const DType> inputs, AttrMap& attrs) {
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> counts,
                      CountInputs(op, static_cast<int64_t>(inputs.size()), attrs));
  absl::InlinedVector<Origin, 4> inferred;
  size_t next = 0;
  for (size_t a = 0; a < counts.size(); ++a) {
    const ArgDef& arg = op.inputs()[a];
    const absl::Span<const DType> dtypes = inputs.subspan(next, counts[a]);
    next += counts[a];
    for (DType dtype : dtypes) {
      if (dtype == DType::kInvalid) {
        return InvalidArgument("op '", op.name(), "': input '", arg.name, "' has no dtype");
      }
      if (arg.dtype != DType::kInvalid && dtype != arg.dtype) {
        return InvalidArgument("op '", op.name(), "': input '", arg.name, "' is ", Name(dtype),
                               ", but must be ", Name(arg.dtype));
      }
      if (arg.type_attr.empty()) continue;
      MR_RETURN_IF_ERROR(Agree(op, arg.type_attr, dtype, arg, attrs, inferred));
    }
    if (!arg.type_list_attr.empty()) {
      MR_RETURN_IF_ERROR(Agree(op, arg.type_list_attr,
                               std::vector<DType>(dtypes.begin(), dtypes.end()), arg, attrs,
                               inferred));
    }
    if (!arg.number_attr.empty()) {
      MR_RETURN_IF_ERROR(Agree(op, arg.number_attr, counts[a], arg, attrs, inferred));
    }
  }
  return absl::OkStatus();
}

}  // namespace millrace
