#include "core/io/npy.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

// A file of version 1.0 with that header and data.
std::string File(absl::string_view header, absl::string_view data) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 255);
  bytes += static_cast<char>(header.size() >> 8);
  return StrCat(bytes, header, data);
}

std::string Bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes += static_cast<char>(value);
  return bytes;
}

TEST(NpyTest, Reads) {
  const struct {
    const char* header;
    std::string data;
    const char* expected;
  } cases[] = {
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), }\n",
       Bytes({1, 0, 2, 0, 3, 0, 255, 255}), "int16[2,2] = 1 2 3 -1"},
      {"{'descr': '>i2', 'fortran_order': False, 'shape': (2,)}", Bytes({0, 1, 255, 254}),
       "int16[2] = 1 -2"},
      {"{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", Bytes({1, 4, 2, 5, 3, 6}),
       "uint8[2,3] = 1 2 3 4 5 6"},
      {"{'shape': (), 'fortran_order': False, 'descr': '<f4'}", Bytes({0, 0, 128, 63}),
       "float[] = 1"},
      {"{\"descr\": \"|b1\", \"fortran_order\": False, \"shape\": (3L,)}", Bytes({0, 1, 7}),
       "bool[3] = false true true"},
      {"{'descr': '<f2', 'fortran_order': False, 'shape': (1,)}", Bytes({0, 60}), "half[1] = 1"},
      {"{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", Bytes({128, 63}),
       "bfloat16[1] = 1"},
      {"{'descr': '<i8', 'fortran_order': False, 'shape': (0, 4)}", "", "int64[0,4] ="},
  };
  for (const auto& c : cases) {
    const auto tensor = ParseNpy(File(c.header, c.data), "x.npy");
    ASSERT_TRUE(tensor.ok()) << c.header << ": " << tensor.status();
    EXPECT_THAT(tensor->ToString(), ::testing::StartsWith(c.expected));
  }
}

TEST(NpyTest, LaterVersionsHaveALongerLength) {
  const std::string header = "{'descr': '|i1', 'fortran_order': False, 'shape': (1,)}";
  for (const char version : {'\2', '\3'}) {
    std::string bytes("\x93NUMPY", 6);
    bytes += {version, 0, static_cast<char>(header.size()), 0, 0, 0};
    const auto tensor = ParseNpy(StrCat(bytes, header, "\x05"), "x.npy");
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->ToString(), "int8[1] = 5");
  }
}

TEST(NpyTest, WhatIsWrittenReadsBack) {
  const Tensor tensors[] = {Tensor::Of<float>(Shape({2, 2}), {1, -2, 0.5f, 3}),
                            Tensor::Scalar<double>(2.5),
                            Tensor::Of<int64_t>(Shape({3}), {1, -1, int64_t{1} << 40}),
                            Tensor::Of<bool>(Shape({2}), {true, false}),
                            Tensor::Zeros(DType::kBfloat16, Shape({2, 0})),
                            Tensor::Zeros(DType::kHalf, Shape({1, 1, 1})),
                            Tensor::Of<uint8_t>(Shape({1}), {200})};
  for (const Tensor& tensor : tensors) {
    const auto bytes = WriteNpy(tensor);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ((bytes->size() - tensor.byte_size()) % 64, 0u);
    const auto again = ParseNpy(*bytes, "x.npy");
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->ToString(), tensor.ToString());
  }
  EXPECT_EQ(WriteNpy(Tensor::Strings(Shape({1}), {"a"})).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(NpyTest, DamagedFilesAreRefused) {
  const std::string good = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}";
  const std::string four(4, '\0');
  const struct {
    std::string bytes;
    const char* message;
  } cases[] = {
      {"", "not an npy file"},
      {"NUMPY", "not an npy file"},
      {std::string("\x93NUMPY\x04\x00\x00\x00", 10), "npy version 4.0 is not known"},
      {std::string("\x93NUMPY\x01\x00\x10", 9), "ends within the npy header"},
      {std::string("\x93NUMPY\x01\x00\x10\x00{", 11),
       "the npy header has 16 bytes, but 1 are left"},
      {File(good, Bytes({0, 0, 0})), "needs 2 elements of 2 bytes, but 3 bytes follow"},
      {File(good, StrCat(four, "x")), "but 5 bytes follow"},
      {File("{'descr': '<i2', 'fortran_order': False}", four), "a key that is missing"},
      {File(StrCat(good, "x"), four), "text after the dict"},
      {File("{'descr': '<i2', 'descr': '<i2'}", four), "the key 'descr'"},
      {File("{'descr': '<i2', 'other': 3}", four), "the key 'other'"},
      {File("{'descr': '<i2', 'fortran_order': 0, 'shape': (2,)}", four), "no 'False'"},
      {File("{'descr': '<i2', 'fortran_order': False, 'shape': (-2,)}", four), "a strange extent"},
      {File("{'descr': '<i2', 'fortran_order': False, 'shape': (2", four), "no ')'"},
      {File("{'descr': '<i2", four), "a string without end"},
      {File("{'descr': '<i8', 'fortran_order': False, 'shape': (4611686018427387904,)}", four),
       "has too many elements"},
      {File("{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999, 99999999999)}", four),
       "x.npy: "},
      {File("{'descr': '<i8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", four),
       "x.npy: "},
  };
  for (const auto& c : cases) {
    const Status status = ParseNpy(c.bytes, "x.npy").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << c.message << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
    EXPECT_THAT(std::string(status.message()), HasSubstr("x.npy"));
  }
}

TEST(NpyTest, OtherDtypesAreNamed) {
  for (const char* descr : {"'<U3'", "'|S2'", "'<c8'", "'|O'", "'f4'", "''", "[('a', '<i4')]"}) {
    const std::string header =
        StrCat("{'descr': ", descr, ", 'fortran_order': False, 'shape': (1,)}");
    EXPECT_EQ(ParseNpy(File(header, "abcd"), "x.npy").status().code(),
              absl::StatusCode::kUnimplemented)
        << descr;
  }
}

}  // namespace
}  // namespace millrace
