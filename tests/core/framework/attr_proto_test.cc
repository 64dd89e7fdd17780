#include "core/framework/attr_proto.h"

#include <memory>
#include <string>
#include <vector>

#include "core/framework/graph.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

template <typename Proto = AttrValueProto>
Proto FromText(const std::string& text) {
  Proto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

TEST(AttrProtoTest, RoundTripOfEveryKind) {
  const FunctionName function{
      "f", std::make_shared<AttrMap>(AttrMap{{"T", DType::kFloat}, {"g", FunctionName{"g", {}}}})};
  const AttrValue values[] = {
      AttrValue(),
      "bytes",
      -5,
      2.5F,
      true,
      DType::kBool,
      PartialShape{2, -1},
      PartialShape(),
      Tensor::Of<float>(Shape{2}, {1, 2}),
      function,
      std::vector<std::string>{"a", ""},
      std::vector<int64_t>{1, -2},
      std::vector<int64_t>{},
      std::vector<float>{1.5F},
      std::vector<bool>{true, false},
      std::vector<DType>{DType::kFloat, DType::kString},
      std::vector<PartialShape>{PartialShape(), Shape()},
      std::vector<Tensor>{Tensor::Strings(Shape{1}, {"x"})},
      std::vector<FunctionName>{function},
  };
  for (const AttrValue& value : values) {
    AttrValueProto proto;
    ASSERT_TRUE(AttrToProto(value, &proto).ok());
    AttrValueProto parsed;
    ASSERT_TRUE(parsed.ParseFromString(proto.SerializeAsString()));
    const StatusOr<AttrValue> read = AttrFromProto(parsed);
    ASSERT_TRUE(read.ok()) << value.ToString() << read.status();
    EXPECT_EQ(*read, value) << read->ToString();
  }
  AttrMap attrs{{"a", 1}, {"_b", "x"}};
  AttrProtoMap protos;
  protos["old"].set_i(1);
  ASSERT_TRUE(AttrsToProto(attrs, &protos).ok());
  EXPECT_EQ(AttrsFromProto(protos).value(), attrs);
}

TEST(AttrProtoTest, AnyEmptyListBecomesAListOfInts) {
  AttrValueProto proto;
  ASSERT_TRUE(AttrToProto(std::vector<std::string>(), &proto).ok());
  EXPECT_TRUE(proto.has_list());
  EXPECT_EQ(AttrFromProto(proto)->kind(), "list(int)");
}

TEST(AttrProtoTest, RefusesWhatItCannotHold) {
  const struct {
    const char* proto;
    const char* message;
  } cases[] = {
      {"type: DT_VARIANT", "DT_VARIANT is not supported"},
      {"list { type: [DT_FLOAT, DT_COMPLEX64] }", "DT_COMPLEX64"},
      {"list { i: 1 s: 'a' }", "several kinds"},
      {"placeholder: 'T'", "placeholder 'T' has no value"},
      {"shape { dim { size: -5 } }", "extent -5"},
      {"tensor { dtype: DT_FLOAT float_val: [1, 2] }", "holds 1 elements"},
      {"list { tensor { dtype: DT_VARIANT } }", "DT_VARIANT"},
  };
  for (const auto& c : cases) {
    const Status status = AttrFromProto(FromText(c.proto)).status();
    EXPECT_FALSE(status.ok()) << c.proto;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message)) << c.proto;
  }
  AttrValueProto proto;
  EXPECT_FALSE(AttrToProto(std::vector<Tensor>{Tensor()}, &proto).ok());
}

TEST(AttrProtoTest, BoundsNestingAndMemory) {
  AttrValueProto deep;
  AttrValueProto* at = &deep;
  for (int i = 0; i < 100; ++i) at = &(*at->mutable_func()->mutable_attr())["f"];
  EXPECT_THAT(std::string(AttrFromProto(deep).status().message()), HasSubstr("levels deep"));

  FunctionName function{"f", nullptr};
  for (int i = 0; i < 100; ++i) {
    function = {"f", std::make_shared<AttrMap>(AttrMap{{"f", function}})};
  }
  AttrValueProto proto;
  EXPECT_THAT(std::string(AttrToProto(function, &proto).message()), HasSubstr("levels deep"));

  AttrValueProto shapes;
  for (int i = 0; i < 1000; ++i) shapes.mutable_list()->add_shape();
  ProtoBudget budget(10000);
  EXPECT_EQ(AttrFromProto(shapes, budget).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(AttrProtoTest, ErrorsNameTheAttributeAndAnnotationsMayGo) {
  const NodeDef node = FromText<NodeDef>(R"(
    name: 'n' op: 'Op'
    attr { key: 'T' value { type: DT_FLOAT } }
    attr { key: '_t' value { type: DT_VARIANT } }
    attr { key: '_n' value { i: 1 } }
    experimental_debug_info { original_node_names: 'm' })");
  const AttrMap attrs = AttrsFromProto(node.attr()).value();
  EXPECT_EQ(attrs, (AttrMap{{"T", DType::kFloat}, {"_n", 1}}));

  const NodeDef bad = FromText<NodeDef>("attr { key: 'T' value { type: DT_VARIANT } }");
  EXPECT_THAT(std::string(AttrsFromProto(bad.attr()).status().message()),
              HasSubstr("attribute 'T': type DT_VARIANT"));
}

// The bytes of a graph as another program writes it: "x" = Placeholder[dtype=DT_FLOAT].
TEST(GraphProtoTest, ReadsPublicBytes) {
  const std::string bytes(
      "\x0a\x1d\x0a\x01x\x12\x0bPlaceholder*\x0b\x0a\x05\x64type\x12\x02\x30\x01"
      "\x22\x03\x08\xa7\x0d",
      36);
  GraphDef graph;
  ASSERT_TRUE(graph.ParseFromString(bytes));
  ASSERT_EQ(graph.node_size(), 1);
  EXPECT_EQ(graph.node(0).op(), "Placeholder");
  EXPECT_EQ(graph.node(0).attr().at("dtype").type(), DT_FLOAT);
  EXPECT_EQ(graph.versions().producer(), 1703);
  EXPECT_EQ(graph.SerializeAsString(), bytes);
}

}  // namespace
}  // namespace millrace
