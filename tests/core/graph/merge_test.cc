#include "core/graph/merge.h"

#include "core/graph/graph_text.h"
#include "core/graph/verify.h"
#include "gmock/gmock.h"
#include "tests/core/graph/test_ops.h"

namespace millrace {
namespace {

constexpr char kBase[] = R"(x = Placeholder() {dtype=float, shape=[2]}
init = NoOp()
y = Neg(x, ^init)
)";

// The merged graph and the names of what was added, or the error.
std::string Merged(absl::string_view more_text) {
  const std::shared_ptr<const OpRegistry> ops = TestOps();
  Graph base = ParseOrFail(kBase, ops);
  const std::string before = GraphToText(base);
  const Graph more = ParseOrFail(more_text, ops);
  const StatusOr<std::vector<NodeId>> added = MergeGraph(more, base);
  if (!added.ok()) {
    EXPECT_EQ(GraphToText(base), before) << "an error leaves the graph alone";
    return std::string(added.status().message());
  }
  EXPECT_TRUE(Verify(base).ok());
  std::string text = GraphToText(base).substr(before.size());
  for (const NodeId id : *added) absl::StrAppend(&text, "+", more.node(id)->name());
  return text;
}

TEST(MergeGraphTest, AddsWhatIsNewAndOnlyThat) {
  EXPECT_EQ(Merged(kBase), "");
  EXPECT_EQ(Merged(""), "");
  EXPECT_EQ(Merged("init = NoOp()\nmore = NoOp(^init)\n"), "more = NoOp(^init)\n+more");
  // In any order, with ids of its own.
  EXPECT_EQ(Merged("init = NoOp()\nx = Placeholder() {dtype=float, shape=[2]}\n"
                   "y = Neg(x, ^init)\nz = Neg(y)\nw = Neg(z)\n"),
            "z = Neg(y)\nw = Neg(z)\n+z+w");
}

TEST(MergeGraphTest, RefusesANodeThatDiffers) {
  const struct {
    const char* more;
    const char* differs;
  } cases[] = {
      {"x = Placeholder() {dtype=float, shape=[3]}\n", "'x' (Placeholder)"},
      {"x = Placeholder() {dtype=double, shape=[2]}\n", "'x' (Placeholder)"},
      {"x = Placeholder() {dtype=float, shape=[2]} @/job:ps\n", "'x' (Placeholder)"},
      {"new = NoOp()\ninit = NoOp(^new)\n", "'init' (NoOp)"},
      {"x = Placeholder() {dtype=float, shape=[2]}\nz = NoOp()\ny = Neg(x)\n", "'y' (Neg)"},
      {"y = NoOp()\n", "'y' (NoOp)"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Merged(c.more), ::testing::HasSubstr(c.differs)) << c.more;
    EXPECT_THAT(Merged(c.more), ::testing::HasSubstr("differs from it")) << c.more;
  }
}

TEST(MergeGraphTest, RefusesAGraphOverOtherOps) {
  Graph base = ParseOrFail(kBase);
  EXPECT_EQ(MergeGraph(Graph(std::make_shared<OpRegistry>()), base).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
