#include "python_free_api/saver.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/io/checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/python_free_api/program.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kData[] = "run/model-7.data-00000-of-00001";
constexpr char kIndex[] = "run/model-7.index";

// Files of which writing some fails.
class FailingFiles final : public FileSystem {
 public:
  explicit FailingFiles(FileSystem& files) : files_(files) {}
  // Whether to fail for a path.
  std::function<bool(const std::string&)> fails = [](const std::string&) { return false; };

  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    if (fails(path)) return ResourceExhausted(path, ": no space left");
    return files_.Create(path);
  }
  StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) override {
    return files_.OpenForAppend(path);
  }
  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    return files_.Open(path);
  }
  bool Exists(const std::string& path) override { return files_.Exists(path); }
  Status CreateFolder(const std::string& path) override { return files_.CreateFolder(path); }
  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return files_.List(folder);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return files_.Rename(from, to);
  }
  Status Remove(const std::string& path) override { return files_.Remove(path); }

 private:
  FileSystem& files_;
};

// a, float[2]; layer/b, double[1]; n, an int64.
class SaverTest : public ::testing::Test {
 protected:
  SaverTest() : files_(NewMemoryFileSystem()), failing_(*files_) {
    Variables& v = p_.variables;
    v.Add("a", DType::kFloat, {2}, Constant(1), true);
    {
      const auto scope = p_.b.NameScope("layer");
      v.Add("b", DType::kDouble, {1}, Constant(2), true);
    }
    v.Add("n", DType::kInt64, {}, Constant(3), false);
    change_ = Group(p_.b, {AssignAdd(v[0].handle, Const(p_.b, Tensor::Of<float>({2}, {10, 20}))),
                           AssignAdd(v[2].handle, Const(p_.b, Tensor::Scalar<int64_t>(4)))});
    p_.session();
    saver_ = Saver::Create(v, p_.session(), failing_).value();
    EXPECT_EQ(saver_->Save("run/model", 7, {{"step", "7"}, {"note", "a \"b\"\n"}}).value(),
              "run/model-7");
    data_ = ReadFile(*files_, kData).value();
    index_ = ReadFile(*files_, kIndex).value();
  }

  using Values = std::vector<std::vector<double>>;
  Values Now() { return {p_.ValueOf("a"), p_.ValueOf("layer/b"), p_.ValueOf("n")}; }
  void Change() { ASSERT_EQ(p_.Run({}, {}, {change_}).status(), Status()); }
  void Write(const std::string& path, const std::string& bytes) {
    ASSERT_EQ(WriteFile(*files_, path, bytes), Status());
  }
  // The error of a restore, after which all variables must be as they were.
  Status Refused(const std::string& checkpoint = "run/model-7") {
    Change();
    const Values before = Now();
    const Status status = saver_->Restore(checkpoint).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(Now(), before);
    return status;
  }

  const Values kSaved = {{1, 1}, {2}, {3}};
  Program p_;
  Operation change_;
  std::unique_ptr<FileSystem> files_;
  FailingFiles failing_;
  std::unique_ptr<Saver> saver_;
  std::string data_;
  std::string index_;
};

TEST_F(SaverTest, RestoresAllVariablesAndGivesTheMetadata) {
  Change();
  EXPECT_EQ(Now(), (Values{{11, 21}, {2}, {7}}));
  const StatusOr<std::map<std::string, std::string>> metadata = saver_->Restore("run/model-7");
  ASSERT_EQ(metadata.status(), Status());
  EXPECT_EQ(*metadata, (std::map<std::string, std::string>{{"step", "7"}, {"note", "a \"b\"\n"}}));
  EXPECT_EQ(Now(), kSaved);
}

TEST_F(SaverTest, AnotherProgramRestoresWhatThisOneSaved) {
  Program other;
  other.variables.Add("a", DType::kFloat, {2}, Zeros(), true);  // one of the three
  const auto saver = Saver::Create(other.variables, other.session(), *files_);
  ASSERT_EQ(saver.status(), Status());
  ASSERT_EQ((*saver)->Restore("run/model-7").status(), Status());
  EXPECT_EQ(other.ValueOf("a"), kSaved[0]);
}

TEST_F(SaverTest, VariablesThatWereNeverInitialisedAreRestored) {
  Program other;
  other.variables.Add("a", DType::kFloat, {2}, Zeros(), true);
  const auto session = other.runtime->OpenSession(other.b);
  ASSERT_EQ(session.status(), Status());
  const auto saver = Saver::Create(other.variables, **session, *files_);
  ASSERT_EQ(saver.status(), Status());
  const Status uninitialised = (*saver)->Save("run/other", 1, {}).status();
  EXPECT_FALSE(uninitialised.ok());
  EXPECT_THAT(MessageOf(uninitialised), HasSubstr("a"));
  EXPECT_FALSE(files_->Exists("run/other-1.index"));
  ASSERT_EQ((*saver)->Restore("run/model-7").status(), Status());
  ASSERT_EQ((*saver)->Save("run/other", 1, {}).status(), Status());
}

