#include <memory>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "python_free_api/dataset.h"
#include "tests/testing/gzip.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using testing::Gzip;
using ::testing::HasSubstr;

// An IDX file: the type and rank bytes, extents, elements.
std::string Idx(int type, const std::vector<uint32_t>& extents, const std::vector<int>& elements) {
  std::string bytes = {0, 0, static_cast<char>(type), static_cast<char>(extents.size())};
  for (const uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<char>(extent >> shift));
    }
  }
  for (const int element : elements) bytes.push_back(static_cast<char>(element));
  return bytes;
}

constexpr int kUint8 = 8;
constexpr int kInt8 = 9;
constexpr char kImages[] = "data/train-images-idx3-ubyte";
constexpr char kLabels[] = "data/train-labels-idx1-ubyte";

class ReadMnistTest : public ::testing::Test {
 protected:
  ReadMnistTest() : files_(NewMemoryFileSystem()) {
    Write(kImages, Idx(kUint8, {2, 1, 3}, {0, 51, 102, 153, 204, 255}));
    Write(kLabels, Idx(kUint8, {2}, {9, 0}));
  }
  void Write(const std::string& path, const std::string& bytes) {
    ASSERT_EQ(files_->CreateFolder(FolderOf(path)), Status());
    ASSERT_EQ(WriteFile(*files_, path, bytes), Status());
  }
  StatusOr<ImageClasses> Read() { return ReadMnist(*files_, "data", "train"); }

  void ExpectRead() {
    const StatusOr<ImageClasses> read = Read();
    ASSERT_EQ(read.status(), Status());
    EXPECT_EQ(read->images.dtype(), DType::kFloat);
    EXPECT_EQ(read->images.shape().ToString(), "[2,1,3,1]");
    EXPECT_THAT(read->images.span<float>(), ElementsAre(0, 0.2F, 0.4F, 0.6F, 0.8F, 1));
    EXPECT_EQ(read->labels.dtype(), DType::kInt32);
    EXPECT_EQ(read->labels.shape().ToString(), "[2]");
    EXPECT_THAT(read->labels.span<int32_t>(), ElementsAre(9, 0));
  }

  const std::unique_ptr<FileSystem> files_;
};

TEST_F(ReadMnistTest, GivesImagesFromZeroToOneAndTheirClasses) { ExpectRead(); }

TEST_F(ReadMnistTest, ReadsCompressedFilesBesidePlainOnes) {
  Write(StrCat(kImages, ".gz"), Gzip(*ReadFile(*files_, kImages)));
  ASSERT_EQ(files_->Remove(kImages), Status());
  ExpectRead();
}

TEST_F(ReadMnistTest, AMissingFileIsNamed) {
  EXPECT_EQ(ReadMnist(*files_, "data", "t10k").status(),
            NotFound("there is neither data/t10k-images-idx3-ubyte nor "
                     "data/t10k-images-idx3-ubyte.gz"));
  ASSERT_EQ(files_->Remove(kLabels), Status());
  EXPECT_EQ(Read().status(), NotFound("there is neither data/train-labels-idx1-ubyte nor "
                                      "data/train-labels-idx1-ubyte.gz"));
}

TEST_F(ReadMnistTest, FilesThatAreDamagedOrDoNotBelongTogetherAreNamed) {
  const std::string images = *ReadFile(*files_, kImages);
  const std::string labels = *ReadFile(*files_, kLabels);
  const struct {
    const char* path;
    std::string bytes;
    const char* message;
  } cases[] = {
      {kLabels, Idx(kUint8, {3}, {1, 2, 3}),
       "data/train-labels-idx1-ubyte: expected uint8[2], but it holds uint8[3]"},
      {kLabels, Idx(kUint8, {2, 1}, {1, 2}), "expected uint8[2], but it holds uint8[2,1]"},
      {kLabels, Idx(kInt8, {2}, {1, 2}), "expected uint8[2], but it holds int8[2]"},
      {kImages, Idx(kUint8, {2, 3}, {0, 0, 0, 0, 0, 0}),
       "data/train-images-idx3-ubyte: expected uint8[n,h,w], but it holds uint8[2,3]"},
      {kImages, images.substr(0, images.size() - 1), "data/train-images-idx3-ubyte"},
      {kLabels, labels + "x", "data/train-labels-idx1-ubyte"},
      {kLabels, "", "data/train-labels-idx1-ubyte"},
  };
  for (const auto& c : cases) {
    Write(kImages, images);
    Write(kLabels, labels);
    Write(c.path, c.bytes);
    const Status status = Read().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST_F(ReadMnistTest, AnEmptySetIsReadButMakesNoDataSet) {
  Write(kImages, Idx(kUint8, {0, 28, 28}, {}));
  Write(kLabels, Idx(kUint8, {0}, {}));
  const StatusOr<ImageClasses> read = Read();
  ASSERT_EQ(read.status(), Status());
  EXPECT_EQ(Dataset::FromTensors({read->images, read->labels}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
