#ifndef CORE_BASE_SPAWNER_H_
#define CORE_BASE_SPAWNER_H_

#include <string>
#include <vector>

#include "core/base/status.h"

namespace millrace {

// All that a child process is started with, made ready in advance: between fork and exec nothing
// may be allocated and no lock taken.
struct SpawnRequest {
  std::vector<std::string> arguments;    // [0] is the program's path
  std::vector<std::string> environment;  // "NAME=value", the whole of it
  int output = -1;                       // descriptor for standard output and error; -1: as here
};

// Starts a child that is killed when this process ends, and returns its pid; an error if the
// program cannot be executed. Thread-safe. The child inherits no descriptor but 0, 1 and 2, blocks
// no signal, and ignores those that this process ignores.
//
// Linux sends the parent-death signal when the *thread* that forked ends. So one thread, which
// lives as long as the process, does all the forking.
StatusOr<int> Spawn(const SpawnRequest& request);

}  // namespace millrace

#endif  // CORE_BASE_SPAWNER_H_
