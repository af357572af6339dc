// Does every moment of failure, in every setting of checkpoints, end in a right answer? Each run is compared
// with the same run without failures, which it equals up to the failure, and with the rules of
// sim/recovery.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/random.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"

namespace netsim::failure_search_test {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kIterations = 5;
constexpr int kTrainers = 4;  // ranks, each on a host of its own
constexpr Time kLate = 30 * kMillisecond;

// Four ranks on host1 and the next ones; a storage server, host0, before them and `spares` hosts behind.
struct Setting {
  const char* name;
  const char* parallel;
  std::uint32_t every;
  bool asynchronous, divided;
  Time detection, restart;
  int spares;
};

constexpr Setting kSettings[] = {
    {"synchronous, each iteration", "{data: 4}", 1, false, true, 20 * kMicrosecond, 5 * kMillisecond, 1},
    {"synchronous, long detection", "{tensor: 2, data: 2}", 2, false, false, kLate, 5 * kMillisecond, 0},
    {"asynchronous, each iteration", "{tensor: 2, data: 2}", 1, true, false, kLate, 5 * kMillisecond, 1},
    {"asynchronous, short detection", "{data: 4}", 2, true, true, 20 * kMicrosecond, 5 * kMillisecond, 0},
    {"synchronous, behind the last", "{data: 4}", 5, false, true, 200 * kMicrosecond, 5 * kMillisecond, 1},
    {"asynchronous, behind the last", "{data: 4}", 5, true, false, 4 * kMillisecond, 5 * kMillisecond, 0},
};
constexpr Setting kNeverSaves = {"fewer iterations", "{data: 4}",      7, false, true,
                                 1 * kMillisecond,   5 * kMillisecond, 0};

struct Failure {
  int host;
  Time at;
};

struct Engines {
  std::uint32_t threads = 1, sets = 1;
};

class Search {
 public:
  explicit Search(const Setting& setting, bool recovers = true) : setting_(setting) {
    write_job("");
    training_ = run({}).jobs.at(0).end;
    write_job(
        fmt::format(", checkpoint: {{every: {}, asynchronous: {}, divided: {}, piece: 256 KB, "
                    "write_rate: 30 Gbps}}{}",
                    setting.every, setting.asynchronous, setting.divided,
                    recovers ? fmt::format(", recovery: {{detection: {} ps, restart: {} ps}}",
                                           setting.detection, setting.restart)
                             : ""));
    whole_ = run({}).jobs.at(0);
  }

  Results run(const std::vector<Failure>& failures, Engines engines = {}) {
    std::string list;
    for (const Failure& failure : failures)
      list +=
          fmt::format("{}{{host: host{}, at: {} ps}}", list.empty() ? "" : ", ", failure.host, failure.at);
    SimulationSetup setup;
    setup.config = parse_config(
        fmt::format("{{topology: {{kind: star, hosts: 8, rate: 100 Gbps}}, hosts: [{{kind: storage_server, "
                    "count: 1, nics: 1}}, {{kind: single_nic, count: {}}}], compute: h100_sxm, "
                    "network: {{switch: {{marker: none}}}}, gpus: {{slowdown_beside_communication: 1.5, "
                    "failures: [{}]}}, engine: {{sets: {}}}}}",
                    kTrainers + setting_.spares, list, engines.sets),
        "cluster.yaml");
    setup.workload = path_;
    setup.threads = engines.threads;
    Simulation simulation(std::move(setup));
    Results results = simulation.run({});
    placements_.clear();
    for (std::uint32_t job = 0; job < simulation.jobs(); ++job)
      placements_.push_back(simulation.placement(job));
    ++runs_;
    return results;
  }

