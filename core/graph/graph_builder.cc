#include "core/graph/graph_builder.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

enum ScopeKind {
  kNameScope,
  kDeviceScope,
  kColocationScope,
  kControlScope,
  kNoControlScope,
  kRootScope,
};

// "(in scope 'conv1/', at lenet.cc:12)", of which either part may be missing.
std::string Place(const std::string& scope, const SourceLocation& where) {
  std::string place;
  if (!scope.empty()) place = StrCat("in scope '", scope, "'");
  if (where.line > 0) {
    absl::StrAppend(&place, place.empty() ? "" : ", ", "at ", where.file, ":", where.line);
  }
  return place.empty() ? "" : StrCat(" (", place, ")");
}

}  // namespace

const std::string& Operation::name() const {
  static const std::string& none = *new std::string();
  return ok() && builder_->graph().IsLive(node_) ? builder_->graph().node(node_)->name() : none;
}

DType Value::dtype() const { return ok() ? builder_->graph().dtype(port_) : DType::kInvalid; }

PartialShape Value::shape() const { return ok() ? builder_->graph().shape(port_) : PartialShape(); }

std::string Value::name() const {
  return ok() ? StrCat(builder_->graph().node(port_.node)->name(), ":", port_.index) : "";
}

GraphBuilder::GraphBuilder(std::shared_ptr<const OpRegistry> ops)
    : graph_(std::move(ops)), status_(graph_.ops().status()) {}

GraphBuilder::Scope::Scope(Scope&& other) noexcept
    : builder_(std::exchange(other.builder_, nullptr)), kind_(other.kind_) {}

GraphBuilder::Scope::~Scope() {
  if (builder_ != nullptr) builder_->EndScope(kind_);
}

void GraphBuilder::EndScope(int kind) {
  switch (kind) {
    case kNameScope:
      name_scopes_.pop_back();
      break;
    case kDeviceScope:
      device_scopes_.pop_back();
      break;
    case kColocationScope:
      colocation_scopes_.pop_back();
      device_scopes_.pop_back();
      break;
    case kControlScope:
      control_scopes_.pop_back();
      break;
    case kRootScope:
      name_scopes_.pop_back();
      colocation_scopes_.pop_back();
      device_scopes_.pop_back();
      [[fallthrough]];
    default:
      control_scopes_ = std::move(set_aside_.back());
      set_aside_.pop_back();
  }
}

GraphBuilder::Scope GraphBuilder::NameScope(absl::string_view name) {
  while (!name.empty() && name.back() == '/') name.remove_suffix(1);
  std::string scope = CurrentScope();
  if (!name.empty()) {
    const std::string base = StrCat(scope, name);
    std::string unique = base;
    // The value is the next suffix to try, so that a name that is used often costs no search.
    const auto [used, fresh] = used_scopes_.try_emplace(base, 1);
    if (!fresh) {
      int suffix = used->second;
      do {
        unique = StrCat(base, "_", suffix++);
      } while (used_scopes_.contains(unique));
      used->second = suffix;
      used_scopes_.emplace(unique, 1);
    }
    scope = StrCat(unique, "/");
  }
  name_scopes_.push_back(std::move(scope));
  return Scope(this, kNameScope);
}

GraphBuilder::Scope GraphBuilder::DeviceScope(absl::string_view device) {
  std::string merged = device_scopes_.empty() ? "" : device_scopes_.back();
  const StatusOr<DeviceName> inner = DeviceName::Parse(device);
  const StatusOr<DeviceName> outer = DeviceName::Parse(merged);
  if (!inner.ok()) {
    Fail(inner.status(), SourceLocation());
  } else if (outer.ok()) {
    merged = inner->WithDefaults(*outer).ToString();
  }
  device_scopes_.push_back(std::move(merged));
  return Scope(this, kDeviceScope);
}

GraphBuilder::Scope GraphBuilder::DeviceOf(Operation operation) {
  const bool known = operation.builder() == this && graph_.IsLive(operation.node());
  if (operation.ok() && !known) {
    Fail(InvalidArgument("cannot place nodes beside an operation of another builder"),
         SourceLocation());
  }
  device_scopes_.push_back(known ? graph_.node(operation.node())->requested_device() : "");
  colocation_scopes_.push_back("");
  return Scope(this, kColocationScope);
}

