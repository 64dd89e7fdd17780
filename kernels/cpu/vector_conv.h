#ifndef KERNELS_CPU_VECTOR_CONV_H_
#define KERNELS_CPU_VECTOR_CONV_H_

#include <cstdint>

// Direct convolution of one NHWC image, vectorised over the output channels: nothing is unrolled to
// a matrix first. For doubles, which oneDNN has not, and for few channels, at which it is slow.
namespace millrace::vector {

// The image is given with its padding around it, so that every tap of every output lies inside.
// All steps are in elements.
struct DirectConv {
  int64_t out_height, out_width, out_channels;
  int64_t row_step, pixel_step;  // in the image, from one output row or pixel to the next
  int64_t taps_height, taps_width, channels;
  int64_t tap_row_step, tap_step;  // from one tap to the next below, or to the right
};

// Elements of a filter laid out for Forward.
int64_t PackedFilterSize(const DirectConv& c);
// `filter` is [taps_height, taps_width, channels, out_channels].
void PackFilter(const DirectConv& c, const float* filter, float* packed);
void PackFilter(const DirectConv& c, const double* filter, double* packed);

// out[out_height, out_width, out_channels]
void Forward(const DirectConv& c, const float* image, const float* packed, float* out);
void Forward(const DirectConv& c, const double* image, const double* packed, double* out);

// Elements of workspace for FilterGradient.
int64_t FilterGradientWorkspace(const DirectConv& c);
// d_filter += the gradient of the filter, given that of the output, d_out.
void FilterGradient(const DirectConv& c, const float* image, const float* d_out, float* d_filter,
                    float* workspace);
void FilterGradient(const DirectConv& c, const double* image, const double* d_out, double* d_filter,
                    double* workspace);

}  // namespace millrace::vector

#endif  // KERNELS_CPU_VECTOR_CONV_H_
