// Tests that schedules in GOAL give the tasks and dependencies that they state, as text and as binary. Wrong
// ones are refused with their place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/workload/trace/goal_order.h"
#include "sim/workload/trace/goal_schedule.h"
#include "sim/workload/workload.h"
#include "tests/support/mutations.h"
#include "tests/support/shared.h"
#include "tests/support/tasks_of.h"
#include "tests/support/workload_files.h"

namespace netsim::goal_test {
namespace {

using test::tasks_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GoalFiles : public test::WorkloadFileTest {
 protected:
  GoalFiles() : WorkloadFileTest("schedule") {}
};

std::string bytes_of(std::uint64_t value, std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

// Writes the form of txt2bin.
std::string binary(const GoalSchedule& schedule) {
  std::string parts, table;
  const std::uint64_t base = 6 + 16 * schedule.ranks.size();
  for (const GoalRank& rank : schedule.ranks) {
    table += bytes_of(base + parts.size(), 8);
    std::string nodes, appendix;
    std::uint32_t edges = 0;
    const auto append = [&](const std::vector<GoalRank::Edge>& all, std::uint32_t op) {
      const auto count = static_cast<std::uint64_t>(
          std::count_if(all.begin(), all.end(), [&](const auto& edge) { return edge.second == op; }));
      nodes += bytes_of(count, 4) + bytes_of(edges, 4);
      for (const auto& [later, earlier] : all) {
        if (earlier == op) appendix += bytes_of(later, 4);
      }
      edges += static_cast<std::uint32_t>(count);
    };
    for (std::uint32_t i = 0; i < rank.ops.size(); ++i) {
      const GoalOp& op = rank.ops[i];
      nodes += bytes_of(0, 4) + bytes_of(static_cast<std::uint64_t>(op.kind), 1) + bytes_of(op.peer, 4) +
               bytes_of(static_cast<std::uint64_t>(op.size), 8) + bytes_of(op.tag, 4) + bytes_of(op.cpu, 1) +
               bytes_of(op.nic, 1);
      append(rank.ends, i);
      append(rank.starts, i);
    }
    parts += bytes_of(rank.ops.size(), 4) + bytes_of(0, 4) + nodes + appendix;
    table += bytes_of(base + parts.size(), 8);
  }
  return bytes_of(4223, 8) + bytes_of(schedule.ranks.size(), 4) + bytes_of(0, 2) + table + parts;
}

GoalSchedule parsed(const std::string& text) {
  return parse_goal_text(InputSet::in_memory({{"a.goal", text}}).files()[0]);
}

// The tasks of all ranks in words, with how many begin at once.
std::string described(TaskSource& source, std::uint32_t ranks) {
  std::string text;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<Task> ready;
    source.start(RankId(rank), ready);
    text += std::to_string(ready.size()) + " of";
    for (const Task& task : tasks_of(source, rank)) {
      text += std::string(" ") + to_string(task.kind()) + " ";
      text += is_point_to_point(task)
                  ? std::to_string(task.bytes()) + "/" + std::to_string(task.message().peer) + "/" +
                        std::to_string(task.message().tag)
                  : std::to_string(source.works()[task.work()].kernels[0].duration);
    }
    text += "\n";
  }
  return text;
}

constexpr const char* kExchange =
    "/* two\n ranks */\nnum_ranks 2\nrank 0 {\na: calc 100 cpu 1\nb: send 8b to 1 tag 3 cpu 0 nic 0 // x\n"
    "b requires a\nc: calc 7\nc irequires b\n}\nrank 1 {\nr: recv 8b from -1 tag -1\ncalc 5 cpu 1\n"
    "calc 6 cpu 1\n}\n";

TEST_F(GoalFiles, TextAndBinaryAreOneSchedule) {
  const auto text = load(kExchange);
  const std::string expected = described(*text, 2);
  EXPECT_EQ(expected,
            "1 of host_thread 100000 send 8/1/0 host_thread 7000\n"
            "2 of receive 8/0/0 host_thread 5000 host_thread 6000\n");
  EXPECT_TRUE(tasks_of(*text, 0)[1].message().raw);
  EXPECT_EQ(described(*load(binary(parsed(kExchange))), 2), expected);
}

TEST_F(GoalFiles, ADependencyOnAStartWaitsForWhatTheOtherWaitsFor) {
  const std::string text =
      "num_ranks 1\nrank 0 {\na: calc 1 cpu 1\nb: calc 2 cpu 2\nc: calc 3 cpu 3\nd: calc 4 cpu 4\n"
      "c requires a\nc requires b\nd irequires c\n}\n";
  const auto source = load(text);
  // The begin of c is a task of its own, for which c and d wait.
  EXPECT_EQ(described(*source, 1),
            "2 of host_thread 1000 host_thread 2000 host_thread 0 host_thread 3000 host_thread 4000\n");
}

TEST_F(GoalFiles, ACpuTakesTheCalcThatCanBeginFirst) {
  const auto matches = order_goal(
      parsed("num_ranks 1\nrank 0 {\na: calc 50 cpu 1\nb: calc 2\nc: calc 3\nd: calc 4\nb requires a\n}\n"),
      "a");
  EXPECT_EQ(matches[0][2].previous, GoalMatch::kNone);
  EXPECT_EQ(matches[0][3].previous, 2u);
  EXPECT_EQ(matches[0][1].previous, 3u);
}

TEST_F(GoalFiles, WildcardsTakeTheMessageThatComesFirst) {
  // Rank 1 sends after rank 0 has received, so the first receive must take the message of rank 2.
  const auto source = load(
      "num_ranks 3\nrank 0 {\na: recv 8b from -1\nb: send 8b to 1\nb requires a\nc: recv 8b from -1\n"
      "c requires b\n}\nrank 1 {\na: recv 8b from 0\nb: send 8b to 0\nb requires a\n}\n"
      "rank 2 {\nsend 8b to 0\n}\n");
  EXPECT_EQ(described(*source, 1), "1 of receive 8/2/0 send 8/1/0 receive 8/1/0\n");
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("-1")));
}

