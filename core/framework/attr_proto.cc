#include "core/framework/attr_proto.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"

namespace millrace {
namespace {

// Functions whose attributes are functions: the nesting comes with the graph.
constexpr int kMaxDepth = 16;

StatusOr<AttrMap> ReadAttrs(const AttrProtoMap& protos, ProtoBudget& budget, int depth);
Status WriteAttrs(const AttrMap& attrs, AttrProtoMap* protos, int depth);

Status TooDeep() {
  return InvalidArgument("functions in attributes of functions are more than ", kMaxDepth,
                         " levels deep");
}

StatusOr<FunctionName> ReadFunction(const NameAttrList& proto, ProtoBudget& budget, int depth) {
  if (depth >= kMaxDepth) return TooDeep();
  FunctionName function{proto.name(), nullptr};
  if (proto.attr_size() > 0) {
    MR_ASSIGN_OR_RETURN(AttrMap attrs, ReadAttrs(proto.attr(), budget, depth + 1));
    function.attrs = std::make_shared<const AttrMap>(std::move(attrs));
  }
  return function;
}

// The elements of one field, each read by `read`.
template <typename T, typename Field, typename Read>
StatusOr<AttrValue> ReadList(const Field& field, ProtoBudget& budget, Read read) {
  // An empty element takes two bytes of the wire and much more here.
  MR_RETURN_IF_ERROR(budget.Take(static_cast<int64_t>(field.size() * sizeof(T))));
  std::vector<T> list;
  list.reserve(field.size());
  for (const auto& element : field) {
    StatusOr<T> value = read(element);
    if (!value.ok()) return value.status();
    list.push_back(*std::move(value));
  }
  return AttrValue(std::move(list));
}

template <typename T, typename Field>
StatusOr<AttrValue> ReadPlainList(const Field& field, ProtoBudget& budget) {
  return ReadList<T>(field, budget, [](const auto& v) { return StatusOr<T>(T(v)); });
}

StatusOr<AttrValue> ReadListValue(const AttrValueProto::ListValue& list, ProtoBudget& budget,
                                  int depth) {
  const bool has[] = {list.s_size() > 0,      list.i_size() > 0,    list.f_size() > 0,
                      list.b_size() > 0,      list.type_size() > 0, list.shape_size() > 0,
                      list.tensor_size() > 0, list.func_size() > 0};
  if (std::count(std::begin(has), std::end(has), true) > 1) {
    return InvalidArgument("a list has elements of several kinds");
  }
  if (list.s_size() > 0) return ReadPlainList<std::string>(list.s(), budget);
  if (list.f_size() > 0) return ReadPlainList<float>(list.f(), budget);
  if (list.b_size() > 0) return ReadPlainList<bool>(list.b(), budget);
  if (list.type_size() > 0) {
    return ReadList<DType>(list.type(), budget,
                           [](int type) { return DTypeFromProto(static_cast<DataType>(type)); });
  }
  if (list.shape_size() > 0) return ReadList<PartialShape>(list.shape(), budget, ShapeFromProto);
  if (list.tensor_size() > 0) {
    return ReadList<Tensor>(list.tensor(), budget, [&](const TensorProto& tensor) {
      return TensorFromProto(tensor, budget);
    });
  }
  if (list.func_size() > 0) {
    return ReadList<FunctionName>(list.func(), budget, [&](const NameAttrList& function) {
      return ReadFunction(function, budget, depth);
    });
  }
  return ReadPlainList<int64_t>(list.i(), budget);
}

template <typename T>
StatusOr<AttrValue> ToAttr(StatusOr<T> value) {
  if (!value.ok()) return value.status();
  return AttrValue(*std::move(value));
}

StatusOr<AttrValue> Read(const AttrValueProto& proto, ProtoBudget& budget, int depth) {
  switch (proto.value_case()) {
    case AttrValueProto::kS:
      return AttrValue(proto.s());
    case AttrValueProto::kI:
      return AttrValue(int64_t{proto.i()});
    case AttrValueProto::kF:
      return AttrValue(proto.f());
    case AttrValueProto::kB:
      return AttrValue(proto.b());
    case AttrValueProto::kType:
      return ToAttr(DTypeFromProto(proto.type()));
    case AttrValueProto::kShape:
      return ToAttr(ShapeFromProto(proto.shape()));
    case AttrValueProto::kTensor:
      return ToAttr(TensorFromProto(proto.tensor(), budget));
    case AttrValueProto::kList:
      return ReadListValue(proto.list(), budget, depth);
    case AttrValueProto::kFunc:
      return ToAttr(ReadFunction(proto.func(), budget, depth));
    case AttrValueProto::kPlaceholder:
      return InvalidArgument("the placeholder '", proto.placeholder(), "' has no value");
    case AttrValueProto::VALUE_NOT_SET:
      break;
  }
  return AttrValue();
}

StatusOr<AttrMap> ReadAttrs(const AttrProtoMap& protos, ProtoBudget& budget, int depth) {
  AttrMap attrs;
  for (const auto& [name, proto] : protos) {
    StatusOr<AttrValue> value = Read(proto, budget, depth);
    if (value.ok()) {
      attrs.Set(name, *std::move(value));
    } else if (!absl::StartsWith(name, "_") || absl::IsResourceExhausted(value.status())) {
      return Annotate(value.status(), StrCat("attribute '", name, "'"));
    }
  }
  return attrs;
}

// Writes one value to the oneof, or appends it to a list; the fields have the same names.
struct Writer {
  AttrValueProto* proto;
  int depth;

