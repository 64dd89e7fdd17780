#include "kernels/cpu/onednn.h"

#include <array>
#include <exception>
#include <new>

// GNU's OpenMP runtime, which Debian's oneDNN uses. Declared here, as clang has no <omp.h> for it.
extern "C" void omp_set_num_threads(int threads);

namespace millrace {
namespace {

dnnl::stream& ThreadStream() {
  thread_local dnnl::stream stream(OneDnnEngine());
  return stream;
}

}  // namespace

void UseOneLibraryThread() {
  // OpenMP keeps the number for each thread.
  thread_local const bool done = [] {
    omp_set_num_threads(1);
    return true;
  }();
  static_cast<void>(done);
}

Status CallOneDnn(absl::string_view what, absl::FunctionRef<void()> call) {
  UseOneLibraryThread();
  try {
    call();
    return absl::OkStatus();
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) return ResourceExhausted(what, ": oneDNN has no memory");
    return Internal(what, ": oneDNN: ", e.what(), " (status ", static_cast<int>(e.status), ")");
  } catch (const std::bad_alloc&) {
    return ResourceExhausted(what, ": no memory");
  } catch (const std::exception& e) {
    return Internal(what, ": ", e.what());
  }
}

const dnnl::engine& OneDnnEngine() {
  // Never destroyed: kernels of other threads may outlive main().
  static const auto* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

Status OneDnnPrimitive::Run(std::initializer_list<Argument> arguments, void* scratchpad) const {
  return CallOneDnn("run", [&] {
    // The C interface: the C++ one copies the arguments through a map.
    constexpr size_t kMaxArguments = 8;
    std::array<dnnl::memory, kMaxArguments> memories;
    std::array<dnnl_exec_arg_t, kMaxArguments> c_arguments;
    int n = 0;
    const auto add = [&](int index, const dnnl::memory::desc& desc, const void* data) {
      memories[n] = dnnl::memory(desc, OneDnnEngine(), const_cast<void*>(data));
      c_arguments[n] = {index, memories[n].get()};
      ++n;
    };
    for (const Argument& a : arguments) add(a.index, *a.desc, a.data);
    if (scratchpad_bytes() > 0) add(DNNL_ARG_SCRATCHPAD, scratchpad_, scratchpad);
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(primitive_.get(), ThreadStream().get(), n, c_arguments.data()),
        "could not execute a primitive");
  });
}

OneDnnPrimitive MakeReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  const dnnl::reorder::primitive_desc pd(OneDnnEngine(), from, OneDnnEngine(), to,
                                         UserScratchpad());
  return OneDnnPrimitive(dnnl::reorder(pd), pd.scratchpad_desc());
}

}  // namespace millrace
