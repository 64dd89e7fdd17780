#ifndef TESTS_GOLDEN_GOLDEN_CASE_H_
#define TESTS_GOLDEN_GOLDEN_CASE_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "tests/golden/golden.pb.h"

namespace millrace::golden {

// The families of tests/golden/data, by name, sorted.
std::vector<std::string> FamilyNames();
StatusOr<Family> ReadFamily(const std::string& name);

// Imports the graph, adds the gradients that are asked for, runs all runs in one local session, and
// compares. OK, or what is wrong.
Status RunCase(const Case& c);

// A line "NAME: reason" for each case where Millrace means to differ (differences.txt).
StatusOr<std::map<std::string, std::string>> Differences();

struct Counts {
  int cases = 0;
  int gradients = 0;
};
// ops.txt: by op.
StatusOr<std::map<std::string, Counts>> ListedOps();

}  // namespace millrace::golden

#endif  // TESTS_GOLDEN_GOLDEN_CASE_H_
