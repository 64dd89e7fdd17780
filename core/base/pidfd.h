#ifndef CORE_BASE_PIDFD_H_
#define CORE_BASE_PIDFD_H_

#include <sys/syscall.h>
#include <unistd.h>

namespace millrace {

// A descriptor that becomes readable when process `pid` ends; -1 if there is no such process or
// the kernel has none (before Linux 5.3). Closed by exec. (Not glibc's pidfd_open: 2.36 declares it
// without C linkage.)
inline int OpenPidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

}  // namespace millrace

#endif  // CORE_BASE_PIDFD_H_
