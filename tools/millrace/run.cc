// millrace run: steps of a saved graph, from arrays in files to arrays in files.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/graph/graph_def.h"
#include "core/graph/node_name.h"
#include "core/io/npy.h"
#include "distributed/cluster_spec.h"
#include "python_free_api/runtime.h"
#include "tools/millrace/command.h"

namespace millrace {
namespace {

struct Options {
  std::string feed;
  std::string fetch;
  std::string init;
  std::string target;
  int64_t steps = 0;
  std::string cluster;
  std::string master;
  bool soft_placement = false;
  int64_t threads = 0;
  double timeout = 0;
  std::string out = ".";
};

std::vector<std::string> SplitList(const std::string& text) {
  return absl::StrSplit(text, ',', absl::SkipWhitespace());
}

// An array that is fed: the same in each step, or a slice a step, over and over.
class Feed {
 public:
  Feed(std::string name, Tensor array, bool sliced)
      : name_(std::move(name)), array_(std::move(array)), sliced_(sliced) {}

  const std::string& name() const { return name_; }
  Tensor At(int64_t step) const {
    if (!sliced_) return array_;
    const Shape& shape = array_.shape();
    const int64_t row = step % shape[0];
    return array_.Slice(row, row + 1).Reshaped(*Shape::Create(shape.dims().subspan(1)));
  }

 private:
  std::string name_;
  Tensor array_;
  bool sliced_;
};

// "x0=a.npy"
StatusOr<Feed> ReadFeed(const std::string& text, const Graph& graph, FileSystem& files,
                        bool in_steps) {
  const std::vector<std::string> sides = absl::StrSplit(text, absl::MaxSplits('=', 1));
  if (sides.size() != 2 || sides[0].empty() || sides[1].empty()) {
    return InvalidArgument("--feed: '", text, "' is not NAME=FILE.npy");
  }
  MR_ASSIGN_OR_RETURN(const Port port, graph.FindPort(sides[0]));
  MR_ASSIGN_OR_RETURN(Tensor array, ReadNpy(files, sides[1]));
  const PartialShape& wanted = graph.node(port.node)->output_shape(port.index);
  const bool sliced = in_steps && wanted.has_rank() && array.shape().rank() == wanted.rank() + 1;
  if (sliced && array.shape()[0] == 0) {
    return InvalidArgument("--feed: ", sides[1], " has shape ", array.shape().ToString(),
                           ": it has no slice for a step");
  }
  return Feed(sides[0], std::move(array), sliced);
}

// The file of a fetch in the folder `out`: "a/b:0" is a/b.npy, "a/b:1" is a/b_1.npy.
StatusOr<std::string> FileOf(const std::string& fetch, const std::string& out) {
  const PortName port = SplitPortName(fetch);
  for (const absl::string_view part : absl::StrSplit(port.node, '/')) {
    if (part.empty() || part == "." || part == "..") {
      return InvalidArgument("--fetch: '", fetch, "' makes no name of a file");
    }
  }
  return JoinPath(out, StrCat(port.node, port.index == 0 ? "" : StrCat("_", port.index), ".npy"));
}

// The values of one fetch, of all steps.
class Results {
 public:
  Status Add(Tensor value) {
    if (!values_.empty() &&
        (value.shape() != values_[0].shape() || value.dtype() != values_[0].dtype())) {
      return InvalidArgument("has shape ", value.shape().ToString(), " in step ", values_.size(),
                             ", but had ", values_[0].shape().ToString(),
                             ": such fetches cannot be stacked");
    }
    values_.push_back(std::move(value));
    return absl::OkStatus();
  }
  // The one value, or all of them along a new first dimension.
  StatusOr<Tensor> Stacked(bool in_steps) const {
    if (!in_steps) return values_[0];
    const Tensor& first = values_[0];
    if (SizeOf(first.dtype()) == 0) {
      return Unimplemented(Name(first.dtype()), " values cannot be written as npy");
    }
    std::vector<int64_t> dims = {static_cast<int64_t>(values_.size())};
    dims.insert(dims.end(), first.shape().dims().begin(), first.shape().dims().end());
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    Tensor all = Tensor::Zeros(first.dtype(), shape);
    if (!all.valid()) return ResourceExhausted("no memory for ", shape.ToString());
    char* to = static_cast<char*>(all.mutable_raw_data());
    for (const Tensor& value : values_) {
      if (value.byte_size() > 0) std::memcpy(to, value.raw_data(), value.byte_size());
      to += value.byte_size();
    }
    return all;
  }

