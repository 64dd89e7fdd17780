#include "core/io/checkpoint.h"

#include <string>

#include "gtest/gtest.h"

namespace millrace {
namespace {

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    files_ = NewMemoryFileSystem();
    ASSERT_TRUE(WriteCheckpoint(*files_, "run/checkpoint-7", Tensors(), {{"step", "7"}}).ok());
    data_ = ReadFile(*files_, kData).value();
    index_ = ReadFile(*files_, kIndex).value();
  }

  static NamedTensors Tensors() {
    return {{"w", Tensor::Of<float>({2, 2}, {1, 2, 3, 4})},
            {"layer/b", Tensor::Of<double>({3}, {5, 6, 7})},
            {"step", Tensor::Scalar<int64_t>(42)},
            {"empty", Tensor::Zeros(DType::kFloat, {0, 3})}};
  }
  Status Read() { return ReadCheckpoint(*files_, "run/checkpoint-7").status(); }

  static constexpr char kData[] = "run/checkpoint-7.data-00000-of-00001";
  static constexpr char kIndex[] = "run/checkpoint-7.index";
  std::unique_ptr<FileSystem> files_;
  std::string data_;
  std::string index_;
};

TEST_F(CheckpointTest, GivesBackWhatWasSaved) {
  StatusOr<Checkpoint> read = ReadCheckpoint(*files_, "run/checkpoint-7");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->metadata, (std::map<std::string, std::string>{{"step", "7"}}));
  ASSERT_EQ(read->tensors.size(), 4u);
  for (const auto& [name, tensor] : Tensors()) {
    const Tensor& got = read->tensors[name];
    EXPECT_EQ(got.dtype(), tensor.dtype()) << name;
    EXPECT_EQ(got.shape(), tensor.shape()) << name;
    EXPECT_EQ(got.ToString(), tensor.ToString()) << name;
  }
}