  // Checks a run with one failure. Host 0 is the storage server.
  void one(const Failure& failure) {
    SCOPED_TRACE(fmt::format("{}: host{} at {} ps", setting_.name, failure.host, failure.at));
    const Results results = run({failure});
    ASSERT_EQ(results.outcome, Outcome::done);
    check_chain(results, {failure});
    if (results.jobs.size() == 1) return alone(results.jobs[0], failure.at);
    ASSERT_EQ(results.jobs.size(), 2U);
    const JobResult& rest = results.jobs[1];
    const JobRecovery& recovery = *rest.recovery;
    const std::uint32_t saved = kIterations - rest.iterations.value();
    const Time down = setting_.detection + setting_.restart;
    EXPECT_EQ(recovery.restarts, 1U);
    EXPECT_EQ(recovery.down, down);
    EXPECT_EQ(rest.begin, failure.at + down);
    check_saved(saved, failure.at);
    check_lost(recovery, saved, failure.at);
    if (saved == 0) {
      ++anew_;
      EXPECT_EQ(recovery.lost, failure.at);
    }
    const bool spare = failure.host != 0 && setting_.spares > 0;
    // It is the run without failures, later, as nothing of the job that was stopped is in its way. A spare
    // host changes the order of the rings.
    if (saved == 0 && !spare) {
      EXPECT_EQ(rest.end - rest.begin, whole_.end);
    }
    const auto ranks_there = std::count(placements_[1].begin(), placements_[1].end(), failure.host);
    EXPECT_EQ(ranks_there, spare ? 0 : 1);
  }

  // Checks a run with any failures.
  void several(const std::vector<Failure>& failures) {
    std::string all;
    for (const Failure& failure : failures) all += fmt::format(" host{} at {} ps", failure.host, failure.at);
    SCOPED_TRACE(fmt::format("{}:{}", setting_.name, all));
    const Results results = run(failures);
    ASSERT_EQ(results.outcome, Outcome::done);
    check_chain(results, failures);
    restarts_ += static_cast<int>(results.jobs.size()) - 1;
  }

  void same(const std::vector<Failure>& failures) {
    const Results one = run(failures);
    for (const Engines engines : {Engines{1, 3}, Engines{2, 2}, Engines{2, 5}, Engines{4, 4}}) {
      SCOPED_TRACE(fmt::format("{}: {} threads, {} sets", setting_.name, engines.threads, engines.sets));
      const Results other = run(failures, engines);
      EXPECT_EQ(one.fingerprints.results, other.fingerprints.results);
      EXPECT_EQ(one.fingerprints.packets, other.fingerprints.packets);
      ASSERT_EQ(one.jobs.size(), other.jobs.size());
      const auto &a = one.jobs.back().recovery, &b = other.jobs.back().recovery;
      ASSERT_EQ(a.has_value(), b.has_value());
      if (!a) continue;
      EXPECT_EQ(a->whole, b->whole);
      EXPECT_EQ(a->lost, b->lost);
      EXPECT_EQ(a->io, b->io);
      EXPECT_EQ(a->repeated, b->repeated);
    }
  }

  // Moments over the whole job and a little more, and close to the ends of iterations and checkpoints.
  std::vector<Time> moments(int evenly, const std::vector<Time>& beside) const {
    std::set<Time> moments;
    for (int i = 0; i < evenly; ++i) moments.insert(whole_.end * i / (evenly - 1));
    for (const Time end : whole_.iteration_ends) {
      for (const Time more : beside) moments.insert(std::max<Time>(0, end + more));
    }
    return {moments.begin(), moments.end()};
  }

  const JobResult& whole() const { return whole_; }
  const Setting& setting() const { return setting_; }
  int runs() const { return runs_; }
  int anew() const { return anew_; }
  int complete() const { return complete_; }
  int untouched() const { return untouched_; }
  int saved_after() const { return saved_after_; }
  int restarts() const { return restarts_; }

 private:
  void write_job(const std::string& more) const {
    std::ofstream(path_) << fmt::format(
        "{{kind: ptdp, name: gpt, model: {{layers: 1, hidden: 128, heads: 4, sequence: 64, vocabulary: "
        "256}}, "
        "parallel: {}, optimizer: distributed_adam, iterations: {}{}}}",
        setting_.parallel, kIterations, more);
  }