TEST_F(SaverTest, LeavesNothingBesideTheCheckpoint) {
  EXPECT_THAT(files_->List("run").value(),
              ElementsAre("model-7.data-00000-of-00001", "model-7.index"));
}

// Complete or absent: until the index is there, the one before is the newest.
TEST_F(SaverTest, ASaveThatFailsLeavesTheOneBefore) {
  Change();
  for (const char* part : {"model-8.data", "model-8.index"}) {
    failing_.fails = [part](const std::string& path) {
      return path.find(part) != std::string::npos;
    };
    const Status status = saver_->Save("run/model", 8, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(MessageOf(status), HasSubstr(part));
    EXPECT_EQ(LatestCheckpoint(*files_, "run", "model").value(), "run/model-7");
    EXPECT_EQ(saver_->Restore("run/model-8").status().code(), absl::StatusCode::kNotFound);
  }
  ASSERT_EQ(saver_->Restore("run/model-7").status(), Status());
  EXPECT_EQ(Now(), kSaved);
}

TEST_F(SaverTest, ATruncatedFileIsDataLossThatNamesItAndATensor) {
  Write(kData, data_.substr(0, data_.size() - 1));
  const Status status = Refused();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr(kData), HasSubstr("tensor '")));
  for (const size_t size : {size_t{0}, size_t{8}, data_.size() / 2}) {
    Write(kData, data_.substr(0, size));
    EXPECT_EQ(Refused().code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST_F(SaverTest, AnAlteredByteIsDataLossThatNamesTheTensor) {
  const size_t elements = data_.size() - 24;  // 8 bytes a variable
  for (size_t i = elements; i < data_.size(); ++i) {
    std::string altered = data_;
    altered[i] ^= 0x40;
    Write(kData, altered);
    const Status status = saver_->Restore("run/model-7").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << i;
    EXPECT_THAT(MessageOf(status), HasSubstr(kData));
    const char* const names[] = {"tensor 'a'", "tensor 'layer/b'", "tensor 'n'"};
    EXPECT_THAT(MessageOf(status), HasSubstr(names[(i - elements) / 8]));
  }
  EXPECT_EQ(Refused().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SaverTest, AnAlteredIndexIsDataLossThatNamesIt) {
  std::string altered = index_;
  altered[altered.find("float")] = 'g';
  Write(kIndex, altered);
  const Status status = Refused();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), HasSubstr(kIndex));
}

TEST_F(SaverTest, ACheckpointThatIsNotThereIsNotFound) {
  EXPECT_EQ(Refused("run/model-9").code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(files_->Remove(kData), Status());
  EXPECT_EQ(Refused().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SaverTest, VariablesThatDoNotFitAreNamedWithBothSides) {
  const Tensor a = Tensor::Of<float>({2}, {5, 5});
  const Tensor b = Tensor::Of<double>({1}, {5});
  const Tensor n = Tensor::Scalar<int64_t>(5);
  const struct {
    NamedTensors tensors;
    const char* message;
  } cases[] = {
      {{{"a", a}, {"n", n}}, "checkpoint 'run/model-7' has no variable 'layer/b'"},
      {{{"a", a}, {"b", b}, {"n", n}}, "checkpoint 'run/model-7' has no variable 'layer/b'"},
      {{{"a", a}, {"layer/b", b}, {"n", Tensor::Of<int64_t>({1}, {5})}},
       "variable 'n' is int64[], but checkpoint 'run/model-7' holds int64[1]"},
      {{{"a", Tensor::Of<float>({2, 1}, {5, 5})}, {"layer/b", b}, {"n", n}},
       "variable 'a' is float[2], but checkpoint 'run/model-7' holds float[2,1]"},
      {{{"a", a}, {"layer/b", Tensor::Of<float>({1}, {5})}, {"n", n}},
       "variable 'layer/b' is double[1], but checkpoint 'run/model-7' holds float[1]"},
  };
  for (const auto& c : cases) {
    ASSERT_EQ(WriteCheckpoint(*files_, "run/model-7", c.tensors, {}), Status());
    EXPECT_EQ(Refused(), InvalidArgument(c.message));
  }
}

TEST_F(SaverTest, StepsAreNumberedFromZero) {
  EXPECT_EQ(saver_->Save("run/model", -1, {}).status(),
            InvalidArgument("a checkpoint cannot be of step -1"));
  EXPECT_EQ(saver_->Save("run/model", 0, {}).value(), "run/model-0");
}

TEST(SaverCreateTest, NeedsVariablesAndAGraphWithoutErrors) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  Program p;
  Session& session = p.session();
  EXPECT_EQ(Saver::Create(p.variables, session, *files).status(),
            InvalidArgument("there are no variables to save"));
  p.variables.Add("w", DType::kFloat, {2}, nullptr, true);
  EXPECT_EQ(Saver::Create(p.variables, session, *files).status(), p.b.status());
}

}  // namespace
}  // namespace millrace::testing
