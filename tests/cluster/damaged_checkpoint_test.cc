// --resume from a checkpoint that was truncated or altered: refused, by name, and nothing is lost.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_harness.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Minutes(2);

class DamagedCheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = NewFolder();
    const auto example = ExampleProcess::Start(folder_, {"--cluster=local", "--steps=2"});
    ASSERT_NE(example, nullptr);
    ASSERT_EQ(example->Wait(kTimeout), 0) << example->output();
    data_ = JoinPath(folder_, "checkpoint-2.data-00000-of-00001");
    index_ = JoinPath(folder_, "checkpoint-2.index");
    bytes_ = Contents(data_);
    ASSERT_FALSE(bytes_.empty());
  }

  // What the example says when it resumes.
  std::string Resume() {
    const auto example =
        ExampleProcess::Start(folder_, {"--cluster=local", "--steps=4", "--resume"});
    if (example == nullptr) return "";
    EXPECT_EQ(example->Wait(kTimeout), 1);
    EXPECT_TRUE(example->losses().empty());
    return example->output();
  }

  void Overwrite(const std::string& path, absl::string_view bytes) {
    ASSERT_EQ(WriteFile(Files(), path, bytes), Status());
  }

  std::string folder_;
  std::string data_;
  std::string index_;
  std::string bytes_;
};

TEST_F(DamagedCheckpointTest, Truncated) {
  Overwrite(data_, absl::string_view(bytes_).substr(0, bytes_.size() - 4));
  const std::string said = Resume();
  EXPECT_THAT(said, HasSubstr("DATA_LOSS"));
  EXPECT_THAT(said, HasSubstr("checkpoint-2.data-00000-of-00001"));
  EXPECT_THAT(said, HasSubstr("tensor '"));
  // What is there is still what was damaged: nothing was written over it.
  EXPECT_EQ(Contents(data_).size(), bytes_.size() - 4);
}

TEST_F(DamagedCheckpointTest, AlteredByOneBit) {
  std::string altered = bytes_;
  altered[altered.size() - 10] ^= 0x10;
  Overwrite(data_, altered);
  const std::string said = Resume();
  EXPECT_THAT(said, HasSubstr("DATA_LOSS"));
  EXPECT_THAT(said, HasSubstr("checkpoint-2.data-00000-of-00001"));
  EXPECT_THAT(said, HasSubstr("tensor '"));
}

TEST_F(DamagedCheckpointTest, AlteredIndex) {
  std::string index = Contents(index_);
  const size_t at = index.find("\"step\"");
  ASSERT_NE(at, std::string::npos);
  const size_t digit = index.find('2', at);
  ASSERT_NE(digit, std::string::npos);
  index[digit] = '3';
  Overwrite(index_, index);
  const std::string said = Resume();
  EXPECT_THAT(said, HasSubstr("DATA_LOSS"));
  EXPECT_THAT(said, HasSubstr("checkpoint-2.index"));
}

TEST_F(DamagedCheckpointTest, InspectSaysSo) {
  const std::string output = JoinPath(folder_, "inspect.txt");
  auto inspect = [&]() -> int {
    ChildProcess::Options options;
    options.arguments = {MillraceProgram(), "inspect", JoinPath(folder_, "checkpoint-2")};
    options.output_file = output;
    const StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::Start(options);
    EXPECT_EQ(process.status(), Status());
    const StatusOr<int> code = (*process)->Wait(kTimeout);
    return code.ok() ? *code : -1;
  };
  EXPECT_EQ(inspect(), 0);
  EXPECT_THAT(Contents(output), HasSubstr("all checksums right"));
  std::string altered = bytes_;
  altered.back() ^= 0x01;
  Overwrite(data_, altered);
  EXPECT_EQ(inspect(), 1);
  EXPECT_THAT(Contents(output), HasSubstr("millrace inspect: "));
  EXPECT_THAT(Contents(output), HasSubstr("tensor '"));
}

}  // namespace
}  // namespace millrace
