#include "tests/testing/op_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>

#include "core/graph/gradients.h"
#include "core/graph/graph_text.h"
#include "core/graph/verify.h"
#include "tests/testing/graph_runner.h"
#include "tests/testing/op_text.h"

namespace millrace::testing {
namespace {

// What is known when the graph is built.
enum class Known { kShapes, kRanks, kNothing };

absl::string_view Name(Known known) {
  if (known == Known::kShapes) return "with static shapes";
  return known == Known::kRanks ? "with unknown extents" : "with everything fed";
}

constexpr double kStep = 1e-5;
constexpr double kGradientTolerance = 1e-6;
// Symbolic gradients in float against those in double.
constexpr double kFloatGradientTolerance = 1e-4;
constexpr double kDoubleTolerance = 1e-12;

GraphRunner& Runner() {
  static GraphRunner& runner = *new GraphRunner;
  return runner;
}

// The numbers 0..size-1 in an order without pattern.
std::vector<int64_t> Shuffled(int64_t size, uint64_t seed) {
  std::vector<int64_t> order(size);
  for (int64_t i = 0; i < size; ++i) order[i] = i;
  uint64_t state = seed * 2654435761u + 12345;
  for (int64_t i = size - 1; i > 0; --i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap(order[i], order[static_cast<int64_t>((state >> 33) % (i + 1))]);
  }
  return order;
}

// Evenly spaced, so that no two are near each other or, by the offset, near another input's: kinks
// lie where operands are equal. Not near 0, where most others lie.
Array Draw(const std::vector<int64_t>& shape, int input, double low, double high) {
  Array array = Zeros(shape);
  const std::vector<int64_t> order = Shuffled(array.size(), input + 1);
  for (int64_t i = 0; i < array.size(); ++i) {
    const double at = (static_cast<double>(order[i]) + 0.29 + 0.17 * input) /
                      static_cast<double>(array.size() + 1);
    double v = low + (high - low) * at;
    if (low < 0 && high > 0 && std::abs(v) < 0.1) v += v < 0 ? -0.1 : 0.1;
    array[i] = v;
  }
  return array;
}

Status Compare(absl::string_view what, const Array& got, const Array& want, double tolerance) {
  if (got.shape != want.shape) {
    return Internal(what, " has rank ", got.rank(), " and ", got.size(), " elements, not rank ",
                    want.rank(), " and ", want.size());
  }
  const double allowed = tolerance * std::max(want.Largest(), 1e-2);
  for (int64_t i = 0; i < got.size(); ++i) {
    const bool same = got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]));
    if (!same && !(std::abs(got[i] - want[i]) <= allowed)) {
      return Internal(what, " has element ", i, " = ", got[i], ", not ", want[i], " (largest ",
                      want.Largest(), ")");
    }
  }
  return absl::OkStatus();
}

// One case in one dtype, with one state of knowledge.
class CaseRun {
 public:
  CaseRun(const OpCase& c, DType dtype, Known known)
      : case_(c), dtype_(dtype), known_(known), builder_(AllOps()) {}

  Status Run() {
    MR_RETURN_IF_ERROR(Build());
    MR_ASSIGN_OR_RETURN(session_, Runner().NewSession(builder_.graph()));
    MR_RETURN_IF_ERROR(Forward());
    return CheckRoundTrip();
  }

  // Not where it stops by purpose. Differences of outputs that are narrower than what is under test
  // would drown in rounding.
  bool has_gradient() const {
    for (int i : floating_outputs_) {
      if (outputs_[i].dtype() == DType::kFloat && dtype_ == DType::kDouble) return false;
    }
    const OpDef& op = *AllOps()->Find(case_.op);
    return op.gradient_fn() != nullptr && !op.Has(Trait::kNoGradientStop) &&
           !floating_inputs_.empty() && !floating_outputs_.empty();
  }

