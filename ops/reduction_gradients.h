#ifndef OPS_REDUCTION_GRADIENTS_H_
#define OPS_REDUCTION_GRADIENTS_H_

#include "core/graph/gradients.h"

namespace millrace {

Status SumGradient(GradientContext& c);
Status MeanGradient(GradientContext& c);
Status MaxGradient(GradientContext& c);  // and of Min
Status ProdGradient(GradientContext& c);
Status L2LossGradient(GradientContext& c);

}  // namespace millrace

#endif  // OPS_REDUCTION_GRADIENTS_H_
