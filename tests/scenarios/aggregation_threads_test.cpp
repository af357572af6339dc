// Do switches that add up keep their promises on random fabrics, with losses, outages and several tenants?
// Results do not depend on sets and threads, and packets and bytes are conserved. A run that does not end
// names what waits for what.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/random.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/test_size.h"

namespace netsim::aggregation_threads_test {
namespace {

// An algorithm whose sums are made in switches. `parameters` are those besides its kind. `any_switch`: it
// works with any subset of switches. `losses`: it repairs random losses.
struct Algorithm {
  const char* name;
  const char* parameters;
  bool any_switch, losses;
};
const std::vector<Algorithm> kAlgorithms{
    {"switchml", ", slots: 32, payload: 256 B, timeout: 60 us", true, true},
    {"sharp", "", false, true},
    {"netreduce", "", true, true},
};

struct Division {
  std::uint32_t sets, threads;
};

class Fabric {
 public:
  explicit Fabric(std::uint64_t seed) : draws_(seed, "fabric with aggregation") {
    algorithm_ = kAlgorithms[draws_.below(kAlgorithms.size())];
    star_ = draws_.below(3) == 0;
    hosts_ = star_ ? static_cast<std::uint32_t>(3 + draws_.below(6)) : 16;
    delay_ = 150 + 50 * draws_.below(20);
    choose_switches();
    choose_faults();
    write_jobs();
  }

  bool star() const { return star_; }
  std::string text() const {
    return fmt::format(
        "topology: {{kind: {}, rate: 100 Gbps, delay: {} ns}}\n"
        "host: single_nic\n"
        "network: {{detection_delay: 20 us, switch: {{marker: none, aggregation: true{}}}, faults: [{}]}}\n"
        "transport: {{congestion_control: none, retransmission_timeout: 100 us, nic_priorities: {}}}\n"
        "collectives: {{all_reduce: {{kind: {}{}}}}}\n",
        star_ ? fmt::format("star, hosts: {}", hosts_) : "fat_tree, k: 4", delay_, switches_, faults_,
        1 + draws_twice_, algorithm_.name, algorithm_.parameters);
  }
  const std::string& jobs() const { return jobs_; }

 private:
  bool toss() { return draws_.below(2) == 0; }

