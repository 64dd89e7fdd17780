#include "python_free_api/flags.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

// A program with a flag of each kind, and up to two files.
class FlagsTest : public ::testing::Test {
 protected:
  FlagsTest() : flags_("trainer", "Trains a model.") {
    flags_.Add("out", &out_, "the run's folder");
    flags_.Add("epochs", &epochs_, "times that the data are seen");
    flags_.Add("rate", &rate_, "the learning rate");
    flags_.Add("resume", &resume_, "go on from the newest checkpoint");
    flags_.Add("print_losses", &print_losses_, "print each step's loss");
    flags_.AllowPositional(0, 2, "[FILE [FILE]]");
  }
  // `line` is split at blanks.
  Status Parse(absl::string_view line) {
    return flags_.Parse(absl::StrSplit(line, ' ', absl::SkipEmpty()));
  }

  Flags flags_;
  std::string out_ = "runs";
  int64_t epochs_ = 3;
  double rate_ = 0.002;
  bool resume_ = false;
  bool print_losses_ = true;
};

TEST_F(FlagsTest, DefaultsStayWithoutFlags) {
  ASSERT_EQ(Parse(""), Status());
  EXPECT_EQ(out_, "runs");
  EXPECT_EQ(epochs_, 3);
  EXPECT_TRUE(flags_.positional().empty());
  EXPECT_FALSE(flags_.help_wanted());
}

TEST_F(FlagsTest, ValuesFollowAfterABlankOrAnEqualsSign) {
  ASSERT_EQ(Parse("--out a=b --epochs=-7 --rate 1e-3 --resume --print-losses=false"), Status());
  EXPECT_EQ(out_, "a=b");
  EXPECT_EQ(epochs_, -7);
  EXPECT_EQ(rate_, 1e-3);
  EXPECT_TRUE(resume_);
  EXPECT_FALSE(print_losses_);
  ASSERT_EQ(Parse("--out= --epochs -8"), Status());
  EXPECT_EQ(out_, "");
  EXPECT_EQ(epochs_, -8);
}

TEST_F(FlagsTest, ASwitchTakesNoValueFromTheNextArgument) {
  ASSERT_EQ(Parse("--resume false"), Status());
  EXPECT_TRUE(resume_);
  EXPECT_THAT(flags_.positional(), ElementsAre("false"));
}

TEST_F(FlagsTest, ArgumentsThatAreNoFlags) {
  ASSERT_EQ(Parse("a --epochs 1 -"), Status());
  EXPECT_THAT(flags_.positional(), ElementsAre("a", "-"));
  ASSERT_EQ(Parse("--epochs 2 -- --rate -o"), Status()) << "after -- nothing is a flag";
  EXPECT_THAT(flags_.positional(), ElementsAre("--rate", "-o"));
}

TEST_F(FlagsTest, MistakesAreNamedAndChangeNothing) {
  const struct {
    const char* line;
    const char* message;
  } cases[] = {
      {"--epoch 3", "unknown flag --epoch; did you mean --epochs? (trainer --help lists them)"},
      {"--rats=3", "unknown flag --rats; did you mean --rate? (trainer --help lists them)"},
      {"-o x",
       "unknown flag -o: flags begin with two dashes; did you mean --out? (trainer --help lists "
       "them)"},
      {"-rate=3",
       "unknown flag -rate=3: flags begin with two dashes; did you mean --rate? (trainer --help "
       "lists them)"},
      {"--epochs", "--epochs needs a value"},
      {"--out --resume",
       "--out needs a value, but '--resume' follows; if that is it, write --out=--resume"},
      {"--epochs=", "--epochs cannot be '': it takes a whole number of 64 bits"},
      {"--epochs 3x", "--epochs cannot be '3x': it takes a whole number of 64 bits"},
      {"--epochs 3.5", "--epochs cannot be '3.5': it takes a whole number of 64 bits"},
      {"--epochs 9223372036854775808",
       "--epochs cannot be '9223372036854775808': it takes a whole number of 64 bits"},
      {"--rate fast", "--rate cannot be 'fast': it takes a finite number"},
      {"--rate=1e999", "--rate cannot be '1e999': it takes a finite number"},
      {"--rate=nan", "--rate cannot be 'nan': it takes a finite number"},
      {"--resume=maybe", "--resume cannot be 'maybe': it takes true or false"},
      {"--epochs 4 --epochs=4", "--epochs is given twice"},
      {"--print_losses=true --print-losses=true", "--print_losses is given twice"},
      {"a b c", "trainer takes [FILE [FILE]], but got 3: 'a' 'b' 'c'"},
  };
  for (const auto& c : cases) {
    epochs_ = 3;
    const Status status = Parse(c.line);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.line;
    EXPECT_EQ(status.message(), c.message) << c.line;
    EXPECT_EQ(rate_, 0.002) << c.line;
    EXPECT_FALSE(resume_) << c.line;
    EXPECT_TRUE(epochs_ == 3 || epochs_ == 4) << c.line;
  }
}

TEST_F(FlagsTest, WithoutPositionalArgumentsNoneIsTaken) {
  Flags plain("server", "Serves.");
  EXPECT_EQ(plain.Parse({"x"}).message(),
            "server takes no arguments besides flags, but got 1: 'x'");
  EXPECT_EQ(plain.Parse({"--x"}).message(), "unknown flag --x (server --help lists them)");
}

TEST_F(FlagsTest, AFlagThatIsDefinedTwiceIsAMistakeOfTheProgram) {
  flags_.Add("rate", &rate_, "again");
  EXPECT_EQ(Parse("").code(), absl::StatusCode::kInternal);
}

TEST_F(FlagsTest, HelpEndsTheReading) {
  for (const char* line : {"--help --nonsense", "--resume -h a b c d"}) {
    Flags flags("trainer", "Trains a model.");
    flags.Add("resume", &resume_, "go on");
    EXPECT_EQ(flags.Parse(absl::StrSplit(line, ' ')), Status()) << line;
    EXPECT_TRUE(flags.help_wanted()) << line;
  }
}

TEST_F(FlagsTest, HelpListsFlagsWithTheirDefaults) {
  EXPECT_EQ(flags_.Help(),
            "Trains a model.\n\n"
            "Usage: trainer [flags] [FILE [FILE]]\n"
            "  --out           the run's folder (default 'runs')\n"
            "  --epochs        times that the data are seen (default 3)\n"
            "  --rate          the learning rate (default 0.002)\n"
            "  --resume        go on from the newest checkpoint\n"
            "  --print_losses  print each step's loss (default true)\n");
}

TEST(ArgumentsTest, LeaveOutTheProgram) {
  const char* arguments[] = {"program", "--x", "y"};
  EXPECT_THAT(Arguments(3, const_cast<char**>(arguments)), ElementsAre("--x", "y"));
  EXPECT_TRUE(Arguments(1, const_cast<char**>(arguments)).empty());
  EXPECT_TRUE(Arguments(0, nullptr).empty());
}

}  // namespace
}  // namespace millrace
