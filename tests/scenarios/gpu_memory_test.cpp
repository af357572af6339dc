// Is the memory of GPUs in a run that of the tasks, and is the peak in the report? Are jobs that do not fit
// refused?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <sstream>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/text.h"
#include "sim/report/screen/screen.h"
#include "sim/report/summary.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/fits.h"

namespace netsim::gpu_memory_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kCluster = "topology: {kind: star, hosts: 4, rate: 100 Gbps}, host: single_nic";

struct WrittenJob {
  explicit WrittenJob(const std::string& workload) { std::ofstream(path) << workload; }
  Results run(const std::string& compute, const std::string& output = "") const {
    SimulationSetup setup;
    setup.config = parse_config(fmt::format("{{{}, compute: {}}}", kCluster, compute), "cluster.yaml");
    setup.workload = path;
    setup.threads = 1;
    setup.output_directory = output;
    Simulation simulation(std::move(setup));
    Results results = simulation.run({});
    if (!output.empty()) simulation.finish_files(results);
    return results;
  }
  std::string refusal(const std::string& compute) const {
    try {
      run(compute);
    } catch (const Error& error) {
      return fmt::format("{}: {}", static_cast<int>(error.code()), error.what());
    }
    return "accepted";
  }
  test::Directory directory;
  std::string path = directory.path() + "/job.yaml";
};

constexpr const char* kPipeline =
    "{kind: ptdp, model: {layers: 4, hidden: 256, heads: 4, sequence: 128, vocabulary: 1024}, parallel: "
    "{pipeline: "
    "4}, microbatches: 8, gradient: {dtype: fp32}, recompute: none, iterations: 2}";

// In one_f_one_b the first stage holds four microbatches when its fourth forward has begun, long before the
// end. It never holds more than the order of the program allows.
TEST(GpuMemory, PeaksWhereThePipelineDoes) {
  const Results results = WrittenJob(kPipeline).run("a100_80gb");
  const JobResult& job = results.jobs.at(0);
  ASSERT_TRUE(job.memory);
  EXPECT_EQ(job.memory->use, job.memory->planned);
  EXPECT_EQ(job.memory->capacity, 80 * kGibibyte);
  EXPECT_EQ(job.memory->rank_peak.at(job.memory->rank), job.memory->use.total());
  EXPECT_GT(job.memory->time, 0);
  EXPECT_LT(job.memory->time, job.iteration_ends.at(0));
  EXPECT_THAT(render_screen(results, 120), HasSubstr("memory           rank 0 at"));
  EXPECT_THAT(summary_json(results),
              AllOf(HasSubstr("\"peak_rank\": 0"), HasSubstr("\"activations_bytes\"")));
}

// The table has every change at each stage's rank in order of time. The memory at the end equals that at the
// beginning.
TEST(GpuMemory, HasItsCourseInATable) {
  const test::Directory out;
  const Results results = WrittenJob(kPipeline).run("a100_80gb", out.path());
  std::ifstream table(out.path() + "/memory.csv");
  std::string line;
  std::getline(table, line);
  EXPECT_EQ(line,
            "job,rank,time_ps,bytes,parameters_bytes,gradients_bytes,optimizer_bytes,activations_bytes,"
            "gathered_bytes,communication_bytes,host_bytes");
  struct CollectiveConfig {
    std::int64_t first = -1, last = 0, most = 0, time = -1;
  };
  std::map<std::string, CollectiveConfig> collective_configs;
  while (std::getline(table, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    ASSERT_EQ(cells.size(), 11U);
    CollectiveConfig& collective_config = collective_configs[cells[1]];
    collective_config.last = std::stoll(cells[3]);
    if (collective_config.first < 0) collective_config.first = collective_config.last;
    collective_config.most = std::max(collective_config.most, collective_config.last);
    EXPECT_GE(std::stoll(cells[2]), collective_config.time);
    collective_config.time = std::stoll(cells[2]);
  }
  ASSERT_EQ(collective_configs.size(), 4U);
  for (const auto& [rank, collective_config] : collective_configs) {
    EXPECT_EQ(collective_config.first, collective_config.last);
    EXPECT_EQ(collective_config.most, results.jobs[0].memory->rank_peak.at(std::stoul(rank)));
  }
}

TEST(GpuMemory, ThatIsNotThereRefusesAPlan) {
  const WrittenJob run(kPipeline);
  EXPECT_THAT(run.refusal("{kind: a100_80gb, memory: 16 MiB}"),
              AllOf(HasSubstr("3: "), HasSubstr("rank 0 does not fit into the 0.02 GiB of its GPU host0"),
                    HasSubstr("parameters"), HasSubstr("activations"), HasSubstr("gpus.overcommit_memory")));
  EXPECT_EQ(run.refusal("{kind: a100_80gb, memory: 16 MiB}, gpus: {overcommit_memory: true}"), "accepted");
  EXPECT_EQ(run.refusal("{kind: a100_80gb, memory: 0}"), "accepted");
  const Results results = run.run("{kind: a100_80gb, memory: 16 MiB}, gpus: {overcommit_memory: true}");
  EXPECT_THAT(results.notes, ::testing::Contains(HasSubstr("it would run out of memory")));
}

// Before anything is run.
TEST(GpuMemory, IsPredicted) {
  const WrittenJob run(kPipeline);
  SimulationSetup setup;
  setup.config = parse_config(fmt::format("{{{}, compute: a100_80gb}}", kCluster), "cluster.yaml");
  setup.workload = run.path;
  setup.threads = 1;
  Simulation simulation(std::move(setup));
  const Prediction prediction = simulation.predict(0.01, {});
  ASSERT_EQ(prediction.gpu_memory.size(), 1U);
  EXPECT_EQ(prediction.gpu_memory[0].capacity, 80 * kGibibyte);
  EXPECT_THAT(render_prediction(prediction, 4), HasSubstr("memory of a GPU    rank 0 of 80.00 GiB: "));
  for (const std::size_t width : {60U, 80U}) {
    test::expect_fits(render_prediction(prediction, 4, width), width);
  }
}

// Its times are those of the iterations behind it.
TEST(WarmUp, IsLeftOutOfMeans) {
  const std::string job =
      "{kind: ptdp, model: {layers: 4, hidden: 256, heads: 4, sequence: 128, vocabulary: 1024}, parallel: "
      "{pipeline: "
      "2, data: 2}, microbatches: 2, iterations: 5, warm_up: ";
  const Results all = WrittenJob(job + "0}").run("a100_80gb"), warm = WrittenJob(job + "2}").run("a100_80gb");
  EXPECT_EQ(all.fingerprints.results, warm.fingerprints.results);
  const JobResult& one = warm.jobs.at(0);
  const JobSummary summary = summarise(one);
  const Time measured = one.end - one.iteration_ends.at(1);
  EXPECT_DOUBLE_EQ(*summary.iteration_time_s, to_seconds(measured) / 3);
  EXPECT_DOUBLE_EQ(*summary.jct_s, *summarise(all.jobs.at(0)).jct_s);
  EXPECT_NEAR(summary.compute_s + summary.exposed_s + summary.idle_s, *summary.iteration_time_s, 1e-7);
  // Compute time is equal in all iterations, apart from what ranks that are ahead have begun of the next one.
  EXPECT_NEAR(summary.compute_s, summarise(all.jobs.at(0)).compute_s, 1e-5);
  EXPECT_THAT(WrittenJob(job + "5}").refusal("a100_80gb"),
              HasSubstr("5 of 5 iterations: warm_up has to be fewer than all"));
}

}  // namespace
}  // namespace netsim::gpu_memory_test