  // One switch, all, or in a fat tree only those of one tier.
  void choose_switches() {
    draws_twice_ = static_cast<std::uint32_t>(draws_.below(2));
    if (star_ || !algorithm_.any_switch || toss()) return;
    const std::vector<std::string> choices{"edge0, edge1, edge2, edge3, edge4, edge5, edge6, edge7",
                                           "core0, core1, core2, core3", "edge0", "agg0, agg1, edge3"};
    switches_ = ", aggregation_switches: [" + choices[draws_.below(choices.size())] + "]";
  }
  void add_fault(const std::string& fault) { faults_ += (faults_.empty() ? "" : ", ") + fault; }
  void choose_faults() {
    const std::string name = star_ ? "switch0" : fmt::format("edge{}", draws_.below(8));
    if (algorithm_.losses && draws_.below(4) != 0)
      add_fault(fmt::format("{{switch: {}, loss: {}}}", name, toss() ? "1e-2" : "1e-3"));
    if (toss()) return;
    const std::uint64_t down = draws_.below(300), up = down + 1 + draws_.below(200);
    const std::string link = star_ ? fmt::format("host{}-switch0", draws_.below(hosts_))
                                   : fmt::format("edge{}-agg{}", draws_.below(2), draws_.below(2));
    add_fault(fmt::format("{{link: {}, down: {} us{}}}", link, down,
                          draws_.below(4) == 0 ? "" : fmt::format(", up: {} us", up)));
  }
  // One to three tenants on hosts of their own.
  void write_jobs() {
    jobs_ = "jobs:\n";
    std::uint32_t left = hosts_;
    for (std::uint64_t job = 0, all = 1 + draws_.below(3); job < all && left >= 2; ++job) {
      const std::uint32_t ranks =
          job + 1 == all ? left : 2 + static_cast<std::uint32_t>(draws_.below(left - 1));
      left -= ranks;
      jobs_ += fmt::format(
          "  - {{name: job{}, arrival: {} us, workload: {{kind: collective, collective: all_reduce, bytes: "
          "{} "
          "B, ranks: {}, repeat: {}}}}}\n",
          job, draws_.below(60), 1000 + draws_.below(150'000), ranks, 1 + draws_.below(4));
    }
  }

  RandomStream draws_;
  Algorithm algorithm_;
  bool star_ = false;
  std::uint32_t hosts_ = 0, draws_twice_ = 0;
  std::uint64_t delay_ = 0;
  std::string switches_, faults_, jobs_;
};

// Told holds what a run tells: its fingerprints and tables, or its error.
struct Told {
  std::string text;
  bool done = false;
  Results results;
};

Told run(const Fabric& fabric, Division division) {
  const test::Directory directory;
  SimulationSetup setup;
  setup.workload = directory.path() + "/jobs.yaml";
  std::ofstream(setup.workload.text()) << fabric.jobs();
  setup.config =
      parse_config(fabric.text() + fmt::format("engine: {{sets: {}}}\n", division.sets), "fabric.yaml");
  setup.threads = division.threads;
  Told told;
  try {
    Watch watch;
    watch.until = 10 * kSecond;
    told.results = Simulation(std::move(setup)).run(watch);
  } catch (const std::exception& error) {
    told.text = error.what();
    told.text.erase(0, told.text.find("jobs.yaml"));  // the directory differs from run to run
    EXPECT_NE(told.text.find("link"), std::string::npos)
        << "the error does not name its cause: " << told.text;
    return told;
  }
  const Results& r = told.results;
  told.done = r.outcome == Outcome::done;
  told.text =
      fmt::format("{} {:x} {:x} {:x} {} events, {} ps\n", to_string(r.outcome), r.fingerprints.results,
                  r.fingerprints.packets, r.fingerprints.events, r.events, r.simulated);
  for (const AggregationResult& one : r.aggregation) {
    const AggregationCounters& c = one.use.counters;
    told.text += fmt::format("{}: {} {} {} {} {} {} {}\n", one.name, c.packets, c.bytes, c.sums, c.repeated,
                             c.discarded, one.use.memory, one.use.trees);
  }
  for (const std::string& line : r.waiting) told.text += "waits: " + line + "\n";
  for (const std::string& line : r.notes) told.text += "note: " + line + "\n";
  const bool names_link = std::any_of(r.waiting.begin(), r.waiting.end(), [](const std::string& line) {
    return line.find("which is down since") != std::string::npos;
  });
  EXPECT_TRUE(told.done || (r.outcome == Outcome::stalled && names_link))
      << "nothing names the link that the run waits for: " << told.text;
  return told;
}

// Packets that come to the switch of a star are added, or have come before. It sends a copy to each worker
// for each packet of a sum, and one for each that came again when its sum was complete. Copies that a link
// has lost and sent again count twice there.
void expect_conserved(const Results& results) {
  AggregationCounters added;
  for (const AggregationResult& one : results.aggregation) added += one.use.counters;
  std::uint64_t up = 0, down = 0;
  for (const LinkResult& link : results.links) {
    const std::uint64_t arrived = link.counters.data_packets - link.counters.lost;
    if (link.name.starts_with("switch0->")) down += link.counters.data_packets - link.counters.link_repeats;
    if (link.name.ends_with("->switch0")) up += arrived;
  }
  EXPECT_EQ(up, added.packets + added.repeated + added.discarded);
  EXPECT_EQ(down, added.packets + added.repeated);
}

TEST(AggregationThreads, RandomFabricsDoNotDependOnSetsAndThreads) {
  const std::uint64_t cases = test::by_size<std::uint64_t>(100, 12, 6);
  std::uint64_t done = 0, repeated = 0, others = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const Fabric fabric(seed);
    SCOPED_TRACE(fmt::format("seed {}\n{}{}", seed, fabric.text(), fabric.jobs()));
    const Told one = run(fabric, {1, 1});
    const auto sets = static_cast<std::uint32_t>(2 + seed % 9);
    for (const Division division : {Division{sets, 1}, {sets, 2}, {16, 4}, {0, 8}}) {
      EXPECT_EQ(run(fabric, division).text, one.text)
          << division.sets << " sets, " << division.threads << " threads";
    }
    done += one.done ? 1 : 0;
    others += one.done ? 0 : 1;
    if (!one.done) continue;
    EXPECT_EQ(one.results.network.bytes_sent, one.results.network.bytes_delivered);
    for (const AggregationResult& switch_used : one.results.aggregation)
      repeated += switch_used.use.counters.repeated;
    if (fabric.star()) expect_conserved(one.results);
  }
  EXPECT_GT(done, cases / 3);
  EXPECT_GT(repeated, 0U);
  if (test::full_size()) {
    EXPECT_GT(others, 0U);
  }
}

}  // namespace
}  // namespace netsim::aggregation_threads_test
