#ifndef OPS_GATHER_GRADIENTS_H_
#define OPS_GATHER_GRADIENTS_H_

#include "core/graph/gradients.h"

// Gradients of the ops that follow indices: what was gathered is summed by index, and back. They
// are dense.
namespace millrace {

// Of GatherV2.
Status GatherGradient(GradientContext& c);
// Of UnsortedSegmentSum.
Status SegmentSumGradient(GradientContext& c);
// Of TopKV2.
Status TopKGradient(GradientContext& c);
// Of DynamicStitch.
Status DynamicStitchGradient(GradientContext& c);

}  // namespace millrace

#endif  // OPS_GATHER_GRADIENTS_H_
