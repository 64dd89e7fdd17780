#include "core/graph/graph_builder.h"

#include "core/graph/graph_text.h"
#include "core/graph/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/graph/test_ops.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

Value Placeholder(GraphBuilder& b, PartialShape shape, absl::string_view name = "",
                  SourceLocation where = SourceLocation()) {
  return b.AddOne("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", shape}}, where, name);
}

Value Neg(Value x) { return x.builder()->AddOne("Neg", {x}, {}, SourceLocation()); }

TEST(GraphBuilderTest, BuildsAnExpression) {
  GraphBuilder b(TestOps());
  const Value x = Placeholder(b, {2}, "x");
  const Value y = Add(Mul(x, x), x);
  ASSERT_TRUE(b.status().ok()) << b.status();
  EXPECT_EQ(y.name(), "Add:0");
  EXPECT_EQ(y.operation().name(), "Add");
  EXPECT_EQ(y.dtype(), DType::kFloat);
  EXPECT_EQ(y.shape().ToString(), "[2]");
  EXPECT_EQ(GraphToText(b.graph()),
            "x = Placeholder() {dtype=float, shape=[2]}\nMul = Mul(x, x)\nAdd = Add(Mul, x)\n");
}

TEST(GraphBuilderTest, NameScopesNestAndAreUnique) {
  GraphBuilder b(TestOps());
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    const auto outer = b.NameScope("conv");
    const auto inner = b.NameScope("norm/");
    names.push_back(b.CurrentScope());
    names.push_back(Placeholder(b, {}, "x").operation().name());
    names.push_back(Placeholder(b, {}, "x").operation().name());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"conv/norm/", "conv/norm/x", "conv/norm/x_1",
                                             "conv_1/norm/", "conv_1/norm/x", "conv_1/norm/x_1",
                                             "conv_2/norm/", "conv_2/norm/x", "conv_2/norm/x_1"}));
  EXPECT_EQ(b.CurrentScope(), "");
  { const auto taken = b.NameScope("conv_3"); }
  const auto next = b.NameScope("conv");
  EXPECT_EQ(b.CurrentScope(), "conv_4/");
}

TEST(GraphBuilderTest, AMovedScopeEndsOnce) {
  GraphBuilder b(TestOps());
  {
    auto scope = b.NameScope("a");
    const auto moved = std::move(scope);
    EXPECT_EQ(b.CurrentScope(), "a/");
  }
  EXPECT_EQ(b.CurrentScope(), "");
}

TEST(GraphBuilderTest, DeviceScopesMergeInnerPartsWin) {
  GraphBuilder b(TestOps());
  const auto outer = b.DeviceScope("/job:ps/task:1");
  Value x;
  {
    const auto inner = b.DeviceScope("/task:2/device:CPU:0");
    x = Placeholder(b, {2}, "x");
    const auto innermost = b.DeviceScope("");
    Neg(x);
  }
  Neg(x);
  {
    const auto beside = b.DeviceOf(x.operation());
    Neg(x);
  }
  EXPECT_EQ(GraphToText(b.graph()),
            "x = Placeholder() {dtype=float, shape=[2]} @/job:ps/task:2/device:CPU:0\n"
            "Neg = Neg(x) @/job:ps/task:2/device:CPU:0\n"
            "Neg_1 = Neg(x) @/job:ps/task:1\n"
            "Neg_2 = Neg(x) @/job:ps/task:2/device:CPU:0\n");
}

