#include "core/framework/tensor_proto.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/framework/attr.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

template <typename Proto = TensorProto>
Proto FromText(const std::string& text) {
  Proto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

std::string Shape2(const char* dims) { return StrCat("tensor_shape { ", dims, " } "); }

TEST(TensorProtoTest, RoundTripOfEveryDType) {
  for (int value = 0; value < 200; ++value) {
    const auto dtype = static_cast<DType>(value);
    if (!IsKnownDType(value) || dtype == DType::kResource) continue;
    for (const Shape& shape : {Shape(), Shape{0}, Shape{2, 3}}) {
      Tensor tensor = Tensor::Zeros(dtype, shape);
      if (dtype == DType::kString) {
        tensor = Tensor::Strings(shape, {"a", "", std::string("\0\xff", 2)});
      } else if (dtype != DType::kBool) {
        auto* bytes = static_cast<uint8_t*>(tensor.mutable_raw_data());
        for (size_t i = 0; i < tensor.byte_size(); ++i) bytes[i] = static_cast<uint8_t>(i + 1);
      }
      TensorProto proto;
      ASSERT_TRUE(TensorToProto(tensor, &proto).ok());
      TensorProto parsed;
      ASSERT_TRUE(parsed.ParseFromString(proto.SerializeAsString()));
      const StatusOr<Tensor> read = TensorFromProto(parsed);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(AttrValue(*read), AttrValue(tensor)) << tensor.ToString();
    }
  }
}

TEST(TensorProtoTest, ReadsEveryForm) {
  const std::string two = Shape2("dim { size: 2 }"), three = Shape2("dim { size: 3 }");
  const struct {
    std::string proto;
    const char* expected;
  } cases[] = {
      {"dtype: DT_FLOAT float_val: 1.5", "float[] = 1.5"},
      {"dtype: DT_FLOAT " + three + "float_val: [1, 2]", "float[3] = 1 2 2"},
      {"dtype: DT_FLOAT " + three, "float[3] = 0 0 0"},
      {"dtype: DT_DOUBLE " + two + "double_val: 0.5", "double[2] = 0.5 0.5"},
      {"dtype: DT_INT32 " + two + "int_val: [-1, 7]", "int32[2] = -1 7"},
      {"dtype: DT_INT16 " + two + "int_val: -3", "int16[2] = -3 -3"},
      {"dtype: DT_INT8 " + two + "int_val: -3", "int8[2] = -3 -3"},
      {"dtype: DT_UINT8 " + two + "int_val: [200, 255]", "uint8[2] = 200 255"},
      {"dtype: DT_UINT16 int_val: 65535", "uint16[] = 65535"},
      {"dtype: DT_INT64 int64_val: -1099511627776", "int64[] = -1099511627776"},
      {"dtype: DT_UINT32 uint32_val: 4294967295", "uint32[] = 4294967295"},
      {"dtype: DT_UINT64 uint64_val: 18446744073709551615", "uint64[] = 18446744073709551615"},
      {"dtype: DT_BOOL " + three + "bool_val: [false, true]", "bool[3] = false true true"},
      {"dtype: DT_HALF half_val: 0x3c00", "half[] = 1"},
      {"dtype: DT_BFLOAT16 " + two + "half_val: 0x3f80", "bfloat16[2] = 1 1"},
      {"dtype: DT_STRING string_val: 'a'", "string[] = \"a\""},
      {"dtype: DT_STRING " + three + "string_val: ['a', 'b']", "string[3] = \"a\" \"b\" \"b\""},
      {"dtype: DT_STRING " + two, "string[2] = \"\" \"\""},
      {"dtype: DT_STRING " + two + "tensor_content: '\\001\\002abc'", "string[2] = \"a\" \"bc\""},
      {"dtype: DT_INT32 tensor_content: '\\001\\000\\000\\000'", "int32[] = 1"},
      // Content wins over values; any byte but 0 is true.
      {"dtype: DT_BOOL tensor_content: '\\007' bool_val: false", "bool[] = true"},
      {"dtype: DT_FLOAT " + Shape2("dim { size: 0 } dim { size: 5 }"), "float[0,5] ="},
      {"dtype: DT_STRING " + Shape2("dim { size: 0 }"), "string[0] ="},
  };
  for (const auto& c : cases) {
    const StatusOr<Tensor> tensor = TensorFromProto(FromText(c.proto));
    ASSERT_TRUE(tensor.ok()) << c.proto << tensor.status();
    EXPECT_EQ(tensor->ToString(), c.expected);
  }
}

TEST(TensorProtoTest, RefusesHostileOnes) {
  const std::string two = Shape2("dim { size: 2 }");
  const std::string huge = Shape2("dim { size: 1099511627776 }");       // 2^40
  const std::string most = Shape2("dim { size: 144115188075855872 }");  // 2^57
  const struct {
    std::string proto;
    absl::StatusCode code;
    const char* message;
  } cases[] = {
      {"", absl::StatusCode::kUnimplemented, "type DT_INVALID is not supported"},
      {"dtype: DT_VARIANT", absl::StatusCode::kUnimplemented, "DT_VARIANT"},
      {"dtype: DT_FLOAT_REF", absl::StatusCode::kUnimplemented, "DT_FLOAT_REF"},
      {"dtype: DT_RESOURCE", absl::StatusCode::kUnimplemented, "resource"},
      {"dtype: DT_FLOAT float_val: 1 " + huge, absl::StatusCode::kResourceExhausted,
       "float[1099511627776]"},
      {"dtype: DT_INT8 " + most, absl::StatusCode::kResourceExhausted, "int8["},
      {"dtype: DT_STRING " + huge, absl::StatusCode::kResourceExhausted, "string["},
      {"dtype: DT_STRING " + most, absl::StatusCode::kResourceExhausted, "string["},
      {"dtype: DT_STRING string_val: 'aaaa' " + huge, absl::StatusCode::kResourceExhausted, ""},
      {"dtype: DT_FLOAT " + Shape2("dim { size: 9223372036854775807 }"),
       absl::StatusCode::kInvalidArgument, "too many elements"},
      {"dtype: DT_FLOAT " + Shape2("dim { size: 4294967296 } dim { size: 4294967296 }"),
       absl::StatusCode::kInvalidArgument, "too many elements"},
      {"dtype: DT_FLOAT " + Shape2("dim { size: -1 }"), absl::StatusCode::kInvalidArgument,
       "not fully known"},
      {"dtype: DT_FLOAT " + Shape2("dim { size: -9223372036854775808 }"),
       absl::StatusCode::kInvalidArgument, "is negative"},
      {"dtype: DT_FLOAT " + Shape2("unknown_rank: true"), absl::StatusCode::kInvalidArgument,
       "not fully known"},
      {"dtype: DT_FLOAT " + two + "tensor_content: '1234'", absl::StatusCode::kInvalidArgument,
       "takes 8 bytes, but the proto has 4"},
      {"dtype: DT_FLOAT " + huge + "tensor_content: '1234'", absl::StatusCode::kInvalidArgument,
       "but the proto has 4"},
      {"dtype: DT_FLOAT float_val: [1, 2]", absl::StatusCode::kInvalidArgument,
       "holds 1 elements, but the proto has 2 values"},
      {"dtype: DT_STRING string_val: ['a', 'b']", absl::StatusCode::kInvalidArgument,
       "holds 1 elements"},
      {"dtype: DT_STRING " + two + "tensor_content: '\\001'", absl::StatusCode::kInvalidArgument,
       "malformed"},
      {"dtype: DT_STRING " + two + "tensor_content: '\\001\\001a'",
       absl::StatusCode::kInvalidArgument, "malformed"},
      {"dtype: DT_STRING " + two + "tensor_content: '\\001\\001abc'",
       absl::StatusCode::kInvalidArgument, "malformed"},
      {"dtype: DT_STRING " + two + "tensor_content: '\\377\\377\\377\\377\\377\\377\\001'",
       absl::StatusCode::kInvalidArgument, "malformed"},
  };
  for (const auto& c : cases) {
    const Status status = TensorFromProto(FromText(c.proto)).status();
    EXPECT_EQ(status.code(), c.code) << c.proto << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message)) << c.proto;
  }
}

