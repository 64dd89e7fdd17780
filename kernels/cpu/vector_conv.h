#ifndef KERNELS_CPU_VECTOR_CONV_H_
#define KERNELS_CPU_VECTOR_CONV_H_

#include <cstdint>

// Direct convolution of NHWC images, vectorised over the output channels: nothing is unrolled to a
// matrix first. For all dtypes and sizes: oneDNN has no doubles, is 5 to 20 times slower for few
// channels or NHWC gradients, and no faster otherwise (tests/bench/kernels_benchmark.cc).
namespace millrace::vector {

// Images that have their padding around them, so that every tap of every output lies inside.
// All steps are in elements. The output channels may be a part of those that there are; parts
// begin at multiples of kChannelBlock.
struct DirectConv {
  int64_t images;
  int64_t image_step;
  int64_t row_step, pixel_step;  // in an image, from one output row or pixel to the next
  int64_t taps_height, taps_width, channels;
  int64_t tap_row_step, tap_step;  // from one tap to the next below, or to the right
  int64_t out_height, out_width, out_channels;
  int64_t out_step;  // from one output pixel to the next: all output channels
};

// A multiple of what is computed together, on every instruction set.
inline constexpr int64_t kChannelBlock = 32;

// Where the weight of (tap, channel, output channel) is: tap by tap, row by row.
template <typename T>
struct FilterLayout {
  const T* first;
  int64_t tap_step, channel_step, out_step;
};

// Elements of a filter laid out for Forward.
int64_t PackedFilterSize(int64_t taps, int64_t channels, int64_t out_channels);
// Packs the weights of c.out_channels channels, those of `filter`.
void PackFilter(const DirectConv& c, const FilterLayout<float>& filter, float* packed);
void PackFilter(const DirectConv& c, const FilterLayout<double>& filter, double* packed);

// out[images, out_height, out_width, c.out_channels of out_step]
void Forward(const DirectConv& c, const float* image, const float* packed, float* out);
void Forward(const DirectConv& c, const double* image, const double* packed, double* out);

// Elements of workspace for FilterGradient.
int64_t FilterGradientWorkspace(const DirectConv& c);
// d_filter[taps, channels, c.out_channels of out_step] += the gradient of the filter, given that of
// the output, d_out.
void FilterGradient(const DirectConv& c, const float* image, const float* d_out, float* d_filter,
                    float* workspace);
void FilterGradient(const DirectConv& c, const double* image, const double* d_out, double* d_filter,
                    double* workspace);

}  // namespace millrace::vector

#endif  // KERNELS_CPU_VECTOR_CONV_H_
