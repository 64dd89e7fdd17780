#include "python_free_api/optimizer.h"

#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/graph/gradients.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/state_ops.h"

namespace millrace {
namespace {

// A slot of variable `of`: same dtype and shape, `initial` everywhere at first, named after it.
Value AddSlot(Variables& variables, int of, absl::string_view slot, SourceLocation where,
              double initial = 0) {
  const DType dtype = variables[of].dtype;
  const Shape shape = variables[of].shape;
  const std::string name = StrCat(variables[of].name, "/", slot);
  const Initializer value = initial == 0 ? Zeros() : Constant(initial);
  return variables[variables.Add(name, dtype, shape, value, /*trainable=*/false, where)].handle;
}

// A number that an optimizer was given, and what it must be.
struct Setting {
  const char* name;
  double value;
  enum { kNotNegative, kPositive, kBelowOne } range;
};

// Whether updates can be added; else the builder has the error.
bool Check(const Variables& variables, const std::vector<int>& parameters,
           const std::vector<Value>& gradients, std::initializer_list<Setting> settings,
           SourceLocation where) {
  GraphBuilder& b = variables.builder();
  for (const Setting& s : settings) {
    const bool fits = std::isfinite(s.value) && s.value >= 0 &&
                      (s.range != Setting::kPositive || s.value > 0) &&
                      (s.range != Setting::kBelowOne || s.value < 1);
    if (fits) continue;
    const char* const range = s.range == Setting::kPositive   ? "above 0"
                              : s.range == Setting::kBelowOne ? "in [0,1)"
                                                              : "a number of at least 0";
    b.Fail(InvalidArgument("an optimizer's ", s.name, " must be ", range, ", but is ", s.value),
           where);
  }
  if (parameters.size() != gradients.size()) {
    b.Fail(InvalidArgument("an optimizer got ", gradients.size(), " gradients for ",
                           parameters.size(), " parameters"),
           where);
  }
  return b.status().ok();
}

class SgdOptimizer final : public Optimizer {
 public:
  explicit SgdOptimizer(double rate) : rate_(rate) {}
  std::vector<Operation> Apply(Variables& variables, const std::vector<int>& parameters,
                               const std::vector<Value>& gradients,
                               SourceLocation where) const override {
    std::vector<Operation> updates;
    const Setting rate{"rate", rate_, Setting::kNotNegative};
    if (!Check(variables, parameters, gradients, {rate}, where)) return updates;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Variables::Variable& w = variables[parameters[i]];
      updates.push_back(ApplyGradientDescent(
          w.handle, Scalar(variables.builder(), rate_, w.dtype, where), gradients[i], where));
    }
    return updates;
  }

 private:
  const double rate_;
};

class MomentumOptimizer final : public Optimizer {
 public:
  MomentumOptimizer(double rate, double momentum, bool nesterov)
      : rate_(rate), momentum_(momentum), nesterov_(nesterov) {}
  std::vector<Operation> Apply(Variables& variables, const std::vector<int>& parameters,
                               const std::vector<Value>& gradients,
                               SourceLocation where) const override {
    GraphBuilder& b = variables.builder();
    std::vector<Operation> updates;
    const Setting rate{"rate", rate_, Setting::kNotNegative};
    const Setting momentum{"momentum", momentum_, Setting::kNotNegative};
    if (!Check(variables, parameters, gradients, {rate, momentum}, where)) return updates;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Value handle = variables[parameters[i]].handle;
      const DType dtype = variables[parameters[i]].dtype;
      const Value m = AddSlot(variables, parameters[i], "momentum", where);
      updates.push_back(ApplyMomentum(handle, m, Scalar(b, rate_, dtype, where), gradients[i],
                                      Scalar(b, momentum_, dtype, where), nesterov_, where));
    }
    return updates;
  }

 private:
  const double rate_;
  const double momentum_;
  const bool nesterov_;
};

