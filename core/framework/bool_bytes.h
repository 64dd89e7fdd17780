#ifndef CORE_FRAMEWORK_BOOL_BYTES_H_
#define CORE_FRAMEWORK_BOOL_BYTES_H_

#include "core/framework/tensor.h"

namespace millrace {

// Makes every byte but 0 of a kBool tensor a 1: to look at a bool that is another byte is undefined
// behaviour. For tensors whose memory was filled with bytes from outside; others stay as they are.
void NormalizeBools(Tensor& tensor);

}  // namespace millrace

#endif  // CORE_FRAMEWORK_BOOL_BYTES_H_