GraphBuilder::Scope GraphBuilder::ColocateWith(Operation operation) {
  Scope scope = DeviceOf(operation);
  if (status_.ok() && operation.ok()) colocation_scopes_.back() = operation.name();
  return scope;
}

GraphBuilder::Scope GraphBuilder::ControlDependencies(std::vector<Operation> operations) {
  std::vector<NodeId> nodes;
  for (const Operation& operation : operations) {
    if (!operation.ok()) continue;
    if (operation.builder() != this) {
      Fail(InvalidArgument("a control dependency on an operation of another builder"),
           SourceLocation());
      continue;
    }
    nodes.push_back(operation.node());
  }
  control_scopes_.push_back(std::move(nodes));
  return Scope(this, kControlScope);
}

GraphBuilder::Scope GraphBuilder::NoControlDependencies() {
  set_aside_.push_back(std::exchange(control_scopes_, {}));
  return Scope(this, kNoControlScope);
}

GraphBuilder::Scope GraphBuilder::RootScope() {
  set_aside_.push_back(std::exchange(control_scopes_, {}));
  name_scopes_.emplace_back();
  device_scopes_.emplace_back();
  colocation_scopes_.emplace_back();
  return Scope(this, kRootScope);
}

std::string GraphBuilder::CurrentScope() const {
  return name_scopes_.empty() ? "" : name_scopes_.back();
}

void GraphBuilder::Fail(const Status& error, SourceLocation where) {
  if (!status_.ok() || error.ok()) return;
  status_ = Status(error.code(), StrCat(error.message(), Place(CurrentScope(), where)));
}

// False if the node cannot be made: an input is poisoned (nothing is said), missing or foreign.
bool GraphBuilder::CollectInputs(absl::string_view op, absl::Span<const Value> inputs,
                                 SourceLocation where, std::vector<Port>* ports) {
  ports->reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& input = inputs[i];
    if (input.builder() == nullptr) {
      Fail(InvalidArgument(op, ": input ", i, " is an empty Value"), where);
      return false;
    }
    if (input.builder() != this) {
      Fail(InvalidArgument(op, ": input ", i, " (", input.name(), ") belongs to another builder"),
           where);
      return false;
    }
    if (!input.ok()) return false;
    ports->push_back(input.port());
  }
  return true;
}

Operation GraphBuilder::AddNamed(absl::string_view full_name, absl::string_view op,
                                 absl::Span<const Value> inputs, AttrMap attrs,
                                 SourceLocation where) {
  const Operation poisoned(this, -1);
  if (!status_.ok()) return poisoned;
  NodeSpec spec;
  if (!CollectInputs(op, inputs, where, &spec.inputs)) return poisoned;
  spec.name = graph_.UniqueName(full_name);
  spec.op = std::string(op);
  spec.location = where;
  if (!device_scopes_.empty()) spec.device = device_scopes_.back();
  for (const std::vector<NodeId>& nodes : control_scopes_) {
    spec.control_inputs.insert(spec.control_inputs.end(), nodes.begin(), nodes.end());
  }
  if (!colocation_scopes_.empty() && !colocation_scopes_.back().empty()) {
    auto classes = attrs.GetOr<std::vector<std::string>>(kColocationAttr, {});
    classes.push_back(StrCat("loc:@", colocation_scopes_.back()));
    attrs.Set(kColocationAttr, std::move(classes));
  }
  spec.attrs = std::move(attrs);
  const StatusOr<NodeId> node = graph_.AddNode(std::move(spec));
  if (!node.ok()) {
    Fail(node.status(), where);
    return poisoned;
  }
  return Operation(this, *node);
}

Operation GraphBuilder::Add(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
                            SourceLocation where, absl::string_view name) {
  if (!status_.ok()) return Operation(this, -1);
  return AddNamed(StrCat(CurrentScope(), name.empty() ? op : name), op, inputs, std::move(attrs),
                  where);
}

std::vector<Value> GraphBuilder::AddMany(absl::string_view op, absl::Span<const Value> inputs,
                                         AttrMap attrs, int outputs, SourceLocation where,
                                         absl::string_view name) {
  const Operation added = Add(op, inputs, std::move(attrs), where, name);
  const int given = added.ok() ? graph_.node(added.node())->num_outputs() : 0;
  if (added.ok() && given != outputs) {
    Fail(InvalidArgument(op, " '", added.name(), "': has ", given, " outputs, but ", outputs,
                         " are asked for"),
         where);
  }
  std::vector<Value> values;
  for (int i = 0; i < outputs; ++i) {
    values.emplace_back(this, given == outputs ? Port{added.node(), i} : Port());
  }
  return values;
}

