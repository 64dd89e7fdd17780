#include "core/framework/sharding.h"

namespace millrace {

std::string Sharding::ToString() const {
  switch (kind) {
    case kReplicated:
      return "B";
    case kSplit:
      return StrCat("S(", dim, ")");
    case kPartialSum:
      return "P";
  }
  return "invalid";
}

Status ReplicatedSharding(ShardingContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) c.Require(i, Sharding::Replicated());
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Sharding::Replicated());
  return absl::OkStatus();
}

}  // namespace millrace
