#ifndef OPS_MOVEMENT_GRADIENTS_H_
#define OPS_MOVEMENT_GRADIENTS_H_

#include "core/graph/gradients.h"

// Gradients of the ops that move elements. Begins, sizes and paddings that the static shapes tell
// are constants; the others are computed in the step.
namespace millrace {

Status TransposeGradient(GradientContext& c);
Status ConcatGradient(GradientContext& c);
Status SliceGradient(GradientContext& c);
Status PadGradient(GradientContext& c);
Status TileGradient(GradientContext& c);
Status BroadcastToGradient(GradientContext& c);

}  // namespace millrace

#endif  // OPS_MOVEMENT_GRADIENTS_H_
