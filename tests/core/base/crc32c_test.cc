#include "core/base/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace millrace {
namespace {

// Bit by bit, from the definition.
uint32_t PlainCrc32c(absl::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
  }
  return ~crc;
}

std::string SomeBytes(size_t size) {
  std::string bytes;
  uint32_t state = 1;
  for (size_t i = 0; i < size; ++i) {
    state = state * 1664525u + 1013904223u;
    bytes.push_back(static_cast<char>(state >> 24));
  }
  return bytes;
}

TEST(Crc32cTest, HasThePublishedValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  // RFC 3720, B.4.
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising.push_back(c);
  EXPECT_EQ(Crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(Crc32c(std::string(rising.rbegin(), rising.rend())), 0x113fdb5cu);
}

TEST(Crc32cTest, EqualsTheDefinitionAtEveryLengthAndAlignment) {
  const std::string bytes = SomeBytes(100);
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t length = 0; begin + length <= bytes.size(); ++length) {
      const absl::string_view part = absl::string_view(bytes).substr(begin, length);
      ASSERT_EQ(Crc32c(part), PlainCrc32c(part)) << begin << " " << length;
    }
  }
}

TEST(Crc32cTest, ContinuesAnEarlierResult) {
  const std::string bytes = SomeBytes(1000);
  for (const size_t cut : {0, 1, 7, 8, 500, 1000}) {
    const uint32_t first = Crc32c(absl::string_view(bytes).substr(0, cut));
    EXPECT_EQ(Crc32c(absl::string_view(bytes).substr(cut), first), Crc32c(bytes)) << cut;
  }
}

TEST(MaskedCrc32cTest, RotatesByFifteenAndAddsTheConstant) {
  const uint32_t crc = 0xe3069283u;
  EXPECT_EQ(MaskedCrc32c("123456789"), ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

}  // namespace
}  // namespace millrace
