#ifndef KERNELS_CPU_ONEDNN_H_
#define KERNELS_CPU_ONEDNN_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/framework/kernel.h"
#include "dnnl.hpp"
#include "kernels/register.h"

// oneDNN as Millrace uses it: primitives are made in Kernel::Prepare, run on the calling thread
// alone, and get their scratch memory from us (a scratchpad of the library's own may not be shared
// between threads).
namespace millrace {

// Runs `call` on a thread set to one OpenMP thread; the one place that catches oneDNN's exceptions.
Status CallOneDnn(absl::string_view what, absl::FunctionRef<void()> call);

// REQUIRES: in a call of CallOneDnn, as they may throw.
const dnnl::engine& OneDnnEngine();
dnnl::primitive_attr UserScratchpad();

// A ready primitive and how much scratch memory a run of it needs. Thread-safe.
class OneDnnPrimitive {
 public:
  struct Argument {
    int index;  // DNNL_ARG_SRC, ...
    const dnnl::memory::desc* desc;
    const void* data;  // written to where the primitive does
  };

  OneDnnPrimitive() = default;
  // REQUIRES: in a call of CallOneDnn.
  OneDnnPrimitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad)
      : primitive_(primitive), scratchpad_(scratchpad) {}

  int64_t scratchpad_bytes() const { return static_cast<int64_t>(scratchpad_.get_size()); }
  // `scratchpad` holds scratchpad_bytes().
  Status Run(std::initializer_list<Argument> arguments, void* scratchpad) const;

 private:
  dnnl::primitive primitive_;
  dnnl::memory::desc scratchpad_;
};

// One that copies from one layout to another.
// REQUIRES: in a call of CallOneDnn.
OneDnnPrimitive MakeReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to);

}  // namespace millrace

#endif  // KERNELS_CPU_ONEDNN_H_
