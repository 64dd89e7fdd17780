#include "tests/python_free_api/program.h"

#include "gtest/gtest.h"
#include "tests/testing/array.h"

namespace millrace::testing {
namespace {

std::unique_ptr<Runtime> MakeRuntime(RuntimeOptions options) {
  if (options.threads == 0) options.threads = 2;
  StatusOr<std::unique_ptr<Runtime>> runtime = Runtime::Create(options);
  EXPECT_EQ(runtime.status(), Status());
  return *std::move(runtime);
}

}  // namespace

Program::Program(RuntimeOptions options)
    : runtime(MakeRuntime(std::move(options))), b(runtime->ops()), variables(b) {}

Session& Program::session() {
  if (session_ == nullptr) {
    const Operation initialize = variables.Initialize();
    StatusOr<std::unique_ptr<Session>> opened = runtime->OpenSession(b);
    EXPECT_EQ(opened.status(), Status());
    session_ = *std::move(opened);
    EXPECT_EQ(RunStep(*session_, {}, {}, {initialize.name()}).status(), Status());
  }
  return *session_;
}

StatusOr<std::vector<Tensor>> Program::Run(const NamedFeeds& feeds,
                                           const std::vector<Value>& fetches,
                                           const std::vector<Operation>& targets) {
  std::vector<std::string> names;
  for (const Value& fetch : fetches) names.push_back(fetch.name());
  std::vector<std::string> target_names;
  for (const Operation& target : targets) target_names.push_back(target.name());
  return RunStep(session(), feeds, names, target_names);
}

std::vector<double> Program::Numbers(Value value, const NamedFeeds& feeds) {
  const StatusOr<std::vector<Tensor>> run = Run(feeds, {value});
  EXPECT_EQ(run.status(), Status());
  return run.ok() ? NumbersOf((*run)[0]) : std::vector<double>();
}

std::vector<double> Program::ValueOf(const std::string& variable) {
  const StatusOr<std::vector<Tensor>> run =
      RunStep(session(), {}, {variables[IndexOf(variable)].saved});
  EXPECT_EQ(run.status(), Status());
  return run.ok() ? NumbersOf((*run)[0]) : std::vector<double>();
}

int Program::IndexOf(const std::string& variable) const {
  for (int i = 0; i < variables.size(); ++i) {
    if (variables[i].name == variable) return i;
  }
  ADD_FAILURE() << "there is no variable " << variable;
  return 0;
}

std::vector<double> NumbersOf(const Tensor& tensor) {
  const StatusOr<Array> array = ToArray(tensor);
  EXPECT_EQ(array.status(), Status());
  return array.ok() ? array->values : std::vector<double>();
}

std::string MessageOf(const Status& status) { return std::string(status.message()); }

std::string Here(int lines, SourceLocation where) {
  return StrCat("at ", where.file, ":", where.line + lines);
}

std::string NewFolder() {
  const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
  return JoinPath(::testing::TempDir(), StrCat(test.test_suite_name(), ".", test.name()));
}

}  // namespace millrace::testing
