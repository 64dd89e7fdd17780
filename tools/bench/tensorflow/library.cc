#include "tools/bench/tensorflow/library.h"

#include <dlfcn.h>

namespace millrace::bench {
namespace {

template <typename F>
bool Find(void* library, const char* name, F* function, std::string* missing) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  if (*function == nullptr) *missing = name;
  return *function != nullptr;
}

}  // namespace

StatusOr<TensorflowLibrary> TensorflowLibrary::Open(const std::string& path) {
  // Its own copies of libraries that this program has, too, must find each other first.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (library == nullptr) return NotFound("TensorFlow's library cannot be loaded: ", dlerror());
  TensorflowLibrary tf;
  std::string missing;
  const auto find = [&](const char* name, auto* function) {
    return Find(library, name, function, &missing);
  };
  if (find("TF_Version", &tf.Version) && find("TF_NewStatus", &tf.NewStatus) &&
      find("TF_GetCode", &tf.GetCode) && find("TF_Message", &tf.Message) &&
      find("TF_NewGraph", &tf.NewGraph) &&
      find("TF_NewImportGraphDefOptions", &tf.NewImportGraphDefOptions) &&
      find("TF_GraphImportGraphDef", &tf.GraphImportGraphDef) &&
      find("TF_GraphOperationByName", &tf.GraphOperationByName) &&
      find("TF_NewSessionOptions", &tf.NewSessionOptions) && find("TF_SetTarget", &tf.SetTarget) &&
      find("TF_SetConfig", &tf.SetConfig) && find("TF_NewSession", &tf.NewSession) &&
      find("TF_SessionRun", &tf.SessionRun) && find("TF_AllocateTensor", &tf.AllocateTensor) &&
      find("TF_TensorData", &tf.TensorData) && find("TF_TensorType", &tf.TensorType) &&
      find("TF_DeleteTensor", &tf.DeleteTensor) && find("TF_NewServer", &tf.NewServer) &&
      find("TF_ServerStart", &tf.ServerStart) && find("TF_ServerJoin", &tf.ServerJoin)) {
    return tf;
  }
  return NotFound(path, " has no ", missing, ": is it TensorFlow's library with the C API?");
}

}  // namespace millrace::bench
