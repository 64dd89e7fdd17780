#ifndef TESTS_OPS_OP_CASES_H_
#define TESTS_OPS_OP_CASES_H_

#include <vector>

#include "tests/testing/op_case.h"

namespace millrace::testing {

std::vector<OpCase> UnaryCases();
std::vector<OpCase> BinaryCases();
std::vector<OpCase> ReductionCases();
std::vector<OpCase> ScanCases();
std::vector<OpCase> ProductCases();
std::vector<OpCase> ArrayCases();
std::vector<OpCase> MovementCases();
std::vector<OpCase> JoinCases();
std::vector<OpCase> ScatterCases();  // and sets
std::vector<OpCase> NnCases();
std::vector<OpCase> ConvCases();  // and pools

}  // namespace millrace::testing

#endif  // TESTS_OPS_OP_CASES_H_