 private:
  std::vector<Tensor> values_;
};

// Where the session is: here, or at a master.
StatusOr<SessionOptions> SessionOf(const Options& options) {
  SessionOptions session;
  session.soft_placement = options.soft_placement;
  session.target = options.master;
  if (options.cluster.empty()) return session;
  MR_ASSIGN_OR_RETURN(const ClusterSpec spec, ClusterSpec::Parse(options.cluster));
  session.cluster = spec.ToString();
  if (!session.target.empty()) return session;
  const bool has_worker = spec.jobs().count("worker") > 0;
  MR_ASSIGN_OR_RETURN(const std::string address,
                      spec.Address(has_worker ? "worker" : spec.jobs().begin()->first, 0));
  session.target = StrCat("grpc://", address);
  return session;
}

Status Run(const std::string& path, const Options& options) {
  const bool in_steps = options.steps > 0;
  if (options.steps < 0) return InvalidArgument("--steps cannot be ", options.steps);
  if (options.timeout < 0) return InvalidArgument("--timeout cannot be ", options.timeout);
  StepSignature signature;
  signature.fetches = SplitList(options.fetch);
  signature.targets = SplitList(options.target);
  if (signature.fetches.empty() && signature.targets.empty()) {
    return InvalidArgument("--fetch or --target is needed: what shall a step compute?");
  }
  std::vector<std::string> outputs;
  for (const std::string& fetch : signature.fetches) {
    MR_ASSIGN_OR_RETURN(outputs.emplace_back(), FileOf(fetch, options.out));
  }
  RuntimeOptions runtime_options;
  runtime_options.threads = static_cast<int>(options.threads);
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Runtime> runtime, Runtime::Create(runtime_options));
  FileSystem& files = *runtime->environment().files;
  MR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(files, path));
  MR_ASSIGN_OR_RETURN(const Graph graph, ParseGraph(bytes, path, runtime->ops()));
  std::vector<Feed> feeds;
  for (const std::string& text : SplitList(options.feed)) {
    MR_ASSIGN_OR_RETURN(Feed feed, ReadFeed(text, graph, files, in_steps));
    signature.feeds.push_back(feed.name());
    feeds.push_back(std::move(feed));
  }
  MR_ASSIGN_OR_RETURN(const SessionOptions session_options, SessionOf(options));
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                      runtime->OpenSession(graph, session_options));
  RunOptions run_options;
  if (options.timeout > 0) run_options.timeout = absl::Seconds(options.timeout);
  if (const std::vector<std::string> init = SplitList(options.init); !init.empty()) {
    MR_ASSIGN_OR_RETURN(const auto step, session->Prepare({{}, {}, init}));
    MR_RETURN_IF_ERROR(Annotate(session->Run(*step, {}, run_options).status(), "the initial step"));
  }
  MR_ASSIGN_OR_RETURN(const auto step, session->Prepare(signature));
  std::vector<Results> results(signature.fetches.size());
  for (int64_t i = 0; i < std::max<int64_t>(options.steps, 1); ++i) {
    std::vector<Tensor> fed;
    for (const Feed& feed : feeds) fed.push_back(feed.At(i));
    StatusOr<RunResult> result = session->Run(*step, std::move(fed), run_options);
    if (!result.ok()) {
      return in_steps ? Annotate(result.status(), StrCat("step ", i)) : result.status();
    }
    for (size_t k = 0; k < results.size(); ++k) {
      MR_RETURN_IF_ERROR(Annotate(results[k].Add(std::move(result->fetches[k])),
                                  StrCat("--fetch ", signature.fetches[k])));
    }
  }
  MR_RETURN_IF_ERROR(session->Close());
  for (size_t k = 0; k < results.size(); ++k) {
    const std::string what = StrCat("--fetch ", signature.fetches[k]);
    const StatusOr<Tensor> value = results[k].Stacked(in_steps);
    if (!value.ok()) return Annotate(value.status(), what);
    const StatusOr<std::string> array = WriteNpy(*value);
    if (!array.ok()) return Annotate(array.status(), what);
    MR_RETURN_IF_ERROR(files.CreateFolder(FolderOf(outputs[k])));
    MR_RETURN_IF_ERROR(WriteFile(files, outputs[k], *array));
    std::printf("%s %s\n", outputs[k].c_str(), value->ToString().c_str());
  }
  return absl::OkStatus();
}

}  // namespace

int RunGraphCommand(const std::vector<std::string>& arguments) {
  constexpr char kName[] = "millrace run";
  Options options;
  Flags flags(kName,
              "Runs steps of a saved graph (GraphDef, binary or text) in this process or on a "
              "cluster. Arrays\ncome from npy files and go to DIR/<name>.npy: 'a/b:0' to a/b.npy, "
              "'a/b:1' to a/b_1.npy.\n\n"
              "  millrace run graph.pb --feed x=a.npy,y=b.npy --fetch logits -o out\n"
              "  millrace run train.pb --init init --target train --fetch loss --steps 30 "
              "--feed x=batches.npy");
  flags.Add("feed", &options.feed,
            "what is fed: NAME=FILE.npy,...; with --steps, an array of one more dimension than its "
            "placeholder is taken a slice a step, and from its start again when it ends");
  flags.Add("fetch", &options.fetch, "what is fetched and written: 'loss,accuracy:0'");
  flags.Add("target", &options.target, "what runs besides: operations");
  flags.Add("init", &options.init, "operations that run once, before the steps");
  flags.Add(
      "steps", &options.steps,
      "run so many steps, and stack what they fetch along a new first dimension; 0: one step, "
      "as it is");
  flags.Add("cluster", &options.cluster,
            "run on these servers: 'ps=host:port;worker=host:port,host:port'");
  flags.Add("master", &options.master,
            "the master, grpc://host:port; '': the first worker of --cluster");
  flags.Add("soft_placement", &options.soft_placement,
            "where a requested device does not exist or has no kernel, take another");
  flags.Add("threads", &options.threads, "threads that run kernels in this process; 0: one a core");
  flags.Add("timeout", &options.timeout, "seconds after which a step is cancelled; 0: none");
  flags.Add("out", &options.out, "the folder to write to; -o for short");
  flags.AllowPositional(1, 1, "GRAPH.pb");
  return RunCommand(kName, arguments, flags, [&] { return Run(flags.positional()[0], options); });
}

}  // namespace millrace
