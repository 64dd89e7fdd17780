#include "python_free_api/server_main.h"

#include <csignal>
#include <cstdio>
#include <memory>
#include <utility>

#include "core/base/file.h"
#include "core/base/logging.h"
#include "core/base/mutex.h"
#include "core/base/process.h"
#include "distributed/cluster_spec.h"
#include "distributed/data_plane.h"
#include "distributed/grpc/client.h"
#include "distributed/grpc/server.h"
#include "distributed/grpc/stream.h"
#include "distributed/master.h"
#include "distributed/worker.h"
#include "python_free_api/flags.h"
#include "python_free_api/version.h"

namespace millrace {
namespace {

constexpr char kProgram[] = "millrace server";
constexpr char kLoopback[] = "127.0.0.1";
// Calls in flight get so long when the server is asked to end; so does what runs afterwards.
constexpr absl::Duration kPatience = absl::Seconds(2);

struct ServerFlags {
  std::string cluster;
  std::string job;
  int64_t task = 0;
  int64_t port = -1;
  std::string host;
  bool insecure_allow_remote = false;
  std::string ready_file;
  int64_t cpu_devices = 1;
  int64_t threads = 0;
  int64_t memory_limit = 0;
  bool die_with_parent = false;
  bool verbose = false;
};

void AddFlags(ServerFlags& values, Flags& flags) {
  flags.Add("cluster", &values.cluster,
            "all tasks: 'ps=host:port;worker=host:port,host:port', a ClusterDef as text, or "
            "TF_CONFIG's JSON; without it each client brings a spec");
  flags.Add("job", &values.job, "this task's job in the cluster");
  flags.Add("task", &values.task, "this task's number in its job");
  flags.Add("port", &values.port, "0: any free one; -1: that of the task in --cluster, or 0");
  flags.Add("host", &values.host,
            "the address to listen at; '': that of the task in --cluster, or 127.0.0.1");
  flags.Add("insecure_allow_remote", &values.insecure_allow_remote,
            "listen where other hosts reach it, though nothing is encrypted and anyone who does "
            "may run graphs");
  flags.Add("ready_file", &values.ready_file, "gets 'host:port' once the server answers");
  flags.Add("cpu_devices", &values.cpu_devices, "CPU devices, which share the threads");
  flags.Add("threads", &values.threads, "threads that run kernels; 0: one a core");
  flags.Add("memory_limit", &values.memory_limit, "bytes of tensors a device; 0: no limit");
  flags.Add("die_with_parent", &values.die_with_parent,
            "end when the process that started this one does, however it ends; SIGINT is then its "
            "business");
  flags.Add("verbose", &values.verbose, "log what sessions do, too");
}

// Where this task stands in its cluster and where it listens.
struct Place {
  ClusterSpec cluster;
  std::string task;     // "/job:ps/task:0"
  std::string address;  // "127.0.0.1:0"
};

StatusOr<Place> Locate(const ServerFlags& flags, const RuntimeOptions& options) {
  if (flags.port < -1 || flags.port > 65535) {
    return InvalidArgument("--port cannot be ", flags.port);
  }
  Place place;
  place.task = TaskName(options.job, options.task);
  std::string host = kLoopback;
  std::string port = "0";
  if (!flags.cluster.empty()) {
    if (flags.job.empty()) return InvalidArgument("--cluster needs --job: which task is this?");
    MR_ASSIGN_OR_RETURN(place.cluster, ClusterSpec::Parse(flags.cluster));
    MR_ASSIGN_OR_RETURN(const std::string listed, place.cluster.Address(options.job, options.task));
    const size_t colon = listed.rfind(':');
    host = listed.substr(0, colon);
    port = listed.substr(colon + 1);
  }
  if (!flags.host.empty()) host = flags.host;
  if (flags.port >= 0) port = StrCat(flags.port);
  place.address = StrCat(host, ":", port);
  return place;
}

// A task, from its first answer to its last. Members are in the order in which they need each
// other.
class Server {
 public:
  static StatusOr<std::unique_ptr<Server>> Start(const Place& place, const ServerFlags& flags,
                                                 const RuntimeOptions& options) {
    std::unique_ptr<Server> server(new Server);
    MR_RETURN_IF_ERROR(server->Init(place, flags, options));
    return server;
  }

  ~Server() {
    // Callers first: what they started is cancelled when they are.
    if (network_ != nullptr) network_->Shutdown(kPatience);
    if (master_ != nullptr) {
      Notification drained;
      master_->Shutdown([&drained] { drained.Notify(); });
      drained.Wait();
    }
    if (worker_ != nullptr) {
      Notification drained;
      worker_->Shutdown([&drained] { drained.Notify(); });
      drained.Wait();
    }
  }

  // "" before it listens.
  std::string address() const {
    MutexLock lock(mutex_);
    return address_;
  }
  FileSystem& files() const { return *runtime_->environment().files; }

 private:
  Server() = default;

