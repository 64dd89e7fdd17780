#ifndef TOOLS_BENCH_TENSORFLOW_LIBRARY_H_
#define TOOLS_BENCH_TENSORFLOW_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/status.h"

// TensorFlow's C API as far as it is needed here, found in its shared library at run time: no
// header of it is needed to build. The types are opaque.
struct TF_Status;
struct TF_Graph;
struct TF_Session;
struct TF_SessionOptions;
struct TF_ImportGraphDefOptions;
struct TF_Operation;
struct TF_Tensor;
struct TF_Server;
struct TF_Buffer {
  const void* data;
  size_t length;
  void (*data_deallocator)(void* data, size_t length);
};
struct TF_Output {
  TF_Operation* oper;
  int index;
};

namespace millrace::bench {

struct TensorflowLibrary {
  // `path`: of libtensorflow_cc.so.2 or libtensorflow.so.2. Stays loaded until the process ends.
  static StatusOr<TensorflowLibrary> Open(const std::string& path);

  const char* (*Version)();
  TF_Status* (*NewStatus)();
  int (*GetCode)(const TF_Status*);
  const char* (*Message)(const TF_Status*);
  TF_Graph* (*NewGraph)();
  TF_ImportGraphDefOptions* (*NewImportGraphDefOptions)();
  void (*GraphImportGraphDef)(TF_Graph*, const TF_Buffer*, const TF_ImportGraphDefOptions*,
                              TF_Status*);
  TF_Operation* (*GraphOperationByName)(TF_Graph*, const char*);
  TF_SessionOptions* (*NewSessionOptions)();
  void (*SetTarget)(TF_SessionOptions*, const char*);
  void (*SetConfig)(TF_SessionOptions*, const void*, size_t, TF_Status*);
  TF_Session* (*NewSession)(TF_Graph*, const TF_SessionOptions*, TF_Status*);
  void (*SessionRun)(TF_Session*, const TF_Buffer* run_options, const TF_Output* inputs,
                     TF_Tensor* const* input_values, int ninputs, const TF_Output* outputs,
                     TF_Tensor** output_values, int noutputs, const TF_Operation* const* targets,
                     int ntargets, TF_Buffer* run_metadata, TF_Status*);
  TF_Tensor* (*AllocateTensor)(int dtype, const int64_t* dims, int num_dims, size_t length);
  void* (*TensorData)(const TF_Tensor*);
  int (*TensorType)(const TF_Tensor*);
  void (*DeleteTensor)(TF_Tensor*);
  TF_Server* (*NewServer)(const void* server_def, size_t length, TF_Status*);
  void (*ServerStart)(TF_Server*, TF_Status*);
  void (*ServerJoin)(TF_Server*, TF_Status*);
};

}  // namespace millrace::bench

#endif  // TOOLS_BENCH_TENSORFLOW_LIBRARY_H_