// txt2bin's grammar has blanks before the unit, and blocks in any order.
TEST_F(GoalFiles, TextIsReadAsTxt2binReadsIt) {
  const GoalSchedule schedule = parsed(
      "\xEF\xBB\xBFnum_ranks 2 rank 1 {\r\n recv 8 b from 0 tag 3\r\n}\r\nrank 0 {\n a : send 8\tb to 1 tag "
      "3\n}\n");
  ASSERT_EQ(schedule.ranks.size(), 2u);
  EXPECT_EQ(schedule.ranks[0].ops.at(0).kind, GoalOp::Kind::send);
  EXPECT_EQ(schedule.ranks[0].ops.at(0).size, 8);
  EXPECT_EQ(schedule.ranks[1].ops.at(0).tag, 3u);
}

TEST_F(GoalFiles, AMessageWithoutBytesHasOne) {
  const auto source = load("num_ranks 2\nrank 0 {\nsend 0b to 1\n}\nrank 1 {\nrecv 0b from 0\n}\n");
  EXPECT_EQ(tasks_of(*source, 0).at(0).bytes(), 1);
  EXPECT_EQ(tasks_of(*source, 1).at(0).bytes(), 1);
  EXPECT_THAT(source->notes(), ::testing::Contains("messages without bytes, which are sent as one byte: 1"));
}

TEST_F(GoalFiles, MistakesAreNamedWithTheirPlace) {
  const std::string begin = "num_ranks 2\nrank 0 {\n";
  EXPECT_THAT(refused(begin + "send 8 to 1\n}\n"), HasSubstr(":3:6: the size is '8'; allowed: 0 to"));
  EXPECT_THAT(refused(begin + "send 8b to 2\n}\n"),
              HasSubstr(":3:12: the destination is '2'; allowed: 0 to 1"));
  EXPECT_THAT(refused(begin + "}\nrank 0 {\n}\n"), HasSubstr(":4:6: rank 0 has a second block"));
  EXPECT_THAT(refused(begin + "l1 requires l2\n}\n"), HasSubstr(":3:1: no operation before has the label"));
  EXPECT_THAT(refused(begin + "calc 1 tag 2\n}\n"), HasSubstr(":3:8: 'tag'; allowed at the end"));
  EXPECT_THAT(refused(begin + "send 8b to 1\n}\nrank 1 {\n}\n"), HasSubstr(":3: line 3 ('send') of rank 0"));
  EXPECT_THAT(refused(begin + "recv 8b from -1\n}\nrank 1 {\n}\n"), HasSubstr("no send is for it"));
  EXPECT_THAT(
      refused(begin + "a: recv 5b from 1\nb: send 5b to 1\nb requires a\n}\n"
                      "rank 1 {\na: recv 5b from 0\nb: send 5b to 0\nb requires a\n}\n"),
      HasSubstr(":3: line 3 ('recv') of rank 0 cannot end: its other end, line 9 of rank 1, waits for "
                "operations that cannot end"));
  EXPECT_THAT(refused(begin + "a: calc 1\nb: calc 1\na requires b\nb irequires a\n}\nrank 1 {\n}\n"),
              HasSubstr("waits for itself"));
  std::string bytes = binary(parsed(kExchange));
  EXPECT_THAT(refused(bytes.substr(0, 60)),
              HasSubstr(": offset 60: the file ends within the part of rank 0"));
  bytes[0] = 0x26;
  bytes[1] = 0x09;
  EXPECT_THAT(refused(bytes), HasSubstr("--save-mem"));
}

TEST_F(GoalFiles, MutatedFilesAreReadOrRefused) {
  const auto read = [&](const std::string& given) { load(given); };
  test::expect_sane(kExchange, read, 600);
  test::expect_sane(binary(parsed(kExchange)), read, 600);
}

TEST_F(GoalFiles, SamplesOfLogGopsimAreEqualInBothForms) {
  NETSIM_NEEDS_SHARED("samples/goal");
  std::size_t samples = 0;
  for (const std::string& path : test::shared_files("samples/goal", ".goal")) {
    const std::string other = path.substr(0, path.size() - 4) + "bin";
    if (!std::filesystem::exists(other)) continue;
    ++samples;
    EXPECT_EQ(described(*load_workload(path, 8), 8), described(*load_workload(other, 8), 8)) << path;
  }
  EXPECT_GE(samples, 6u);
}

}  // namespace
}  // namespace netsim::goal_test
