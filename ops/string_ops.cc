#include "ops/array_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"

// Strings: names of files, mostly.
namespace millrace {

Value StringJoin(absl::Span<const Value> values, absl::string_view separator,
                 SourceLocation where) {
  return Call("StringJoin", values,
              {{"N", static_cast<int64_t>(values.size())}, {"separator", std::string(separator)}},
              where);
}
Value ShardedFilename(Value base, Value shard, Value shards, SourceLocation where) {
  return Call("ShardedFilename", {base, shard, shards}, {}, where);
}

namespace {

// All inputs have one shape, but for scalars, which are repeated.
Status StringJoinShape(ShapeContext& c) {
  PartialShape each = Shape();
  bool known = true;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const PartialShape& x = c.input(i);
    known = known && x.has_rank();
    if (!x.has_rank() || x.rank() == 0) continue;
    if (each.rank() == 0) {
      each = x;
      continue;
    }
    const auto merged = each.MergeWith(x);
    if (!merged.ok()) {
      return InvalidArgument("input ", i, " has shape ", x.ToString(), ", but those before have ",
                             each.ToString());
    }
    each = *merged;
  }
  if (known || each.rank() > 0) c.set_output(0, each);
  return absl::OkStatus();
}

Status ShardedFilenameShape(ShapeContext& c) {
  constexpr absl::string_view kNames[] = {"basename", "shard", "num_shards"};
  for (int i = 0; i < 3; ++i) MR_RETURN_IF_ERROR(CheckScalar(c, i, kNames[i]));
  c.set_output(0, Shape());
  return absl::OkStatus();
}

}  // namespace

void RegisterStringOps(OpRegistry& registry) {
  constexpr char kStrings[] = "strings have no derivative";
  registry.Add(OpDef("StringJoin")
                   .Input("inputs: N * string")
                   .Output("output: string")
                   .Attr("N: int >= 0")
                   .Attr("separator: string = ''")
                   .Shape(StringJoinShape)
                   .NotDifferentiable(kStrings)
                   .Traits({Trait::kAllocatesOutputs, Trait::kCheap})
                   .Doc("Strings joined element by element; scalars are repeated."));
  registry.Add(OpDef("ShardedFilename")
                   .Input("basename: string")
                   .Input("shard: int32")
                   .Input("num_shards: int32")
                   .Output("filename: string")
                   .Shape(ShardedFilenameShape)
                   .NotDifferentiable(kStrings)
                   .Traits({Trait::kAllocatesOutputs, Trait::kCheap})
                   .Doc("The name of one file of several: basename-00002-of-00005."));
}

}  // namespace millrace
