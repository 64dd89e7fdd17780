#ifndef CORE_BASE_SOURCE_LOCATION_H_
#define CORE_BASE_SOURCE_LOCATION_H_

namespace millrace {

// A line of the user's program. As a default argument, `SourceLocation where =
// SourceLocation::Current()` is the caller's line. (std::source_location is missing with clang 14.)
struct SourceLocation {
  const char* file = "";
  int line = 0;  // 0: unknown

  static constexpr SourceLocation Current(const char* file = __builtin_FILE(),
                                          int line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace millrace

#endif  // CORE_BASE_SOURCE_LOCATION_H_
