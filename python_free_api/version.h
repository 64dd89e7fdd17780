#ifndef PYTHON_FREE_API_VERSION_H_
#define PYTHON_FREE_API_VERSION_H_

namespace millrace {

// What servers and clients tell each other, and files say of who wrote them.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace millrace

#endif  // PYTHON_FREE_API_VERSION_H_
