#include "core/framework/kernel.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_join.h"

namespace millrace {
namespace {

bool Allows(const KernelDef::TypeConstraint& constraint, DType dtype) {
  return std::find(constraint.allowed.begin(), constraint.allowed.end(), dtype) !=
         constraint.allowed.end();
}

// Whether some node fits both, so that it would not be clear which kernel it gets.
bool Overlap(const KernelDef& a, const KernelDef& b) {
  if (a.device_type != b.device_type) return false;
  for (const auto& ca : a.types) {
    for (const auto& cb : b.types) {
      if (ca.attr == cb.attr && std::none_of(ca.allowed.begin(), ca.allowed.end(),
                                             [&](DType dtype) { return Allows(cb, dtype); })) {
        return false;
      }
    }
  }
  return true;
}

bool Fits(const KernelDef& def, const AttrMap& attrs) {
  return std::all_of(def.types.begin(), def.types.end(), [&](const auto& constraint) {
    const AttrValue* value = attrs.Find(constraint.attr);
    if (value == nullptr) return false;
    if (const auto* dtype = value->get<DType>()) return Allows(constraint, *dtype);
    const auto* dtypes = value->get<std::vector<DType>>();
    return dtypes != nullptr && std::all_of(dtypes->begin(), dtypes->end(),
                                            [&](DType dtype) { return Allows(constraint, dtype); });
  });
}

std::string Join(const std::set<DType>& dtypes) {
  return absl::StrJoin(dtypes, ", ",
                       [](std::string* out, DType dtype) { absl::StrAppend(out, Name(dtype)); });
}

// "CPU: T=float, double; CUDA: T=float": which kernels there are. Those that differ in one dtype
// only, as AddTyped makes them, are told together.
std::string Describe(const std::vector<const KernelDef*>& defs) {
  std::map<std::string, std::set<std::string>> by_device;
  std::map<std::pair<std::string, std::string>, std::set<DType>> single;
  for (const KernelDef* def : defs) {
    if (def->types.empty()) {
      by_device[def->device_type].insert("any dtype");
    } else if (def->types.size() == 1) {
      single[{def->device_type, def->types[0].attr}].insert(def->types[0].allowed.begin(),
                                                            def->types[0].allowed.end());
    } else {
      by_device[def->device_type].insert(
          absl::StrJoin(def->types, " ", [](std::string* out, const auto& constraint) {
            absl::StrAppend(out, constraint.attr, "=",
                            Join({constraint.allowed.begin(), constraint.allowed.end()}));
          }));
    }
  }
  for (const auto& [key, dtypes] : single) {
    by_device[key.first].insert(StrCat(key.second, "=", Join(dtypes)));
  }
  return absl::StrJoin(by_device, "; ", [](std::string* out, const auto& device) {
    absl::StrAppend(out, device.first, ": ", absl::StrJoin(device.second, " or "));
  });
}

// The dtypes that told: "T=int8".
std::string Asked(const std::vector<const KernelDef*>& defs, const AttrMap& attrs) {
  std::set<std::string> names;
  for (const KernelDef* def : defs) {
    for (const auto& constraint : def->types) names.insert(constraint.attr);
  }
  return absl::StrJoin(names, " ", [&](std::string* out, const std::string& name) {
    const AttrValue* value = attrs.Find(name);
    absl::StrAppend(out, name, "=", value == nullptr ? "(missing)" : value->ToString());
  });
}

}  // namespace

Status KernelContext::AllocateOutput(int i, DType dtype, const Shape& shape) {
  if (i < 0 || i >= num_outputs()) {
    return Internal("output ", i, " is allocated, but there are ", num_outputs());
  }
  MR_ASSIGN_OR_RETURN(outputs_[i], Tensor::Allocate(device().allocator(), dtype, shape));
  return absl::OkStatus();
}

StatusOr<Tensor> KernelContext::AllocateScratch(DType dtype, const Shape& shape) const {
  return Tensor::Allocate(device().allocator(), dtype, shape);
}

void KernelRegistry::Add(KernelDef def, KernelFactory factory) {
  const auto name = [&] { return StrCat(def.device_type, " kernel of '", def.op, "'"); };
  if (def.op.empty() || def.device_type.empty()) {
    status_.Update(InvalidArgument(name(), ": op and device type must be given"));
    return;
  }
  if (factory == nullptr) {
    status_.Update(InvalidArgument(name(), ": the factory is null"));
    return;
  }
  auto& entries = kernels_[def.op];
  for (const auto& entry : entries) {
    if (Overlap(entry->def, def)) {
      status_.Update(AlreadyExists(name(), " for ", Describe({&def}), " is there already, for ",
                                   Describe({&entry->def})));
      return;
    }
  }
  entries.push_back(std::make_unique<Entry>(Entry{std::move(def), std::move(factory)}));
}

StatusOr<const KernelRegistry::Entry*> KernelRegistry::Find(absl::string_view op,
                                                            absl::string_view device_type,
                                                            const AttrMap& attrs) const {
  const auto found = kernels_.find(op);
  if (found == kernels_.end()) return NotFound("op '", op, "' has no kernel on any device");
  for (const auto& entry : found->second) {
    if (entry->def.device_type == device_type && Fits(entry->def, attrs)) return entry.get();
  }
  std::vector<const KernelDef*> all;
  std::vector<const KernelDef*> on_device;
  for (const auto& entry : found->second) {
    all.push_back(&entry->def);
    if (entry->def.device_type == device_type) on_device.push_back(&entry->def);
  }
  if (on_device.empty()) {
    return NotFound("op '", op, "' has no ", device_type, " kernel; there are ", Describe(all));
  }
  return NotFound("op '", op, "' has no ", device_type, " kernel for ", Asked(on_device, attrs),
                  "; there are ", Describe(all));
}

Status KernelRegistry::Check(absl::string_view op, absl::string_view device_type,
                             const AttrMap& attrs) const {
  return Find(op, device_type, attrs).status();
}

StatusOr<std::unique_ptr<Kernel>> KernelRegistry::Create(
    const KernelConstruction& construction) const {
  const std::string device_type = construction.device.info().name.type.value_or("");
  MR_ASSIGN_OR_RETURN(const Entry* entry,
                      Find(construction.op.name(), device_type, construction.attrs));
  StatusOr<std::unique_ptr<Kernel>> kernel = entry->factory(construction);
  if (!kernel.ok()) {
    return Annotate(kernel.status(),
                    StrCat("node '", construction.node_name, "' (", construction.op.name(), ")"));
  }
  if (*kernel == nullptr) {
    return Internal("the factory of op '", construction.op.name(), "' made no kernel");
  }
  return kernel;
}

std::vector<const KernelDef*> KernelRegistry::All() const {
  std::vector<const KernelDef*> all;
  for (const auto& [op, entries] : kernels_) {
    for (const auto& entry : entries) all.push_back(&entry->def);
  }
  std::stable_sort(all.begin(), all.end(), [](const KernelDef* a, const KernelDef* b) {
    return std::tie(a->op, a->device_type) < std::tie(b->op, b->device_type);
  });
  return all;
}

}  // namespace millrace
