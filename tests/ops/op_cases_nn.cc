#include <cmath>

#include "tests/ops/op_cases.h"

namespace millrace::testing {
namespace {

std::vector<Array> BiasAdd(const std::vector<Array>& in) {
  Array y = in[0];
  for (int64_t i = 0; i < y.size(); ++i) y[i] += in[1][i % in[1].size()];
  return {y};
}

std::vector<Array> BiasAddGrad(const std::vector<Array>& in) {
  Array sum = Zeros({in[0].shape.back()});
  for (int64_t i = 0; i < in[0].size(); ++i) sum[i % sum.size()] += in[0][i];
  return {sum};
}

// The logarithms of the shares of each row's exponentials.
Array LogShares(const Array& x) {
  Array y = x;
  const int64_t columns = x.shape.back();
  for (int64_t row = 0; row < x.size(); row += columns) {
    double sum = 0;
    for (int64_t i = row; i < row + columns; ++i) sum += std::exp(x[i]);
    for (int64_t i = row; i < row + columns; ++i) y[i] = x[i] - std::log(sum);
  }
  return y;
}

std::vector<Array> Softmax(const std::vector<Array>& in) {
  Array y = LogShares(in[0]);
  for (double& v : y.values) v = std::exp(v);
  return {y};
}

std::vector<Array> LogSoftmax(const std::vector<Array>& in) { return {LogShares(in[0])}; }

std::vector<Array> CrossEntropy(const std::vector<Array>& in) {
  const Array shares = LogShares(in[0]);
  Array loss = Zeros({in[0].shape[0]}), backprop = shares;
  for (int64_t i = 0; i < shares.size(); ++i) {
    loss[i / in[0].shape[1]] -= in[1][i] * shares[i];
    backprop[i] = std::exp(shares[i]) - in[1][i];
  }
  return {loss, backprop};
}

std::vector<Array> SparseCrossEntropy(const std::vector<Array>& in) {
  Array labels = Zeros(in[0].shape);
  for (int64_t i = 0; i < in[1].size(); ++i) labels[labels.At({i, int64_t(in[1][i])})] = 1;
  return CrossEntropy({in[0], labels});
}

}  // namespace

std::vector<OpCase> NnCases() {
  // Each row a distribution: elsewhere the op's backprop is no gradient.
  const std::vector<std::vector<double>> distributions = {{}, {0.2, 0.5, 0.3, 0.0, 0.25, 0.75}};
  return {
      {"BiasAdd", "", "[2,3];[3]", BiasAdd},
      {"BiasAdd", "", "[2,2,2,3];[3]", BiasAdd},
      {"BiasAdd", "", "[2,3,1];[1]", BiasAdd},
      {"BiasAdd", "", "[0,3];[3]", BiasAdd},
      {"BiasAddGrad", "", "[2,3]", BiasAddGrad},
      {"BiasAddGrad", "", "[2,2,3]", BiasAddGrad},
      {"BiasAddGrad", "", "[0,3]", BiasAddGrad},
      {"Softmax", "", "[2,5]", Softmax},
      {"Softmax", "", "[2,3,4]", Softmax},
      {"Softmax", "", "[3]", Softmax},
      {"Softmax", "", "[3,1]", Softmax},
      {"Softmax", "", "[0,4]", Softmax},
      {"LogSoftmax", "", "[2,5]", LogSoftmax},
      {"LogSoftmax", "", "[2,2,3]", LogSoftmax},
      {"LogSoftmax", "", "[0,4]", LogSoftmax},
      {"SoftmaxCrossEntropyWithLogits", "", "[2,3];[2,3]", CrossEntropy, -2, 2, 1e-5,
       distributions},
      {"SoftmaxCrossEntropyWithLogits", "", "[0,3];[0,3]", CrossEntropy},
      {"SparseSoftmaxCrossEntropyWithLogits", "", "[3,4];int64(2,0,3)", SparseCrossEntropy},
      {"SparseSoftmaxCrossEntropyWithLogits", "", "[2,5];(4,4)", SparseCrossEntropy},
      {"SparseSoftmaxCrossEntropyWithLogits", "", "[0,5];int64()", SparseCrossEntropy},
  };
}

}  // namespace millrace::testing
