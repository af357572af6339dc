// Tests that all forms of Kineto traces mean the same. Ranks are found where files do not say them, and a
// kernel runs all calls of its group.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/workload/workload.h"
#include "tests/support/tasks_of.h"
#include "tests/support/workload_files.h"
#include "tests/workload/kineto_builder.h"

namespace netsim::kineto_test {
namespace {

using test::tasks_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using KinetoForms = test::WorkloadFolderTest;

// Returns the file of rank 0 of two with a computation and an all-reduce.
std::string plain(std::uint32_t rank = 0, bool with_info = true) {
  Builder trace(rank, 2, two_ranks());
  trace.kernel("a", 7, 0, 5, 100);
  trace.kernel("ncclDevKernel_AllReduce", 20, 2, 105, 200,
               R"(, "Collective name": "allreduce", "In msg nelems": 64, "dtype": "Float", "Group size": 2, )"
               R"("Process Group Name": "0", "Process Group Ranks": "[0, 1]")");
  std::string text = trace.text();
  return with_info ? text : text.substr(text.find("\"traceEvents\"")).insert(0, "{");
}
// Returns kinds, bytes and works of a rank's tasks.
std::string tasks_in(const TaskSource& source, std::uint32_t rank) {
  std::string text;
  for (const Task& task : tasks_of(source, rank)) {
    text += fmt::format("{} ", to_string(task.kind()));
    if (has_work(task.kind())) text += fmt::format("{} ", source.works()[task.work()].kernels[0].duration);
    if (task.kind() == TaskKind::collective)
      text += fmt::format("{} of {} ", task.bytes(), source.group(task.collective().group).size());
  }
  return text;
}

TEST_F(KinetoForms, FormsOfOtherWritersMeanTheSame) {
  const std::string text = plain();
  write("rank0.json", text);
  const std::string expected = tasks_in(*load(), 0);
  EXPECT_THAT(expected, HasSubstr("collective 256 of 2"));
  const std::string events = text.substr(text.find('['), text.rfind(']') - text.find('[') + 1);
  const std::string list = text.substr(text.find("\"traceEvents\": ") + 15);
  const std::map<std::string, std::string> forms{
      {"times as texts", replaced(replaced(text, "\"ts\": 5.000", "\"ts\": \"5.000\""), "\"dur\": 100.000",
                                  "\"dur\": \"100.000\"")},
      {"exponents", replaced(text, "\"ts\": 105.000", "\"ts\": 1.05e2")},
      {"streams as texts", replaced(text, "\"tid\": 20", "\"tid\": \"stream 20\"")},
      {"numbers as texts", replaced(text, "\"In msg nelems\": 64", "\"In msg nelems\": \"64\"")},
      {"ranks as a list", replaced(text, "\"[0, 1]\"", "[0, 1]")},
      {"no numbers", replaced(text, "\"In msg", "\"a\": nan, \"b\": [-inf, Infinity], \"In msg")},
      {"control characters", replaced(text, "\"name\": \"a\"", "\"name\": \"a\tb\n\"")},
      {"another runtime", replaced(text, "cuda_runtime", "xpu_runtime")},
      {"a byte order mark", "\xef\xbb\xbf" + text},
      {"no operators", plain(0, false)},
      {"events alone", list.substr(0, list.rfind('}'))}};
  for (const auto& [name, form] : forms) {
    write("rank0.json", form);
    EXPECT_EQ(tasks_in(*load(), 0), expected) << name;
  }
  write("rank0.json", replaced(text, "\"dur\": 100.000", "\"dur\": -100.000"));
  EXPECT_THAT(load()->notes(), Contains("events with a negative duration, taken as 0: 1"));
}

TEST_F(KinetoForms, RanksFollowFromCallsNamesAndOrder) {
  for (const auto& [first, second] : std::vector<std::pair<std::string, std::string>>{
           {"rank-0.Jul_15.1074.json", "rank-1.Jul_15.1073.json"},
           {"a1.json", "a0.json"},
           {"host_1074.json", "host_1075.json"}}) {
    write(first, replaced(plain(0, false), "\"a\"", "\"first\""));
    write(second, replaced(plain(1, false), "\"a\"", "\"second\""));
    const auto source = load();
    EXPECT_EQ(source->ranks(), 2u);
    const Task task = tasks_of(*source, first == "a1.json" ? 1 : 0).at(1);
    EXPECT_EQ(source->name(task.name), "first") << first;
    EXPECT_THAT(source->notes(),
                Contains(HasSubstr("files that do not say their rank, which is that of their "
                                   "names or order: 2")));
    std::filesystem::remove(folder_ / first);
    std::filesystem::remove(folder_ / second);
  }
  // The caller's place in a group of ranks 4 and 6 tells its rank, and the group how many ranks there are.
  std::string group = replaced(plain(0, false), "\"[0, 1]\"", "\"[4, 6]\", \"Rank\": 1");
  write("a.json", group);
  EXPECT_EQ(load()->ranks(), 7u);
  EXPECT_EQ(tasks_of(*load(), 6).size(), 3u);
  group = replaced(group, "\"Process Group Ranks\": \"[4, 6]\"",
                   "\"Global rank start\": 4, \"Global rank stride\": 2");
  write("a.json", group);
  EXPECT_EQ(tasks_of(*load(), 6).size(), 3u);
}

// A group of calls is launched as one kernel, which describes none of them.
TEST_F(KinetoForms, AKernelRunsTheCallsOfItsGroup) {
  for (const std::uint32_t rank : {0U, 1U}) {
    Builder trace(rank, 2, two_ranks());
    trace.kernel("a", 7, 0, 5, 100);
    int begin = 2;
    for (const char* call : {"send", "recv"}) {
      trace.event(
          "cpu_op", "record_param_comms", 1, 1, begin++, 0.5,
          fmt::format(R"("Collective name": "{}", "In msg nelems": 256, "dtype": "Half", "{} Rank": {})",
                      call, call == std::string("send") ? "Dst" : "Src", 1 - rank));
    }
    trace.kernel("ncclDevKernel_SendRecv", 24, 4, 105, 50);
    trace.kernel("b", 7, 6, 105, 10);
    trace.wait(7, 24, trace.call("cudaEventRecord", 7), 8);
    trace.kernel("c", 7, 9, 155, 10);
    write(fmt::format("rank{}.json", rank), trace.text());
  }
  const auto source = load();
  std::vector<std::string> messages;
  for (const Task& task : tasks_of(*source, 0)) {
    if (is_point_to_point(task))
      messages.push_back(fmt::format("{} {}", to_string(task.kind()), task.bytes()));
  }
  EXPECT_THAT(messages, ElementsAre("send 512", "receive 512"));
  EXPECT_THAT(source->notes(),
              Contains("calls of groups that one kernel runs, matched by the order of calls: 4"));
  const auto graph = source->graph(0, {});
  const auto tasks = tasks_of(*source, 0);
  // The kernel `c` waits for both messages.
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    if (!is_point_to_point(tasks[i])) continue;
    const auto later = graph->successors.of(i);
    EXPECT_TRUE(std::any_of(later.begin(), later.end(),
                            [&](std::uint32_t t) { return source->name(tasks[t].name) == "c"; }));
  }
}

// ---- Uneven all-to-alls

std::string uneven(std::uint32_t rank, int in, const std::string& in_split, int out,
                   const std::string& out_split) {
  Builder trace(rank, 2, two_ranks());
  trace.kernel(
      "ncclDevKernel_SendRecv", 20, 2, 105, 200,
      fmt::format(R"(, "Collective name": "all_to_allv", "In msg nelems": {}, "Out msg nelems": {}, )"
                  R"("dtype": "Float", "Group size": 2, "Process Group Name": "0", "In split size": {}, )"
                  R"("Out split size": {})",
                  in, out, in_split, out_split));
  return trace.text();
}
// Returns the counts of the only collective.
BlockCounts counts_of(const TaskSource& source) {
  const std::vector<Task> tasks = tasks_of(source, 1);
  const auto call = std::find_if(tasks.begin(), tasks.end(), has_group);
  EXPECT_EQ(call->collective().collective, CollectiveKind::all_to_all_v);
  return *call->collective().counts;
}

// Rank 0 has rows of 8 elements of 4 bytes, and rank 1 a list of JSON.
TEST_F(KinetoForms, UnevenAllToAllsHaveTheirParts) {
  write("rank0.json", uneven(0, 32, R"("[1, 3]")", 8, R"("[1, 0]")"));
  write("rank1.json", uneven(1, 0, "[0, 0]", 24, "[24, 0]"));
  const auto source = load();
  EXPECT_THAT(counts_of(*source).rows(), ElementsAre(32, 96, 0, 0));
  EXPECT_THAT(source->notes(), ::testing::Not(Contains(HasSubstr("uneven all-to-alls"))));
  write("rank1.json", uneven(1, 0, "[0, 0]", 20, "[20, 0]"));
  EXPECT_THAT(load()->notes(), Contains(HasSubstr("other parts than their senders, whose parts count: 1")));
}

// netsim's own traces have what PyTorch does not record: tokens, exact times, streams and copies.
TEST_F(KinetoForms, TracesOfNetsimHaveExactTasks) {
  const auto written = [](std::uint32_t rank, const std::string& in) {
    Builder trace(rank, 2, two_ranks(), R"("netsim": {"waits": true},)");
    trace.kernel("a", 7, 5, 5, 100, R"(, "netsim_work_ps": 99999123)");
    trace.kernel(
        "ncclDevKernel_SendRecv", 20, 105, 105, 200,
        R"(, "Collective name": "all_to_allv", "In msg nelems": 8, "Out msg nelems": 8, "dtype": "Byte", )"
        R"("Process Group Name": "0", "Process Group Description": "cp", "In split size": )" +
            in +
            R"(, "netsim_collective": "dispatch", "netsim_token": 4, "netsim_host": 2, )"
            R"("netsim_copies": "[4, 8]", "netsim_to_hosts": "[8]")");
    const int correlation = trace.call("cudaMemcpyAsync", 305);
    trace.event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 0, 35, 305, 10,
                fmt::format(R"("correlation": {}, "bytes": 4096)", correlation));
    return trace.text();
  };
  write("rank0.json", written(0, R"("[4, 4]")"));
  write("rank1.json", written(1, R"("[8, 0]")"));
  const auto source = load();
  std::map<TaskKind, Task> tasks;
  for (const Task& task : tasks_of(*source, 1)) tasks.insert_or_assign(task.kind(), task);
  EXPECT_EQ(source->works()[tasks[TaskKind::compute].work()].kernels[0].duration, 99999123);
  const CollectiveTask& call = tasks[TaskKind::collective].collective();
  EXPECT_EQ(call.collective, CollectiveKind::dispatch);
  EXPECT_THAT(call.counts->rows(), ElementsAre(4, 4, 8, 0));
  EXPECT_THAT(call.counts->tokens().to_hosts, ElementsAre(8, 8));
  EXPECT_EQ(tasks[TaskKind::collective].stream, Stream::cp);
  EXPECT_EQ(tasks[TaskKind::copy_to_host].bytes(), 4096);
  write("rank1.json", written(1, R"("[7, 1]")"));
  EXPECT_THAT(refused(), HasSubstr("rank1.json: a call of group '0' has a netsim_collective"));
}