TEST(TensorProtoTest, OneBudgetForAll) {
  const TensorProto proto =
      FromText("dtype: DT_FLOAT float_val: 1 " + Shape2("dim { size: 1000 }"));
  ProtoBudget budget(10000);
  EXPECT_TRUE(TensorFromProto(proto, budget).ok());
  EXPECT_TRUE(TensorFromProto(proto, budget).ok());
  EXPECT_EQ(TensorFromProto(proto, budget).status().code(), absl::StatusCode::kResourceExhausted);
  // The largest budget there can be is no licence to overflow.
  ProtoBudget endless(std::numeric_limits<int64_t>::max());
  const std::string most = Shape2("dim { size: 576460752303423487 }");  // the largest shape
  EXPECT_EQ(TensorFromProto(FromText("dtype: DT_STRING " + most), endless).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(TensorProtoTest, RefusesToWriteWhatHasNoWireForm) {
  TensorProto proto;
  for (const Tensor& tensor : {Tensor(), Tensor::OfResource(nullptr)}) {
    EXPECT_EQ(TensorToProto(tensor, &proto).code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(ShapeProtoTest, RoundTrip) {
  for (const PartialShape& shape :
       {PartialShape(), PartialShape(Shape()), PartialShape{2, -1, 0}}) {
    TensorShapeProto proto;
    ShapeToProto(shape, &proto);
    EXPECT_EQ(ShapeFromProto(proto).value(), shape);
  }
  const char* bad[] = {"dim { size: -2 }", "unknown_rank: true dim { size: 1 }",
                       "dim {} dim {} dim {} dim {} dim {} dim {} dim {} dim {} dim {}"};
  for (const char* text : bad) {
    EXPECT_EQ(ShapeFromProto(FromText<TensorShapeProto>(text)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_EQ(DTypeFromProto(DT_HALF).value(), DType::kHalf);
  EXPECT_EQ(DTypeToProto(DType::kHalf), DT_HALF);
  EXPECT_THAT(std::string(DTypeFromProto(static_cast<DataType>(999)).status().message()),
              HasSubstr("type 999 is not supported"));
}

}  // namespace
}  // namespace millrace
