#ifndef TESTS_TESTING_ARRAY_H_
#define TESTS_TESTING_ARRAY_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "core/framework/tensor.h"

namespace millrace::testing {

// A tensor's numbers as doubles, whatever its dtype: what references compute with.
struct Array {
  std::vector<int64_t> shape;
  std::vector<double> values;

  int rank() const { return static_cast<int>(shape.size()); }
  int64_t size() const { return static_cast<int64_t>(values.size()); }
  double operator[](int64_t i) const { return values[i]; }
  double& operator[](int64_t i) { return values[i]; }
  // Row-major offset of an index with one number a dimension, and back.
  int64_t At(const std::vector<int64_t>& index) const;
  std::vector<int64_t> IndexOf(int64_t offset) const;
  double Largest() const;  // magnitude; 0 if empty
};

Array Zeros(std::vector<int64_t> shape);
// Calls `value` with the index of each element.
Array Generate(std::vector<int64_t> shape,
               const std::function<double(const std::vector<int64_t>&)>& value);

// InvalidArgument for dtypes that are no numbers.
StatusOr<Array> ToArray(const Tensor& tensor);
StatusOr<Tensor> ToTensor(const Array& array, DType dtype);

// What an op should compute: its outputs from its inputs.
using Reference = std::function<std::vector<Array>(const std::vector<Array>& inputs)>;

// Elementwise with broadcasting.
Reference Unary(double (*f)(double));
Reference Binary(double (*f)(double, double));
// Over the axes in input 1; `f` folds from `start`; `finish` gets the fold and the number of
// elements.
Reference Reduction(bool keep_dims, double start, double (*f)(double, double),
                    double (*finish)(double, double) = nullptr);

// NumPy's rule, and element `index` of the broadcast of `array`.
std::vector<int64_t> BroadcastShapeOf(const std::vector<Array>& arrays);
double Broadcast(const Array& array, const std::vector<int64_t>& index);

}  // namespace millrace::testing

#endif  // TESTS_TESTING_ARRAY_H_