  Status operator()(std::monostate) const { return absl::OkStatus(); }
  Status operator()(const std::string& v) const { return proto->set_s(v), absl::OkStatus(); }
  Status operator()(int64_t v) const { return proto->set_i(v), absl::OkStatus(); }
  Status operator()(float v) const { return proto->set_f(v), absl::OkStatus(); }
  Status operator()(bool v) const { return proto->set_b(v), absl::OkStatus(); }
  Status operator()(DType v) const { return proto->set_type(DTypeToProto(v)), absl::OkStatus(); }
  Status operator()(const PartialShape& v) const {
    return ShapeToProto(v, proto->mutable_shape()), absl::OkStatus();
  }
  Status operator()(const Tensor& v) const { return TensorToProto(v, proto->mutable_tensor()); }
  Status operator()(const FunctionName& v) const { return Write(v, proto->mutable_func()); }

  template <typename T>
  Status operator()(const std::vector<T>& list) const {
    AttrValueProto::ListValue* out = proto->mutable_list();  // marks an empty one as a list, too
    for (const auto& value : list) {
      MR_RETURN_IF_ERROR(Append(static_cast<const T&>(value), out));
    }
    return absl::OkStatus();
  }

 private:
  using List = AttrValueProto::ListValue;
  Status Append(const std::string& v, List* list) const { return list->add_s(v), absl::OkStatus(); }
  Status Append(int64_t v, List* list) const { return list->add_i(v), absl::OkStatus(); }
  Status Append(float v, List* list) const { return list->add_f(v), absl::OkStatus(); }
  Status Append(bool v, List* list) const { return list->add_b(v), absl::OkStatus(); }
  Status Append(DType v, List* list) const {
    return list->add_type(DTypeToProto(v)), absl::OkStatus();
  }
  Status Append(const PartialShape& v, List* list) const {
    return ShapeToProto(v, list->add_shape()), absl::OkStatus();
  }
  Status Append(const Tensor& v, List* list) const { return TensorToProto(v, list->add_tensor()); }
  Status Append(const FunctionName& v, List* list) const { return Write(v, list->add_func()); }

  Status Write(const FunctionName& function, NameAttrList* out) const {
    if (depth >= kMaxDepth) return TooDeep();
    out->set_name(function.name);
    if (function.attrs == nullptr) return absl::OkStatus();
    return WriteAttrs(*function.attrs, out->mutable_attr(), depth + 1);
  }
};

Status WriteAttrs(const AttrMap& attrs, AttrProtoMap* protos, int depth) {
  protos->clear();
  for (const auto& [name, value] : attrs) {
    if (Status status = std::visit(Writer{&(*protos)[name], depth}, value.variant());
        !status.ok()) {
      return Annotate(status, StrCat("attribute '", name, "'"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<AttrValue> AttrFromProto(const AttrValueProto& proto, ProtoBudget& budget) {
  return Read(proto, budget, 0);
}

StatusOr<AttrValue> AttrFromProto(const AttrValueProto& proto) {
  ProtoBudget budget;
  return Read(proto, budget, 0);
}

Status AttrToProto(const AttrValue& value, AttrValueProto* proto) {
  proto->Clear();
  return std::visit(Writer{proto, 0}, value.variant());
}

StatusOr<AttrMap> AttrsFromProto(const AttrProtoMap& protos, ProtoBudget& budget) {
  return ReadAttrs(protos, budget, 0);
}

StatusOr<AttrMap> AttrsFromProto(const AttrProtoMap& protos) {
  ProtoBudget budget;
  return ReadAttrs(protos, budget, 0);
}

Status AttrsToProto(const AttrMap& attrs, AttrProtoMap* protos) {
  return WriteAttrs(attrs, protos, 0);
}

}  // namespace millrace
