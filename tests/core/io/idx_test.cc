#include "core/io/idx.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/testing/gzip.h"

namespace millrace {
namespace {

using testing::Gzip;

std::string Bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (int v : values) bytes.push_back(static_cast<char>(v));
  return bytes;
}

const std::string kMatrix = Bytes({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255});

TEST(IdxTest, ReadsBytes) {
  StatusOr<Tensor> tensor = ParseIdx(kMatrix, "m");
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->dtype(), DType::kUint8);
  EXPECT_EQ(tensor->shape(), (Shape{2, 3}));
  EXPECT_EQ(tensor->data<uint8_t>()[5], 255);
}

TEST(IdxTest, ReadsGzippedBytes) {
  StatusOr<Tensor> tensor = ParseIdx(Gzip(kMatrix), "m.gz");
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->shape(), (Shape{2, 3}));
}

TEST(IdxTest, TurnsBigEndianElements) {
  StatusOr<Tensor> ints = ParseIdx(Bytes({0, 0, 12, 1, 0, 0, 0, 1, 0, 0, 1, 2}), "i");
  ASSERT_TRUE(ints.ok()) << ints.status();
  EXPECT_EQ(ints->data<int32_t>()[0], 258);
  StatusOr<Tensor> floats = ParseIdx(Bytes({0, 0, 13, 1, 0, 0, 0, 1, 0x3f, 0x80, 0, 0}), "f");
  ASSERT_TRUE(floats.ok()) << floats.status();
  EXPECT_EQ(floats->data<float>()[0], 1.0F);
}

TEST(IdxTest, RefusesMalformedFilesByPlace) {
  struct Case {
    const char* what;
    std::string bytes;
    const char* message;
  };
  const std::string zipped = Gzip(kMatrix);
  const Case kCases[] = {
      {"empty", "", "not an IDX file"},
      {"magic", Bytes({1, 0, 8, 1}), "not an IDX file"},
      {"type", Bytes({0, 0, 7, 1, 0, 0, 0, 1, 1}), "element type 7"},
      {"header", Bytes({0, 0, 8, 2, 0, 0, 0, 2}), "within the header"},
      {"short", kMatrix.substr(0, kMatrix.size() - 1), "needs 6 bytes after the header, but 5"},
      {"long", kMatrix + "x", "needs 6 bytes after the header, but 7"},
      {"rank", Bytes({0, 0, 8, 200}) + std::string(800, '\1'), "f: "},
      {"overflow", Bytes({0, 0, 14, 3}) + std::string(12, '\xff'), "f: "},
      {"cut gzip", zipped.substr(0, zipped.size() - 6), "damaged or truncated gzip"},
      {"long gzip", zipped + "x", "1 bytes follow the end of the gzip data"},
      {"bad gzip", zipped.substr(0, 12) + "garbage" + zipped.substr(19), "gzip data"},
  };
  for (const Case& c : kCases) {
    const Status status = ParseIdx(c.bytes, "f").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << c.what << ": " << status;
    EXPECT_NE(std::string(status.message()).find(c.message), std::string::npos)
        << c.what << ": " << status;
    EXPECT_EQ(status.message().substr(0, 3), "f: ") << status;
  }
}

}  // namespace
}  // namespace millrace