class AdagradOptimizer final : public Optimizer {
 public:
  AdagradOptimizer(double rate, double initial) : rate_(rate), initial_(initial) {}
  std::vector<Operation> Apply(Variables& variables, const std::vector<int>& parameters,
                               const std::vector<Value>& gradients,
                               SourceLocation where) const override {
    std::vector<Operation> updates;
    const Setting rate{"rate", rate_, Setting::kNotNegative};
    const Setting initial{"initial sum", initial_, Setting::kPositive};
    if (!Check(variables, parameters, gradients, {rate, initial}, where)) return updates;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Value handle = variables[parameters[i]].handle;
      const DType dtype = variables[parameters[i]].dtype;
      const Value sum = AddSlot(variables, parameters[i], "adagrad_sum", where, initial_);
      updates.push_back(ApplyAdagrad(handle, sum, Scalar(variables.builder(), rate_, dtype, where),
                                     gradients[i], where));
    }
    return updates;
  }

 private:
  const double rate_;
  const double initial_;
};

class RmsPropOptimizer final : public Optimizer {
 public:
  RmsPropOptimizer(double rate, double decay, double momentum, double epsilon)
      : rate_(rate), decay_(decay), momentum_(momentum), epsilon_(epsilon) {}
  std::vector<Operation> Apply(Variables& variables, const std::vector<int>& parameters,
                               const std::vector<Value>& gradients,
                               SourceLocation where) const override {
    std::vector<Operation> updates;
    const std::initializer_list<Setting> settings = {{"rate", rate_, Setting::kNotNegative},
                                                     {"decay", decay_, Setting::kBelowOne},
                                                     {"momentum", momentum_, Setting::kNotNegative},
                                                     {"epsilon", epsilon_, Setting::kPositive}};
    if (!Check(variables, parameters, gradients, settings, where)) return updates;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Value handle = variables[parameters[i]].handle;
      const DType dtype = variables[parameters[i]].dtype;
      const Value square = AddSlot(variables, parameters[i], "rmsprop_square", where);
      const Value m = AddSlot(variables, parameters[i], "rmsprop_momentum", where);
      const auto scalar = [&](double x) { return Scalar(variables.builder(), x, dtype, where); };
      updates.push_back(ApplyRmsProp(handle, square, m, scalar(rate_), scalar(decay_),
                                     scalar(momentum_), scalar(epsilon_), gradients[i], where));
    }
    return updates;
  }

 private:
  const double rate_;
  const double decay_;
  const double momentum_;
  const double epsilon_;
};

class AdamOptimizer final : public Optimizer {
 public:
  AdamOptimizer(double rate, double beta1, double beta2, double epsilon)
      : rate_(rate), beta1_(beta1), beta2_(beta2), epsilon_(epsilon) {}
  std::vector<Operation> Apply(Variables& variables, const std::vector<int>& parameters,
                               const std::vector<Value>& gradients,
                               SourceLocation where) const override {
    const std::initializer_list<Setting> settings = {{"rate", rate_, Setting::kNotNegative},
                                                     {"beta1", beta1_, Setting::kBelowOne},
                                                     {"beta2", beta2_, Setting::kBelowOne},
                                                     {"epsilon", epsilon_, Setting::kPositive}};
    if (!Check(variables, parameters, gradients, settings, where) || parameters.empty()) return {};
    GraphBuilder& b = variables.builder();
    // One pair of powers for all parameters, of the first one's dtype.
    const DType dtype = variables[parameters[0]].dtype;
    const int power1 = variables.Add("beta1_power", dtype, Shape(), Constant(beta1_),
                                     /*trainable=*/false, where);
    const int power2 = variables.Add("beta2_power", dtype, Shape(), Constant(beta2_),
                                     /*trainable=*/false, where);
    const Value beta1_power = ReadVariable(variables[power1].handle, where);
    const Value beta2_power = ReadVariable(variables[power2].handle, where);
    std::vector<Operation> updates;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Value handle = variables[parameters[i]].handle;
      const DType type = variables[parameters[i]].dtype;
      const Value m = AddSlot(variables, parameters[i], "adam_m", where);
      const Value v = AddSlot(variables, parameters[i], "adam_v", where);
      auto scalar = [&](double x) { return Scalar(b, x, type, where); };
      auto typed = [&](Value x) { return type == dtype ? x : Cast(x, type, where); };
      updates.push_back(ApplyAdam(handle, m, v, typed(beta1_power), typed(beta2_power),
                                  scalar(rate_), scalar(beta1_), scalar(beta2_), scalar(epsilon_),
                                  gradients[i], where));
    }
    // The powers move on when all parameters have used them.
    auto scope = b.ControlDependencies(updates);
    updates.push_back(Assign(variables[power1].handle,
                             Mul(beta1_power, Scalar(b, beta1_, dtype, where), where), where));
    updates.push_back(Assign(variables[power2].handle,
                             Mul(beta2_power, Scalar(b, beta2_, dtype, where), where), where));
    return updates;
  }

 private:
  const double rate_;
  const double beta1_;
  const double beta2_;
  const double epsilon_;
};

