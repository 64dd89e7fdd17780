#include "core/framework/op_def.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

OpDef Op() { return OpDef("Op").Shape(UnknownShape).NotDifferentiable("a test"); }

// An argument in one line: its name, what its type is, how many, and where it lives.
std::string Describe(const ArgDef& arg) {
  return StrCat(arg.name, ":", arg.dtype == DType::kInvalid ? "" : Name(arg.dtype), arg.type_attr,
                arg.type_list_attr.empty() ? "" : StrCat("list ", arg.type_list_attr),
                arg.number_attr.empty() ? "" : StrCat(" times ", arg.number_attr),
                arg.host_memory ? " host" : "");
}

TEST(OpSpecTest, Arguments) {
  const struct {
    const char* spec;
    const char* expected;
  } cases[] = {
      {"x: T", "x:T"},
      {" x :T ", "x:T"},
      {"sizes: int32", "sizes:int32"},
      {"values: N * T", "values:T times N"},
      {"values: N*float", "values:float times N"},
      {"inputs: Tlist", "inputs:list Tlist"},
      {"handle: resource", "handle:resource"},
  };
  for (const auto& c : cases) {
    const OpDef op = Op().Input(c.spec).Attr("T: type").Attr("N: int").Attr("Tlist: list(type)");
    ASSERT_TRUE(op.status().ok()) << op.status();
    EXPECT_EQ(Describe(op.inputs()[0]), c.expected);
  }
  const OpDef op = Op().Attr("L: list(type)").HostInput("axis: int32").HostOutput("y: L");
  EXPECT_EQ(Describe(op.inputs()[0]), "axis:int32 host");
  EXPECT_EQ(Describe(op.outputs()[0]), "y:list L host");
}

// An attribute in one line: its kind, what is allowed, its minimum and its default.
std::string Describe(const AttrDef& attr) {
  std::string text = attr.kind;
  for (DType dtype : attr.allowed_types) absl::StrAppend(&text, " ", Name(dtype));
  for (const std::string& allowed : attr.allowed_strings) absl::StrAppend(&text, " ", allowed);
  if (attr.minimum) absl::StrAppend(&text, " >= ", *attr.minimum);
  if (attr.default_value) absl::StrAppend(&text, " = ", attr.default_value->ToString());
  return text;
}

TEST(OpSpecTest, Attributes) {
  const struct {
    const char* spec;
    const char* expected;
  } cases[] = {
      {"T: type", "type"},
      {"T: type = float", "type = float"},
      {"T: {float, double, int32} = float", "type float double int32 = float"},
      {"T: {float}", "type float"},
      {"strides: list(int) >= 4", "list(int) >= 4"},
      {"N: int >= 1", "int >= 1"},
      {"N: int >= 2 = 3", "int >= 2 = 3"},
      {"N: int >= -1 = 0", "int >= -1 = 0"},
      {"padding: {'SAME', 'VALID'}", "string SAME VALID"},
      {"data_format: {'NHWC','NCHW'} = 'NHWC'", "string NHWC NCHW = \"NHWC\""},
      {"axis: int = 0", "int = 0"},
      {"axis: int = -1", "int = -1"},
      {"keep_dims: bool = false", "bool = false"},
      {"dilations: list(int) = [1, 1, 1, 1]", "list(int) = [1, 1, 1, 1]"},
      {"dims: list(int) = []", "list(int) = []"},
      {"shape: shape = ?", "shape = ?"},
      {"shape: shape = [2,?]", "shape = [2,?]"},
      {"shapes: list(shape) = [?, [1,2], []]", "list(shape) = [?, [1,2], []]"},
      {"value: tensor", "tensor"},
      {"container: string = ''", "string = \"\""},
      {"name: string = \"a'b\\\"c\"", "string = \"a\\'b\\\"c\""},
      {"names: list(string) = ['a,b', ']']", "list(string) = [\"a,b\", \"]\"]"},
      {"alpha: float = 0.2", "float = 0.2"},
      {"alpha: float = 1", "float = 1.0"},
      {"scales: list(float) = [1, 2.5e3]", "list(float) = [1.0, 2500.0]"},
      {"flags: list(bool) = [true, false]", "list(bool) = [true, false]"},
      {"Tlist: list(type) >= 0", "list(type) >= 0"},
      {"Tlist: list({float, int32}) = [float]", "list(type) float int32 = [float]"},
      {"modes: list({'a', 'b'}) = ['a']", "list(string) a b = [\"a\"]"},
      {"f: func", "func"},
      {"fs: list(func)", "list(func)"},
  };
  for (const auto& c : cases) {
    const OpDef op = Op().Attr(c.spec);
    ASSERT_TRUE(op.status().ok()) << op.status();
    EXPECT_EQ(Describe(op.attrs()[0]), c.expected) << c.spec;
  }
  EXPECT_EQ(Op().Attr("T: numbertype").attrs()[0].allowed_types.size(), 12U);
}