TEST_F(KinetoForms, AMemberWithoutAListHasEqualParts) {
  write("rank0.json", uneven(0, 32, R"("[1, 3]")", 8, R"("[1, 0]")"));
  write("rank1.json", uneven(1, 16, R"("[]")", 16, R"("[]")"));
  EXPECT_THAT(counts_of(*load()).rows(), ElementsAre(32, 96, 32, 32));
}

TEST_F(KinetoForms, CutListsAndRanksWithoutATraceGiveEqualParts) {
  write("rank0.json", uneven(0, 32, R"("[1, ..., 3]")", 8, R"("[1, 0]")"));
  write("rank1.json", uneven(1, 16, R"("[1, 3]")", 16, R"("[]")"));
  EXPECT_THAT(counts_of(*load()).rows(), ElementsAre(48, 48, 48, 48));
  EXPECT_THAT(load()->notes(), Contains(HasSubstr("replayed with equal parts: 1")));
  std::filesystem::remove(folder_ / "rank1.json");
  write("rank0.json", uneven(0, 32, R"("[1, 3]")", 8, R"("[1, 0]")"));
  EXPECT_THAT(counts_of(*load()).rows(), ElementsAre(64, 64, 64, 64));
}

}  // namespace
}  // namespace netsim::kineto_test
