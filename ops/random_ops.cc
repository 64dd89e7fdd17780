#include "ops/array_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"

namespace millrace {
namespace {

// FNV-1a: the same on every machine and in every build, as a checkpointed stream must be.
int64_t StreamId(absl::string_view name) {
  uint64_t hash = 14695981039346656037u;
  for (char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return static_cast<int64_t>(hash >> 1);  // not negative, for the eyes of readers of dumps
}

// SplitMix64's finaliser: neighbouring seeds give unrelated numbers.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The id of the stream is that of the name the node got, so that two draws of one seed differ, and
// stays when a rewrite renames or copies the node.
Value Draw(absl::string_view op, Value shape, DType dtype, uint64_t seed, SourceLocation where) {
  const Value drawn =
      Call(op, {shape}, {{"dtype", dtype}, {"seed", static_cast<int64_t>(seed)}}, where);
  if (drawn.ok()) {
    Graph& graph = drawn.builder()->graph();
    const NodeId node = drawn.port().node;
    graph.SetAttr(node, "_millrace_stream", StreamId(graph.node(node)->name()));
  }
  return drawn;
}

Status RandomShape(ShapeContext& c) { return SetOutput(c, 0, ShapeOperand(c, 0, "shape")); }

Status StatelessRandomShape(ShapeContext& c) {
  if (!c.input(1).IsCompatibleWith(PartialShape{2})) {
    return InvalidArgument("seed must hold a stream and a place in it, but has shape ",
                           c.input(1).ToString());
  }
  return RandomShape(c);
}

}  // namespace

Value RandomUniform(Value shape, DType dtype, uint64_t seed, SourceLocation where) {
  return Draw("RandomUniform", shape, dtype, seed, where);
}
Value RandomNormal(Value shape, DType dtype, uint64_t seed, SourceLocation where) {
  return Draw("RandomStandardNormal", shape, dtype, seed, where);
}
Value TruncatedNormal(Value shape, DType dtype, uint64_t seed, SourceLocation where) {
  return Draw("TruncatedNormal", shape, dtype, seed, where);
}
Value StatelessRandomUniform(Value shape, Value seed, DType dtype, SourceLocation where) {
  return Call("StatelessRandomUniform", {shape, seed}, {{"dtype", dtype}}, where);
}
Value StatelessRandomNormal(Value shape, Value seed, DType dtype, SourceLocation where) {
  return Call("StatelessRandomNormal", {shape, seed}, {{"dtype", dtype}}, where);
}
Value StatelessTruncatedNormal(Value shape, Value seed, DType dtype, SourceLocation where) {
  return Call("StatelessTruncatedNormal", {shape, seed}, {{"dtype", dtype}}, where);
}

int64_t RandomStream(uint64_t seed, absl::string_view name) {
  const uint64_t mixed = Mix(seed + 0x9e3779b97f4a7c15) + static_cast<uint64_t>(StreamId(name));
  return static_cast<int64_t>(Mix(mixed) >> 1);
}

void RegisterRandomOps(OpRegistry& registry) {
  const struct {
    const char* name;
    const char* doc;
  } ops[] = {
      {"RandomUniform", "Draws from [0,1), each equally likely."},
      {"RandomStandardNormal", "Draws from the normal distribution of mean 0 and deviation 1."},
      {"TruncatedNormal", "As RandomStandardNormal, draws beyond two deviations drawn anew."},
  };
  for (const auto& op : ops) {
    registry.Add(OpDef(op.name)
                     .HostInput("shape: T")
                     .Output("output: dtype")
                     .Attr("seed: int = 0")
                     .Attr("seed2: int = 0")
                     .Attr("dtype: {float, double}")
                     .Attr("T: {int32, int64}")
                     .Shape(RandomShape)
                     .NotDifferentiable("what it draws does not depend on its input")
                     .Traits({Trait::kStateful})
                     .Doc(op.doc));
  }
  const struct {
    const char* name;
    const char* doc;
  } stateless[] = {
      {"StatelessRandomUniform", "RandomUniform as a function of its inputs alone."},
      {"StatelessRandomNormal", "RandomStandardNormal as a function of its inputs alone."},
      {"StatelessTruncatedNormal", "TruncatedNormal as a function of its inputs alone."},
  };
  for (const auto& op : stateless) {
    registry.Add(OpDef(op.name)
                     .HostInput("shape: T")
                     // Not in host memory: no shape depends on it.
                     .Input("seed: Tseed")
                     .Output("output: dtype")
                     .Attr("dtype: {float, double} = float")
                     .Attr("T: {int32, int64} = int32")
                     .Attr("Tseed: {int32, int64} = int64")
                     .Shape(StatelessRandomShape)
                     .NotDifferentiable("what it draws jumps with its inputs")
                     .Doc(op.doc));
  }
}

}  // namespace millrace