TEST(OpSpecTest, RefusesMalformedSpecs) {
  const struct {
    const char* spec;  // of an attribute, or of an input if it starts with '>'
    const char* message;
  } cases[] = {
      {"", "expected a name"},
      {"T", "expected ':'"},
      {"T:", "expected a kind"},
      {"T: typo", "'typo' is not a kind of attribute"},
      {"T: {float", "expected ',' or '}'"},
      {"T: {}", "expected a dtype or a quoted string"},
      {"T: {float32}", "'float32' is not a dtype"},
      {"T: {float, 'a'}", "choices of one kind"},
      {"T: type = int", "'int' is not a dtype"},
      {"T: {float} = double", "'T' is double, but must be one of float"},
      {"p: {'A'} = 'B'", "'p' is 'B', but must be one of 'A'"},
      {"p: string = A", "expected a quoted string"},
      {"p: string = 'A", "expected a quoted string"},
      {"N: int >= x", "'x' is not a minimum"},
      {"N: int >= 2 = 1", "is 1, but must be at least 2"},
      {"N: float >= 1", "only an int or a list has a minimum"},
      {"N: int = 1.5", "'1.5' is not a default of kind int"},
      {"N: int = 99999999999999999999", "is not a default of kind int"},
      {"b: bool = 1", "expected true or false"},
      {"l: list(int) = 1", "expected '['"},
      {"l: list(int) = [1", "expected ',' or ']'"},
      {"l: list(int) >= 2 = [1]", "has 1 elements, but must have at least 2"},
      {"l: list(int", "expected ')'"},
      {"l: list(list(int))", "'list' is not a kind"},
      {"s: shape = [a]", "not a shape"},
      {"s: shape = [1", "expected a shape"},
      {"v: tensor = 1", "cannot have a default"},
      {"f: func = g", "cannot have a default"},
      {"x: int = 1 2", "'1 2' is not a default"},
      {"x: int junk", "expected the end at 'junk'"},
      {"1x: int", "expected a name"},
      {">x", "expected ':'"},
      {">x: ", "expected a type"},
      {">x: N *", "expected a type at the end"},
      {">x: N * T * U", "expected the end"},
      {">x: Ref(T)", "expected the end at '(T)'"},
      {">: T", "expected a name"},
  };
  for (const auto& c : cases) {
    OpDef op = Op();
    c.spec[0] == '>' ? op.Input(c.spec + 1) : op.Attr(c.spec);
    EXPECT_EQ(op.status().code(), absl::StatusCode::kInvalidArgument) << c.spec;
    EXPECT_THAT(std::string(op.status().message()), HasSubstr(c.message)) << c.spec;
    OpRegistry registry;
    registry.Add(std::move(op));
    EXPECT_THAT(std::string(registry.status().message()), HasSubstr("op 'Op': ")) << c.spec;
    EXPECT_EQ(registry.Find("Op"), nullptr);
  }
}

TEST(OpDefTest, CountsHaveAMinimumOfOneUnlessItIsGiven) {
  EXPECT_EQ(Op().Input("x: N * float").Attr("N: int").attrs()[0].minimum, 1);
  EXPECT_EQ(Op().Attr("N: int").Input("x: N * float").attrs()[0].minimum, 1);
  EXPECT_EQ(Op().Attr("N: int >= 0").Input("x: N * float").attrs()[0].minimum, 0);
  EXPECT_EQ(Op().Output("x: Ts").Attr("Ts: list(type)").attrs()[0].minimum, 1);
  EXPECT_EQ(Op().Attr("n: int").attrs()[0].minimum, std::nullopt);
}

TEST(OpDefTest, Traits) {
  const OpDef op = Op().Traits({Trait::kStateful, Trait::kSend});
  EXPECT_TRUE(op.Has(Trait::kStateful));
  EXPECT_TRUE(op.Has(Trait::kSend));
  EXPECT_FALSE(op.Has(Trait::kRecv));
}

TEST(OpRegistryTest, RefusesIncompleteOps) {
  const struct {
    OpDef op;
    const char* message;
  } cases[] = {
      {OpDef("A").NotDifferentiable("x"), "op 'A': there is no shape function"},
      {OpDef("A").Shape(UnknownShape), "neither a gradient nor a reason"},
      {Op().Gradient([](GradientContext&) { return absl::OkStatus(); }), "both a gradient and"},
      {OpDef("A").Shape(UnknownShape).NotDifferentiable(""), "the reason for no gradient is empty"},
      {OpDef("").Shape(UnknownShape).NotDifferentiable("x"), "the name is empty"},
      {Op().Input("x: T"), "'x' names 'T', which is neither a dtype nor an attribute"},
      {Op().Output("x: T").Attr("T: int"), "'T' to be of kind type, but it is int"},
      {Op().Input("x: N * float").Attr("N: type"), "'N' to be of kind int"},
      {Op().Input("x: N * L").Attr("N: int").Attr("L: list(type)"), "both a number and a list"},
      {Op().Input("x: float").Input("x: float"), "'x' is declared twice"},
      {Op().Attr("a: int").Attr("a: int"), "attribute 'a' is declared twice"},
  };
  for (const auto& c : cases) {
    OpRegistry registry;
    registry.Add(c.op);
    EXPECT_THAT(std::string(registry.status().message()), HasSubstr(c.message));
    EXPECT_TRUE(registry.All().empty());
  }
}

TEST(OpRegistryTest, FindsByNameAndKeepsTheFirstError) {
  OpRegistry registry;
  for (const char* name : {"B", "A", "C", "B"}) {
    registry.Add(OpDef(name).Shape(UnknownShape).NotDifferentiable("a test"));
  }
  registry.Add(OpDef("Bad"));
  EXPECT_EQ(registry.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(registry.status().message()), HasSubstr("op 'B'"));
  std::string names;
  for (const OpDef* op : registry.All()) names += op->name();
  EXPECT_EQ(names, "ABC");
  EXPECT_EQ(registry.Find("C")->name(), "C");
  EXPECT_EQ(registry.Find("D"), nullptr);
}

}  // namespace
}  // namespace millrace
