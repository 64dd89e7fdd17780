#include "tests/ops/op_cases.h"

namespace millrace::testing {
namespace {

Reference MatMul(bool transpose_a, bool transpose_b) {
  return [=](const std::vector<Array>& in) {
    const Array &a = in[0], &b = in[1];
    const int64_t inner = a.shape[transpose_a ? 0 : 1];
    return std::vector<Array>{
        Generate({a.shape[transpose_a ? 1 : 0], b.shape[transpose_b ? 0 : 1]},
                 [&](const std::vector<int64_t>& index) {
                   double sum = 0;
                   for (int64_t k = 0; k < inner; ++k) {
                     sum += a[transpose_a ? a.At({k, index[0]}) : a.At({index[0], k})] *
                            b[transpose_b ? b.At({index[1], k}) : b.At({k, index[1]})];
                   }
                   return sum;
                 })};
  };
}

// The dimensions before the last two, as an array without values.
Array BatchOf(const Array& a) { return Array{{a.shape.begin(), a.shape.end() - 2}, {}}; }

Reference BatchMatMul(bool adj_x, bool adj_y) {
  return [=](const std::vector<Array>& in) {
    const Array &x = in[0], &y = in[1];
    const int64_t inner = x.shape[x.rank() - (adj_x ? 2 : 1)];
    std::vector<int64_t> shape = BroadcastShapeOf({BatchOf(x), BatchOf(y)});
    shape.push_back(x.shape[x.rank() - (adj_x ? 1 : 2)]);
    shape.push_back(y.shape[y.rank() - (adj_y ? 2 : 1)]);
    // Element (row, column) of the matrix of `a` that goes with the batch of `index`.
    const auto element = [](const Array& a, std::vector<int64_t> index, int64_t row,
                            int64_t column) {
      index.erase(index.begin(), index.end() - a.rank());
      for (int i = 0; i < a.rank() - 2; ++i) index[i] = a.shape[i] == 1 ? 0 : index[i];
      index[a.rank() - 2] = row;
      index[a.rank() - 1] = column;
      return a[a.At(index)];
    };
    return std::vector<Array>{Generate(shape, [&](const std::vector<int64_t>& index) {
      const int64_t row = index[index.size() - 2], column = index[index.size() - 1];
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        sum += (adj_x ? element(x, index, k, row) : element(x, index, row, k)) *
               (adj_y ? element(y, index, column, k) : element(y, index, k, column));
      }
      return sum;
    })};
  };
}

}  // namespace

std::vector<OpCase> ProductCases() {
  const Reference plain = BatchMatMul(false, false);
  return {
      {"MatMul", "", "[2,3];[3,4]", MatMul(false, false)},
      {"MatMul", "transpose_a=true", "[3,2];[3,4]", MatMul(true, false)},
      {"MatMul", "transpose_b=true", "[2,3];[4,3]", MatMul(false, true)},
      {"MatMul", "transpose_a=true, transpose_b=true", "[3,2];[4,3]", MatMul(true, true)},
      {"MatMul", "", "[1,1];[1,1]", MatMul(false, false)},
      {"MatMul", "", "[0,3];[3,4]", MatMul(false, false)},
      {"MatMul", "", "[2,0];[0,4]", MatMul(false, false)},
      {"MatMul", "", "[5,19];[19,6]", MatMul(false, false), -2, 2, 1e-4},
      {"MatMul", "transpose_b=true", "int32[2,3];int32[4,3]", MatMul(false, true), -9, 9},

      {"BatchMatMul", "", "[2,2,3];[2,3,2]", plain},
      {"BatchMatMul", "adj_x=true", "[2,3,2];[2,3,2]", BatchMatMul(true, false)},
      {"BatchMatMul", "adj_y=true", "[2,2,3];[2,2,3]", BatchMatMul(false, true)},
      {"BatchMatMul", "adj_x=true, adj_y=true", "[2,1,3,2];[2,1,2,3]", BatchMatMul(true, true)},
      {"BatchMatMul", "", "[2,3];[3,2]", plain},
      {"BatchMatMul", "", "[0,2,3];[0,3,2]", plain},
      {"BatchMatMul", "", "[2,2,0];[2,0,2]", plain},
      {"BatchMatMulV2", "", "[2,2,3];[2,3,2]", plain},
      {"BatchMatMulV2", "", "[2,2,3];[3,2]", plain},
      {"BatchMatMulV2", "adj_x=true", "[2,3,2];[3,2]", BatchMatMul(true, false)},
      {"BatchMatMulV2", "adj_y=true", "[2,3];[2,2,3]", BatchMatMul(false, true)},
      {"BatchMatMulV2", "", "[2,1,2,3];[3,3,2]", plain},
      {"BatchMatMulV2", "adj_x=true, adj_y=true", "[1,3,2];[2,2,3]", BatchMatMul(true, true)},
      {"BatchMatMulV2", "", "[1,2,1,1];[2,1,1,1]", plain},
      {"BatchMatMulV2", "", "[2,3,1];[1,1,2]", plain},
      {"BatchMatMulV2", "", "[0,2,3];[3,2]", plain},
      {"BatchMatMulV2", "", "[3,2,0];[0,2]", plain},
      {"BatchMatMulV2", "", "int64[2,2,3];int64[3,2]", plain, -9, 9},
      {"BatchMatMulV2", "adj_y=true", "int32[2,2,3];int32[1,2,3]", BatchMatMul(false, true), -9, 9},
      {"BatchMatMulV3", "Tout=int32", "int32[2,2,3];int32[3,2]", plain, -9, 9},
  };
}

}  // namespace millrace::testing
