#include <cstddef>
#include <cstdint>
#include <string>

#include "core/io/npy.h"
#include "tests/fuzz/require.h"

namespace millrace::testing {
namespace {

// Any bytes are read or refused. What is read is written as one of the forms that reads back as the
// same.
void RunOne(absl::string_view bytes) {
  const StatusOr<Tensor> tensor = ParseNpy(bytes, "input");
  if (!tensor.ok()) {
    Require(absl::IsDataLoss(tensor.status()) || absl::IsUnimplemented(tensor.status()),
            "a refusal is DataLoss or Unimplemented");
    return;
  }
  Require(tensor->byte_size() < bytes.size(), "no more memory than the file");
  const StatusOr<std::string> written = WriteNpy(*tensor);
  Require(written.ok(), "what was read can be written");
  const StatusOr<Tensor> again = ParseNpy(*written, "written");
  Require(again.ok() && SameBits(*tensor, *again), "what is written out reads back");
  Require(!ParseNpy(*written + '\0', "longer").ok(), "bytes after the elements are refused");
}

}  // namespace
}  // namespace millrace::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::testing::RunOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
