#include "core/io/event_file.h"

#include <string>

#include "core/base/simulation.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

TEST(EventFileTest, HoldsVersionScalarsAndGraph) {
  Simulation world(1);
  FileSystem& files = *world.environment().files;
  auto writer = EventWriter::Create(files, *world.environment().clock, "run");
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->AddScalar("loss", 0.5, 3).ok());
  ASSERT_TRUE((*writer)->AddGraph("graph bytes").ok());
  ASSERT_TRUE((*writer)->AddRunMetadata("step 3", "metadata bytes", 3).ok());
  ASSERT_TRUE((*writer)->Flush().ok());
  StatusOr<std::vector<Event>> events = ReadEvents(files, (*writer)->path());
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 4u);
  EXPECT_EQ((*events)[0].file_version(), "brain.Event:2");
  EXPECT_EQ((*events)[1].step(), 3);
  EXPECT_EQ((*events)[1].summary().value(0).tag(), "loss");
  EXPECT_EQ((*events)[1].summary().value(0).simple_value(), 0.5F);
  EXPECT_EQ((*events)[2].graph_def(), "graph bytes");
  EXPECT_EQ((*events)[3].tagged_run_metadata().run_metadata(), "metadata bytes");
}

TEST(RecordsTest, EveryCutAndEveryChangedByteIsFound) {
  std::string file;
  AppendRecord("first", &file);
  AppendRecord("", &file);
  AppendRecord("third", &file);
  EXPECT_EQ(ParseRecords(file, "f").value(), (std::vector<std::string>{"first", "", "third"}));
  const size_t first = 8 + 4 + 5 + 4;
  for (size_t size = 1; size < file.size(); ++size) {
    if (size == first || size == first + 16) continue;  // between records
    EXPECT_EQ(ParseRecords(file.substr(0, size), "f").status().code(), absl::StatusCode::kDataLoss)
        << size;
  }
  for (size_t i = 0; i < file.size(); ++i) {
    std::string changed = file;
    changed[i] ^= 0x20;
    EXPECT_EQ(ParseRecords(changed, "f").status().code(), absl::StatusCode::kDataLoss) << i;
  }
}

}  // namespace
}  // namespace millrace
