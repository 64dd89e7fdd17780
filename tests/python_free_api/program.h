#ifndef TESTS_PYTHON_FREE_API_PROGRAM_H_
#define TESTS_PYTHON_FREE_API_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "python_free_api/millrace.h"
#include "tests/testing/local_machine.h"

namespace millrace::testing {

// A program under test: a graph that is being built, its variables, and a runtime that runs it in
// this process. Failures to run it are failures of the test.
struct Program {
  explicit Program(RuntimeOptions options = {});

  // Opens the session and initialises the variables, at the first call; the graph is as it is then.
  Session& session();
  // One step.
  StatusOr<std::vector<Tensor>> Run(const NamedFeeds& feeds, const std::vector<Value>& fetches,
                                    const std::vector<Operation>& targets = {});
  // The numbers of a value in a step.
  std::vector<double> Numbers(Value value, const NamedFeeds& feeds = {});
  // Those of a variable, between two steps.
  std::vector<double> ValueOf(const std::string& variable);
  // The index of the variable; a failure of the test if there is none.
  int IndexOf(const std::string& variable) const;

  std::unique_ptr<Runtime> runtime;
  GraphBuilder b;
  Variables variables;

 private:
  std::unique_ptr<Session> session_;
};

std::vector<double> NumbersOf(const Tensor& tensor);
std::string MessageOf(const Status& status);
// "tests/python_free_api/x_test.cc:12" of the caller, as messages say it.
std::string Here(int lines = 0, SourceLocation where = SourceLocation::Current());
// A folder of this test's own that does not exist yet.
std::string NewFolder();

}  // namespace millrace::testing

#endif  // TESTS_PYTHON_FREE_API_PROGRAM_H_