  // The job is one: it had ended, or does in spite of the failure, or all of it is saved.
  void alone(const JobResult& job, Time failed) {
    EXPECT_EQ(job.iteration_ends.size(), kIterations);
    if (!job.recovery) {
      ++untouched_;
      EXPECT_EQ(job.end, whole_.end);
      return;
    }
    ++complete_;
    EXPECT_EQ(kIterations % setting_.every, 0U);
    EXPECT_EQ(job.end, failed + setting_.detection);
    EXPECT_EQ(job.recovery->restarts, 0U);
    EXPECT_EQ(job.recovery->lost, 0);
    EXPECT_EQ(job.recovery->down, setting_.detection);
    EXPECT_EQ(job.recovery->repeated, 0U);
  }

  // Checks which of the jobs is done, with how many iterations, and the costs. The jobs' begins and ends say
  // how long the job was up.
  void check_chain(const Results& results, const std::vector<Failure>& failures) {
    std::uint32_t left = kIterations;
    Time up = 0;
    for (std::size_t i = 0; i < results.jobs.size(); ++i) {
      const JobResult& job = results.jobs[i];
      const bool last = i + 1 == results.jobs.size();
      EXPECT_EQ(job.done, last);
      EXPECT_EQ(job.stopped, !last);
      EXPECT_EQ(job.recovery.has_value(), last && (i > 0 || job.recovery.has_value()));
      EXPECT_LE(job.iterations.value(), left);
      EXPECT_EQ((left - job.iterations.value()) % setting_.every, 0U);
      left = job.iterations.value();
      EXPECT_LE(job.iteration_ends.size(), left);
      if (last) {
        EXPECT_EQ(job.iteration_ends.size(), left);
      }
      EXPECT_TRUE(std::is_sorted(job.iteration_ends.begin(), job.iteration_ends.end()));
      EXPECT_GT(left, 0U);
      up += up_time(job, placements_[i], failures);
    }
    const JobResult& end = results.jobs.back();
    if (!end.recovery) return;
    const JobRecovery& recovery = *end.recovery;
    EXPECT_EQ(recovery.restarts, results.jobs.size() - 1);
    EXPECT_EQ(recovery.whole, end.end - results.jobs.front().begin);
    EXPECT_EQ(recovery.whole - recovery.down, up);
    EXPECT_EQ(recovery.useful() + recovery.lost + recovery.down + recovery.io, recovery.whole);
    EXPECT_GE(recovery.lost, 0);
    EXPECT_GE(recovery.io, 0);
    EXPECT_GE(recovery.useful(), training_ - (recovery.restarts + 1) * training_ / kIterations);
    if (!setting_.asynchronous) {
      EXPECT_LE(recovery.useful(), training_ + training_ / 10);
    }
    EXPECT_GE(recovery.down, 0);
    EXPECT_LE(recovery.lost, up);
    EXPECT_GT(recovery.goodput(), 0);
    EXPECT_LE(recovery.goodput(), 1);
  }

  // Until the first failure of one of its hosts, or the end. GPU g is on host g.
  static Time up_time(const JobResult& job, const std::vector<GpuId>& gpus,
                      const std::vector<Failure>& failures) {
    Time end = job.end;
    for (const Failure& failure : failures) {
      const bool on_it = std::count(gpus.begin(), gpus.end(), failure.host) > 0;
      if (on_it && failure.at >= job.begin) end = std::min(end, failure.at);
    }
    return end - job.begin;
  }

  // A checkpoint is saved if all ranks knew of it before the failure. The others need the failed rank for
  // each further iteration, so that they finish at most one without it.
  void check_saved(std::uint32_t saved, Time failed) {
    const std::uint32_t ended = ended_before(failed);
    EXPECT_EQ(saved % setting_.every, 0U);
    if (setting_.asynchronous) return;
    EXPECT_GE(saved, ended / setting_.every * setting_.every);
    EXPECT_LE(saved, (ended + 1) / setting_.every * setting_.every);
    if (saved > ended) ++saved_after_;
  }

