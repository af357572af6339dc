// Does progress say enough, and not too often?
#include "sim/core/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace netsim {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// A progress whose clock the test moves and whose output it reads.
class ProgressTest : public ::testing::Test {
 protected:
  ProgressTest() : file_(std::tmpfile()) {}
  ~ProgressTest() override { std::fclose(file_); }
  Progress::Clock clock() {
    return [this] { return time_; };
  }
  // Runs for `seconds` of wall time, calling every 5 ms; done after 100 s.
  void run(Progress& progress, double seconds) {
    for (const double end = time_ + seconds; time_ < end; time_ += 0.005) {
      progress.update((time_ - 50) / 100, static_cast<Time>((time_ - 50) * 1e9),
                      static_cast<std::uint64_t>((time_ - 50) * 5e6));
    }
  }
  std::string output() {
    std::string text(static_cast<std::size_t>(std::ftell(file_)), '\0');
    std::rewind(file_);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file_), text.size());
    return text;
  }

  std::FILE* file_;
  double time_ = 50;
};

TEST_F(ProgressTest, PlainLinesAreRare) {
  Progress progress(Progress::Style::plain, file_, clock());
  run(progress, 30);
  progress.finish();
  const std::string text = output();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << "after 2, 12 and 22 s: " << text;
  EXPECT_EQ(text.find_first_of("\r\x1b"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("  2.0 %  simulated 2.0"));
  EXPECT_THAT(text, HasSubstr("5.00 M events/s"));
  EXPECT_THAT(text, HasSubstr("left 1:28 min"));
}

TEST_F(ProgressTest, ATerminalsLineIsRedrawnAndCleared) {
  Progress progress(Progress::Style::terminal, file_, clock());
  run(progress, 10);
  progress.finish();
  const std::string text = output();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0);
  const auto draws = std::count(text.begin(), text.end(), '\r');
  EXPECT_LE(draws, 51) << "5 a second, and the clearing";
  EXPECT_GE(draws, 45);
  EXPECT_THAT(text, EndsWith("\r\x1b[K"));
}

TEST_F(ProgressTest, AShortRunOrAQuietOnePrintsNothing) {
  {
    Progress progress(Progress::Style::plain, file_, clock());
    run(progress, 1.9);
    Progress quiet(Progress::Style::quiet, file_, clock());
    run(quiet, 60);
  }
  EXPECT_EQ(output(), "");
}

TEST_F(ProgressTest, OddValuesDoNoHarm) {
  Progress progress(Progress::Style::plain, file_, clock());
  for (const double fraction : {std::nan(""), -1.0, 0.0, 2.0, 0.5, HUGE_VAL}) {
    time_ += 20;
    progress.update(fraction, kNever, 1);
  }
  const std::string text = output();
  EXPECT_EQ(text.find("nan"), std::string::npos) << text;
  EXPECT_EQ(text.find("inf"), std::string::npos) << text;
  EXPECT_THAT(text, HasSubstr("100.0 %"));
}

TEST_F(ProgressTest, StyleFollowsTheFile) {
  EXPECT_EQ(Progress::style_for(file_, false), Progress::Style::plain);
  EXPECT_EQ(Progress::style_for(file_, true), Progress::Style::quiet);
}

TEST_F(ProgressTest, MeasuresWallTime) {
  const Progress progress(Progress::Style::quiet);
  EXPECT_GE(progress.elapsed(), 0);
  EXPECT_LT(progress.elapsed(), 60);
}

}  // namespace
}  // namespace netsim
