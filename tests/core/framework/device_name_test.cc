#include <string>

#include "core/framework/device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

struct ParseCase {
  const char* text;
  const char* canonical;
};

TEST(DeviceNameTest, ReadsFullAndShortForms) {
  const ParseCase cases[] = {
      {"", ""},
      {"/", ""},
      {"/job:worker/replica:0/task:1/device:CPU:0", "/job:worker/task:1/device:CPU:0"},
      {"/job:ps", "/job:ps"},
      {"/job:*/task:*", ""},
      {"/replica:*/task:2", "/task:2"},
      {"/cpu:0", "/device:CPU:0"},
      {"/gpu:1", "/device:CUDA:1"},
      {"/GPU:*", "/device:CUDA:*"},
      {"CPU:0", "/device:CPU:0"},
      {"/device:cpu:3", "/device:CPU:3"},
      {"/device:GPU:*", "/device:CUDA:*"},
      {"/device:CUDA:0", "/device:CUDA:0"},
      {"/device:CPU", "/device:CPU:*"},
      {"/device:*:1", "/device:*:1"},
      {"/job:a-b_2.c/cpu:0", "/job:a-b_2.c/device:CPU:0"},
      {"/task:1/job:w", "/job:w/task:1"},
  };
  for (const ParseCase& c : cases) {
    const StatusOr<DeviceName> name = DeviceName::Parse(c.text);
    ASSERT_TRUE(name.ok()) << name.status();
    EXPECT_EQ(name->ToString(), c.canonical) << c.text;
    EXPECT_EQ(DeviceName::Parse(c.canonical).value(), *name) << c.text;
  }
}

TEST(DeviceNameTest, RefusesAndSaysWhere) {
  const ParseCase cases[] = {
      {"worker", "'worker'"},
      {"//cpu:0", "''"},
      {"/cpu:0/", "''"},
      {"/job:", "'job:'"},
      {"/job:a b", "'job:a b'"},
      {"/task:x", "'task:x'"},
      {"/task:-1", "'task:-1'"},
      {"/task:99999999999", "'task:99999999999'"},
      {"/task: 1", "'task: 1'"},
      {"/replica:1/cpu:0", "'replica:1'"},
      {"/job:a/job:b", "'job:b'"},
      {"/cpu:0/gpu:1", "'gpu:1'"},
      {"/device:CPU:0:1", "'device:CPU:0:1'"},
      {"/device:CPU:", "'device:CPU:'"},
      {"/cpu", "'cpu'"},
      {"/task:1 /cpu:0", "'task:1 '"},
      {"/task:+1", "'task:+1'"},
      {"/cpu:0\n", "'cpu:0\n'"},
  };
  for (const ParseCase& c : cases) {
    const Status status = DeviceName::Parse(c.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.canonical)) << c.text;
  }
}

DeviceName Name(const char* text) { return DeviceName::Parse(text).value(); }

TEST(DeviceNameTest, TaskStringAndFullness) {
  EXPECT_EQ(Name("/job:ps/task:0/cpu:1").TaskString(), "/job:ps/task:0");
  EXPECT_TRUE(Name("/job:ps/task:0/cpu:1").IsFull());
  EXPECT_FALSE(Name("/job:ps/task:0/device:CPU").IsFull());
}

TEST(DeviceNameTest, Matches) {
  const DeviceName full = Name("/job:w/task:1/cpu:0");
  for (const char* pattern : {"", "/job:w", "/task:1", "/cpu:0", "/device:CPU", "/job:w/task:1"}) {
    EXPECT_TRUE(full.Matches(Name(pattern))) << pattern;
  }
  for (const char* pattern : {"/job:x", "/task:0", "/gpu:0", "/cpu:1"}) {
    EXPECT_FALSE(full.Matches(Name(pattern))) << pattern;
  }
  EXPECT_FALSE(Name("/job:w").Matches(full));
}

struct MergeCase {
  const char* a;
  const char* b;
  const char* with_defaults;
  const char* combined;  // null: they contradict
};

TEST(DeviceNameTest, WithDefaultsAndCombine) {
  const MergeCase cases[] = {
      {"", "/job:w/task:1/cpu:0", "/job:w/task:1/device:CPU:0", "/job:w/task:1/device:CPU:0"},
      {"/task:2", "/job:w", "/job:w/task:2", "/job:w/task:2"},
      {"/task:2", "/job:w/task:1", "/job:w/task:2", nullptr},
      {"/device:CUDA", "/job:w/cpu:0", "/job:w/device:CUDA:*", nullptr},
      {"/device:CUDA", "/gpu:1", "/device:CUDA:1", "/device:CUDA:1"},
      {"/device:*:1", "/device:CPU", "/device:CPU:1", "/device:CPU:1"},
      {"/cpu:0", "/cpu:1", "/device:CPU:0", nullptr},
  };
  for (const MergeCase& c : cases) {
    EXPECT_EQ(Name(c.a).WithDefaults(Name(c.b)).ToString(), c.with_defaults);
    const StatusOr<DeviceName> combined = Name(c.a).Combine(Name(c.b));
    ASSERT_EQ(combined.ok(), c.combined != nullptr) << c.a << " " << c.b;
    if (combined.ok()) {
      EXPECT_EQ(combined->ToString(), c.combined);
    } else {
      EXPECT_THAT(std::string(combined.status().message()), HasSubstr(Name(c.a).ToString()));
      EXPECT_THAT(std::string(combined.status().message()), HasSubstr(Name(c.b).ToString()));
    }
  }
}

}  // namespace
}  // namespace millrace
