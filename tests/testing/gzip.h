#ifndef TESTS_TESTING_GZIP_H_
#define TESTS_TESTING_GZIP_H_

#include <string>

namespace millrace::testing {

// `bytes` as one gzip member; a failed expectation if zlib refuses.
std::string Gzip(const std::string& bytes);
// What one gzip member holds; a failed expectation if it is none.
std::string Gunzip(const std::string& bytes);

}  // namespace millrace::testing

#endif  // TESTS_TESTING_GZIP_H_