TEST(GraphBuilderTest, AMalformedDeviceIsAnError) {
  GraphBuilder b(TestOps());
  const auto scope = b.DeviceScope("/jobb:ps");
  EXPECT_EQ(b.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(GraphBuilderTest, ColocationNamesTheOperationAndTakesItsDevice) {
  GraphBuilder b(TestOps());
  Value x;
  {
    const auto device = b.DeviceScope("/job:ps");
    x = Placeholder(b, {2}, "x");
  }
  {
    const auto device = b.DeviceScope("/job:worker");
    const auto with = b.ColocateWith(x.operation());
    Neg(x);
    const auto inner = b.DeviceOf(Operation());
    Neg(x);
  }
  Neg(x);
  EXPECT_EQ(GraphToText(b.graph()),
            "x = Placeholder() {dtype=float, shape=[2]} @/job:ps\n"
            "Neg = Neg(x) {_class=[\"loc:@x\"]} @/job:ps\n"
            "Neg_1 = Neg(x)\n"
            "Neg_2 = Neg(x)\n");
}

TEST(GraphBuilderTest, ControlDependenciesAddUp) {
  GraphBuilder b(TestOps());
  const Operation first = b.Add("NoOp", {}, {}, SourceLocation(), "first");
  const Operation second = b.Add("NoOp", {}, {}, SourceLocation(), "second");
  {
    const auto outer = b.ControlDependencies({first});
    const auto inner = b.ControlDependencies({second, first, Operation()});
    b.Add("NoOp", {}, {}, SourceLocation(), "third");
  }
  b.Add("NoOp", {}, {}, SourceLocation(), "fourth");
  EXPECT_EQ(GraphToText(b.graph()),
            "first = NoOp()\nsecond = NoOp()\nthird = NoOp(^first, ^second)\nfourth = NoOp()\n");
}

TEST(GraphBuilderTest, ScopesCanBeSetAside) {
  GraphBuilder b(TestOps());
  const Operation first = b.Add("NoOp", {}, {}, SourceLocation(), "first");
  const auto device = b.DeviceScope("/job:ps");
  const auto name = b.NameScope("layer");
  const auto after = b.ControlDependencies({first});
  {
    const auto root = b.RootScope();
    EXPECT_EQ(b.CurrentScope(), "");
    b.Add("NoOp", {}, {}, SourceLocation(), "at_root");
    const auto inner = b.NameScope("inner");
    const auto second = b.ControlDependencies({first});
    b.Add("NoOp", {}, {}, SourceLocation(), "second");
  }
  {
    const auto alone = b.NoControlDependencies();
    b.Add("NoOp", {}, {}, SourceLocation(), "alone");
  }
  b.Add("NoOp", {}, {}, SourceLocation(), "last");
  EXPECT_EQ(GraphToText(b.graph()),
            "first = NoOp()\n"
            "at_root = NoOp()\n"
            "inner/second = NoOp(^first)\n"
            "layer/alone = NoOp() @/job:ps\n"
            "layer/last = NoOp(^first) @/job:ps\n");
}

// The first error stays, with the user's line; later calls do nothing.
TEST(GraphBuilderTest, TheFirstErrorKeepsItsScopeAndLine) {
  GraphBuilder b(TestOps());
  const Value x = Placeholder(b, {4, 3}, "x");
  const Value w = Placeholder(b, {5, 6}, "w");
  Value y;
  {
    const auto scope = b.NameScope("dense");
    y = b.AddOne("MatMul", {x, w}, {}, SourceLocation{"lenet.cc", 12});
  }
  EXPECT_FALSE(y.ok());
  EXPECT_EQ(y.builder(), &b);
  const int nodes = b.graph().num_nodes();
  const Value z = b.AddOne("NoSuchOp", {y}, {}, SourceLocation{"lenet.cc", 13});
  EXPECT_FALSE(z.ok());
  EXPECT_FALSE(Placeholder(b, {2}).ok());
  for (const Value& value : b.AddMany("Halves", {x}, {}, 2, SourceLocation())) {
    EXPECT_FALSE(value.ok());
  }
  EXPECT_FALSE(b.ReadVariable(x, DType::kFloat, SourceLocation()).ok());
  EXPECT_EQ(b.graph().num_nodes(), nodes);
  EXPECT_EQ(b.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(b.status().message(),
            "MatMul 'dense/MatMul': x has 3 columns, but w has 5 rows (in scope 'dense/', at "
            "lenet.cc:12)");
}

TEST(GraphBuilderTest, APoisonedValueKnowsNothing) {
  GraphBuilder b(TestOps());
  const Value poisoned(&b, Port());
  EXPECT_EQ(poisoned.dtype(), DType::kInvalid);
  EXPECT_EQ(poisoned.shape().ToString(), "?");
  EXPECT_EQ(poisoned.name(), "");
  EXPECT_EQ(poisoned.operation().name(), "");
  EXPECT_FALSE(Neg(poisoned).ok());
  EXPECT_TRUE(b.status().ok());  // who poisoned it has said why
}

TEST(GraphBuilderTest, ValuesOfAnotherBuilderAreRefused) {
  GraphBuilder a(TestOps());
  GraphBuilder b(TestOps());
  const Value x = Placeholder(a, {2}, "x");
  const Value y = Placeholder(b, {2}, "y");
  EXPECT_FALSE(a.AddOne("Add", {x, y}, {}, SourceLocation{"m.cc", 3}).ok());
  EXPECT_EQ(a.status().message(), "Add: input 1 (y:0) belongs to another builder (at m.cc:3)");
  EXPECT_FALSE(b.AddOne("Neg", {Value()}, {}, SourceLocation()).ok());
  EXPECT_EQ(b.status().message(), "Neg: input 0 is an empty Value");
}

TEST(GraphBuilderTest, ScopesOfAnotherBuildersOperationsAreRefused) {
  GraphBuilder a(TestOps());
  const Operation foreign = Placeholder(a, {2}, "x").operation();
  GraphBuilder b(TestOps());
  { const auto scope = b.ControlDependencies({foreign}); }
  EXPECT_THAT(b.status().message(), HasSubstr("another builder"));
  GraphBuilder c(TestOps());
  { const auto scope = c.ColocateWith(foreign); }
  EXPECT_THAT(c.status().message(), HasSubstr("another builder"));
}

TEST(GraphBuilderTest, TheNumberOfOutputsIsChecked) {
  GraphBuilder b(TestOps());
  const Value x = Placeholder(b, {2}, "x");
  EXPECT_EQ(b.AddMany("Halves", {x}, {}, 2, SourceLocation()).size(), 2u);
  EXPECT_TRUE(b.AddOne("Halves", {x}, {}, SourceLocation()).ok());
  EXPECT_EQ(b.AddMany("Neg", {x}, {}, 2, SourceLocation()).size(), 2u);
  EXPECT_EQ(b.status().message(), "Neg 'Neg': has 1 outputs, but 2 are asked for");
  GraphBuilder c(TestOps());
  EXPECT_FALSE(c.AddOne("NoOp", {}, {}, SourceLocation()).ok());
  EXPECT_FALSE(c.status().ok());
}

TEST(GraphBuilderTest, AMalformedRegistryIsTheFirstError) {
  auto ops = std::make_shared<OpRegistry>();
  ops->Add(OpDef("Broken").Input("no type"));
  GraphBuilder b(ops);
  EXPECT_FALSE(b.status().ok());
}

class VariableTest : public ::testing::Test {
 protected:
  VariableTest() : b_(TestOps()) {
    const auto device = b_.DeviceScope("/job:ps");
    w_ = b_.AddOne("VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape{2}}},
                   SourceLocation(), "w");
  }
  Value Read() { return b_.ReadVariable(w_, DType::kFloat, SourceLocation()); }
  Operation Update(Value value, absl::string_view name) {
    const Operation update = b_.Add("AssignVariableOp", {w_, value}, {}, SourceLocation(), name);
    b_.NoteUpdate(w_, update);
    return update;
  }

  GraphBuilder b_;
  Value w_;
};

TEST_F(VariableTest, ReadsComeBeforeLaterUpdatesAndAfterEarlierOnes) {
  const Value first = Read();
  EXPECT_EQ(Read().port(), first.port());
  Update(Neg(first), "update");
  const Value second = Read();
  EXPECT_NE(second.port(), first.port());
  EXPECT_EQ(Read().port(), second.port());
  Update(second, "again");
  EXPECT_EQ(GraphToText(b_.graph()),
            "w = VarHandleOp() {dtype=float, shape=[2]} @/job:ps\n"
            "w/Read = ReadVariableOp(w) {dtype=float} @/job:ps\n"
            "Neg = Neg(w/Read)\n"
            "update = AssignVariableOp(w, Neg, ^w/Read) {_millrace_order_only=[\"w/Read\"]}\n"
            "w/Read_1 = ReadVariableOp(w, ^update) {_millrace_order_only=[\"update\"], "
            "dtype=float} @/job:ps\n"
            "again = AssignVariableOp(w, w/Read_1, ^update, ^w/Read_1) "
            "{_millrace_order_only=[\"w/Read_1\", \"update\"]}\n");
  EXPECT_TRUE(Verify(b_.graph()).ok());
}

// An optimizer's update changes its slots too.
TEST_F(VariableTest, AnUpdateOfSeveralVariablesComesAfterWhatEachHadBefore) {
  const Value m =
      b_.AddOne("VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape{2}}},
                SourceLocation(), "m");
  const Value value = Read();
  Update(value, "init_w");
  b_.NoteUpdate(m, b_.Add("AssignVariableOp", {m, value}, {}, SourceLocation(), "init_m"));
  const Operation both = Update(value, "both");
  b_.NoteUpdate(m, both);
  EXPECT_EQ(*b_.graph().Find("both")->attrs().Find(kOrderOnlyAttr)->get<std::vector<std::string>>(),
            (std::vector<std::string>{"init_w", "init_m"}));
  EXPECT_EQ(b_.graph().Find("both")->control_inputs().size(), 2u);
}

TEST_F(VariableTest, AnOrderAttributeOfAnotherTypeCountsAsNone) {
  const Value value = Read();
  const Operation update = b_.Add("AssignVariableOp", {w_, value}, {{kOrderOnlyAttr, int64_t{7}}},
                                  SourceLocation(), "odd");
  b_.NoteUpdate(w_, update);
  EXPECT_EQ(
      b_.graph().Find("odd")->attrs().Find(kOrderOnlyAttr)->get<std::vector<std::string>>()->size(),
      1u);
}

// Sharing it would make one run after what only the other was told to wait for, or not wait at all.
TEST_F(VariableTest, ReadsUnderControlDependenciesAreNotShared) {
  const Value plain = Read();
  const Operation barrier = b_.Add("NoOp", {}, {}, SourceLocation(), "barrier");
  Value controlled;
  {
    const auto scope = b_.ControlDependencies({barrier});
    controlled = Read();
    EXPECT_NE(Read().port(), controlled.port());
  }
  EXPECT_EQ(Read().port(), plain.port());
  EXPECT_EQ(b_.graph().node(controlled.port().node)->control_inputs(),
            std::vector<NodeId>{barrier.node()});
  Update(plain, "update");
  EXPECT_EQ(b_.graph().Find("update")->control_inputs().size(), 3u);
}

TEST_F(VariableTest, AReadThatWasToldToFollowAnUpdateNeedsIt) {
  const Operation update = Update(Placeholder(b_, {2}, "v"), "update");
  const auto scope = b_.ControlDependencies({update});
  const Value read = Read();
  EXPECT_FALSE(b_.graph().node(read.port().node)->attrs().Has(kOrderOnlyAttr));
}

TEST_F(VariableTest, ScopesAroundAReadDoNotMoveIt) {
  const auto device = b_.DeviceScope("/job:worker");
  const auto name = b_.NameScope("layer");
  const Value x = Placeholder(b_, {2}, "x");
  const auto with = b_.ColocateWith(x.operation());
  const Node& read = *b_.graph().node(Read().port().node);
  EXPECT_EQ(read.name(), "w/Read");
  EXPECT_EQ(read.requested_device(), "/job:ps");
  EXPECT_FALSE(read.attrs().Has(kColocationAttr));
}

TEST(GraphBuilderTest, AHundredThousandNodesTakeNoTime) {
  const ProcessorTimeLimit limit;
  GraphBuilder b(TestOps());
  Value x = Placeholder(b, {2}, "x");
  for (int i = 0; i < 100'000; ++i) {
    const auto scope = b.NameScope("layer");
    x = Neg(x);
  }
  ASSERT_TRUE(b.status().ok());
  EXPECT_EQ(b.graph().num_nodes(), 100'001);
  EXPECT_EQ(x.name(), "layer_99999/Neg:0");
}

}  // namespace
}  // namespace millrace
