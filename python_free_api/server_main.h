#ifndef PYTHON_FREE_API_SERVER_MAIN_H_
#define PYTHON_FREE_API_SERVER_MAIN_H_

#include <string>
#include <vector>

#include "python_free_api/runtime.h"

namespace millrace {

// One task of a cluster: what `millrace server` is. Serves a worker and a master at one port until
// SIGTERM or SIGINT, and returns the exit code of the process; `arguments` are its flags ("--help"
// lists them). A program with ops of its own is a server of them, too:
//
//   int main(int argc, char** argv) {
//     RuntimeOptions own_ops;
//     own_ops.register_ops = RegisterMyOps;
//     own_ops.register_kernels = RegisterMyKernels;
//     return ServerMain(Arguments(argc, argv), own_ops);
//   }
//
// Other members of `own_ops` are defaults of the flags of the same names.
int ServerMain(const std::vector<std::string>& arguments, RuntimeOptions own_ops = {});

}  // namespace millrace

#endif  // PYTHON_FREE_API_SERVER_MAIN_H_
