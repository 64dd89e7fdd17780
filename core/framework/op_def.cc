#include "core/framework/op_def.h"

#include <algorithm>

#include "core/framework/op_spec.h"

namespace millrace {
namespace {

// Whether the attribute that `arg` names is there, and of the right kind.
Status CheckArg(const OpDef& op, const ArgDef& arg) {
  const auto check = [&](const std::string& name, absl::string_view kind) {
    if (name.empty()) return absl::OkStatus();
    const AttrDef* attr = op.FindAttr(name);
    if (attr == nullptr) {
      return InvalidArgument("'", arg.name, "' names '", name,
                             "', which is neither a dtype nor an attribute");
    }
    if (attr->kind == kind) return absl::OkStatus();
    return InvalidArgument("'", arg.name, "' needs attribute '", name, "' to be of kind ", kind,
                           ", but it is ", attr->kind);
  };
  MR_RETURN_IF_ERROR(check(arg.type_attr, "type"));
  MR_RETURN_IF_ERROR(check(arg.type_list_attr, "list(type)"));
  MR_RETURN_IF_ERROR(check(arg.number_attr, "int"));
  if (!arg.type_list_attr.empty() && !arg.number_attr.empty()) {
    return InvalidArgument("'", arg.name, "' has both a number and a list of types");
  }
  return absl::OkStatus();
}

Status CheckNames(const std::vector<ArgDef>& args) {
  for (size_t i = 0; i < args.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (args[i].name == args[j].name) {
        return InvalidArgument("'", args[i].name, "' is declared twice");
      }
    }
  }
  return absl::OkStatus();
}

Status Check(const OpDef& op) {
  MR_RETURN_IF_ERROR(op.status());
  if (op.name().empty()) return InvalidArgument("the name is empty");
  MR_RETURN_IF_ERROR(CheckNames(op.inputs()));
  MR_RETURN_IF_ERROR(CheckNames(op.outputs()));
  for (const ArgDef& arg : op.inputs()) MR_RETURN_IF_ERROR(CheckArg(op, arg));
  for (const ArgDef& arg : op.outputs()) MR_RETURN_IF_ERROR(CheckArg(op, arg));
  if (op.shape_fn() == nullptr) return InvalidArgument("there is no shape function");
  if (op.gradient_fn() == nullptr && op.not_differentiable().empty()) {
    return InvalidArgument("there is neither a gradient nor a reason why there is none");
  }
  if (op.gradient_fn() != nullptr && !op.not_differentiable().empty()) {
    return InvalidArgument("there are both a gradient and a reason why there is none");
  }
  return absl::OkStatus();
}

}  // namespace

OpDef& OpDef::AddArg(absl::string_view spec, bool host_memory, std::vector<ArgDef>& args) {
  StatusOr<ArgDef> arg = ParseArgSpec(spec);
  if (!arg.ok()) {
    status_.Update(arg.status());
    return *this;
  }
  arg->host_memory = host_memory;
  args.push_back(*std::move(arg));
  Link();
  return *this;
}

// Attributes may be declared before or after what names them, so this runs after each.
void OpDef::Link() {
  const auto find = [this](const std::string& name) -> AttrDef* {
    const auto found = std::find_if(attrs_.begin(), attrs_.end(),
                                    [&](const AttrDef& attr) { return attr.name == name; });
    return found == attrs_.end() ? nullptr : &*found;
  };
  for (std::vector<ArgDef>* args : {&inputs_, &outputs_}) {
    for (ArgDef& arg : *args) {
      AttrDef* type = find(arg.type_attr);
      if (type != nullptr && type->kind == "list(type)") {
        arg.type_list_attr = std::exchange(arg.type_attr, "");
      }
      // As in the public op set: at least one, unless the declaration says otherwise.
      for (AttrDef* counts : {find(arg.type_list_attr), find(arg.number_attr)}) {
        if (counts != nullptr && !counts->minimum) counts->minimum = 1;
      }
    }
  }
}

OpDef& OpDef::Input(absl::string_view spec) { return AddArg(spec, false, inputs_); }
OpDef& OpDef::HostInput(absl::string_view spec) { return AddArg(spec, true, inputs_); }
OpDef& OpDef::Output(absl::string_view spec) { return AddArg(spec, false, outputs_); }
OpDef& OpDef::HostOutput(absl::string_view spec) { return AddArg(spec, true, outputs_); }

OpDef& OpDef::Attr(absl::string_view spec) {
  StatusOr<AttrDef> attr = ParseAttrSpec(spec);
  if (attr.ok() && FindAttr(attr->name) != nullptr) {
    attr = InvalidArgument("attribute '", attr->name, "' is declared twice");
  }
  if (!attr.ok()) {
    status_.Update(attr.status());
    return *this;
  }
  attrs_.push_back(*std::move(attr));
  Link();
  return *this;
}

OpDef& OpDef::Shape(ShapeFn fn) {
  shape_fn_ = std::move(fn);
  return *this;
}

OpDef& OpDef::Gradient(GradientFn fn) {
  gradient_fn_ = std::move(fn);
  return *this;
}

OpDef& OpDef::NotDifferentiable(absl::string_view reason) {
  if (reason.empty()) status_.Update(InvalidArgument("the reason for no gradient is empty"));
  not_differentiable_ = std::string(reason);
  return *this;
}

OpDef& OpDef::Sharding(ShardingFn fn) {
  sharding_fn_ = std::move(fn);
  return *this;
}

OpDef& OpDef::Cost(CostFn fn) {
  cost_fn_ = std::move(fn);
  return *this;
}

OpDef& OpDef::Traits(std::initializer_list<Trait> traits) {
  for (Trait trait : traits) traits_ |= static_cast<uint32_t>(trait);
  return *this;
}

OpDef& OpDef::Doc(absl::string_view text) {
  doc_ = std::string(text);
  return *this;
}

const AttrDef* OpDef::FindAttr(absl::string_view name) const {
  for (const AttrDef& attr : attrs_) {
    if (attr.name == name) return &attr;
  }
  return nullptr;
}

void OpRegistry::Add(OpDef op) {
  const auto fail = [&](const Status& status) {
    status_.Update(Annotate(status, StrCat("op '", op.name(), "'")));
  };
  if (Status status = Check(op); !status.ok()) return fail(status);
  const auto [slot, is_new] = ops_.try_emplace(op.name());
  if (!is_new) return fail(AlreadyExists("it is registered twice"));
  slot->second = std::make_unique<const OpDef>(std::move(op));
}

const OpDef* OpRegistry::Find(absl::string_view name) const {
  const auto found = ops_.find(name);
  return found == ops_.end() ? nullptr : found->second.get();
}

std::vector<const OpDef*> OpRegistry::All() const {
  std::vector<const OpDef*> all;
  all.reserve(ops_.size());
  for (const auto& [name, op] : ops_) all.push_back(op.get());
  std::sort(all.begin(), all.end(),
            [](const OpDef* a, const OpDef* b) { return a->name() < b->name(); });
  return all;
}

}  // namespace millrace
