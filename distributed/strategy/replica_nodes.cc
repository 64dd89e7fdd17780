#include "distributed/strategy/replica_nodes.h"

namespace millrace {

StatusOr<std::pair<int64_t, int64_t>> BatchRows::Of(int64_t extent, int part) const {
  if (batch_ <= 0 || extent % batch_ != 0) {
    return InvalidArgument("an extent of ", extent, " cannot be split: it is no multiple of the ",
                           "batch of ", batch_);
  }
  const int64_t unit = extent / batch_;
  return std::make_pair(unit * Begin(part), unit * Begin(part + 1));
}

double BatchRows::Share(int part) const {
  return static_cast<double>(Begin(part + 1) - Begin(part)) / static_cast<double>(batch_);
}

void SetReason(std::string reason, NodeSpec& spec) {
  spec.attrs.Set(kRequestReasonAttr, std::move(reason));
}

StatusOr<Port> ReplicaNodes::Add(absl::string_view name, NodeSpec spec) {
  spec.name = graph_.UniqueName(name);
  MR_ASSIGN_OR_RETURN(const NodeId id, graph_.AddNode(std::move(spec)));
  return Port{id, 0};
}

StatusOr<Port> ReplicaNodes::AddConstant(absl::string_view name, Tensor value, std::string device,
                                         std::string reason) {
  NodeSpec spec;
  spec.op = "Const";
  spec.attrs.Set("dtype", value.dtype());
  spec.attrs.Set("value", std::move(value));
  spec.device = std::move(device);
  SetReason(std::move(reason), spec);
  return Add(name, std::move(spec));
}

StatusOr<Port> ReplicaNodes::Constant(absl::string_view name, Tensor value, int part) {
  return AddConstant(name, std::move(value), devices_[part],
                     StrCat("a constant that only replica ", part, " uses"));
}

StatusOr<Port> ReplicaNodes::Rows(absl::string_view name, Port whole, int rank, int dim,
                                  std::pair<int64_t, int64_t> rows, int part) {
  std::vector<int64_t> begin(rank, 0);
  std::vector<int64_t> size(rank, -1);
  begin[dim] = rows.first;
  size[dim] = rows.second - rows.first;
  const std::string device = graph_.node(whole.node)->requested_device();
  const std::string reason =
      StrCat("replica ", part, " of ", parts(), ": its rows, cut where the whole value is");
  const std::string base = StrCat(Name(part, name), "/rows");
  const Shape vector{static_cast<int64_t>(rank)};
  MR_ASSIGN_OR_RETURN(
      const Port begin_port,
      AddConstant(StrCat(base, "/begin"), Tensor::Of<int64_t>(vector, begin), device, reason));
  MR_ASSIGN_OR_RETURN(
      const Port size_port,
      AddConstant(StrCat(base, "/size"), Tensor::Of<int64_t>(vector, size), device, reason));
  NodeSpec spec;
  spec.op = "Slice";
  spec.inputs = {whole, begin_port, size_port};
  spec.device = device;
  SetReason(reason, spec);
  return Add(base, std::move(spec));
}

StatusOr<Port> ReplicaNodes::Weighted(Port mean, double share, int part) {
  const DType dtype = graph_.dtype(mean);
  if (dtype != DType::kFloat && dtype != DType::kDouble) {
    return InvalidArgument("a mean of dtype ", millrace::Name(dtype), " cannot be split");
  }
  const std::string base = graph_.node(mean.node)->name();
  MR_ASSIGN_OR_RETURN(const Port factor,
                      Constant(StrCat(base, "/share"),
                               dtype == DType::kFloat ? Tensor::Scalar(static_cast<float>(share))
                                                      : Tensor::Scalar(share),
                               part));
  NodeSpec spec;
  spec.op = "Mul";
  spec.inputs = {mean, factor};
  spec.device = devices_[part];
  SetReason(StrCat("replica ", part, " of ", parts(), ": its mean times its share of the batch"),
            spec);
  return Add(StrCat(base, "/weighted"), std::move(spec));
}

StatusOr<Port> ReplicaNodes::Sum(absl::string_view name, std::vector<Port> parts, NodeSpec where) {
  where.op = "AddN";
  where.inputs = std::move(parts);
  return Add(StrCat(name, "/sum_over_replicas"), std::move(where));
}

StatusOr<Port> ReplicaNodes::Join(absl::string_view name, std::vector<Port> parts, int dim,
                                  NodeSpec where) {
  MR_ASSIGN_OR_RETURN(const Port axis,
                      AddConstant(StrCat(name, "/join/axis"), Tensor::Scalar<int32_t>(dim),
                                  where.device, "the axis along which the rows are joined"));
  where.op = "ConcatV2";
  where.inputs = std::move(parts);
  where.inputs.push_back(axis);
  return Add(StrCat(name, "/join"), std::move(where));
}

}  // namespace millrace
