#include "tests/golden/golden_case.h"

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "core/framework/tensor_proto.h"
#include "core/graph/gradients.h"
#include "core/graph/graph_def.h"
#include "core/graph/verify.h"
#include "tests/golden/golden_compare.h"
#include "tests/testing/graph_runner.h"
#include "tests/testing/op_text.h"

namespace millrace::golden {
namespace {

using testing::GraphRunner;

bool WantsGradients(const Step& run) { return run.dxs_size() > 0; }

// One case on its way through the system.
class CaseRunner {
 public:
  explicit CaseRunner(const Case& c) : case_(c), builder_(testing::AllOps()) {}

  Status Import() { return ImportGraphDef(case_.graph(), builder_.graph()); }

  // Gradients of all runs that want some: the session takes the graph as it then is.
  Status AddGradients() {
    for (int i = 0; i < case_.runs_size(); ++i) {
      dx_names_.emplace_back();
      if (!WantsGradients(case_.runs(i))) continue;
      const Status status = AddGradients(i);
      if (!status.ok()) return Annotate(status, StrCat("gradients of run ", i));
    }
    return Verify(builder_.graph());
  }

  Status Open() {
    // Steps that name a second device get one; all others have all on the first.
    const bool two = absl::StrContains(case_.graph().SerializeAsString(), "CPU:1");
    runner_ = std::make_unique<GraphRunner>(two ? 2 : 1);
    MR_ASSIGN_OR_RETURN(session_, runner_->NewSession(builder_.graph()));
    return absl::OkStatus();
  }

  StatusOr<std::vector<Tensor>> RunStep(int i) {
    const Step& run = case_.runs(i);
    GraphRunner::Feeds feeds;
    for (const NamedTensor& feed : run.feeds()) {
      MR_ASSIGN_OR_RETURN(Tensor value, TensorFromProto(feed.tensor()));
      feeds.emplace_back(feed.name(), std::move(value));
    }
    if (WantsGradients(run)) {
      for (int k = 0; k < run.dys_size(); ++k) {
        MR_ASSIGN_OR_RETURN(Tensor value, TensorFromProto(run.dys(k).tensor()));
        feeds.emplace_back(DyName(i, k), std::move(value));
      }
    }
    std::vector<std::string> fetches;
    for (const NamedTensor& fetch : run.fetches()) fetches.push_back(fetch.name());
    for (const std::string& name : dx_names_[i]) fetches.push_back(name);
    return GraphRunner::Run(*session_, feeds, std::move(fetches),
                            {run.targets().begin(), run.targets().end()});
  }

  Status CheckValues(int i, const std::vector<Tensor>& values) const {
    const Step& run = case_.runs(i);
    for (int k = 0; k < run.fetches_size(); ++k) {
      const std::string& name = run.fetches(k).name();
      MR_RETURN_IF_ERROR(CheckShape(name, values[k]));
      Tolerance tolerance = ForwardTolerance(case_.precision(), values[k].dtype());
      if (case_.any_zero()) tolerance.signed_zero = false;
      MR_RETURN_IF_ERROR(CheckValue(values[k], run.fetches(k), name, tolerance));
    }
    for (int k = 0; k < run.dxs_size(); ++k) {
      const Tensor& value = values[run.fetches_size() + k];
      MR_RETURN_IF_ERROR(CheckShape(dx_names_[i][k], value));
      MR_RETURN_IF_ERROR(CheckValue(value, run.dxs(k), StrCat("gradient of ", run.dxs(k).name()),
                                    GradientTolerance(case_.precision(), value.dtype())));
    }
    return absl::OkStatus();
  }

 private:
  static std::string DyName(int run, int k) { return StrCat("golden_dy_", run, "_", k); }

  Status AddGradients(int i) {
    const Step& run = case_.runs(i);
    std::vector<Value> ys, xs, dys;
    for (int k = 0; k < run.dys_size(); ++k) {
      MR_ASSIGN_OR_RETURN(const Port y, builder_.graph().FindPort(run.dys(k).name()));
      ys.emplace_back(&builder_, y);
      dys.push_back(builder_.AddOne("Placeholder", {},
                                    {{"dtype", ys[k].dtype()}, {"shape", ys[k].shape()}},
                                    SourceLocation(), DyName(i, k)));
    }
    for (const NamedTensor& dx : run.dxs()) {
      MR_ASSIGN_OR_RETURN(const Port x, builder_.graph().FindPort(dx.name()));
      xs.emplace_back(&builder_, x);
    }
    MR_ASSIGN_OR_RETURN(const std::vector<Value> dxs, Gradients(ys, xs, dys));
    for (const Value& dx : dxs) dx_names_[i].push_back(dx.name());
    return absl::OkStatus();
  }

  // What was inferred must hold.
  Status CheckShape(const std::string& name, const Tensor& value) const {
    MR_ASSIGN_OR_RETURN(const Port port, builder_.graph().FindPort(name));
    const PartialShape& inferred = builder_.graph().shape(port);
    if (inferred.IsCompatibleWith(value.shape())) return absl::OkStatus();
    return Internal(name, ": its shape is ", value.shape().ToString(), ", but inferred as ",
                    inferred.ToString());
  }

  static Status CheckValue(const Tensor& got, const NamedTensor& want, const std::string& what,
                           Tolerance tolerance) {
    MR_ASSIGN_OR_RETURN(const Tensor value, TensorFromProto(want.tensor()));
    return Annotate(Compare(got, value, tolerance), what);
  }

  const Case& case_;
  GraphBuilder builder_;
  std::vector<std::vector<std::string>> dx_names_;  // of each run
  std::unique_ptr<GraphRunner> runner_;
  std::unique_ptr<Session> session_;
};

bool IsRefused(const Case& c) {
  for (const Step& run : c.runs()) {
    if (run.error() == 0) return false;
  }
  return true;
}

}  // namespace

Status RunCase(const Case& c) {
  CaseRunner runner(c);
  Status ready = runner.Import();
  if (ready.ok()) ready = runner.AddGradients();
  if (ready.ok()) ready = runner.Open();
  if (!ready.ok()) return IsRefused(c) ? absl::OkStatus() : ready;
  for (int i = 0; i < c.runs_size(); ++i) {
    const StatusOr<std::vector<Tensor>> values = runner.RunStep(i);
    const std::string place = StrCat("run ", i);
    if (c.runs(i).error() != 0) {
      if (!values.ok()) continue;
      return Internal(place, ": TensorFlow refuses it (code ", c.runs(i).error(), "), we do not");
    }
    if (!values.ok()) return Annotate(values.status(), place);
    MR_RETURN_IF_ERROR(Annotate(runner.CheckValues(i, *values), place));
  }
  return absl::OkStatus();
}

}  // namespace millrace::golden