  Status Init(const Place& place, const ServerFlags& flags, const RuntimeOptions& options) {
    MR_ASSIGN_OR_RETURN(runtime_, Runtime::Create(options));
    const Environment& environment = runtime_->environment();
    const uint64_t incarnation = runtime_->devices()[0]->info().incarnation;

    StreamDataPlaneOptions data;
    data.environment = environment;
    data.streams = &streams_;
    data.allocator = &runtime_->devices()[0]->allocator();
    data.incarnation = incarnation;
    data.task = place.task;
    data.build_version = kVersion;
    data_plane_ = StreamDataPlane::Create(std::move(data));

    WorkerOptions worker;
    worker.task = place.task;
    worker.devices = runtime_->devices();
    worker.kernels = &runtime_->kernels();
    worker.ops = runtime_->ops();
    worker.environment = environment;
    worker.data_plane = data_plane_.get();
    worker.incarnation = incarnation;
    worker.build_version = kVersion;
    worker.pid = CurrentProcessId();
    worker_ = std::make_unique<Worker>(std::move(worker));

    GrpcCallerOptions caller;
    caller.environment = environment;
    workers_ = std::make_unique<GrpcWorkerFactory>(caller);

    MasterOptions master;
    master.task = place.task;
    master.cluster = place.cluster;
    master.address = [this] { return address(); };
    master.own_worker = worker_.get();
    master.workers = workers_.get();
    master.ops = runtime_->ops();
    master.kernels = &runtime_->kernels();
    master.environment = environment;
    master.planner.transform = runtime_->Transform();
    master.build_version = kVersion;
    master_ = std::make_unique<Master>(std::move(master));

    GrpcServerOptions network;
    network.address = place.address;
    network.allow_remote = flags.insecure_allow_remote;
    network.master = master_.get();
    network.worker = worker_.get();
    network.data_plane = data_plane_.get();
    StatusOr<std::unique_ptr<GrpcServer>> started = GrpcServer::Start(network);
    if (absl::IsPermissionDenied(started.status())) {
      return absl::PermissionDeniedError(
          StrCat(started.status().message(), " (--insecure_allow_remote)"));
    }
    MR_RETURN_IF_ERROR(started.status());
    network_ = *std::move(started);
    MutexLock lock(mutex_);
    address_ = network_->address();
    return absl::OkStatus();
  }

  mutable Mutex mutex_;
  std::string address_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Runtime> runtime_;
  GrpcStreamFactory streams_;
  std::unique_ptr<StreamDataPlane> data_plane_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<GrpcWorkerFactory> workers_;
  std::unique_ptr<Master> master_;
  std::unique_ptr<GrpcServer> network_;
};

Status Serve(const ServerFlags& flags, RuntimeOptions options) {
  // From the first moment on, lest a parent that ends now leaves this process behind.
  if (flags.die_with_parent) MR_RETURN_IF_ERROR(DieWithParent());
  const auto stop = std::make_shared<Notification>();
  OnInterrupt([stop](int) { stop->Notify(); });
  // The terminal sends SIGINT to the parent, too, and the parent may still need this server: to
  // save what it has.
  if (flags.die_with_parent) std::signal(SIGINT, SIG_IGN);
  if (flags.verbose) SetMinimumSeverity(Severity::kInfo);

  // Runtime says which numbers make sense; these must not lose digits on their way there.
  for (const auto& [name, value] : {std::pair{"task", flags.task},
                                    {"cpu_devices", flags.cpu_devices},
                                    {"threads", flags.threads}}) {
    if (value < 0 || value > INT32_MAX) return InvalidArgument("--", name, " cannot be ", value);
  }
  if (!flags.job.empty()) options.job = flags.job;
  options.task = static_cast<int>(flags.task);
  options.cpu_devices = static_cast<int>(flags.cpu_devices);
  options.threads = static_cast<int>(flags.threads);
  options.memory_limit = flags.memory_limit;
  MR_ASSIGN_OR_RETURN(const Place place, Locate(flags, options));
  MR_ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Server::Start(place, flags, options));
  std::printf("%s %s listening on %s\n", kProgram, place.task.c_str(), server->address().c_str());
  std::fflush(stdout);
  if (!flags.ready_file.empty()) {
    MR_RETURN_IF_ERROR(
        WriteFile(server->files(), flags.ready_file, StrCat(server->address(), "\n")));
  }
  stop->Wait();
  return absl::OkStatus();
}

}  // namespace

int ServerMain(const std::vector<std::string>& arguments, RuntimeOptions own_ops) {
  ServerFlags values;
  values.job = own_ops.job == RuntimeOptions().job ? "" : own_ops.job;
  values.task = own_ops.task;
  values.cpu_devices = own_ops.cpu_devices;
  values.threads = own_ops.threads;
  values.memory_limit = own_ops.memory_limit;
  Flags flags(kProgram,
              "Serves one task of a cluster: runs the parts of graphs that masters place "
              "on it, and is\nthe master of the sessions that clients open here. Ends "
              "with SIGTERM or Ctrl-C.");
  AddFlags(values, flags);
  const Status parsed = flags.Parse(arguments);
  if (flags.help_wanted()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  const Status status = parsed.ok() ? Serve(values, std::move(own_ops)) : parsed;
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", kProgram, std::string(status.message()).c_str());
  return parsed.ok() ? 1 : 2;
}

}  // namespace millrace
