#ifndef CORE_BASE_SPIN_H_
#define CORE_BASE_SPIN_H_

namespace millrace {

// Tells the processor that this thread polls, so that its twin on the same core gets on.
inline void SpinPause() { __builtin_ia32_pause(); }

}  // namespace millrace

#endif  // CORE_BASE_SPIN_H_
