#include "python_free_api/placement_view.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/python_free_api/program.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// What the page's script is given.
Json DataOf(const std::string& page) {
  constexpr char kBegin[] = "const DATA = ";
  const size_t begin = page.find(kBegin);
  EXPECT_NE(begin, std::string::npos);
  const size_t end = page.find(";\n", begin);
  const size_t from = begin + sizeof(kBegin) - 1;
  Json data = Json::parse(page.substr(from, end - from), nullptr, false);
  EXPECT_FALSE(data.is_discarded());
  return data;
}

// The page of a training step over two devices.
class PlacementViewTest : public ::testing::Test {
 protected:
  PlacementViewTest() : p_(TwoDevices()) {
    Value x = Placeholder(p_.b, DType::kFloat, {2, 3}, "x");
    const Dense dense(p_.variables, "dense", 3, 2);
    {
      const auto device = p_.b.DeviceScope("/device:CPU:1");
      loss_ = ReduceSum(dense(x));
    }
    train_ = Minimize(loss_, p_.variables, *Sgd(0.1));
    step_ = p_.session().Prepare({{"x"}, {loss_.name()}, {train_.name()}}).value();
    report_ = step_->Report().value();
    page_ = PlacementView(step_->placed_graph(), report_, "A step");
  }
  static RuntimeOptions TwoDevices() {
    RuntimeOptions options;
    options.cpu_devices = 2;
    return options;
  }

  Program p_;
  Value loss_;
  Operation train_;
  std::shared_ptr<PreparedStep> step_;
  PlacementReport report_;
  std::string page_;
};

TEST_F(PlacementViewTest, HasEveryNodeWithItsDeviceAndReason) {
  const Json data = DataOf(page_);
  ASSERT_EQ(data["nodes"].size(), static_cast<size_t>(step_->placed_graph().num_nodes()));
  ASSERT_EQ(report_.decisions.size(), data["nodes"].size());
  for (const PlacementDecision& decision : report_.decisions) {
    bool found = false;
    for (const Json& node : data["nodes"]) {
      if (node["name"] != decision.node) continue;
      found = true;
      const Node& placed = *step_->placed_graph().Find(decision.node);
      EXPECT_EQ(node["op"], placed.op().name());
      EXPECT_EQ(node["reason"], decision.reason);
      EXPECT_FALSE(decision.reason.empty()) << decision.node;
      EXPECT_EQ(node["device"], placed.assigned_device().ToString());
      EXPECT_EQ(node["inputs"].size(), placed.inputs().size() + placed.control_inputs().size());
    }
    EXPECT_TRUE(found) << decision.node;
  }
}

TEST_F(PlacementViewTest, HasDevicesAndWhatCrossesBetweenThem) {
  const Json data = DataOf(page_);
  ASSERT_EQ(data["devices"].size(), 2u);
  size_t nodes = 0;
  for (const Json& device : data["devices"]) nodes += device["nodes"].get<size_t>();
  EXPECT_EQ(nodes, data["nodes"].size());
  ASSERT_EQ(data["links"].size(), report_.links.size());
  ASSERT_FALSE(report_.links.empty());
  for (size_t i = 0; i < report_.links.size(); ++i) {
    const Json& link = data["links"][i];
    EXPECT_EQ(link["source"], report_.links[i].source);
    EXPECT_EQ(link["predicted"], report_.links[i].predicted_bytes);
    EXPECT_EQ(link["carried"].size(), report_.links[i].carried.size());
  }
}

TEST_F(PlacementViewTest, InputsComeBeforeTheirUsers) {
  const Json data = DataOf(page_);
  for (size_t i = 0; i < data["nodes"].size(); ++i) {
    for (const Json& input : data["nodes"][i]["inputs"]) {
      EXPECT_GE(input["node"].get<int>(), 0);
      EXPECT_LT(input["node"].get<int>(), static_cast<int>(i));
    }
  }
}

// It is opened from a disk, perhaps without a network.
TEST_F(PlacementViewTest, NeedsNoOtherFile) {
  // The name of a namespace, which no browser loads.
  const int namespaces = CountOf(page_, "http://www.w3.org/2000/svg");
  EXPECT_EQ(CountOf(page_, "http://"), namespaces);
  for (const char* part :
       {"https://", "//cdn", " src=", "<link", "@import", "url(", "fetch(", "XMLHttpRequest"}) {
    EXPECT_THAT(page_, Not(HasSubstr(part)));
  }
  EXPECT_EQ(page_.rfind("<!DOCTYPE html>\n", 0), 0u);
  EXPECT_THAT(page_, HasSubstr("</html>\n"));
}

TEST_F(PlacementViewTest, IsTheSameForTheSamePlacement) {
  EXPECT_EQ(PlacementView(step_->placed_graph(), report_, "A step"), page_);
}

TEST_F(PlacementViewTest, AnEmptyReportLeavesReasonsOut) {
  const Json data = DataOf(PlacementView(step_->placed_graph(), PlacementReport(), "A step"));
  EXPECT_EQ(data["nodes"].size(), static_cast<size_t>(step_->placed_graph().num_nodes()));
  for (const Json& node : data["nodes"]) EXPECT_EQ(node["reason"], "");
  EXPECT_TRUE(data["links"].empty());
}

TEST_F(PlacementViewTest, AGraphThatIsNotPlacedShowsWhatItAsksFor) {
  const Json data = DataOf(PlacementView(p_.b.graph(), PlacementReport(), "As written"));
  int asking = 0;
  for (const Json& node : data["nodes"]) asking += node["device"] == "/device:CPU:1";
  EXPECT_GT(asking, 0);
  EXPECT_EQ(DataOf(PlacementView(Graph(p_.runtime->ops()), {}, "Empty"))["nodes"].size(), 0u);
}

// What comes from outside must not become part of the page.
TEST(PlacementViewEscapesTest, TextsCannotEndTheScriptOrTheTitle) {
  constexpr char kEvil[] = "</script><script>alert('&')</script>\xff";
  Program p;
  p.b.AddOne("VarHandleOp", {},
             {{"dtype", DType::kFloat}, {"shape", PartialShape{2}}, {"shared_name", kEvil}}, {},
             "handle");
  ASSERT_EQ(p.b.status(), Status());
  PlacementReport report;
  report.policy = kEvil;
  PlacementDecision decision;
  decision.node = "handle";
  decision.reason = kEvil;
  decision.alternatives = {kEvil};
  report.decisions = {decision};
  PlacementReport::Link link;
  link.source = link.destination = kEvil;
  link.carried = {{0, kEvil, "float", "[2]", 8}};
  report.links = {link};
  const std::string page = PlacementView(p.b.graph(), report, kEvil);
  for (const char* part : {"<script", "</script", "</title", "</style"}) {
    EXPECT_EQ(CountOf(page, part), 1) << part;
  }
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;script&gt;alert('&amp;')&lt;/script&gt;"));
  const Json data = DataOf(page);
  EXPECT_THAT(data["nodes"][0]["reason"].get<std::string>(), HasSubstr("</script><script>alert"));
  EXPECT_THAT(data["links"][0]["carried"][0]["name"].get<std::string>(), HasSubstr("</script>"));
}

}  // namespace
}  // namespace millrace::testing