  // The symbolic gradients of <c, outputs> for each floating input.
  StatusOr<std::vector<Array>> Symbolic() {
    std::vector<Value> ys, xs, dys;
    GraphRunner::Feeds feeds = feeds_;
    for (int i : floating_outputs_) {
      ys.push_back(outputs_[i]);
      const std::string name = StrCat("dy", i);
      dys.push_back(builder_.AddOne(
          "Placeholder", {}, {{"dtype", outputs_[i].dtype()}, {"shape", outputs_[i].shape()}},
          SourceLocation(), name));
      MR_ASSIGN_OR_RETURN(Tensor value, ToTensor(Weights(i), outputs_[i].dtype()));
      feeds.push_back({name, std::move(value)});
    }
    for (int i : floating_inputs_) xs.push_back(inputs_[i]);
    MR_ASSIGN_OR_RETURN(const std::vector<Value> dxs, Gradients(ys, xs, dys));
    MR_RETURN_IF_ERROR(Verify(builder_.graph()));
    MR_RETURN_IF_ERROR(CheckRoundTrip());
    std::vector<std::string> fetches;
    for (const Value& dx : dxs) fetches.push_back(dx.name());
    MR_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                        Runner().Run(builder_.graph(), feeds, fetches));
    std::vector<Array> arrays;
    for (size_t i = 0; i < results.size(); ++i) {
      MR_RETURN_IF_ERROR(CheckShape(StrCat("gradient ", i), dxs[i], results[i]));
      MR_ASSIGN_OR_RETURN(Array array, ToArray(results[i]));
      arrays.push_back(std::move(array));
    }
    return arrays;
  }

  // The same by central differences.
  StatusOr<std::vector<Array>> Numeric() {
    std::vector<Array> gradients;
    for (int input : floating_inputs_) {
      Array gradient = Zeros(arrays_[input].shape);
      for (int64_t i = 0; i < gradient.size(); ++i) {
        MR_ASSIGN_OR_RETURN(const double above, Loss(input, i, kStep));
        MR_ASSIGN_OR_RETURN(const double below, Loss(input, i, -kStep));
        gradient[i] = (above - below) / (2 * kStep);
      }
      gradients.push_back(std::move(gradient));
    }
    return gradients;
  }

 private:
  Status Build() {
    MR_ASSIGN_OR_RETURN(const Graph pattern, OpGraph(case_.op, case_.attrs, case_.inputs));
    const Node& node = *pattern.Find("y");
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      MR_RETURN_IF_ERROR(AddInput(*pattern.node(node.inputs()[i].node), static_cast<int>(i)));
    }
    // Attributes that the inputs tell are left to inference: they differ with the dtype under test.
    std::set<std::string> inferred;
    for (const ArgDef& arg : node.op().inputs()) {
      inferred.insert(arg.type_attr);
      inferred.insert(arg.type_list_attr);
      inferred.insert(arg.number_attr);
    }
    AttrMap attrs;
    for (const auto& [name, value] : node.attrs()) {
      if (inferred.count(name) == 0) attrs.Set(name, value);
    }
    outputs_ =
        builder_.AddMany(case_.op, inputs_, attrs, node.num_outputs(), SourceLocation(), "y");
    MR_RETURN_IF_ERROR(builder_.status());
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (IsFloating(outputs_[i].dtype())) floating_outputs_.push_back(static_cast<int>(i));
    }
    return Verify(builder_.graph());
  }

  Status AddInput(const Node& pattern, int i) {
    const std::string name = pattern.name();
    Tensor value;
    const bool constant = pattern.op().Has(Trait::kConstant);
    if (constant) {
      value = *pattern.attrs().Find("value")->get<Tensor>();
      MR_ASSIGN_OR_RETURN(Array array, ToArray(value));
      arrays_.push_back(std::move(array));
    } else {
      const DType dtype =
          pattern.output_dtype(0) == DType::kFloat ? dtype_ : pattern.output_dtype(0);
      MR_ASSIGN_OR_RETURN(const Shape shape, pattern.output_shape(0).ToShape());
      MR_ASSIGN_OR_RETURN(value, MakeValue({shape.dims().begin(), shape.dims().end()}, i, dtype));
    }
    if (constant && known_ != Known::kNothing) {
      inputs_.push_back(builder_.AddOne("Const", {}, {{"dtype", value.dtype()}, {"value", value}},
                                        SourceLocation(), name));
      return builder_.status();
    }
    inputs_.push_back(builder_.AddOne("Placeholder", {},
                                      {{"dtype", value.dtype()}, {"shape", Told(value.shape())}},
                                      SourceLocation(), name));
    feeds_.push_back({name, value});
    if (!constant && IsFloating(value.dtype())) floating_inputs_.push_back(i);
    return builder_.status();
  }

  StatusOr<Tensor> MakeValue(std::vector<int64_t> shape, int i, DType dtype) {
    Array array = Draw(shape, i, case_.low, case_.high);
    if (i < static_cast<int>(case_.values.size()) && !case_.values[i].empty()) {
      if (case_.values[i].size() != array.values.size()) {
        return InvalidArgument("input ", i, " needs ", array.size(), " values");
      }
      array.values = case_.values[i];
    }
    for (double& v : array.values) {
      if (dtype == DType::kBool) v = v > (case_.low + case_.high) / 2 ? 1 : 0;
      if (IsInteger(dtype)) v = std::floor(v);
      // So that the reference sees what the kernel sees.
      if (dtype == DType::kFloat) v = static_cast<double>(static_cast<float>(v));
    }
    arrays_.push_back(array);
    return ToTensor(array, dtype);
  }

  // What the graph is told of a fed shape.
  PartialShape Told(const Shape& shape) const {
    if (known_ == Known::kShapes) return shape;
    if (known_ == Known::kNothing) return PartialShape();
    const std::vector<int64_t> unknown(shape.rank(), PartialShape::kUnknown);
    return PartialShape::Create(unknown).value_or(PartialShape());
  }

  std::vector<std::string> OutputNames() const {
    std::vector<std::string> names;
    for (const Value& output : outputs_) names.push_back(output.name());
    return names;
  }

  Status CheckShape(const std::string& what, const Value& value, const Tensor& real) const {
    if (value.dtype() != real.dtype()) return Internal(what, " is ", millrace::Name(real.dtype()));
    if (value.shape().IsCompatibleWith(real.shape())) return absl::OkStatus();
    return Internal(what, " has shape ", real.shape().ToString(), ", but ",
                    value.shape().ToString(), " was inferred");
  }

  Status Forward() {
    std::vector<Tensor> copies;
    for (const auto& [name, value] : feeds_) {
      MR_ASSIGN_OR_RETURN(const Array array, ToArray(value));
      MR_ASSIGN_OR_RETURN(Tensor copy, ToTensor(array, value.dtype()));
      copies.push_back(std::move(copy));
    }
    MR_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                        GraphRunner::Run(*session_, feeds_, OutputNames()));
    for (size_t i = 0; i < copies.size(); ++i) {
      if (std::memcmp(copies[i].raw_data(), feeds_[i].second.raw_data(), copies[i].byte_size())) {
        return Internal("input ", feeds_[i].first, " was changed");
      }
    }
    const std::vector<Array> wanted =
        case_.reference != nullptr ? case_.reference(arrays_) : std::vector<Array>();
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string what = StrCat("output ", i);
      MR_RETURN_IF_ERROR(CheckShape(what, outputs_[i], results[i]));
      MR_ASSIGN_OR_RETURN(const Array array, ToArray(results[i]));
      if (i < wanted.size()) {
        const double tolerance =
            dtype_ == DType::kDouble ? kDoubleTolerance : case_.float_tolerance;
        MR_RETURN_IF_ERROR(Compare(what, array, wanted[i], tolerance));
      }
      results_.push_back(array);
    }
    return absl::OkStatus();
  }

  // Weights of the elements of output i in the loss.
  Array Weights(int i) const { return Draw(results_[i].shape, i + 7, -1, 1.5); }

  StatusOr<double> Loss(int input, int64_t element, double shift) {
    GraphRunner::Feeds feeds = feeds_;
    Array moved = arrays_[input];
    moved[element] += shift;
    const std::string name = StrCat("x", input);
    std::vector<std::string> fetches;
    for (int i : floating_outputs_) fetches.push_back(outputs_[i].name());
    for (auto& [fed, value] : feeds) {
      if (fed != name) continue;
      MR_ASSIGN_OR_RETURN(value, ToTensor(moved, dtype_));
    }
    MR_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                        GraphRunner::Run(*session_, feeds, fetches));
    double loss = 0;
    for (size_t k = 0; k < results.size(); ++k) {
      const Array weights = Weights(floating_outputs_[k]);
      MR_ASSIGN_OR_RETURN(const Array output, ToArray(results[k]));
      for (int64_t i = 0; i < output.size(); ++i) loss += weights[i] * output[i];
    }
    return loss;
  }

  Status CheckRoundTrip() const {
    const std::string text = GraphToText(builder_.graph());
    MR_ASSIGN_OR_RETURN(const Graph parsed, GraphFromText(text, AllOps()));
    const std::string again = GraphToText(parsed);
    if (again == text) return absl::OkStatus();
    return Internal("the text form reads back as another graph:\n", text, "became\n", again);
  }

  const OpCase& case_;
  const DType dtype_;
  const Known known_;
  GraphBuilder builder_;
  std::vector<Value> inputs_, outputs_;
  std::vector<Array> arrays_;  // of all inputs
  GraphRunner::Feeds feeds_;   // of those that are not constant
  std::vector<int> floating_inputs_, floating_outputs_;
  std::vector<Array> results_;
  std::unique_ptr<Session> session_;
};

