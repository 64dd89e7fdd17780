#include "gtest/gtest.h"
#include "tests/graph_opt/pass_case.h"

namespace millrace::testing {
namespace {

TEST(CommonSubexpressionTest, Placeholder) {}

}  // namespace
}  // namespace millrace::testing