TEST_F(CheckpointTest, EveryTruncationIsDataLoss) {
  for (size_t size = 0; size < data_.size(); size += 7) {
    ASSERT_TRUE(WriteFile(*files_, kData, data_.substr(0, size)).ok());
    EXPECT_EQ(Read().code(), absl::StatusCode::kDataLoss) << size;
  }
  ASSERT_TRUE(WriteFile(*files_, kData, data_).ok());
  for (size_t size = 0; size + 2 < index_.size(); size += 31) {
    ASSERT_TRUE(WriteFile(*files_, kIndex, index_.substr(0, size)).ok());
    EXPECT_EQ(Read().code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST_F(CheckpointTest, ATruncatedTensorIsNamedWithItsFile) {
  ASSERT_TRUE(WriteFile(*files_, kData, data_.substr(0, data_.size() - 1)).ok());
  const std::string message(Read().message());
  EXPECT_NE(message.find(kData), std::string::npos) << message;
  EXPECT_NE(message.find("tensor 'step'"), std::string::npos) << message;
}

TEST_F(CheckpointTest, AnAlteredByteIsFoundAndItsTensorNamed) {
  std::string altered = data_;
  altered[altered.size() - 8] ^= 1;  // the step's low byte
  ASSERT_TRUE(WriteFile(*files_, kData, altered).ok());
  const Status status = Read();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(std::string(status.message()).find("tensor 'step'"), std::string::npos) << status;
  for (size_t i = 0; i < index_.size(); i += 3) {
    std::string changed = index_;
    changed[i] ^= 4;
    ASSERT_TRUE(WriteFile(*files_, kIndex, changed).ok());
    ASSERT_TRUE(WriteFile(*files_, kData, data_).ok());
    // White space between tokens may change without harm; nothing else.
    if (!Read().ok()) {
      EXPECT_EQ(Read().code(), absl::StatusCode::kDataLoss) << i;
    } else {
      EXPECT_TRUE(index_[i] == ' ' || index_[i] == '\n') << "byte " << i << ": " << index_[i];
    }
  }
}

TEST_F(CheckpointTest, WithoutItsIndexThereIsNone) {
  ASSERT_TRUE(files_->Remove(kIndex).ok());
  EXPECT_EQ(Read().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(LatestCheckpoint(*files_, "run", "checkpoint").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(CheckpointTest, TheLatestIsByNumberNotByName) {
  ASSERT_TRUE(WriteCheckpoint(*files_, "run/checkpoint-10", Tensors(), {}).ok());
  ASSERT_TRUE(WriteCheckpoint(*files_, "run/checkpoint-9", Tensors(), {}).ok());
  for (const char* name : {"x", "011", " 12", "+13"}) {
    ASSERT_TRUE(WriteFile(*files_, StrCat("run/checkpoint-", name, ".index"), "").ok());
  }
  EXPECT_EQ(LatestCheckpoint(*files_, "run", "checkpoint").value(), "run/checkpoint-10");
}

TEST_F(CheckpointTest, TheManifestListsTensors) {
  StatusOr<std::vector<CheckpointEntry>> list = ListCheckpoint(*files_, "run/checkpoint-7");
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 4u);
  EXPECT_EQ((*list)[0].name, "w");
  EXPECT_EQ((*list)[0].shape, (Shape{2, 2}));
}

// Functions that copy or write JSON call themselves for each level.
TEST_F(CheckpointTest, ADeepManifestIsDataLoss) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const std::string index = StrCat(R"({"crc32c": 1, "manifest": {"format": )", deep, "}}");
  ASSERT_TRUE(WriteFile(*files_, kIndex, index).ok());
  EXPECT_EQ(Read().code(), absl::StatusCode::kDataLoss);
}

std::string SafetensorsFile(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(header.size() >> (8 * i)));
  return bytes + header + data;
}

TEST(SafetensorsTest, RefusesHostileHeaders) {
  const auto file = SafetensorsFile;
  const std::string eight(8, '\0');
  const std::string kCases[] = {
      "",
      std::string(8, '\xff'),
      file("[]", ""),
      file("{", ""),
      file(R"({"x": 3})", eight),
      file(R"({"x": {"dtype":"F32","shape":[2],"data_offsets":[0,9]}})", eight),
      file(R"({"x": {"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", eight),
      file(R"({"x": {"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", eight),
      file(R"({"x": {"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", eight),
      file(R"({"x": {"dtype":"Q7","shape":[2],"data_offsets":[0,8]}})", eight),
      file(R"({"x": {"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", eight),
      file(R"({"x": {"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})", eight),
      file(R"({"__metadata__": {"a": 1}})", eight),
      // Bytes of two tensors, of none in between, and of none at the end.
      file(R"({"x": {"dtype":"F32","shape":[2],"data_offsets":[0,8]},
               "y": {"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
           eight),
      file(R"({"x": {"dtype":"U8","shape":[5],"data_offsets":[0,5]},
               "y": {"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
           eight),
      file(R"({"x": {"dtype":"U8","shape":[3],"data_offsets":[0,3]},
               "y": {"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
           eight),
      file(R"({"x": {"dtype":"U8","shape":[7],"data_offsets":[0,7]}})", eight),
  };
  for (const std::string& bytes : kCases) {
    EXPECT_EQ(ParseSafetensors(bytes, "f").status().code(), absl::StatusCode::kDataLoss)
        << bytes.substr(std::min<size_t>(8, bytes.size()));
  }
}

// Any other byte in a bool is undefined behaviour to look at.
TEST(SafetensorsTest, BoolsAreZeroOrOne) {
  const std::string bytes = SafetensorsFile(
      R"({"b": {"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", std::string("\0\2\xff", 3));
  const StatusOr<Safetensors> read = ParseSafetensors(bytes, "f");
  ASSERT_TRUE(read.ok()) << read.status();
  const auto* values = static_cast<const uint8_t*>(read->tensors.at("b").raw_data());
  EXPECT_EQ(std::vector<int>(values, values + 3), (std::vector<int>{0, 1, 1}));
}

TEST(SafetensorsTest, AHundredThousandNamesTakeNoTime) {
  std::string header = "{";
  for (int i = 0; i < 100'000; ++i) {
    absl::StrAppend(&header, i == 0 ? "" : ",", "\"", i,
                    R"(": {"dtype":"U8","shape":[0],"data_offsets":[0,0]})");
  }
  const StatusOr<Safetensors> read = ParseSafetensors(SafetensorsFile(header + "}", ""), "f");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->tensors.size(), 100'000u);
}

// In JSON they would be other names, perhaps the same for two tensors.
TEST(SafetensorsTest, RefusesNamesThatAreNoUtf8) {
  const Tensor x = Tensor::Scalar(1.0F);
  EXPECT_EQ(WriteSafetensors({{"a\xff", x}}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(SafetensorsTest, RefusesANameTwice) {
  const Tensor x = Tensor::Scalar(1.0F);
  EXPECT_EQ(WriteSafetensors({{"x", x}, {"x", x}}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
