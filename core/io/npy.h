#ifndef CORE_IO_NPY_H_
#define CORE_IO_NPY_H_

#include <string>

#include "core/base/file.h"
#include "core/framework/tensor.h"

namespace millrace {

// NumPy's format for one array: magic, version, a header that is a Python dict literal ('descr',
// 'fortran_order', 'shape'), then the elements.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
//
// Versions 1.0 to 3.0, both byte orders, row- and column-major; booleans, integers, half, float,
// double; raw elements of 2 bytes ('V2') are bfloat16, as extensions of NumPy write it. DataLoss,
// naming `place` and what is wrong, for a damaged file; Unimplemented for other dtypes. All lengths
// are checked before memory is taken.
StatusOr<Tensor> ParseNpy(absl::string_view bytes, absl::string_view place);
StatusOr<Tensor> ReadNpy(FileSystem& files, const std::string& path);

// Version 1.0, little-endian, row-major. Unimplemented for strings and resources.
StatusOr<std::string> WriteNpy(const Tensor& tensor);

}  // namespace millrace

#endif  // CORE_IO_NPY_H_