Status CompareAll(absl::string_view what, const std::vector<Array>& got,
                  const std::vector<Array>& want, double tolerance) {
  for (size_t i = 0; i < want.size(); ++i) {
    MR_RETURN_IF_ERROR(Compare(StrCat(what, " ", i), got[i], want[i], tolerance));
  }
  return absl::OkStatus();
}

Status RunKnowing(const OpCase& c, Known known) {
  CaseRun in_double(c, DType::kDouble, known);
  if (Status status = in_double.Run(); !status.ok()) return Annotate(status, "double");
  CaseRun in_float(c, DType::kFloat, known);
  if (Status status = in_float.Run(); !status.ok()) return Annotate(status, "float");
  if (!in_double.has_gradient()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const std::vector<Array> numeric, in_double.Numeric());
  MR_ASSIGN_OR_RETURN(const std::vector<Array> symbolic, in_double.Symbolic());
  MR_RETURN_IF_ERROR(CompareAll("gradient", symbolic, numeric, kGradientTolerance));
  MR_ASSIGN_OR_RETURN(const std::vector<Array> rough, in_float.Symbolic());
  return CompareAll("float gradient", rough, symbolic, kFloatGradientTolerance);
}

}  // namespace

Status RunOpCase(const OpCase& c) {
  for (Known known : {Known::kShapes, Known::kRanks, Known::kNothing}) {
    if (known == Known::kNothing && c.needs_constants) continue;
    if (Status status = RunKnowing(c, known); !status.ok()) return Annotate(status, Name(known));
  }
  return absl::OkStatus();
}

}  // namespace millrace::testing
