#include "distributed/cluster_spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kList[] = "ps=p0:1;worker=w0:1,w1:2";

TEST(ClusterSpecTest, ReadsAllForms) {
  const char* forms[] = {
      kList,
      " worker = w0:1 , w1:2 ;\n ps = p0:1; ",
      R"(job { name: "worker" tasks { key: 1 value: "w1:2" } tasks { key: 0 value: "w0:1" } }
         job { name: "ps" tasks { key: 0 value: "p0:1" } })",
      R"({"cluster": {"worker": ["w0:1", "w1:2"], "ps": ["p0:1"]},
          "task": {"type": "worker", "index": 1}})",
      R"({"worker": {"0": "w0:1", "1": "w1:2"}, "ps": ["p0:1"]})",
  };
  for (const char* text : forms) {
    const StatusOr<ClusterSpec> spec = ClusterSpec::Parse(text);
    ASSERT_TRUE(spec.ok()) << spec.status() << "\n" << text;
    EXPECT_EQ(spec->ToString(), kList) << text;
  }
}

TEST(ClusterSpecTest, ListsTasksByJobAndNumber) {
  const StatusOr<ClusterSpec> spec = ClusterSpec::Parse(kList);
  ASSERT_TRUE(spec.ok());
  EXPECT_THAT(spec->Tasks(),
              ElementsAre(Pair("/job:ps/task:0", "p0:1"), Pair("/job:worker/task:0", "w0:1"),
                          Pair("/job:worker/task:1", "w1:2")));
  EXPECT_EQ(spec->num_tasks(), 3);
  EXPECT_EQ(spec->Address("worker", 1).value(), "w1:2");
}

TEST(ClusterSpecTest, SaysWhatThereIsInstead) {
  const StatusOr<ClusterSpec> spec = ClusterSpec::Parse(kList);
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->Address("chief", 0).status().message(),
            "the cluster has no job 'chief'; it has ps, worker");
  EXPECT_EQ(spec->Address("worker", 2).status().message(),
            "job 'worker' has no task 2; it has tasks 0 to 1");
  EXPECT_EQ(spec->Address("worker", -1).status().code(), absl::StatusCode::kNotFound);
}

TEST(ClusterSpecTest, TakesAnyHost) {
  EXPECT_TRUE(ClusterSpec::Parse("worker=[::1]:80,10.0.0.1:80,node-7.example.com:65535").ok());
}

TEST(ClusterSpecTest, NamesWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "names no job"},
      {" ; ", "names no job"},
      {"worker", "'worker' is not of the form job=host:port"},
      {"=a:1", "a job has no name"},
      {"9=a:1", "job '9': a job's name starts with a letter"},
      {"a b=a:1", "job 'a b'"},
      {"worker=", "/job:worker/task:0 has no address"},
      {"worker=a:1,,b:1", "/job:worker/task:1 has no address"},
      {"worker=a", "/job:worker/task:0: address 'a' is not of the form host:port"},
      {"worker=a:0", "a port from 1 to 65535"},
      {"worker=a:65536", "a port from 1 to 65535"},
      {"worker=:80", "is not of the form host:port"},
      {"worker=a: 80", "is not of the form host:port"},
      {"worker=a:+80", "is not of the form host:port"},
      {"worker=a:080", "is not of the form host:port"},
      {"worker=::1:80", "goes in brackets"},
      {"worker=a b:80", "a character that no host has"},
      {"worker=[]:80", "a character that no host has"},
      {"worker=[a[]:80", "a character that no host has"},
      {"{\"w\": [\"a}:1\"]}", "a character that no host has"},
      {"worker=a:1;worker=b:1", "job 'worker' is there twice"},
      {"worker=a:1,a:1", "address a:1 belongs to /job:worker/task:0 and to /job:worker/task:1"},
      {"ps=a:1;worker=a:1", "address a:1 belongs to /job:ps/task:0 and to /job:worker/task:0"},
      {"job { name: 3 }", "line 1, column 13"},
      {"job { name: 'w' tasks { key: 1 value: 'a:1' } }", "job 'w' has a task 1 but no task 0"},
      {"job { name: 'w' }", "job 'w' has no tasks"},
      {"{", "is no JSON object"},
      {"{\"cluster\": []}", "'cluster' is no JSON object"},
      {"{\"cluster\": {\"w\": [1]}}",
       "/job:w/task:0: the address is no string, but of type number"},
      {"{\"w\": 1}", "job 'w' is neither a list of addresses nor an object"},
      {"{\"w\": {\"x\": \"a:1\"}}", "job 'w': 'x' is not a task number"},
      {"{\"w\": {\"0\": \"a:1\", \"00\": \"b:1\"}}", "job 'w': '00' is not a task number"},
      {"{\"w\": [\"a:1\"], \"w\": [\"b:1\"]}", "'w' is there twice"},
      {"{\"cluster\": {\"w\": [\"a:1\"], \"w\": [\"b:1\"]}}", "'w' is there twice"},
      {"{\"cluster\": {}}", "names no job"},
  };
  for (const auto& [text, message] : cases) {
    const StatusOr<ClusterSpec> spec = ClusterSpec::Parse(text);
    EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(spec.status().message()), HasSubstr(message)) << text;
  }
}

// To write such a value into a message takes a function that calls itself for each level.
TEST(ClusterSpecTest, DeepValuesAreRefused) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const Status status = ClusterSpec::Parse("{\"w\": [" + deep + "]}").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("no string, but of type array"));
}

TEST(ClusterSpecTest, AddJobLeavesTheSpecAsItWasOnError) {
  ClusterSpec spec;
  EXPECT_TRUE(spec.AddJob("ps", {"a:1"}).ok());
  EXPECT_FALSE(spec.AddJob("worker", {"b:1", "a:1"}).ok());
  EXPECT_FALSE(spec.AddJob("worker", {}).ok());
  EXPECT_EQ(spec.ToString(), "ps=a:1");
}

}  // namespace
}  // namespace millrace
