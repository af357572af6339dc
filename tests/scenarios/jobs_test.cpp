// Tests several jobs in one run. They affect each other only through a shared link or GPU. A run that is
// built from objects, step by step, gives the same results as one from files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/paths.h"
#include "tests/support/test_size.h"

namespace netsim::jobs_test {
namespace {

using ::testing::HasSubstr;

// Runs a workload written here on a cluster written here.
struct Written {
  explicit Written(const std::string& workload) { std::ofstream(path) << workload; }
  SimulationSetup setup(const std::string& cluster, std::uint32_t threads = 1) const {
    SimulationSetup setup;
    setup.config = parse_config(cluster, "cluster.yaml");
    setup.workload = path;
    setup.threads = threads;
    return setup;
  }
  Results run(const std::string& cluster, const Watch& watch = {}, std::uint32_t threads = 1) const {
    return Simulation(setup(cluster, threads)).run(watch);
  }
  std::string refusal(const std::string& cluster) const {
    try {
      run(cluster);
    } catch (const Error& error) {
      return fmt::format("{}: {}", static_cast<int>(error.code()), error.what());
    }
    return "accepted";
  }
  test::Directory directory;
  std::string path = directory.path() + "/jobs.yaml";
};

const std::string kStar =
    "{topology: {kind: star, hosts: 32, rate: 100 Gbps}, host: single_nic, compute: a100_80gb}";
const std::string kTree =
    "{topology: {kind: fat_tree, k: 4, rate: 100 Gbps}, host: single_nic, compute: a100_80gb}";

// A list of jobs; each one {name, workload and more}.
std::string jobs(const std::vector<std::string>& entries) {
  std::string text = "jobs:\n";
  for (const std::string& entry : entries) text += "  - {" + entry + "}\n";
  return text;
}

std::string gpt(const std::string& name, int data, const std::string& more = "") {
  return fmt::format(
      "name: {}, workload: {{kind: ptdp, model: {{layers: 2, hidden: 256, heads: 4, sequence: 128, "
      "vocabulary: "
      "1024}}, parallel: {{tensor: 2, data: {}}}, microbatch: 1, microbatches: 2, iterations: 3}}{}{}",
      name, data, more.empty() ? "" : ", ", more);
}

std::vector<Time> durations(const JobResult& job) {
  std::vector<Time> durations;
  Time before = job.begin;
  for (const Time end : job.iteration_ends) {
    durations.push_back(end - before);
    before = end;
  }
  return durations;
}

void expect_as_alone(const std::string& cluster, const std::vector<std::string>& entries) {
  const Results together = Written(jobs(entries)).run(cluster);
  ASSERT_EQ(together.outcome, Outcome::done);
  for (std::size_t number = 0; number < entries.size(); ++number) {
    const Results alone = Written(jobs({entries[number]})).run(cluster);
    const JobResult &one = alone.jobs.at(0), &other = together.jobs.at(number);
    EXPECT_EQ(durations(one), durations(other));
    EXPECT_EQ(one.iteration_ends, other.iteration_ends);
    for (std::size_t rank = 0; rank < one.rank_times.size(); ++rank) {
      EXPECT_EQ(one.rank_times[rank].compute, other.rank_times[rank].compute);
      EXPECT_EQ(one.rank_times[rank].exposed, other.rank_times[rank].exposed);
      EXPECT_EQ(one.rank_times[rank].idle, other.rank_times[rank].idle);
    }
  }
}

std::string at(const std::vector<int>& gpus, const test::Directory& directory, const std::string& name) {
  const std::string path = directory.path() + "/" + name + ".csv";
  std::ofstream file(path);
  file << "rank,host,gpu\n";
  for (std::size_t rank = 0; rank < gpus.size(); ++rank) file << rank << "," << gpus[rank] << ",0\n";
  return "placement: {kind: file, file: " + path + "}";
}

TEST(Jobs, OnAStarAreEachAsFastAsAlone) {
  const test::Directory directory;
  expect_as_alone(kStar,
                  {gpt("one", 2, at({0, 1, 2, 3}, directory, "one")),
                   gpt("two", 4, at({11, 4, 5, 6, 7, 8, 10, 9}, directory, "two") + ", arrival: 100 us")});
}

TEST(Jobs, InPodsOfTheirOwnAreEachAsFastAsAlone) {
  const test::Directory directory;
  expect_as_alone(kTree, {gpt("one", 2, at({0, 1, 2, 3}, directory, "one")),
                          gpt("two", 2, at({6, 5, 4, 7}, directory, "two") + ", arrival: 33 us"),
                          gpt("three", 2, at({8, 11, 9, 10}, directory, "three"))});
}

// ---- Fabrics that nothing joins

// A job on each of two clusters that stand in one configuration; `alone`: the clusters one by one.
void expect_as_on_its_own(const std::string& cluster, const std::vector<std::string>& alone,
                          const std::vector<std::string>& entries) {
  const Results together = Written(jobs(entries)).run(cluster);
  ASSERT_EQ(together.outcome, Outcome::done);
  for (std::size_t number = 0; number < entries.size(); ++number) {
    const Results own = Written(jobs({entries[number]})).run(alone[number]);
    ASSERT_EQ(own.outcome, Outcome::done);
    const JobResult &one = own.jobs.at(0), &other = together.jobs.at(number);
    EXPECT_EQ(one.iteration_ends, other.iteration_ends) << other.name;
    ASSERT_EQ(one.rank_times.size(), other.rank_times.size());
    for (std::size_t rank = 0; rank < one.rank_times.size(); ++rank) {
      EXPECT_EQ(one.rank_times[rank].exposed, other.rank_times[rank].exposed) << other.name << " " << rank;
      EXPECT_EQ(one.rank_times[rank].idle, other.rank_times[rank].idle) << other.name << " " << rank;
    }
  }
}

std::string torus(const std::string& more) { return "{kind: torus, rate: 400 Gbps, " + more + "}"; }

// Ties between directions, adaptive choices and the spraying of switches are those of each alone.
TEST(Jobs, OnSlicesThatNothingJoinsAreEachAsFastAsAlone) {
  using Names = std::vector<const char*>;
  for (const char* routing :
       test::by_size<Names>({"ecmp", "spray", "adaptive"}, {"adaptive"}, {"adaptive"})) {
    const std::string rest = std::string(", network: {switch: {marker: none, routing: ") + routing +
                             "}}, transport: {congestion_control: none, reliability: {kind: irn, "
                             "reorder_tolerance: 1000}}}";
    const std::string regular = torus("sizes: [2, 4, 4]"), twisted = torus("sizes: [4, 4, 8], twist: true");
    expect_as_on_its_own(
        "{fabrics: {a: " + regular + ", b: " + twisted +
            "}, hosts: [{kind: tpu_v4, count: 8, fabric: a}, {kind: tpu_v4, count: 32, fabric: b}]" + rest,
        {"{topology: " + regular + ", host: tpu_v4" + rest,
         "{topology: " + twisted + ", host: tpu_v4" + rest},
        {"name: one, workload: {kind: all_to_all, ranks: 32, bytes: 8 KiB}",
         "name: two, workload: {kind: all_to_all, ranks: 128, bytes: 4 KiB}"});
  }
}

// Hashes and marks of switches, NICs of the hosts, NVLinks: nothing knows how many there are before it.
TEST(Jobs, OnTreesThatNothingJoinsAreEachAsFastAsAlone) {
  const std::string small = "{kind: fat_tree, k: 4, rate: 100 Gbps}",
                    large = "{kind: fat_tree, k: 8, rate: 100 Gbps}";
  const std::string rest = ", compute: a100_80gb}";
  expect_as_on_its_own(
      "{fabrics: {a: " + small + ", b: " + large +
          "}, hosts: [{kind: single_nic, count: 16, fabric: a}, {kind: dgx_a100, count: 4, fabric: b}]" +
          rest,
      {"{topology: " + small + ", host: single_nic" + rest,
       "{topology: " + large + ", host: dgx_a100, hosts: 4" + rest},
      {"name: one, workload: {kind: all_to_all, ranks: 16, bytes: 200 kB}",
       "name: two, workload: {kind: collective, collective: all_reduce, ranks: 32, bytes: 4 MB}"});
}

TEST(Jobs, MessagesThatNoFabricCarriesAreRefusedByName) {
  const std::string cluster =
      "{fabrics: {a: {kind: star, hosts: 4}, b: {kind: star, hosts: 4}}, "
      "hosts: [{kind: single_nic, count: 4, fabric: a}, {kind: single_nic, count: 4, fabric: b}]}";
  EXPECT_EQ(Written(jobs({"name: one, workload: {kind: all_to_all, ranks: 4, bytes: 1 kB}",
                          "name: two, workload: {kind: all_to_all, ranks: 4, bytes: 1 kB}"}))
                .refusal(cluster),
            "accepted");
  EXPECT_THAT(
      Written(jobs({"name: one, workload: {kind: flows, ranks: 8, flows: [{from: 2, to: 5, bytes: 1 kB}]}"}))
          .refusal(cluster),
      ::testing::AllOf(HasSubstr("2: "), HasSubstr("GPU 2 (host2"), HasSubstr("in fabric a)"),
                       HasSubstr("GPU 5 (host5"), HasSubstr("in fabric b)"),
                       HasSubstr("no fabric joins them")));
}

// The shipped cluster of two slices.
TEST(Jobs, TheShippedSlicesAreEachAsFastAsAlone) {
  const auto run = [](const ConfigNode& config, const std::string& workload) {
    SimulationSetup setup;
    setup.config = config;
    setup.workload = workload;
    return Simulation(std::move(setup)).run({});
  };
  const ConfigNode both = load_config(source_directory() + "/configs/tpu_slices.yaml");
  const Results together = run(both, source_directory() + "/configs/jobs/tpu_slices.yaml");
  ASSERT_EQ(together.outcome, Outcome::done);
  std::vector<Time> ends;
  for (const JobResult& job : together.jobs) {
    ConfigNode alone = load_config(source_directory() + "/configs/tpu_slices.yaml");
    overlay_config(alone, "fabrics={scale_out: {kind: torus, sizes: [4, 4, 8], twist: " +
                              std::string(job.name == "twisted" ? "true" : "false") +
                              ", rate: 50 GB/s, delay: 100 ns, overhead: 0}}");
    overlay_config(alone, "hosts=[{kind: tpu_v4, count: 32}]");
    const Written workload("kind: all_to_all\nranks: 128\nbytes: 16 KiB\n");
    const Results own = run(alone, workload.path);
    EXPECT_EQ(own.jobs.at(0).iteration_ends, job.iteration_ends) << job.name;
    ends.push_back(job.iteration_ends.back());
  }
  EXPECT_GT(static_cast<double>(ends.at(0)), 1.4 * static_cast<double>(ends.at(1)));
}

TEST(Jobs, OneJobOfAListIsTheJobAlone) {
  const Written list(jobs({gpt("one", 4)}));
  const std::string entry = gpt("one", 4);
  const std::size_t begin = entry.find("{kind");
  const Written plain(entry.substr(begin));
  const Results a = list.run(kStar), b = plain.run(kStar);
  EXPECT_EQ(a.fingerprints.results, b.fingerprints.results);
  EXPECT_EQ(a.fingerprints.packets, b.fingerprints.packets);
  EXPECT_EQ(a.fingerprints.events, b.fingerprints.events);
}

std::string flow(const std::string& name, const std::string& more) {
  return "name: " + name + ", workload: {kind: flows, ranks: 2, flows: [{from: 0, to: 1, bytes: 20 MB}]}, " +
         more;
}

// Both send 20 MB into one link: alone each takes 1.6 ms and a bit, together the link is busy for both.
TEST(Jobs, ThatShareALinkSlowEachOtherDownAndTheLinkCarriesBoth) {
  const test::Directory directory;
  const std::string share = ", share: true}";
  const auto placed = [&](const std::vector<int>& gpus, const std::string& name) {
    std::string text = at(gpus, directory, name);
    return text.substr(0, text.size() - 1) + share;
  };
  const std::string one = flow("one", placed({0, 2}, "one"));
  const std::string two = flow("two", placed({1, 2}, "two"));
  const std::string lossless = kStar.substr(0, kStar.size() - 1) + ", transport: {congestion_control: none}}";
  const Results alone = Written(jobs({one})).run(lossless), both = Written(jobs({one, two})).run(lossless);
  const Time single = alone.jobs[0].end;
  const Time first = both.jobs[0].end, second = both.jobs[1].end;
  EXPECT_GT(first, single * 3 / 2);
  EXPECT_GT(second, single * 3 / 2);
  EXPECT_NEAR(static_cast<double>(std::max(first, second)), 2.0 * static_cast<double>(single),
              0.03 * static_cast<double>(single));
  EXPECT_EQ(both.network.bytes_delivered, 40'000'000);
  EXPECT_EQ(both.flows.count, 2U);
}

TEST(Jobs, ThatShareGpusSaySoOrWait) {
  const Results waiting = Written(jobs({gpt("one", 4), gpt("two", 16, "placement: packed")})).run(kStar);
  ASSERT_EQ(waiting.outcome, Outcome::done);
  EXPECT_GT(waiting.jobs[1].begin, waiting.jobs[0].end);
  const std::string share = "placement: {kind: packed, share: true}";
  const Results shared = Written(jobs({gpt("one", 4, share), gpt("two", 4, share)})).run(kStar);
  const Results alone = Written(jobs({gpt("one", 4, share)})).run(kStar);
  ASSERT_EQ(shared.outcome, Outcome::done);
  EXPECT_EQ(shared.jobs[0].gpus, shared.jobs[1].gpus);
  EXPECT_GT(shared.jobs[0].end, alone.jobs[0].end);
  EXPECT_GT(shared.jobs[0].rank_times[0].compute, alone.jobs[0].rank_times[0].compute * 11 / 10);
}

TEST(Jobs, OneThatUntilCutsOffIsNotDoneAndOneBeyondItHasNotBegun) {
  const Written written(
      jobs({gpt("done", 2), gpt("cut", 2, "arrival: 10 ms"), gpt("never", 2, "arrival: 1 s")}));
  const Time whole = written.run(kStar).jobs.at(0).end;
  Watch watch;
  watch.until = 10 * kMillisecond + whole / 2;
  ASSERT_LT(whole, 10 * kMillisecond);
  const Results results = written.run(kStar, watch);
  EXPECT_EQ(results.outcome, Outcome::limit);
  EXPECT_TRUE(results.jobs[0].done);
  EXPECT_TRUE(results.jobs[1].begun);
  EXPECT_FALSE(results.jobs[1].done);
  EXPECT_EQ(results.jobs[1].arrival, 10 * kMillisecond);
  EXPECT_GT(results.jobs[1].tasks_done, 0U);
  EXPECT_FALSE(results.jobs[2].begun);
  EXPECT_EQ(results.jobs[2].tasks_done, 0U);
}

TEST(JobsThreads, DoNotShowInSixteenJobsOn128Gpus) {
  std::vector<std::string> entries;
  entries.reserve(16);
  for (int job = 0; job < 16; ++job) {
    entries.push_back(gpt("job" + std::to_string(job), 4,
                          fmt::format("arrival: {} us, placement: {{kind: {}}}", 37 * job,
                                      job % 2 == 0 ? "random" : "packed")));
  }
  const std::string cluster =
      "{topology: {kind: fat_tree, k: 8, rate: 100 Gbps}, host: single_nic, compute: a100_80gb}";
  const Written written(jobs(entries));
  const Results one = written.run(cluster), two = written.run(cluster, {}, 2);
  EXPECT_EQ(one.outcome, Outcome::done);
  EXPECT_EQ(one.jobs.size(), 16U);
  EXPECT_EQ(one.fingerprints.results, two.fingerprints.results);
  EXPECT_EQ(one.fingerprints.packets, two.fingerprints.packets);
  EXPECT_EQ(one.fingerprints.events, two.fingerprints.events);
}

TEST(JobsBadInput, HasOnePlaceAndOneExitCode) {
  const auto refused = [](const std::string& text) {
    const Written written(text);
    const std::string message = written.refusal(kStar);
    const std::size_t file = message.find(written.path);
    return file == std::string::npos ? message
                                     : message.substr(0, file) + message.substr(file + written.path.size());
  };
  EXPECT_THAT(refused("jobs: 3\n"), HasSubstr("3: :1:7: jobs: a sequence of"));
  EXPECT_THAT(refused("jobs: [{name: a}]\n"), HasSubstr("'workload' is missing"));
  EXPECT_THAT(refused(jobs({gpt("a", 2), gpt("a", 2)})), HasSubstr("a second job is called 'a'"));
  EXPECT_THAT(refused(jobs({gpt("a", 2, "arrival: 5")})), HasSubstr("3: :2:"));
  EXPECT_THAT(refused(jobs({gpt("a", 2, "placement: {kind: packt}")})), HasSubstr("did you mean 'packed'"));
  EXPECT_THAT(refused(jobs({"name: a, workload: nowhere.pb"})), HasSubstr("4: "));
  EXPECT_THAT(refused("jobs: []\nworkload: x\n"), HasSubstr("unknown key 'workload'"));
  const Written nested("jobs: [{name: a, workload: jobs.yaml}]\n");
  EXPECT_THAT(nested.refusal(kStar), HasSubstr("a job itself cannot be one"));
}

// ---- Made of objects, step by step

SimulationSetup made_of_objects(const Written& written) {
  SimulationSetup setup = written.setup(kStar);
  setup.jobs = load_jobs(setup.workload, WorkloadContext(32));
  setup.workload = {};
  return setup;
}

TEST(SimulationObjects, AnswerAsTheFilesDo) {
  const Written written(jobs({gpt("one", 2), gpt("two", 2, "arrival: 20 us")}));
  Simulation simulation(made_of_objects(written));
  std::vector<std::tuple<std::uint32_t, std::uint32_t, Time>> iterations;
  simulation.on_iteration([&](std::uint32_t job, std::uint32_t iteration, Time end) {
    iterations.emplace_back(job, iteration, end);
  });
  simulation.begin();
  EXPECT_TRUE(simulation.state().jobs.at(0).begun);
  EXPECT_FALSE(simulation.state().jobs.at(1).begun);
  while (simulation.step(15 * kMicrosecond)) {
  }
  EXPECT_LE(simulation.state().now, 15 * kMicrosecond);
  EXPECT_FALSE(simulation.state().done);
  while (simulation.step()) {
  }
  EXPECT_TRUE(simulation.state().done);
  const Results stepped = simulation.results(), whole = written.run(kStar);
  EXPECT_EQ(stepped.outcome, Outcome::done);
  EXPECT_EQ(stepped.fingerprints.results, whole.fingerprints.results);
  EXPECT_EQ(stepped.fingerprints.events, whole.fingerprints.events);
  ASSERT_EQ(iterations.size(), 6U);
  for (const auto& [job, iteration, end] : iterations)
    EXPECT_EQ(end, whole.jobs.at(job).iteration_ends.at(iteration));
}

TEST(SimulationObjects, TwoInOneProcessDoNotMeet) {
  const Written written(jobs({gpt("one", 4)}));
  const Results alone = written.run(kStar);
  Simulation first(written.setup(kStar)), second(written.setup(kTree));
  first.begin();
  second.begin();
  for (bool more = true; more;) {
    const bool one = first.step(), other = second.step();
    more = one || other;
  }
  EXPECT_EQ(first.results().fingerprints.results, alone.fingerprints.results);
  EXPECT_EQ(second.results().outcome, Outcome::done);
}

}  // namespace
}  // namespace netsim::jobs_test