// What `loss` is computed from, as far as it reads variables: the reads of each, by its handle's
// node. There may be several of one variable, between updates or under control dependencies.
std::map<NodeId, std::vector<Value>> ReadsBehind(Value loss) {
  GraphBuilder& b = *loss.builder();
  std::map<NodeId, std::vector<Value>> reads;
  std::vector<bool> seen(b.graph().num_ids(), false);
  std::vector<NodeId> open = {loss.port().node};
  seen[open[0]] = true;
  while (!open.empty()) {
    const Node& node = *b.graph().node(open.back());
    open.pop_back();
    if (node.op().Has(Trait::kReadsVariable)) {
      reads[node.inputs()[0].node].emplace_back(&b, Port{node.id(), 0});
    }
    for (const Port& input : node.inputs()) {
      if (!seen[input.node]) open.push_back(input.node);
      seen[input.node] = true;
    }
  }
  return reads;
}

// The gradients of `loss` with respect to variables: for each, the sum over all of its reads.
// Errors say the line.
StatusOr<std::vector<Value>> VariableGradients(Value loss, const Variables& variables,
                                               const std::vector<int>& parameters,
                                               SourceLocation where) {
  const std::map<NodeId, std::vector<Value>> reads_of = ReadsBehind(loss);
  std::vector<Value> reads;
  std::vector<size_t> ends;  // of each parameter's, in `reads`
  for (const int i : parameters) {
    const auto found = reads_of.find(variables[i].handle.port().node);
    if (found == reads_of.end()) {
      GraphBuilder& b = *loss.builder();
      b.Fail(
          InvalidArgument("the loss '", loss.name(), "' does not depend on the variable '",
                          variables[i].name, "': use it, or add it as one that is not trainable"),
          where);
      return b.status();
    }
    reads.insert(reads.end(), found->second.begin(), found->second.end());
    ends.push_back(reads.size());
  }
  MR_ASSIGN_OR_RETURN(const std::vector<Value> by_read, Gradients({loss}, reads, {}, where));
  std::vector<Value> gradients;
  for (size_t begin = 0; const size_t end : ends) {
    const absl::Span<const Value> own = absl::MakeSpan(by_read).subspan(begin, end - begin);
    gradients.push_back(own.size() == 1 ? own[0] : AddN(own, where));
    begin = end;
  }
  return gradients;
}

}  // namespace

std::unique_ptr<Optimizer> Sgd(double rate) { return std::make_unique<SgdOptimizer>(rate); }

std::unique_ptr<Optimizer> Momentum(double rate, double momentum, bool nesterov) {
  return std::make_unique<MomentumOptimizer>(rate, momentum, nesterov);
}

