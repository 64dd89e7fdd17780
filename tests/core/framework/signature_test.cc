// ResolveSignature and InferTypeAttrs.
#include <string>
#include <vector>

#include "core/framework/op_def.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

std::string Join(const std::vector<DType>& dtypes) {
  std::string text;
  for (DType dtype : dtypes) absl::StrAppend(&text, text.empty() ? "" : ",", Name(dtype));
  return text;
}

std::string ToString(const AttrMap& attrs) {
  std::string text;
  for (const auto& [name, value] : attrs) {
    absl::StrAppend(&text, text.empty() ? "" : " ", name, "=", value.ToString());
  }
  return text;
}

OpDef MatMul() {
  return OpDef("MatMul")
      .Input("a: T")
      .Input("b: T")
      .Output("product: T")
      .Attr("T: {float, double}")
      .Attr("transpose_a: bool = false");
}

OpDef Concat() {
  return OpDef("ConcatV2")
      .Input("values: N * T")
      .HostInput("axis: Tidx")
      .Output("output: T")
      .Attr("N: int >= 2")
      .Attr("T: type")
      .Attr("Tidx: {int32, int64} = int32");
}

OpDef Identity() { return OpDef("IdentityN").Input("x: T").Output("y: T").Attr("T: list(type)"); }

OpDef Conv() {
  return OpDef("Conv")
      .Input("x: float")
      .Output("y: float")
      .Attr("strides: list(int) >= 4")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("names: list(string) = []");
}

OpDef Stitch() {
  return OpDef("Stitch")
      .Input("indices: N * int32")
      .Input("data: N * T")
      .Output("y: T")
      .Attr("N: int >= 1")
      .Attr("T: type");
}

OpDef Calls() {
  return OpDef("Call")
      .Input("x: Tin")
      .Output("y: Tout")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0");
}

OpDef Select() {
  return OpDef("Two").Input("a: N * float").Input("b: M * float").Attr("N: int").Attr("M: int");
}

TEST(ResolveSignatureTest, GivesPortsAndDefaults) {
  const struct {
    OpDef op;
    AttrMap attrs;
    const char* inputs;
    const char* outputs;
    const char* completed;
  } cases[] = {
      {MatMul(), {{"T", DType::kFloat}}, "float,float", "float", "T=float transpose_a=false"},
      {Concat(),
       {{"T", DType::kHalf}, {"N", 3}},
       "half,half,half,int32",
       "half",
       "N=3 T=half Tidx=int32"},
      {Identity(),
       {{"T", std::vector<DType>{DType::kFloat, DType::kString}}},
       "float,string",
       "float,string",
       "T=[float, string]"},
      {Calls(),
       {{"Tin", std::vector<DType>{}}, {"Tout", std::vector<int64_t>{}}},
       "",
       "",
       "Tin=[] Tout=[]"},
      {MatMul(),
       {{"T", DType::kFloat}, {"_note", 1}},
       "float,float",
       "float",
       "T=float _note=1 transpose_a=false"},
  };
  for (const auto& c : cases) {
    AttrMap attrs = c.attrs;
    const StatusOr<NodeSignature> signature = ResolveSignature(c.op, attrs);
    ASSERT_TRUE(signature.ok()) << signature.status();
    EXPECT_EQ(Join(signature->inputs), c.inputs);
    EXPECT_EQ(Join(signature->outputs), c.outputs);
    EXPECT_EQ(ToString(attrs), c.completed);
  }
}

TEST(ResolveSignatureTest, KnowsWhichPortsLiveOnTheHost) {
  AttrMap attrs{{"T", DType::kFloat}, {"N", 2}};
  const NodeSignature signature = ResolveSignature(Concat(), attrs).value();
  EXPECT_EQ(signature.host_inputs, (std::vector<bool>{false, false, true}));
  EXPECT_EQ(signature.host_outputs, (std::vector<bool>{false}));
}

TEST(ResolveSignatureTest, EmptyListsTakeTheDeclaredKind) {
  AttrMap attrs{{"strides", std::vector<int64_t>{1, 1, 1, 1}},
                {"padding", "SAME"},
                {"names", std::vector<int64_t>{}}};
  ASSERT_TRUE(ResolveSignature(Conv(), attrs).ok());
  EXPECT_EQ(attrs.Find("names")->kind(), "list(string)");
}

