#ifndef TOOLS_MILLRACE_INSPECT_H_
#define TOOLS_MILLRACE_INSPECT_H_

#include <map>
#include <memory>
#include <string>

#include "core/base/file.h"
#include "core/framework/op_def.h"
#include "core/framework/tensor.h"
#include "core/graph/graph.h"

// What `millrace inspect` prints, a function a kind of file.
namespace millrace {

// Counts of ops and devices; placeholders, variables and what they take.
std::string DescribeGraph(const Graph& graph);

// One line a tensor: dtype, shape, bytes, and minimum, mean and maximum of its finite values.
std::string DescribeTensors(const std::map<std::string, Tensor>& tensors);

// All tensors, once the checksums have been found right.
StatusOr<std::string> DescribeCheckpoint(FileSystem& files, const std::string& prefix);

// Tags with their last values. Looks like one if its first record's length has a good checksum.
bool LooksLikeEvents(absl::string_view bytes);
StatusOr<std::string> DescribeEvents(FileSystem& files, const std::string& path);

}  // namespace millrace

#endif  // TOOLS_MILLRACE_INSPECT_H_
