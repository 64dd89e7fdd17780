#ifndef PYTHON_FREE_API_OPTIMIZER_H_
#define PYTHON_FREE_API_OPTIMIZER_H_

#include <memory>
#include <vector>

#include "python_free_api/variables.h"

namespace millrace {

// A rule that changes variables by gradients. Its slots are variables beside the ones they serve.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Adds the updates of `parameters` (indices into `variables`) by `gradients`, one each. Settings
  // out of range are errors of the builder.
  virtual std::vector<Operation> Apply(Variables& variables, const std::vector<int>& parameters,
                                       const std::vector<Value>& gradients,
                                       SourceLocation where) const = 0;
};

// Rates are finite and not negative, as momentum is; decay rates (betas) are in [0,1), epsilon is
// above 0.
//
// w -= rate * g
std::unique_ptr<Optimizer> Sgd(double rate);
// m = momentum * m + g; w -= rate * m; nesterov: w -= rate * (g + momentum * m)
std::unique_ptr<Optimizer> Momentum(double rate, double momentum = 0.9, bool nesterov = false);
// Adagrad (Duchi et al. 2011): s += g^2, from `initial`, which is above 0; w -= rate * g / sqrt(s)
std::unique_ptr<Optimizer> Adagrad(double rate = 0.01, double initial = 0.1);
// RMSProp (Hinton 2012): s = decay s + (1 - decay) g^2, m = momentum * m + rate * g /
// sqrt(s + epsilon); w -= m
std::unique_ptr<Optimizer> RmsProp(double rate = 1e-3, double decay = 0.9, double momentum = 0,
                                   double epsilon = 1e-7);
// Adam (Kingma & Ba 2015): m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
// w -= rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon) in step t = 1, 2, ...
std::unique_ptr<Optimizer> Adam(double rate = 1e-3, double beta1 = 0.9, double beta2 = 0.999,
                                double epsilon = 1e-8);

// Each gradient times min(1, limit / the norm of all of them together) (Pascanu et al. 2013). The
// limit is finite and above 0. NaN, all of them, if the norm is not finite: a step that went wrong
// shall be seen.
std::vector<Value> ClipByGlobalNorm(const std::vector<Value>& gradients, double limit,
                                    SourceLocation where = SourceLocation::Current());

struct MinimizeOptions {
  double clip_global_norm = 0;  // the limit of ClipByGlobalNorm; 0: no clipping
};
// One training step on `loss`: gradients with respect to all trainable variables, their update, and
// then that of the global step (Variables::GlobalStep). Run the result as a target. An error, kept
// by the builder of `variables`: a trainable variable that `loss` does not depend on, or none.
Operation Minimize(Value loss, Variables& variables, const Optimizer& optimizer,
                   MinimizeOptions options = {}, SourceLocation where = SourceLocation::Current());

}  // namespace millrace

#endif  // PYTHON_FREE_API_OPTIMIZER_H_
