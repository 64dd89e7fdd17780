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
  // Adds the updates of `parameters` (indices into `variables`) by `gradients`, one each.
  virtual std::vector<Operation> Apply(Variables& variables, const std::vector<int>& parameters,
                                       const std::vector<Value>& gradients,
                                       SourceLocation where) const = 0;
};

// w -= rate * g
std::unique_ptr<Optimizer> Sgd(double rate);
// m = momentum * m + g; w -= rate * m; nesterov: w -= rate * (g + momentum * m)
std::unique_ptr<Optimizer> Momentum(double rate, double momentum = 0.9, bool nesterov = false);
// Kingma & Ba 2015.
std::unique_ptr<Optimizer> Adam(double rate = 1e-3, double beta1 = 0.9, double beta2 = 0.999,
                                double epsilon = 1e-8);

// Each gradient times min(1, limit / the norm of all of them together) (Pascanu et al. 2013).
std::vector<Value> ClipByGlobalNorm(const std::vector<Value>& gradients, double limit,
                                    SourceLocation where = SourceLocation::Current());

struct MinimizeOptions {
  double clip_global_norm = 0;  // 0: no clipping
};
// One training step on `loss`: gradients with respect to all trainable variables, their update, and
// a global step counter (the int64 variable "global_step"). Run the result as a target.
Operation Minimize(Value loss, Variables& variables, const Optimizer& optimizer,
                   MinimizeOptions options = {}, SourceLocation where = SourceLocation::Current());

}  // namespace millrace

#endif  // PYTHON_FREE_API_OPTIMIZER_H_
