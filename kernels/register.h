#ifndef KERNELS_REGISTER_H_
#define KERNELS_REGISTER_H_

#include "core/framework/kernel.h"

namespace millrace {

// The kernels of every device type that this program was built for; the only list of them.
void RegisterAllKernels(KernelRegistry& registry);

// To run on each thread that may run a kernel or make a primitive: oneDNN's OpenMP build would
// otherwise start threads of its own beside the host's pool.
void UseOneLibraryThread();

}  // namespace millrace

#endif  // KERNELS_REGISTER_H_
