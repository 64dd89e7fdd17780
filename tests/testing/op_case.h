#ifndef TESTS_TESTING_OP_CASE_H_
#define TESTS_TESTING_OP_CASE_H_

#include <ostream>
#include <string>
#include <vector>

#include "tests/testing/array.h"

// Numeric tests of ops as tables, one row a case. A row is run through the real kernels and
// executor, in double and in float, three times: with shapes known when the graph is built, with
// extents known in the step only, and with nothing known (host operands fed, too). Each time
//   - the inferred shape must fit the real one,
//   - values must be those of the reference,
//   - symbolic gradients must be central differences (in double), and those in float must be near,
//   - inputs must be untouched, and the graph must survive its text form.
namespace millrace::testing {

struct OpCase {
  std::string op;
  std::string attrs;    // as in the text form
  std::string inputs;   // see op_text.h; a shape without a dtype is of the dtype under test
  Reference reference;  // null: only shapes and gradients are tested
  // Elements of inputs that are not constant: distinct, from (low, high), not near 0.
  double low = -2;
  double high = 2;
  double float_tolerance = 1e-5;  // of the largest magnitude
  // Of some inputs, the elements themselves.
  std::vector<std::vector<double>> values = {};
  // Not with fed host operands: the gradient needs to know them when the graph is built.
  bool needs_constants = false;
};

// What is wrong, or OK.
Status RunOpCase(const OpCase& c);

inline std::ostream& operator<<(std::ostream& out, const OpCase& c) {
  return out << c.op << " {" << c.attrs << "} of " << c.inputs;
}

}  // namespace millrace::testing

#endif  // TESTS_TESTING_OP_CASE_H_
