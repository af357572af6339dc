// Do the drawings of a schedule show every message where and when it is sent, and fit?
#include "sim/report/schedule_drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "sim/core/text.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/table_plan.h"
#include "tests/report/picture_check.h"

namespace netsim::schedule_drawing_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

PlanSchedule schedule(const std::string& algorithm, CollectiveKind kind, std::uint32_t ranks) {
  return schedule_of(*test::make_plan(algorithm, kind, ranks));
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(ScheduleTable, HasTimeDownAndRanksAcross) {
  EXPECT_EQ(render_schedule(schedule("ring", CollectiveKind::all_reduce, 3), 80),
            "all_reduce 'ring' of 3 ranks: 3 chunks, in place, 12 messages at 4 times\n"
            "\n"
            "  time  rank 0  rank 1  rank 2\n"
            "     0  0+>1    1+>2    2+>0\n"
            "     1  2+>1    0+>2    1+>0\n"
            "     2  1>1     2>2     0>0\n"
            "     3  0>1     1>2     2>0\n"
            "\n"
            "  3>1      chunk 3 goes to rank 1\n"
            "  3+>1     and is added to what is there\n");
}

TEST(ScheduleTable, NamesBuffersCopiesAndSeveralChunks) {
  const std::string pairwise = render_schedule(schedule("pairwise", CollectiveKind::all_to_all, 3), 80);
  EXPECT_THAT(pairwise, HasSubstr("     0  o0=i0    o1=i1    o2=i2\n"
                                  "        i1>1:o0  i2>2:o1  i0>0:o2\n"));
  EXPECT_THAT(pairwise, HasSubstr("i, o, s"));
  EXPECT_THAT(render_schedule(schedule("halving_doubling", CollectiveKind::all_reduce, 8), 80),
              HasSubstr("     0  4-7+>4  4-7+>5"));
  TablePlan lost(CollectiveKind::custom, 2, 1, 1);
  lost.list(0, 0) = {send(input(0), {1, 0})};
  EXPECT_THAT(render_schedule(schedule_of(lost), 80), HasSubstr("     0  0>1?\n"));
}

TEST(ScheduleTable, FitsTheWidthAndShowsEachMessageOnce) {
  for (const test::AlgorithmCase& c : test::algorithm_cases()) {
    for (const std::uint32_t ranks : {2U, 5U, 8U, 16U}) {
      if (!c.suits(ranks)) continue;
      const PlanSchedule of = schedule(c.algorithm, c.kind, ranks);
      for (const std::size_t width : {80U, 200U}) {
        const std::string text = render_schedule(of, width);
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);)
          EXPECT_LE(columns(line), width) << c.algorithm << " " << ranks;
        if (text.find(" more") != std::string::npos || text.find("...") != std::string::npos) continue;
        const std::string table =
            text.substr(text.find("time  "), text.find("  goes to") - text.find("time  "));
        const std::size_t legend =
            1 + count(text, "is put to") + count(text, "is added") + count(text, "not received");
        EXPECT_EQ(count(text, ">"), of.messages.size() + legend) << c.algorithm << " " << ranks << "\n"
                                                                 << table;
      }
    }
  }
}

TEST(ScheduleTable, LeavesOutWhatIsTooMuch) {
  const std::string text = render_schedule(schedule("ring", CollectiveKind::all_reduce, 128), 80);
  EXPECT_LE(count(text, "\n"), 70U);
  EXPECT_THAT(text, HasSubstr("rank 0  "));
  EXPECT_THAT(text, HasSubstr("...  rank 127\n"));
  EXPECT_THAT(text, HasSubstr("\n   ...\n"));
  EXPECT_THAT(text, HasSubstr("\n   253  "));
  EXPECT_THAT(text, HasSubstr("122 ranks left out here"));
  // All that a rank sends at once.
  const std::string many =
      render_schedule(schedule("{kind: multi_ring, rings: 12}", CollectiveKind::all_gather, 13), 80);
  EXPECT_THAT(many, HasSubstr("+4 more"));
  const std::string wide =
      render_schedule(schedule("{kind: multi_ring, rings: 16}", CollectiveKind::all_gather, 17), 80);
  EXPECT_THAT(wide, HasSubstr("+8 more"));
  std::istringstream lines(many + wide);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(SchedulePicture, HasAnArrowForEachMessage) {
  const std::string svg = draw_schedule(schedule("ring", CollectiveKind::all_reduce, 4));
  for (const char* name : {">rank 0</text>", ">rank 3</text>"}) EXPECT_EQ(count(svg, name), 1U) << name;
  EXPECT_EQ(count(svg, "fill=\"#"), 4U + 12 + 24 + 1) << "boxes, triangles, labels, a sample";
  EXPECT_EQ(count(svg, " a3.5 3.5 0 1 0 7 0"), 12U + 1) << "half of the messages are added; a sample";
  EXPECT_THAT(svg, HasSubstr("time 0, rank 3, thread block 0, step 0: 3+&gt;0"));
  EXPECT_THAT(svg, Not(HasSubstr("left out")));
}

// No label is on another one or crossed by a line, whatever the algorithm. Most messages have one.
TEST(SchedulePicture, KeepsLabelsApart) {
  std::uint64_t messages = 0, left_out = 0;
  for (const test::AlgorithmCase& c : test::algorithm_cases()) {
    for (const std::uint32_t ranks : {2U, 5U, 8U, 16U}) {
      if (!c.suits(ranks)) continue;
      const PlanSchedule of = schedule(c.algorithm, c.kind, ranks);
      const std::string svg = draw_schedule(of);
      EXPECT_EQ(test::faults_of(svg), "") << c.algorithm << " " << ranks;
      EXPECT_THAT(svg, HasSubstr("time is in steps"));
      if (ranks > 8) continue;
      messages += of.messages.size();
      const std::string without = "without room are left out: ";
      const std::size_t at = svg.find(without);
      if (at != std::string::npos) left_out += std::stoul(svg.substr(at + without.size()));
    }
  }
  EXPECT_GT(messages, 1000U);
  EXPECT_LT(left_out, messages / 4);
}

TEST(SchedulePicture, IsOfTheFirst64RanksAndTimes) {
  const std::string svg = draw_schedule(schedule("pairwise", CollectiveKind::all_to_all, 70));
  EXPECT_THAT(svg, HasSubstr("of ranks or times beyond 64 are left out"));
  EXPECT_THAT(svg, HasSubstr(">63</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">rank 64</title>")));
}

}  // namespace
}  // namespace netsim::schedule_drawing_test
