#include "distributed/strategy/data_parallel_ps.h"

#include <utility>

#include "distributed/strategy/data_parallel_rewrite.h"

namespace millrace {
namespace {

class DataParallelPs final : public Strategy {
 public:
  explicit DataParallelPs(DataParallelPsOptions options) : options_(std::move(options)) {}
  std::string name() const override { return "data_parallel_ps"; }
  StatusOr<Program> Rewrite(const PrunedGraph& pruned,
                            const StepSignature& signature) const override {
    return RewriteDataParallel(options_, pruned, signature);
  }

 private:
  const DataParallelPsOptions options_;
};

}  // namespace

StatusOr<std::unique_ptr<Strategy>> NewDataParallelPs(DataParallelPsOptions options) {
  if (options.replica_devices.empty()) {
    return InvalidArgument("data parallelism needs at least one replica device");
  }
  for (const std::string& device : options.replica_devices) {
    MR_RETURN_IF_ERROR(DeviceName::Parse(device).status());
  }
  MR_RETURN_IF_ERROR(DeviceName::Parse(options.variable_device).status());
  return std::unique_ptr<Strategy>(std::make_unique<DataParallelPs>(std::move(options)));
}

}  // namespace millrace
