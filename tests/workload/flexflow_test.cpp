// Tests that task graphs of FlexFlow give the computations of each GPU in the order of its simulator.
// Transfers become messages, and damaged files are refused.
#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/workload/workload.h"
#include "tests/support/mutations.h"
#include "tests/support/shared.h"
#include "tests/support/tasks_of.h"
#include "tests/support/workload_files.h"

namespace netsim::flexflow_test {
namespace {

using test::tasks_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int16_t kForward = 0, kBackward = 1, kTransfer = 2, kUpdate = 3, kBarrier = 4, kNominal = 5,
                       kAllReduce = 6;
constexpr std::int16_t kGpu = 0, kNicOut = 9, kNominalNetwork = 14;

// GraphBuilder: writes a task graph. GPUs have the ids 100 + rank.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::uint32_t nodes) : nodes_(nodes) {
    for (std::uint32_t i = 0; i < nodes; ++i) device(kGpu, 100 + i, i, i);
  }
  GraphBuilder& device(std::int16_t type, std::uint64_t id, std::uint64_t node, std::uint64_t property) {
    const auto start = builder_.StartTable();
    builder_.AddElement<std::int16_t>(4, type, -1);
    builder_.AddElement<std::uint64_t>(6, id, 0);
    builder_.AddElement<std::uint64_t>(8, node, 0);
    builder_.AddElement<std::uint64_t>(10, property, 0);
    devices_.emplace_back(builder_.EndTable(start));
    return *this;
  }
  GraphBuilder& task(std::int16_t type, std::uint64_t id, std::uint64_t device, float runtime,
                     std::uint64_t bytes, const std::vector<std::uint64_t>& next) {
    return task_with(type, id, device, runtime, bytes, builder_.CreateVector(next).o);
  }
  // Adds a task whose next tasks are words of 4 bytes, so that one of two numbers of them is aligned to 8
  // bytes.
  GraphBuilder& task_with_words(std::size_t words) {
    return task_with(kForward, 1, 100, 1, 0, builder_.CreateVector(std::vector<std::uint32_t>(words)).o);
  }
  std::string bytes() {
    const auto tasks = builder_.CreateVector(tasks_), devices = builder_.CreateVector(devices_);
    const auto start = builder_.StartTable();
    builder_.AddElement<std::uint32_t>(4, 1, 0);
    builder_.AddElement<std::uint32_t>(6, nodes_, 0);
    builder_.AddElement<std::uint32_t>(8, 1, 0);
    builder_.AddOffset(20, tasks);
    builder_.AddOffset(22, devices);
    builder_.Finish(flatbuffers::Offset<flatbuffers::Table>(builder_.EndTable(start)));
    return {reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize()};
  }

 private:
  GraphBuilder& task_with(std::int16_t type, std::uint64_t id, std::uint64_t device, float runtime,
                          std::uint64_t bytes, flatbuffers::uoffset_t list) {
    const auto start = builder_.StartTable();
    builder_.AddElement<std::int16_t>(4, type, -1);
    builder_.AddElement<std::uint64_t>(6, id, 0);
    builder_.AddElement<std::uint64_t>(8, device, 0);
    builder_.AddElement<float>(10, runtime, 0);
    builder_.AddElement<std::uint64_t>(12, bytes, 0);
    builder_.AddOffset(14, flatbuffers::Offset<void>(list));
    tasks_.emplace_back(builder_.EndTable(start));
    return *this;
  }

  std::uint32_t nodes_;
  flatbuffers::FlatBufferBuilder builder_;
  std::vector<flatbuffers::Offset<flatbuffers::Table>> tasks_, devices_;
};

class FlexflowFiles : public test::WorkloadFileTest {
 protected:
  FlexflowFiles() : WorkloadFileTest("a.fbuf") {}
};

std::vector<std::string> described(const TaskSource& source, std::uint32_t rank) {
  std::vector<std::string> words;
  for (const Task& task : tasks_of(source, rank)) {
    std::string word = to_string(task.kind());
    if (task.kind() == TaskKind::collective)
      word = fmt::format("{} {}", to_string(task.collective().collective), task.bytes());
    if (is_point_to_point(task)) word += fmt::format(" {} {}", task.message().peer + 0U, task.bytes());
    words.push_back(std::move(word));
  }
  return words;
}

// Two layers on two GPUs: the second layer is on the other GPU.
GraphBuilder two_layers() {
  GraphBuilder graph(2);
  graph.device(kNominalNetwork, 200, UINT64_MAX, 0 * 3 + 1)
      .device(kNominalNetwork, 201, UINT64_MAX, 1 * 3 + 0);
  graph.task(kForward, 1, 100, 1, 0, {2})
      .task(kNominal, 2, 200, 9, 4096, {3})
      .task(kForward, 3, 101, 2, 0, {4});
  graph.task(kBackward, 4, 101, 2, 0, {5, 7})
      .task(kNominal, 5, 201, 9, 2048, {6})
      .task(kBackward, 6, 100, 1, 0, {7});
  graph.task(kAllReduce, 7, 0, 5, 1 << 20, {0, 1});
  return graph;
}

TEST_F(FlexflowFiles, TransfersAreMessagesBetweenTheGpusAroundThem) {
  const auto source = load(two_layers().bytes());
  EXPECT_THAT(described(*source, 0),
              ElementsAre("compute", "send 1 4096", "receive 1 2048", "compute", "all_reduce 1048576"));
  EXPECT_THAT(described(*source, 1),
              ElementsAre("receive 0 4096", "compute", "compute", "send 0 2048", "all_reduce 1048576"));
  EXPECT_THAT(source->notes(),
              Contains(HasSubstr("4 computations with their recorded times, 2 transfers, 1 all-reduces")));
}

