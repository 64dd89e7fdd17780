#include "tests/testing/array.h"

#include <algorithm>
#include <cmath>

namespace millrace::testing {
namespace {

// Calls `visit` with a value of the dtype's C++ type; false for other dtypes.
template <typename Visit>
bool WithType(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::kFloat:
      return visit(float()), true;
    case DType::kDouble:
      return visit(double()), true;
    case DType::kInt32:
      return visit(int32_t()), true;
    case DType::kInt64:
      return visit(int64_t()), true;
    case DType::kInt8:
      return visit(int8_t()), true;
    case DType::kUint8:
      return visit(uint8_t()), true;
    case DType::kBool:
      return visit(bool()), true;
    default:
      return false;
  }
}

}  // namespace

int64_t Array::At(const std::vector<int64_t>& index) const {
  int64_t offset = 0;
  for (size_t i = 0; i < shape.size(); ++i) offset = offset * shape[i] + index[i];
  return offset;
}

std::vector<int64_t> Array::IndexOf(int64_t offset) const {
  std::vector<int64_t> index(shape.size());
  for (int i = rank() - 1; i >= 0; --i) {
    index[i] = offset % shape[i];
    offset /= shape[i];
  }
  return index;
}

double Array::Largest() const {
  double largest = 0;
  for (double v : values) largest = std::max(largest, std::abs(v));
  return largest;
}

Array Zeros(std::vector<int64_t> shape) {
  int64_t size = 1;
  for (int64_t extent : shape) size *= extent;
  return Array{std::move(shape), std::vector<double>(size, 0.0)};
}

Array Generate(std::vector<int64_t> shape,
               const std::function<double(const std::vector<int64_t>&)>& value) {
  Array array = Zeros(std::move(shape));
  for (int64_t i = 0; i < array.size(); ++i) array[i] = value(array.IndexOf(i));
  return array;
}

StatusOr<Array> ToArray(const Tensor& tensor) {
  const auto dims = tensor.shape().dims();
  Array array = Zeros({dims.begin(), dims.end()});
  const bool known = WithType(tensor.dtype(), [&](auto sample) {
    const auto span = tensor.span<decltype(sample)>();
    for (int64_t i = 0; i < array.size(); ++i) array[i] = static_cast<double>(span[i]);
  });
  if (!known) return InvalidArgument(Name(tensor.dtype()), " holds no numbers");
  return array;
}

StatusOr<Tensor> ToTensor(const Array& array, DType dtype) {
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(array.shape));
  Tensor tensor;
  const bool known = WithType(dtype, [&](auto sample) {
    using T = decltype(sample);
    tensor = Tensor::Zeros(dtype, shape);
    T* data = tensor.mutable_data<T>();
    for (int64_t i = 0; i < array.size(); ++i) data[i] = static_cast<T>(array[i]);
  });
  if (!known) return InvalidArgument(Name(dtype), " holds no numbers");
  return tensor;
}

std::vector<int64_t> BroadcastShapeOf(const std::vector<Array>& arrays) {
  std::vector<int64_t> shape;
  for (const Array& array : arrays) {
    if (array.shape.size() > shape.size()) {
      shape.insert(shape.begin(), array.shape.size() - shape.size(), 1);
    }
  }
  for (const Array& array : arrays) {
    const size_t skip = shape.size() - array.shape.size();
    for (size_t i = 0; i < array.shape.size(); ++i) {
      if (array.shape[i] != 1) shape[skip + i] = array.shape[i];
    }
  }
  return shape;
}

double Broadcast(const Array& array, const std::vector<int64_t>& index) {
  const size_t skip = index.size() - array.shape.size();
  std::vector<int64_t> own(array.shape.size());
  for (size_t i = 0; i < own.size(); ++i) own[i] = array.shape[i] == 1 ? 0 : index[skip + i];
  return array[array.At(own)];
}

Reference Unary(double (*f)(double)) {
  return [f](const std::vector<Array>& in) {
    Array out = in[0];
    for (double& v : out.values) v = f(v);
    return std::vector<Array>{out};
  };
}

Reference Binary(double (*f)(double, double)) {
  return [f](const std::vector<Array>& in) {
    return std::vector<Array>{
        Generate(BroadcastShapeOf({in[0], in[1]}), [&](const std::vector<int64_t>& index) {
          return f(Broadcast(in[0], index), Broadcast(in[1], index));
        })};
  };
}

Reference Reduction(bool keep_dims, double start, double (*f)(double, double),
                    double (*finish)(double, double)) {
  return [=](const std::vector<Array>& in) {
    const Array& x = in[0];
    std::vector<bool> reduced(x.rank(), false);
    for (double axis : in[1].values) {
      reduced[static_cast<int>(axis < 0 ? axis + x.rank() : axis)] = true;
    }
    const auto kept_index = [&](const std::vector<int64_t>& index) {
      std::vector<int64_t> kept;
      for (int i = 0; i < x.rank(); ++i) {
        if (!reduced[i]) kept.push_back(index[i]);
        if (reduced[i] && keep_dims) kept.push_back(0);
      }
      return kept;
    };
    std::vector<int64_t> shape;
    double count = 1;
    for (int i = 0; i < x.rank(); ++i) {
      if (!reduced[i]) shape.push_back(x.shape[i]);
      if (reduced[i] && keep_dims) shape.push_back(1);
      if (reduced[i]) count *= static_cast<double>(x.shape[i]);
    }
    Array out = Zeros(shape);
    for (double& v : out.values) v = start;
    for (int64_t i = 0; i < x.size(); ++i) {
      double& v = out[out.At(kept_index(x.IndexOf(i)))];
      v = f(v, x[i]);
    }
    if (finish != nullptr) {
      for (double& v : out.values) v = finish(v, count);
    }
    return std::vector<Array>{out};
  };
}

}  // namespace millrace::testing
