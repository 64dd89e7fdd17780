#include "python_free_api/saver.h"

#include <utility>

#include "core/io/checkpoint.h"

namespace millrace {

StatusOr<std::unique_ptr<Saver>> Saver::Create(const Variables& variables, Session& session,
                                               FileSystem& files) {
  MR_RETURN_IF_ERROR(variables.builder().status());
  if (variables.size() == 0) return InvalidArgument("there are no variables to save");
  std::unique_ptr<Saver> saver(new Saver(variables.all(), session, files));
  StepSignature read;
  StepSignature restore;
  for (const Variables::Variable& v : saver->variables_) {
    read.fetches.push_back(v.saved);
    restore.feeds.push_back(v.restore_feed);
    restore.targets.push_back(v.restore_target);
  }
  MR_ASSIGN_OR_RETURN(saver->read_, session.Prepare(read));
  MR_ASSIGN_OR_RETURN(saver->restore_, session.Prepare(restore));
  return saver;
}

StatusOr<std::string> Saver::Save(const std::string& prefix, int64_t step,
                                  const std::map<std::string, std::string>& metadata) {
  if (step < 0) return InvalidArgument("a checkpoint cannot be of step ", step);
  MR_ASSIGN_OR_RETURN(RunResult result, session_.Run(*read_, {}));
  NamedTensors tensors;
  for (size_t i = 0; i < variables_.size(); ++i) {
    tensors.emplace_back(variables_[i].name, std::move(result.fetches[i]));
  }
  const std::string name = StrCat(prefix, "-", step);
  MR_RETURN_IF_ERROR(WriteCheckpoint(files_, name, tensors, metadata));
  return name;
}

StatusOr<std::map<std::string, std::string>> Saver::Restore(const std::string& checkpoint) {
  MR_ASSIGN_OR_RETURN(Checkpoint read, ReadCheckpoint(files_, checkpoint));
  std::vector<Tensor> values;
  for (const Variables::Variable& v : variables_) {
    auto found = read.tensors.find(v.name);
    if (found == read.tensors.end()) {
      return InvalidArgument("checkpoint '", checkpoint, "' has no variable '", v.name, "'");
    }
    const Tensor& value = found->second;
    if (value.dtype() != v.dtype || value.shape() != v.shape) {
      return InvalidArgument("variable '", v.name, "' is ", Name(v.dtype), v.shape.ToString(),
                             ", but checkpoint '", checkpoint, "' holds ", Name(value.dtype()),
                             value.shape().ToString());
    }
    values.push_back(value);
  }
  MR_RETURN_IF_ERROR(session_.Run(*restore_, std::move(values)).status());
  return std::move(read.metadata);
}

}  // namespace millrace
