#ifndef PYTHON_FREE_API_SAVER_H_
#define PYTHON_FREE_API_SAVER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/runtime/session.h"
#include "python_free_api/variables.h"

namespace millrace {

// Saves and restores all variables of a program by name, through a session. The values go through
// this process; checkpoints hold logical tensors, so the strategy may change in between.
class Saver {
 public:
  // Uses the variables added so far, of which there must be some. `session` outlives the saver.
  static StatusOr<std::unique_ptr<Saver>> Create(const Variables& variables, Session& session,
                                                 FileSystem& files);

  // Writes the checkpoint "<prefix>-<step>" (atomic) and gives that name. `step` is at least 0.
  StatusOr<std::string> Save(const std::string& prefix, int64_t step,
                             const std::map<std::string, std::string>& metadata);
  // Restores all variables, or none; gives the metadata. DataLoss for a damaged checkpoint;
  // InvalidArgument, naming it, for a variable that is missing there or of another dtype or shape.
  StatusOr<std::map<std::string, std::string>> Restore(const std::string& checkpoint);

 private:
  Saver(std::vector<Variables::Variable> variables, Session& session, FileSystem& files)
      : variables_(std::move(variables)), session_(session), files_(files) {}
  std::vector<Variables::Variable> variables_;
  Session& session_;
  FileSystem& files_;
  std::shared_ptr<PreparedStep> read_;
  std::shared_ptr<PreparedStep> restore_;
};

}  // namespace millrace

#endif  // PYTHON_FREE_API_SAVER_H_