  // A synchronous iteration is passed when it ends; nothing else is known from outside.
  void check_lost(const JobRecovery& recovery, std::uint32_t saved, Time failed) {
    if (setting_.asynchronous) {
      EXPECT_LE(recovery.lost, failed - saved * (training_ / kIterations) / 2);
      return;
    }
    const Time kept = saved == 0 ? 0 : std::min(failed, whole_.iteration_ends.at(saved - 1));
    EXPECT_EQ(recovery.lost, failed - kept);
    EXPECT_EQ(recovery.repeated, std::max(ended_before(failed), saved) - saved);
  }

  std::uint32_t ended_before(Time time) const {
    const auto& ends = whole_.iteration_ends;
    return static_cast<std::uint32_t>(std::upper_bound(ends.begin(), ends.end(), time - 1) - ends.begin());
  }

  Setting setting_;
  test::Directory directory_;
  std::string path_ = directory_.path() + "/job.yaml";
  JobResult whole_;
  Time training_ = 0;  // the job without checkpoints
  std::vector<std::vector<GpuId>> placements_;
  int runs_ = 0, anew_ = 0, complete_ = 0, untouched_ = 0, saved_after_ = 0, restarts_ = 0;
};

TEST(FailureSearch, EveryMomentOfFailure) {
  int runs = 0, anew = 0, complete = 0, untouched = 0, saved_after = 0;
  for (const Setting& setting : kSettings) {
    Search search(setting);
    int host = 0;
    for (const Time moment : search.moments(8, {-20 * kMicrosecond, 0, 1}))
      search.one({host++ % (kTrainers + 1), moment});
    runs += search.runs();
    anew += search.anew();
    complete += search.complete();
    untouched += search.untouched();
    saved_after += search.saved_after();
  }
  EXPECT_GE(runs, 100);
  // Each kind of answer occurs.
  EXPECT_GT(anew, 0);
  EXPECT_GT(complete, 0);
  EXPECT_GT(untouched, 0);
  EXPECT_GT(saved_after, 0);
}

// 2,000 runs and more: the storage server, a rank that writes, one that need not.
TEST(LongFailureSearch, EveryMomentOfFailure) {
  int runs = 0, anew = 0, complete = 0, untouched = 0, saved_after = 0;
  const std::vector<Time> beside = {-100 * kMicrosecond,
                                    -30 * kMicrosecond,
                                    -10 * kMicrosecond,
                                    -3 * kMicrosecond,
                                    -1 * kMicrosecond,
                                    -1 * kNanosecond,
                                    -1,
                                    0,
                                    1,
                                    1 * kNanosecond,
                                    1 * kMicrosecond,
                                    10 * kMicrosecond};
  for (const Setting& setting : kSettings) {
    Search search(setting);
    for (const Time moment : search.moments(60, beside)) {
      for (const int host : {0, 1, 4}) search.one({host, moment});
    }
    runs += search.runs();
    anew += search.anew();
    complete += search.complete();
    untouched += search.untouched();
    saved_after += search.saved_after();
    fmt::print("{}: {} runs end after {}\n", setting.name, search.runs(), format_time(search.whole().end));
  }
  EXPECT_GE(runs, 2000);
  fmt::print(
      "{} runs: {} begin anew, {} are complete, {} had ended, {} save an iteration after the failure\n", runs,
      anew, complete, untouched, saved_after);
}

// Failures of any hosts, spares among them: while the job runs, is down, reads its checkpoint, again and
// again.
void search_several(int count) {
  int runs = 0, restarts = 0;
  for (const Setting& setting : kSettings) {
    Search search(setting);
    RandomStream random(1, setting.name);
    const Time down = setting.detection + setting.restart;
    for (int i = 0; i < count; ++i) {
      std::vector<Failure> failures;
      for (int more = 2 + i % 4; more > 0; --more) {
        // Every second one while the first job runs, the others in all the time that restarts may take.
        const Time span = more % 2 == 0 ? search.whole().end : 2 * (search.whole().end + down);
        const auto at = static_cast<Time>(random.below(static_cast<std::uint64_t>(span)));
        const auto hosts = static_cast<std::uint64_t>(kTrainers + 1 + setting.spares);
        failures.push_back({static_cast<int>(random.below(hosts)), at});
      }
      search.several(failures);
    }
    runs += search.runs();
    restarts += search.restarts();
  }
  EXPECT_GT(restarts, runs / 2);
  fmt::print("{} runs, {} restarts\n", runs, restarts);
}
TEST(FailureSearch, SeveralFailures) { search_several(5); }
TEST(LongFailureSearch, SeveralFailures) { search_several(120); }

TEST(FailureSearchThreads, DoNotShowInAnyNumberOfSets) {
  for (const Setting& setting : {kSettings[1], kSettings[2], kSettings[4]}) {
    Search search(setting);
    const Time end = search.whole().end;
    search.same({{2, end / 2}, {0, end + setting.detection + setting.restart}});
    search.same({{3, search.whole().iteration_ends.back() - 10 * kMicrosecond}});
  }
}

// The restart is not put off by a failure before it, but by that of another host: both have to be mended.
TEST(FailureSearch, AnotherHostFailsWhileTheJobIsDown) {
  const Setting& setting = kSettings[1];
  Search search(setting);
  const Time first = search.whole().end / 2, second = first + setting.detection + setting.restart - 1;
  const Results results = search.run({{2, first}, {2, second}, {3, second}});
  ASSERT_EQ(results.jobs.size(), 2U);
  EXPECT_EQ(results.jobs[0].end, first + setting.detection);
  EXPECT_EQ(results.jobs[1].begin, second + setting.detection + setting.restart);
  EXPECT_EQ(results.jobs[1].recovery->down, results.jobs[1].begin - first);
}

// A failure while the checkpoint is read loses the time since the restart, and nothing that was saved.
TEST(FailureSearch, AnotherHostFailsWhileTheCheckpointIsRead) {
  const Setting& setting = kSettings[0];
  Search search(setting);
  const Time first = search.whole().iteration_ends.at(2) + 1;
  const Time down = setting.detection + setting.restart, second = first + down + 10 * kMicrosecond;
  const Results results = search.run({{2, first}, {3, second}});
  ASSERT_EQ(results.jobs.size(), 3U);
  EXPECT_EQ(results.jobs[1].iteration_ends.size(), 0U);
  EXPECT_EQ(results.jobs[1].iterations, 2U);
  EXPECT_EQ(results.jobs[2].iterations, 2U);
  EXPECT_EQ(results.jobs[2].recovery->down, 2 * down);
  EXPECT_EQ(results.jobs[2].recovery->lost, 1 + 10 * kMicrosecond);
}

TEST(FailureSearch, NothingIsSavedBehindMoreIterationsThanThereAre) {
  Search search(kNeverSaves);
  for (const Time moment : search.moments(3, {-1})) search.one({2, moment});
}

// A job without recovery stalls, and the first line says why.
TEST(FailureSearch, AStallNamesTheFailure) {
  for (const Setting& setting : {kSettings[0], kSettings[3]}) {
    Search search(setting, false);
    for (const Time moment : search.moments(3, {-1})) {
      if (moment >= search.whole().iteration_ends.at(3)) continue;  // the host may have nothing left to do
      SCOPED_TRACE(moment);
      const Results results = search.run({{2, moment}});
      ASSERT_EQ(results.outcome, Outcome::stalled);
      EXPECT_THAT(results.waiting.front(), HasSubstr("host2 failed at " + format_time(moment)));
    }
  }
}

}  // namespace
}  // namespace netsim::failure_search_test
