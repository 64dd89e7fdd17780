#include "core/runtime/step_stats.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "gtest/gtest.h"
#include "tests/core/runtime/test_program.h"

namespace millrace::testing {
namespace {

using Json = nlohmann::json;

constexpr char kA[] = "/job:a/task:0/device:CPU:0";
constexpr char kB[] = "/job:b/task:0/device:CPU:0";

KernelEvent Event(const char* device, const char* op, int64_t start, int64_t end,
                  int64_t channel = -1) {
  KernelEvent event;
  event.device = device;
  event.node = StrCat(op, "_", start);
  event.op = op;
  event.ready_micros = start - 1;
  event.start_micros = start;
  event.end_micros = end;
  event.channel = channel;
  return event;
}

TEST(StepStatsCollectorTest, RelatesTheMonotonicClockToTheWall) {
  const Graph graph = GraphOrFail(
      "s = Draw()\nr = _Recv() {channel=7, tensor_name=\"\", send_device=\"\", recv_device=\"\", "
      "tensor_type=float, shape=[]}\n");
  StepStatsCollector collector(/*epoch_micros=*/1'000'000, /*nanos=*/500'000);
  collector.OnKernel(Name(kA), *graph.Find("r"), 501'000, 502'000, 504'000, 4);
  collector.OnKernel(Name(kA), *graph.Find("s"), 501'000, 502'000, 504'000, 4);
  const std::vector<KernelEvent> events = collector.Take();
  ASSERT_EQ(events.size(), 2);
  EXPECT_EQ(events[0].node, "r");
  EXPECT_EQ(events[0].op, "_Recv");
  EXPECT_EQ(events[0].device, kA);
  EXPECT_EQ(events[0].ready_micros, 1'000'001);
  EXPECT_EQ(events[0].start_micros, 1'000'002);
  EXPECT_EQ(events[0].end_micros, 1'000'004);
  EXPECT_EQ(events[0].output_bytes, 4);
  EXPECT_EQ(events[0].channel, 7);
  EXPECT_EQ(events[1].channel, -1);
  EXPECT_TRUE(collector.Take().empty());
}

TEST(ChromeTraceTest, EventsOfALaneNeverOverlap) {
  const std::string text = ChromeTrace({{
      Event(kA, "Add", 100, 200),
      Event(kA, "Mul", 150, 180),
      Event(kA, "Neg", 150, 400),
      Event(kA, "Sub", 200, 250),
      Event(kB, "Add", 120, 130),
      Event(kB, "Add", 130, 130),
  }});
  const Json json = Json::parse(text);
  std::map<std::pair<int, int>, int64_t> ends;
  std::map<std::string, int> names;
  std::set<int> sort_indices;  // devices one after the other, each with its lanes in order
  int events = 0;
  for (const Json& event : json["traceEvents"]) {
    if (event["name"] == "thread_sort_index") {
      EXPECT_TRUE(sort_indices.insert(event["args"]["sort_index"].get<int>()).second);
      continue;
    }
    if (event["ph"] == "M") names[event["args"]["name"]]++;
    if (event["ph"] != "X") continue;
    ++events;
    int64_t& end = ends[{event["pid"], event["tid"]}];
    EXPECT_LE(end, event["ts"].get<int64_t>()) << event;
    end = event["ts"].get<int64_t>() + event["dur"].get<int64_t>();
  }
  EXPECT_EQ(events, 6);
  EXPECT_EQ(ends.size(), 4);
  EXPECT_EQ(sort_indices, (std::set<int>{0, 1, 2, 10'000}));
  EXPECT_EQ(names, (std::map<std::string, int>{{"/job:a/task:0", 1},
                                               {"/job:b/task:0", 1},
                                               {"CPU:0", 2},
                                               {"CPU:0 (2)", 1},
                                               {"CPU:0 (3)", 1}}));
}

TEST(ChromeTraceTest, ArrowsGoFromSendToRecv) {
  const Json json = Json::parse(ChromeTrace({{
      Event(kB, "_Recv", 90, 130, 5), Event(kA, "_Send", 100, 101, 5),
      Event(kA, "_Send", 110, 111, 6),  // whose other end is not in the trace
  }}));
  std::vector<Json> flows;
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] == "s" || event["ph"] == "f") flows.push_back(event);
  }
  ASSERT_EQ(flows.size(), 2);
  EXPECT_EQ(flows[0]["ph"], "s");
  EXPECT_EQ(flows[0]["id"], 5);
  EXPECT_EQ(flows[0]["pid"], 0);
  EXPECT_EQ(flows[0]["ts"], 10);
  EXPECT_EQ(flows[1]["ph"], "f");
  EXPECT_EQ(flows[1]["pid"], 1);
  EXPECT_EQ(flows[1]["ts"], 39);
}

TEST(ChromeTraceTest, NoEventsAndOddNamesAreFine) {
  EXPECT_TRUE(Json::parse(ChromeTrace({}))["traceEvents"].empty());
  const std::string text = ChromeTrace({{Event("not a \xff device \"", "Add", 1, 2)}});
  EXPECT_FALSE(Json::parse(text, nullptr, false).is_discarded());
}

}  // namespace
}  // namespace millrace::testing
