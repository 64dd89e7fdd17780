#ifndef TESTS_FUZZ_REQUIRE_H_
#define TESTS_FUZZ_REQUIRE_H_

#include "core/framework/tensor.h"

// How fuzz targets tell that a property is broken: the process ends, which a fuzzer takes for a
// finding and a test for a failure.
namespace millrace::testing {

// Ends the process with `what` on stderr unless `holds`.
void Require(bool holds, absl::string_view what);

// Whether both have equal dtypes, shapes and bytes.
bool SameBits(const Tensor& a, const Tensor& b);

}  // namespace millrace::testing

#endif  // TESTS_FUZZ_REQUIRE_H_