TEST_F(FlexflowFiles, ATransferOverSeveralDevicesIsOneMessageForEachPart) {
  GraphBuilder graph(2);
  graph.device(kNicOut, 200, 0, 0).device(kNicOut, 201, 1, 0);
  graph.task(kForward, 1, 100, 1, 0, {2, 4})
      .task(kTransfer, 2, 200, 1, 500, {3, 4})
      .task(kTransfer, 3, 201, 1, 500, {6});
  graph.task(kTransfer, 4, 200, 1, 300, {5})
      .task(kTransfer, 5, 201, 1, 300, {6})
      .task(kForward, 6, 101, 1, 0, {});
  const auto source = load(graph.bytes());
  EXPECT_THAT(described(*source, 0), ElementsAre("compute", "send 1 500", "send 1 300"));
  EXPECT_THAT(described(*source, 1), ElementsAre("receive 0 500", "receive 0 300", "compute"));
}

TEST_F(FlexflowFiles, AGpuComputesWhatIsReadyFirst) {
  // Task 3 becomes ready at 1 ms and task 2 at 5 ms, though its id is smaller.
  GraphBuilder graph(2);
  graph.task(kForward, 1, 101, 5, 0, {4}).task(kForward, 5, 100, 1, 0, {3});
  graph.task(kBarrier, 4, 0, 0, 0, {2, 6})
      .task(kUpdate, 2, 100, 2, 0, {})
      .task(kForward, 3, 100, 1, 0, {})
      .task(kUpdate, 6, 101, 2, 0, {});
  const auto source = load(graph.bytes());
  std::vector<std::string> names;
  for (const Task& task : tasks_of(*source, 0)) names.push_back(source->name(task.name));
  EXPECT_THAT(names, ElementsAre("forward", "forward", "barrier", "update"));
}

TEST_F(FlexflowFiles, ATaskOfAnotherGpuIsWaitedForByASmallMessage) {
  GraphBuilder graph(2);
  graph.task(kForward, 1, 100, 1, 0, {2, 99}).task(kForward, 2, 101, 1, 0, {});
  const auto source = load(graph.bytes());
  EXPECT_THAT(described(*source, 1), ElementsAre("receive 0 1", "compute"));
  EXPECT_THAT(source->notes(), Contains(HasSubstr("which are messages of 1 B: 1")));
  EXPECT_THAT(source->notes(), Contains(HasSubstr("tasks that the file does not have, left out: 1")));
}

TEST_F(FlexflowFiles, WrongOnesAreRefusedWithTheirTask) {
  const auto with = [](std::int16_t type, std::uint64_t device, float runtime, std::uint64_t bytes,
                       std::vector<std::uint64_t> next) {
    return GraphBuilder(2)
        .task(kForward, 1, 100, 1, 0, {2})
        .task(type, 2, device, runtime, bytes, next)
        .bytes();
  };
  EXPECT_THAT(refused(with(7, 100, 1, 0, {})), HasSubstr(": task 1 has type 7; allowed: 0 to 6"));
  EXPECT_THAT(refused(with(kForward, 99, 1, 0, {})),
              HasSubstr(": task 1: it computes, and its device is no GPU"));
  EXPECT_THAT(refused(with(kForward, 100, std::numeric_limits<float>::quiet_NaN(), 0, {})),
              HasSubstr(": task 1 takes nan ms"));
  EXPECT_THAT(refused(with(kForward, 100, 1e9F, 0, {})),
              HasSubstr(": task 1: it takes 1000000000 ms; allowed: up to"));
  EXPECT_THAT(refused(with(kForward, 100, 1, 0, {1})), HasSubstr(": task 0: it waits for itself"));
  EXPECT_THAT(refused(with(kAllReduce, 0, 1, 8, {0, 2})),
              HasSubstr(": task 1: node 2 takes part, and there are 2"));
  EXPECT_THAT(refused(with(kTransfer, 0, 1, 1ULL << 60, {})),
              HasSubstr(": task 1: it has 1152921504606846976 B"));
  EXPECT_THAT(
      refused(GraphBuilder(2).task(kForward, 1, 100, 1, 0, {}).task(kForward, 1, 100, 1, 0, {}).bytes()),
      HasSubstr(": task 1: it has the id of task 0"));
  EXPECT_THAT(refused(GraphBuilder(99).task(kForward, 1, 100, 1, 0, {}).bytes()),
              HasSubstr("99 GPUs are needed, but the cluster has 16"));
  const std::string whole = two_layers().bytes();
  EXPECT_THAT(refused(whole.substr(0, whole.size() - 8)), HasSubstr(": is "));
}

TEST_F(FlexflowFiles, ListsThatAreNotAlignedAreRefused) {
  int damaged = 0;
  for (const std::size_t words : {2, 3}) {
    try {
      load(GraphBuilder(2).task_with_words(words).bytes());
    } catch (const InputError& error) {
      damaged += std::string(error.what()).find("is damaged") != std::string::npos ? 1 : 0;
    }
  }
  EXPECT_EQ(damaged, 1);
}

TEST_F(FlexflowFiles, DamagedOnesEndInOneError) {
  test::expect_sane(
      two_layers().bytes(), [this](const std::string& given) { load(given); }, 1500);
}

TEST(FlexflowSamples, AllAreRead) {
  NETSIM_NEEDS_SHARED("samples/topoopt_fbuf");
  for (const std::string& path : test::shared_files("samples/topoopt_fbuf", ".fbuf")) {
    const auto source = load_workload(path, 16);
    EXPECT_EQ(source->ranks(), 16u) << path;
    EXPECT_GT(source->total_tasks().value_or(0), 1000u) << path;
  }
}

}  // namespace
}  // namespace netsim::flexflow_test
