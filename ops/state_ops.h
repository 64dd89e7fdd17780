#ifndef OPS_STATE_OPS_H_
#define OPS_STATE_OPS_H_

#include <string>
#include <vector>

#include "core/graph/graph_builder.h"

// Variables and their updates. Update functions tell the builder, which orders reads before them.
namespace millrace {

class OpRegistry;
void RegisterStateOps(OpRegistry& registry);

// The handle of the variable `name` (its resource's shared name; scopes apply). A second one of
// that name is refused.
Value VariableHandle(GraphBuilder& builder, absl::string_view name, DType dtype, Shape shape,
                     SourceLocation where = SourceLocation::Current());
// Its value in this step, before later updates.
Value ReadVariable(Value handle, SourceLocation where = SourceLocation::Current());
Value IsInitialized(Value handle, SourceLocation where = SourceLocation::Current());
Operation Assign(Value handle, Value value, SourceLocation where = SourceLocation::Current());
Operation AssignAdd(Value handle, Value delta, SourceLocation where = SourceLocation::Current());
Operation AssignSub(Value handle, Value delta, SourceLocation where = SourceLocation::Current());

// The rows of a variable that `indices` name, as of now, and changes of such rows in place: the
// rest of the variable is neither copied nor sent. `updates`: a row for each index, or one number.
Value GatherRows(Value handle, Value indices, SourceLocation where = SourceLocation::Current());
Operation AddToRows(Value handle, Value indices, Value updates,
                    SourceLocation where = SourceLocation::Current());
Operation SubtractFromRows(Value handle, Value indices, Value updates,
                           SourceLocation where = SourceLocation::Current());

// w -= rate * gradient
Operation ApplyGradientDescent(Value w, Value rate, Value gradient,
                               SourceLocation where = SourceLocation::Current());
// m = momentum * m + gradient; w -= rate * m (with nesterov: rate * (gradient + momentum * m))
Operation ApplyMomentum(Value w, Value m, Value rate, Value gradient, Value momentum, bool nesterov,
                        SourceLocation where = SourceLocation::Current());
// m = momentum * m - rate * gradient; w += m (with nesterov: momentum * m - rate * gradient)
Operation ApplyKerasMomentum(Value w, Value m, Value rate, Value gradient, Value momentum,
                             bool nesterov, SourceLocation where = SourceLocation::Current());
// Adagrad (Duchi et al. 2011): sum += gradient^2; w -= rate * gradient / sqrt(sum)
Operation ApplyAdagrad(Value w, Value sum, Value rate, Value gradient,
                       SourceLocation where = SourceLocation::Current());
// RMSProp (Hinton 2012) with momentum: mean_square += (1 - decay) (gradient^2 - mean_square);
// m = momentum * m + rate * gradient / sqrt(mean_square + epsilon); w -= m
Operation ApplyRmsProp(Value w, Value mean_square, Value m, Value rate, Value decay, Value momentum,
                       Value epsilon, Value gradient,
                       SourceLocation where = SourceLocation::Current());
// Adam (Kingma & Ba 2015) in the form with the bias corrections folded into the rate:
// rate_t = rate * sqrt(1 - beta2_power) / (1 - beta1_power); w -= rate_t * m / (sqrt(v) + epsilon).
// Moments and powers are variables and scalars of w's dtype; the powers are read, not changed.
Operation ApplyAdam(Value w, Value m, Value v, Value beta1_power, Value beta2_power, Value rate,
                    Value beta1, Value beta2, Value epsilon, Value gradient,
                    SourceLocation where = SourceLocation::Current());

// Runs after all of `operations`, and does nothing.
Operation Group(GraphBuilder& builder, std::vector<Operation> operations,
                absl::string_view name = "", SourceLocation where = SourceLocation::Current());

}  // namespace millrace

#endif  // OPS_STATE_OPS_H_