std::unique_ptr<Optimizer> Adagrad(double rate, double initial) {
  return std::make_unique<AdagradOptimizer>(rate, initial);
}
std::unique_ptr<Optimizer> RmsProp(double rate, double decay, double momentum, double epsilon) {
  return std::make_unique<RmsPropOptimizer>(rate, decay, momentum, epsilon);
}
std::unique_ptr<Optimizer> Adam(double rate, double beta1, double beta2, double epsilon) {
  return std::make_unique<AdamOptimizer>(rate, beta1, beta2, epsilon);
}

std::vector<Value> ClipByGlobalNorm(const std::vector<Value>& gradients, double limit,
                                    SourceLocation where) {
  GraphBuilder* builder = nullptr;
  for (const Value& g : gradients) {
    if (builder == nullptr) builder = g.builder();
  }
  if (builder == nullptr) return gradients;
  GraphBuilder& b = *builder;
  const DType dtype = gradients[0].dtype();
  const double most = dtype == DType::kFloat ? std::numeric_limits<float>::max()
                                             : std::numeric_limits<double>::max();
  if (!(limit > 0 && limit <= most)) {
    b.Fail(InvalidArgument("the limit of a global norm must be a finite ", Name(dtype),
                           " above 0, but is ", limit),
           where);
    return std::vector<Value>(gradients.size(), Value(&b, Port()));
  }
  auto scope = b.NameScope("clip_by_global_norm");
  auto typed = [&](Value x, DType type) { return x.dtype() == type ? x : Cast(x, type, where); };
  std::vector<Value> halves;
  for (Value g : gradients) halves.push_back(typed(L2Loss(g, where), dtype));
  Value norm = Sqrt(Mul(AddN(halves, where), Scalar(b, 2, dtype, where), where), where);
  Value bound = Scalar(b, limit, dtype, where);
  Value nan = Scalar(b, std::numeric_limits<double>::quiet_NaN(), dtype, where);
  // Infinite by overflow alone, the norm would make zeros of all gradients.
  Value factor =
      Select(IsFinite(norm, where), Div(bound, Maximum(norm, bound, where), where), nan, where);
  std::vector<Value> clipped;
  for (Value g : gradients) clipped.push_back(Mul(g, typed(factor, g.dtype()), where));
  return clipped;
}

Operation Minimize(Value loss, Variables& variables, const Optimizer& optimizer,
                   MinimizeOptions options, SourceLocation where) {
  GraphBuilder& b = variables.builder();
  const Operation poisoned(&b, -1);
  auto fail = [&](const Status& error) {
    b.Fail(error, where);
    return poisoned;
  };
  if (!b.status().ok()) return poisoned;
  if (loss.builder() != &b) {
    return fail(InvalidArgument(
        "the loss ", loss.builder() == nullptr ? "is an empty Value"
                                               : "belongs to another builder than the variables"));
  }
  if (!loss.ok()) return poisoned;
  std::vector<int> parameters;
  for (int i = 0; i < variables.size(); ++i) {
    if (variables[i].trainable) parameters.push_back(i);
  }
  if (parameters.empty()) {
    return fail(
        InvalidArgument("there is no trainable variable to minimize '", loss.name(), "' over"));
  }
  StatusOr<std::vector<Value>> gradients = VariableGradients(loss, variables, parameters, where);
  if (!gradients.ok()) {
    b.Fail(gradients.status(), SourceLocation());
    return poisoned;
  }
  if (options.clip_global_norm != 0) {
    gradients = ClipByGlobalNorm(*gradients, options.clip_global_norm, where);
  }
  auto scope = b.NameScope("optimizer");
  std::vector<Operation> updates = optimizer.Apply(variables, parameters, *gradients, where);
  const Value step = variables[variables.GlobalStep(where)].handle;
  {
    auto after = b.ControlDependencies(updates);
    updates.push_back(AssignAdd(step, Const(b, Tensor::Scalar<int64_t>(1), "", where), where));
  }
  return Group(b, std::move(updates), "step", where);
}

}  // namespace millrace
