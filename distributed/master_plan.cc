#include "distributed/master_plan.h"

#include <utility>

#include "core/framework/tensor_proto.h"
#include "core/graph/graph_def.h"

namespace millrace {
namespace {

bool HasUpdates(const Graph& graph) {
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (!graph.IsLive(id)) continue;
    const OpDef& op = graph.node(id)->op();
    if (op.Has(Trait::kOptimizerUpdate) || op.Has(Trait::kWritesVariable)) return true;
  }
  return false;
}

void AddEndpoint(const Graph& graph, const Partition::Feed& feed,
                 PartitionMessage::Endpoint* endpoint) {
  endpoint->set_index(feed.index);
  endpoint->set_port(graph.PortName(feed.port));
}

}  // namespace

StatusOr<std::shared_ptr<MasterPlan>> MasterPlan::Create(
    uint64_t id, PlannedStep planned, const Graph& graph,
    absl::FunctionRef<StatusOr<std::shared_ptr<TaskWatch>>(const std::string& task)> watch_of) {
  const std::shared_ptr<MasterPlan> plan(new MasterPlan(id, std::move(planned)));
  std::map<std::string, bool> tasks;  // and whether they update
  for (const Partition& partition : plan->planned_.program.partitions) {
    bool& updates = tasks[partition.device.TaskString()];
    updates = updates || HasUpdates(partition.graph);
  }
  for (const auto& [task, updates] : tasks) {
    MR_ASSIGN_OR_RETURN(std::shared_ptr<TaskWatch> watch, watch_of(task));
    plan->parts_.push_back({task, updates, std::move(watch)});
  }
  MR_RETURN_IF_ERROR(plan->FindFeeds(graph));
  MutexLock lock(plan->mutex_);
  plan->measured_.resize(plan->planned_.program.channels.size());
  return plan;
}

Status MasterPlan::FindFeeds(const Graph& graph) {
  for (const std::string& name : planned_.signature.feeds) {
    MR_ASSIGN_OR_RETURN(const Port port, graph.FindPort(name));
    feeds_.push_back({name, graph.dtype(port), graph.shape(port), -1});
  }
  for (const Partition& partition : planned_.program.partitions) {
    const std::string task = partition.device.TaskString();
    for (const Partition::Feed& feed : partition.feeds) {
      if (feed.index < 0 || feed.index >= static_cast<int>(feeds_.size())) {
        return Internal("the planner gave a feed the number ", feed.index);
      }
      Feed& found = feeds_[feed.index];
      found.dtype = partition.graph.dtype(feed.port);
      found.shape = partition.graph.shape(feed.port);
      for (size_t i = 0; i < parts_.size(); ++i) {
        if (parts_[i].task == task) found.part = static_cast<int>(i);
      }
    }
  }
  return absl::OkStatus();
}

Status MasterPlan::CheckFeeds(absl::Span<const TensorProto* const> feeds) const {
  if (feeds.size() != feeds_.size()) {
    return InvalidArgument("the step has ", feeds_.size(), " feeds, but got ", feeds.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    const Feed& expected = feeds_[i];
    const StatusOr<DType> dtype = DTypeFromProto(feeds[i]->dtype());
    const StatusOr<PartialShape> shape = ShapeFromProto(feeds[i]->tensor_shape());
    if (dtype.ok() && shape.ok() && *dtype == expected.dtype && shape->IsFull() &&
        expected.shape.IsCompatibleWith(*shape)) {
      continue;
    }
    return InvalidArgument("feed '", expected.name, "': expected ", Name(expected.dtype),
                           expected.shape.ToString(), ", but got ",
                           dtype.ok() ? Name(*dtype) : dtype.status().message(),
                           shape.ok() ? shape->ToString() : std::string(shape.status().message()));
  }
  return absl::OkStatus();
}

void MasterPlan::ToRegisterRequest(const Part& part, RegisterPlanRequest* request) const {
  request->set_plan(id_);
  for (const Partition& partition : planned_.program.partitions) {
    if (partition.device.TaskString() != part.task) continue;
    PartitionMessage* message = request->add_partition();
    message->set_device(partition.device.ToString());
    ExportGraphDef(partition.graph, message->mutable_graph());
    for (const Partition::Feed& feed : partition.feeds) {
      AddEndpoint(partition.graph, feed, message->add_feed());
    }
    for (const Partition::Feed& fetch : partition.fetches) {
      AddEndpoint(partition.graph, fetch, message->add_fetch());
    }
    for (const NodeId target : partition.targets) {
      message->add_target(partition.graph.node(target)->name());
    }
  }
  for (const Channel& channel : planned_.program.channels) {
    if (channel.source.TaskString() != part.task && channel.destination.TaskString() != part.task) {
      continue;
    }
    ChannelMessage* message = request->add_channel();
    message->set_id(channel.id);
    message->set_source(channel.source.ToString());
    message->set_destination(channel.destination.ToString());
  }
}

void MasterPlan::Count(absl::Span<const ChannelCount> received) {
  MutexLock lock(mutex_);
  ++steps_;
  for (const ChannelCount& count : received) {
    if (count.channel() >= measured_.size()) continue;
    measured_[count.channel()].payload_bytes += count.payload_bytes();
    measured_[count.channel()].wire_bytes += count.wire_bytes();
  }
}

PlacementReport MasterPlan::Report() const {
  PlacementReport report = planned_.report;
  MutexLock lock(mutex_);
  for (PlacementReport::Link& link : report.links) {
    // What stays in a task goes over no transport.
    if (!link.crosses_tasks) continue;
    link.measured_steps = steps_;
    for (const PlacementReport::Link::Tensor& tensor : link.carried) {
      link.measured_payload_bytes += measured_[tensor.channel].payload_bytes;
      link.measured_wire_bytes += measured_[tensor.channel].wire_bytes;
    }
  }
  return report;
}

}  // namespace millrace
