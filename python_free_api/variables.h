#ifndef PYTHON_FREE_API_VARIABLES_H_
#define PYTHON_FREE_API_VARIABLES_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/graph/graph_builder.h"

namespace millrace {

// Makes the initial value of a parameter of the given shape, as a graph expression. The random ones
// below draw by (seed, the variable's name): a variable gets the same values in every run, on
// whatever servers, and others than its neighbours.
using Initializer = std::function<Value(GraphBuilder&, DType, const Shape&, SourceLocation)>;

Initializer Zeros();
Initializer Constant(double value);
// Uniform in [-limit, limit], limit = sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio 2010). The fans
// of a filter [h,w,in,out] are h*w*in and h*w*out.
Initializer GlorotUniform(uint64_t seed = 0);
// Truncated normal, cut at two of its own deviations, with deviation sqrt(2 / fan_in) after the cut
// (He et al. 2015).
Initializer HeNormal(uint64_t seed = 0);
// InvalidArgument, in the builder, for a negative or infinite deviation.
Initializer Normal(double deviation, uint64_t seed = 0);

// The variables of a program: parameters, optimizer slots, counters. Layers and optimizers add to
// it; sessions initialise, save and restore it by name. Not thread-safe; lives as long as its
// builder's graph is being built.
class Variables {
 public:
  struct Variable {
    std::string name;
    DType dtype;
    Shape shape;
    bool trainable;
    Value handle;
    Operation initialize;
    // For savers, each in a step of its own: fetch `saved`; feed `restore_feed` with
    // `restore_target`.
    std::string saved;
    std::string restore_feed;
    std::string restore_target;
  };

  explicit Variables(GraphBuilder& builder) : builder_(builder) {}

  // A variable `name` in the current name scope; model code reads it by ReadVariable(handle). The
  // index is for operator[]; after an error in the builder its values are poisoned. An error: a
  // name that a variable of the builder has, a null initializer or one whose value does not fit.
  int Add(absl::string_view name, DType dtype, const Shape& shape, const Initializer& initializer,
          bool trainable, SourceLocation where = SourceLocation::Current());

  // The counter of training steps: the int64 variable "global_step", at the root whatever scope is
  // current. Made when first asked for; Minimize advances it.
  int GlobalStep(SourceLocation where = SourceLocation::Current());

  GraphBuilder& builder() const { return builder_; }
  int size() const { return static_cast<int>(variables_.size()); }
  const Variable& operator[](int i) const { return variables_[i]; }
  const std::vector<Variable>& all() const { return variables_; }
  // Initialises all that were added before this call.
  Operation Initialize(SourceLocation where = SourceLocation::Current());

 private:
  // Adds the nodes of `v`; says what is wrong, if anything.
  Status Make(absl::string_view name, const Initializer& initializer, SourceLocation where,
              Variable& v);

  GraphBuilder& builder_;
  std::vector<Variable> variables_;
  std::map<std::string, SourceLocation> made_at_;  // by name
  int global_step_ = -1;
};

}  // namespace millrace

#endif  // PYTHON_FREE_API_VARIABLES_H_
