// Does progress say enough, and not too often?
#include "sim/core/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

namespace netsim::progress_test {
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
  run(progress, 70);
  progress.finish();
  const std::string text = output();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << "after 2, 32 and 62 s: " << text;
  EXPECT_EQ(text.find_first_of("\r\x1b"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("  2.0 %  simulated 2.0"));
  EXPECT_THAT(text, HasSubstr("5.00 M events/s"));
  EXPECT_THAT(text, HasSubstr("left 1 min 38 s"));
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

// The columns that each drawing takes, and what it says.
std::vector<std::string> drawings(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = text.find('\r'); begin != std::string::npos; begin = text.find('\r', begin + 1))
    lines.push_back(text.substr(begin + 1, text.find("\x1b[K", begin) - begin - 1));
  return lines;
}

TEST_F(ProgressTest, ATerminalsLineNeverWraps) {
  std::size_t width = 120;
  Progress progress(Progress::Style::terminal, file_, clock(), [&width] { return width; });
  for (; width > 1; width -= width > 40 ? 20 : 3) run(progress, 1);
  progress.finish();
  const std::vector<std::string> lines = drawings(output());
  const auto first = [&](const char* what) {
    return std::count_if(lines.begin(), lines.end(),
                         [&](const std::string& line) { return line.find(what) != std::string::npos; });
  };
  EXPECT_GT(lines.size(), 40u);
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    EXPECT_LT(lines[i].size(), i < 5 ? 120u : i < 15 ? 100u : 60u) << lines[i];
  }
  EXPECT_GT(first("events/s"), 0);
  EXPECT_GT(first(" %"), first("left")) << "the percentage stays longest";
  EXPECT_GT(first("left"), first("events/s"));
}

TEST_F(ProgressTest, WhatIsLeftFollowsTheSpeedAndNotTheFirstMoment) {
  Progress progress(Progress::Style::terminal, file_, clock(), [] { return std::size_t{200}; });
  // 0.3 s in which next to nothing is done, then the whole in 2.7 s.
  for (double passed = 0; passed < 3; passed += 0.005, time_ += 0.005) {
    const double fraction = passed < 0.3 ? passed * 0.01 : 0.003 + (passed - 0.3) / 2.7 * 0.997;
    progress.update(fraction, 1, 1);
  }
  const std::vector<std::string> lines = drawings(output());
  std::size_t promises = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t left = lines[i].find("left ");
    if (left == std::string::npos) continue;
    ++promises;
    const double seconds = std::stod(lines[i].substr(left + 5)), truth = 3 - 0.2 * static_cast<double>(i + 1);
    EXPECT_LE(seconds, 1.6 * truth + 0.6) << lines[i];
    EXPECT_GE(seconds, 0.6 * truth - 0.6) << lines[i];
  }
  EXPECT_GE(promises, 8u);
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
    time_ += 40;
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
  const auto begin = std::chrono::steady_clock::now();
  const Progress progress(Progress::Style::quiet);
  const double elapsed = progress.elapsed();
  EXPECT_GE(elapsed, 0);
  EXPECT_LE(elapsed, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

}  // namespace
}  // namespace netsim::progress_test