Value GraphBuilder::AddOne(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
                           SourceLocation where, absl::string_view name) {
  const Operation added = Add(op, inputs, std::move(attrs), where, name);
  if (!added.ok()) return Value(this, Port());
  if (graph_.node(added.node())->num_outputs() == 0) {
    Fail(InvalidArgument(op, " '", added.name(), "': has no outputs, but one is asked for"), where);
    return Value(this, Port());
  }
  return Value(this, Port{added.node(), 0});
}

Value GraphBuilder::ReadVariable(Value handle, DType dtype, SourceLocation where) {
  std::vector<Port> ports;
  if (!status_.ok() || !CollectInputs("ReadVariableOp", {handle}, where, &ports)) {
    return Value(this, Port());
  }
  VariableUses& uses = variables_[handle.port().node];
  const bool controlled = std::any_of(control_scopes_.begin(), control_scopes_.end(),
                                      [](const auto& nodes) { return !nodes.empty(); });
  if (!controlled && uses.read.node >= 0 && graph_.dtype(uses.read) == dtype) {
    return Value(this, uses.read);
  }
  const Value value = AddRead("ReadVariableOp", {handle}, {{"dtype", dtype}}, where);
  if (value.ok() && !controlled) variables_[handle.port().node].read = value.port();
  return value;
}

Value GraphBuilder::AddRead(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
                            SourceLocation where) {
  std::vector<Port> ports;
  if (!status_.ok() || !CollectInputs(op, inputs, where, &ports)) return Value(this, Port());
  const Value handle = inputs[0];
  VariableUses& uses = variables_[handle.port().node];
  std::vector<NodeId> after;
  if (uses.last_update >= 0) after.push_back(uses.last_update);
  const bool asked_for = std::any_of(
      control_scopes_.begin(), control_scopes_.end(), [&uses](const std::vector<NodeId>& nodes) {
        return std::find(nodes.begin(), nodes.end(), uses.last_update) != nodes.end();
      });
  if (!after.empty() && !asked_for) {
    attrs.Set(kOrderOnlyAttr, std::vector<std::string>{graph_.node(uses.last_update)->name()});
  }
  const Scope device = DeviceOf(handle.operation());
  control_scopes_.push_back(std::move(after));
  const Operation read =
      AddNamed(StrCat(handle.operation().name(), "/Read"), op, inputs, std::move(attrs), where);
  control_scopes_.pop_back();
  if (!read.ok()) return Value(this, Port());
  uses.reads_since_update.push_back(read.node());
  return Value(this, Port{read.node(), 0});
}

void GraphBuilder::NoteUpdate(Value handle, Operation update) {
  if (!status_.ok() || !handle.ok() || !update.ok()) return;
  VariableUses& uses = variables_[handle.port().node];
  std::vector<NodeId> earlier = std::move(uses.reads_since_update);
  if (uses.last_update >= 0) earlier.push_back(uses.last_update);
  const Node& node = *graph_.node(update.node());
  const std::vector<NodeId> asked_for = node.control_inputs();
  // It may change several variables.
  std::vector<std::string> order_only;
  const AttrValue* known = node.attrs().Find(kOrderOnlyAttr);
  const auto* names = known == nullptr ? nullptr : known->get<std::vector<std::string>>();
  if (names != nullptr) order_only = *names;  // null too if its writer gave it another type
  for (const NodeId id : earlier) {
    // An update may itself read; and what was added after it cannot come before it.
    if (id >= update.node()) continue;
    if (std::find(asked_for.begin(), asked_for.end(), id) != asked_for.end()) continue;
    graph_.AddControlInput(update.node(), id);
    order_only.push_back(graph_.node(id)->name());
  }
  if (!order_only.empty()) graph_.SetAttr(update.node(), kOrderOnlyAttr, std::move(order_only));
  uses.reads_since_update.clear();
  uses.read = Port();
  uses.last_update = update.node();
}

}  // namespace millrace
