#include "python_free_api/optimizer.h"

#include <utility>

#include "core/graph/gradients.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/state_ops.h"

namespace millrace {
namespace {

// A slot of variable `of`: same dtype and shape, zero at first, named after it.
Value AddSlot(Variables& variables, int of, absl::string_view slot, SourceLocation where) {
  const DType dtype = variables[of].dtype;
  const Shape shape = variables[of].shape;
  const std::string name = StrCat(variables[of].name, "/", slot);
  return variables[variables.Add(name, dtype, shape, Zeros(), /*trainable=*/false, where)].handle;
}

class SgdOptimizer final : public Optimizer {
 public:
  explicit SgdOptimizer(double rate) : rate_(rate) {}
  std::vector<Operation> Apply(Variables& variables, const std::vector<int>& parameters,
                               const std::vector<Value>& gradients,
                               SourceLocation where) const override {
    std::vector<Operation> updates;
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

class AdamOptimizer final : public Optimizer {
 public:
  AdamOptimizer(double rate, double beta1, double beta2, double epsilon)
      : rate_(rate), beta1_(beta1), beta2_(beta2), epsilon_(epsilon) {}
  std::vector<Operation> Apply(Variables& variables, const std::vector<int>& parameters,
                               const std::vector<Value>& gradients,
                               SourceLocation where) const override {
    if (parameters.empty()) return {};
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

}  // namespace

std::unique_ptr<Optimizer> Sgd(double rate) { return std::make_unique<SgdOptimizer>(rate); }

std::unique_ptr<Optimizer> Momentum(double rate, double momentum, bool nesterov) {
  return std::make_unique<MomentumOptimizer>(rate, momentum, nesterov);
}

std::unique_ptr<Optimizer> Adam(double rate, double beta1, double beta2, double epsilon) {
  return std::make_unique<AdamOptimizer>(rate, beta1, beta2, epsilon);
}

std::vector<Value> ClipByGlobalNorm(const std::vector<Value>& gradients, double limit,
                                    SourceLocation where) {
  if (gradients.empty()) return {};
  GraphBuilder& b = *gradients[0].builder();
  auto scope = b.NameScope("clip_by_global_norm");
  std::vector<Value> halves;
  for (Value g : gradients) halves.push_back(L2Loss(g, where));
  const DType dtype = gradients[0].dtype();
  Value norm = Sqrt(Mul(AddN(halves, where), Scalar(b, 2, dtype, where), where), where);
  Value bound = Scalar(b, limit, dtype, where);
  Value factor = Div(bound, Maximum(norm, bound, where), where);
  std::vector<Value> clipped;
  for (Value g : gradients) clipped.push_back(Mul(g, factor, where));
  return clipped;
}

Operation Minimize(Value loss, Variables& variables, const Optimizer& optimizer,
                   MinimizeOptions options, SourceLocation where) {
  GraphBuilder& b = variables.builder();
  std::vector<int> parameters;
  std::vector<Value> reads;
  for (int i = 0; i < variables.size(); ++i) {
    if (!variables[i].trainable) continue;
    parameters.push_back(i);
    reads.push_back(ReadVariable(variables[i].handle, where));
  }
  StatusOr<std::vector<Value>> gradients = Gradients({loss}, reads, {}, where);
  if (!gradients.ok()) {
    b.Fail(gradients.status(), where);
    return Operation(&b, -1);
  }
  if (options.clip_global_norm > 0) {
    gradients = ClipByGlobalNorm(*gradients, options.clip_global_norm, where);
  }
  auto scope = b.NameScope("optimizer");
  std::vector<Operation> updates = optimizer.Apply(variables, parameters, *gradients, where);
  const int step = variables.Add("global_step", DType::kInt64, Shape(), Zeros(),
                                 /*trainable=*/false, where);
  {
    auto after = b.ControlDependencies(updates);
    updates.push_back(
        AssignAdd(variables[step].handle, Const(b, Tensor::Scalar<int64_t>(1), "", where), where));
  }
  return Group(b, std::move(updates), "step", where);
}

}  // namespace millrace
