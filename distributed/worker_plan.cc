#include "distributed/worker_plan.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/graph/graph_def.h"

namespace millrace {
namespace {

StatusOr<Device*> FindDevice(const std::vector<Device*>& devices, const DeviceName& name) {
  for (Device* device : devices) {
    const DeviceName& own = device->info().name;
    if (own.type == name.type && own.index == name.index) return device;
  }
  return NotFound("this task has no device ", name.ToString(), "; it has ",
                  absl::StrJoin(devices, ", ", [](std::string* out, const Device* device) {
                    const DeviceName& own = device->info().name;
                    absl::StrAppend(out, own.type.value_or("?"), ":", own.index.value_or(0));
                  }));
}

using Endpoints = google::protobuf::RepeatedPtrField<PartitionMessage::Endpoint>;

StatusOr<std::vector<Partition::Feed>> ReadEndpoints(const Endpoints& endpoints,
                                                     const Graph& graph) {
  std::vector<Partition::Feed> result;
  for (const PartitionMessage::Endpoint& endpoint : endpoints) {
    if (endpoint.index() < 0) return InvalidArgument("feed or fetch number ", endpoint.index());
    MR_ASSIGN_OR_RETURN(const Port port, graph.FindPort(endpoint.port()));
    result.push_back({endpoint.index(), port});
  }
  return result;
}

StatusOr<Partition> ReadPartition(const PartitionMessage& message,
                                  std::shared_ptr<const OpRegistry> ops) {
  MR_ASSIGN_OR_RETURN(DeviceName device, DeviceName::Parse(message.device()));
  if (!device.IsFull()) return InvalidArgument("'", message.device(), "' is no full device name");
  Graph graph(std::move(ops));
  MR_RETURN_IF_ERROR(ImportGraphDef(message.graph(), graph));
  std::vector<NodeId> targets;
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (graph.IsLive(id)) graph.SetAssignedDevice(id, device);
  }
  for (const std::string& target : message.target()) {
    const Node* node = graph.Find(target);
    if (node == nullptr) return NotFound("target '", target, "' is not in its partition");
    targets.push_back(node->id());
  }
  MR_ASSIGN_OR_RETURN(std::vector<Partition::Feed> feeds, ReadEndpoints(message.feed(), graph));
  MR_ASSIGN_OR_RETURN(std::vector<Partition::Feed> fetches, ReadEndpoints(message.fetch(), graph));
  return Partition{std::move(device), std::move(graph), std::move(feeds), std::move(fetches),
                   std::move(targets)};
}

}  // namespace

Status WorkerPlan::AddPiece(const PartitionMessage& message, const std::string& task) {
  const WorkerOptions& options = context_->options;
  MR_ASSIGN_OR_RETURN(Partition partition, ReadPartition(message, options.ops));
  if (partition.device.TaskString() != task) {
    return InvalidArgument("a partition for ", partition.device.ToString(), " came to ", task);
  }
  MR_ASSIGN_OR_RETURN(Device * device, FindDevice(options.devices, partition.device));
  for (const Piece& piece : pieces_) {
    if (piece.device == device) {
      return InvalidArgument("two partitions for ", partition.device.ToString());
    }
  }
  Piece piece;
  piece.device = device;
  MR_ASSIGN_OR_RETURN(piece.plan,
                      ExecutionPlan::Create(std::move(partition), *device, *options.kernels));
  piece.executor = std::make_unique<Executor>(*piece.plan, *options.environment.scheduler);
  num_updates_ += piece.plan->num_updates();
  pieces_.push_back(std::move(piece));
  return absl::OkStatus();
}

Status WorkerPlan::AddChannel(
    const ChannelMessage& message, const std::string& task,
    absl::FunctionRef<StatusOr<LinkId>(const std::string& task)> link_to) {
  MR_ASSIGN_OR_RETURN(const DeviceName source, DeviceName::Parse(message.source()));
  MR_ASSIGN_OR_RETURN(const DeviceName destination, DeviceName::Parse(message.destination()));
  const std::string from = source.TaskString();
  const std::string to = destination.TaskString();
  if (from == task) {
    if (to == task) return channels_.AddOutgoing(message.id(), ChannelTable::kHere);
    MR_ASSIGN_OR_RETURN(const LinkId link, link_to(to));
    return channels_.AddOutgoing(message.id(), link);
  }
  if (to != task) return absl::OkStatus();  // does not touch this task
  MR_ASSIGN_OR_RETURN(const LinkId link, link_to(from));
  return channels_.AddIncoming(message.id(), link);
}

void WorkerPlan::MarkTorn(uint64_t step) const {
  for (const Piece& piece : pieces_) piece.plan->MarkTorn(step);
}

StatusOr<std::shared_ptr<WorkerPlan>> WorkerPlan::Create(
    const RegisterPlanRequest& request, const std::string& task,
    absl::FunctionRef<StatusOr<LinkId>(const std::string& task)> link_to,
    std::shared_ptr<WorkerContext> context) {
  const std::shared_ptr<WorkerPlan> plan(new WorkerPlan(std::move(context)));
  for (const ChannelMessage& channel : request.channel()) {
    MR_RETURN_IF_ERROR(plan->AddChannel(channel, task, link_to));
  }
  for (const PartitionMessage& partition : request.partition()) {
    MR_RETURN_IF_ERROR(plan->AddPiece(partition, task));
  }
  return plan;
}

}  // namespace millrace
