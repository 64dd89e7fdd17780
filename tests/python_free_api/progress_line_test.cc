#include <string>

#include "gtest/gtest.h"
#include "python_free_api/trainer.h"

namespace millrace {
namespace {

class FakeClock final : public Clock {
 public:
  int64_t NowNanos() const override { return now; }
  int64_t WallMicros() const override { return 0; }
  int64_t now = 0;
};

constexpr int64_t kMillisecond = 1'000'000;

// What a line prints for steps of 60 milliseconds each.
std::string Printed(bool terminal, int steps, bool ends = false) {
  FakeClock clock;
  ProgressLine line(clock, terminal);
  ::testing::internal::CaptureStdout();
  for (int step = 1; step <= steps; ++step, clock.now += 60 * kMillisecond) {
    Progress progress;
    progress.step = step;
    progress.steps = steps;
    progress.examples_per_second = 1234.5;
    progress.loss = 1.0 / step;
    progress.seconds_left = 60;
    line.Show(progress);
  }
  if (ends) line.Print("epoch 1: done");
  return ::testing::internal::GetCapturedStdout();
}

TEST(ProgressLineTest, ATerminalsLineIsRewrittenAtMostTenTimesASecond) {
  EXPECT_EQ(Printed(true, 4),
            "\r\033[Kstep 1/4  1234 examples/s  loss 1.0000  60 s left"
            "\r\033[Kstep 3/4  1234 examples/s  loss 0.3333  60 s left"
            "\r\033[Kstep 4/4  1234 examples/s  loss 0.2500  60 s left");
}

TEST(ProgressLineTest, ElsewhereThereIsALineEveryFiveSecondsAndOneAtTheEnd) {
  EXPECT_EQ(Printed(false, 100),
            "step 1/100  1234 examples/s  loss 1.0000  60 s left\n"
            "step 85/100  1234 examples/s  loss 0.0118  60 s left\n"
            "step 100/100  1234 examples/s  loss 0.0100  60 s left\n");
}

TEST(ProgressLineTest, WhatIsPrintedHasALineOfItsOwn) {
  EXPECT_EQ(Printed(true, 1, true),
            "\r\033[Kstep 1/1  1234 examples/s  loss 1.0000  60 s left\r\033[Kepoch 1: done\n");
  EXPECT_EQ(Printed(false, 1, true),
            "step 1/1  1234 examples/s  loss 1.0000  60 s left\nepoch 1: done\n");
}

}  // namespace
}  // namespace millrace