TEST(ResolveSignatureTest, NamesWhatIsWrong) {
  const std::vector<int64_t> four = {1, 1, 1, 1};
  const struct {
    OpDef op;
    AttrMap attrs;
    const char* message;
  } cases[] = {
      {MatMul(), {}, "attribute 'T' (type) is missing"},
      {MatMul(), {{"T", DType::kInt32}}, "'T' is int32, but must be one of float, double"},
      {MatMul(), {{"T", static_cast<DType>(21)}}, "'T' holds an unknown dtype (21)"},
      {MatMul(), {{"T", 1}}, "'T' is 1 (int), but must be of kind type"},
      {MatMul(), {{"T", DType::kFloat}, {"x", 1}}, "op 'MatMul' has no attribute 'x'"},
      {Concat(), {{"T", DType::kFloat}, {"N", 1}}, "'N' is 1, but must be at least 2"},
      {Concat(), {{"T", DType::kFloat}, {"N", int64_t{1} << 40}}, "must be from 0 to 65536"},
      {Identity(), {{"T", std::vector<DType>{}}}, "has 0 elements, but must have at least 1"},
      {Identity(), {{"T", std::vector<DType>{DType::kInvalid}}}, "unknown dtype (0)"},
      {Conv(), {{"strides", std::vector<int64_t>{1}}}, "'strides' has 1 elements"},
      {Conv(), {{"strides", four}, {"padding", "FULL"}}, "must be one of 'SAME', 'VALID'"},
      {Conv(), {{"strides", four}, {"padding", AttrValue()}}, "'padding' is none (none)"},
  };
  for (const auto& c : cases) {
    AttrMap attrs = c.attrs;
    const Status status = ResolveSignature(c.op, attrs).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST(InferTypeAttrsTest, FollowsFromTheInputs) {
  const DType f = DType::kFloat, d = DType::kDouble, i = DType::kInt32, l = DType::kInt64;
  const struct {
    OpDef op;
    std::vector<DType> inputs;
    AttrMap attrs;
    const char* expected;
  } cases[] = {
      {MatMul(), {d, d}, {}, "T=double"},
      {MatMul(), {d, d}, {{"T", d}}, "T=double"},
      {Concat(), {f, f, f, i}, {}, "N=3 T=float Tidx=int32"},
      {Concat(), {f, l}, {}, "N=1 T=float Tidx=int64"},  // N is ResolveSignature's to refuse
      {Identity(), {f, i}, {}, "T=[float, int32]"},
      {Stitch(), {i, i, f, f}, {}, "N=2 T=float"},
      {Calls(), {}, {}, "Tin=[]"},
      {Select(), {f, f, f}, {{"N", 1}}, "M=2 N=1"},
      {Select(), {f, f, f}, {{"M", 0}}, "M=0 N=3"},
  };
  for (const auto& c : cases) {
    AttrMap attrs = c.attrs;
    const Status status = InferTypeAttrs(c.op, c.inputs, attrs);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(ToString(attrs), c.expected);
  }
}

TEST(InferTypeAttrsTest, NamesWhatDisagrees) {
  const DType f = DType::kFloat, d = DType::kDouble, i = DType::kInt32;
  const struct {
    OpDef op;
    std::vector<DType> inputs;
    AttrMap attrs;
    const char* message;
  } cases[] = {
      {MatMul(), {f, d}, {}, "input 'b' is double, but attribute 'T' is float (from input 'a')"},
      {MatMul(), {f, f}, {{"T", d}}, "input 'a' is float, but attribute 'T' is double"},
      {MatMul(), {f}, {}, "op 'MatMul' is given 1 inputs, which do not fit (a, b)"},
      {MatMul(), {f, f, f}, {}, "is given 3 inputs"},
      {MatMul(), {f, DType::kInvalid}, {}, "input 'b' has no dtype"},
      {Conv(), {i}, {}, "input 'x' is int32, but must be float"},
      {Concat(), {}, {}, "is given 0 inputs, which do not fit (values..., axis)"},
      {Concat(), {f, i}, {{"N", 5}}, "'N' says that 'values' alone has 5"},
      {Concat(), {f, i}, {{"N", -1}}, "'N' says that 'values' alone has -1"},
      {Concat(), {f, i}, {{"N", "two"}}, "'N' has an unexpected kind: string"},
      {Stitch(), {i, f, f}, {}, "is given 3 inputs"},
      {Select(), {f, f}, {}, "set attribute 'N' or 'M'"},
      {Identity(), {f, i}, {{"T", std::vector<DType>{f, f}}}, "'T' is [float, float]"},
      {Identity(), {f}, {{"T", 1}}, "'T' is int, but must be of kind list(type)"},
  };
  for (const auto& c : cases) {
    AttrMap attrs = c.attrs;
    const Status status = InferTypeAttrs(c.op, c.inputs, attrs);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace millrace
