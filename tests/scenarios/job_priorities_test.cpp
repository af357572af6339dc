// Two jobs share links, and one of them goes first. It is delayed by at most a packet a link. The other one
// gets exactly what is left.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "sim/core/config.h"
#include "sim/core/random.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/test_size.h"

namespace netsim::job_priorities_test {
namespace {

// Sharing: two senders to two receivers, and the links that both jobs cross.
struct Sharing {
  const char* name;
  std::string configuration;
  const char *high, *low;       // what makes the jobs differ
  const char *from[2], *to[2];  // host,gpu of the ranks, by job
  Time links = 0;               // shared ones
  const char* bottleneck;       // the slowest of these
};

const Sharing kClasses{
    "classes of switches",
    "{topology: {kind: custom, rate: 100 Gbps, delay: 1 us, switches: [s0, s1, s2], links: [{from: host0, "
    "to: "
    "s0}, {from: host1, to: s0}, {from: host2, to: s2}, {from: host3, to: s2}, {from: s0, to: s1}, {from: "
    "s1, "
    "to: s2}]}, host: single_nic, network: {switch: {classes: 2, scheduler: strict, marker: none, buffer: 64 "
    "MB}}, transport: {congestion_control: none}}",
    "class: 0",
    "class: 1",
    {"0,0", "1,0"},
    {"2,0", "3,0"},
    2,
    "s0->s1"};

// The jobs share a GPU, so that both send by its NIC. A NIC that fetches packets over PCIe would have some of
// the other job (docs/concepts/limits.md).
const Sharing kNics{
    "priorities of NICs",
    "{topology: {kind: star, hosts: 3, rate: 100 Gbps, delay: 1 us}, host: single_nic, network: "
    "{switch: {marker: none}}, transport: {congestion_control: none, nic_priorities: 2}}",
    "priority: 1",
    "priority: 0",
    {"0,0", "0,0"},
    {"1,0", "2,0"},
    1,
    "host0->switch0"};

struct Demand {
  Bytes high = 0, low = 0;  // 0: the job is left out
  Time start = 0;           // of the high one
};

struct Times {
  Time high = 0, low = 0;       // from the begin of each to its last byte at the destination
  Time busy = 0, last_end = 0;  // of the bottleneck
  Time packet = 0;              // time of the longest packet on a link
};

std::string job(const test::Directory& directory, const std::string& name, const std::string& key,
                const std::string& from, const std::string& to, Time arrival, Bytes bytes) {
  const std::string table = directory.path() + "/" + name + ".csv";
  std::ofstream(table) << "rank,host,gpu\n0," << from << "\n1," << to << "\n";
  return fmt::format(
      "- {{name: {}, {}, arrival: {} ps, placement: {{kind: file, share: true, file: {}}}, workload: {{kind: "
      "tasks, "
      "ranks: "
      "2, tasks: [{{name: m, from: 0, to: 1, bytes: {} B, raw: true}}]}}}}\n",
      name, key, arrival, table, bytes);
}

Times run(const Sharing& sharing, const Demand& demand) {
  const test::Directory directory;
  SimulationSetup setup;
  setup.workload = directory.path() + "/jobs.yaml";
  std::ofstream file(setup.workload.text());
  file << "jobs:\n";
  if (demand.high > 0)
    file << job(directory, "high", sharing.high, sharing.from[0], sharing.to[0], demand.start, demand.high);
  if (demand.low > 0)
    file << job(directory, "low", sharing.low, sharing.from[1], sharing.to[1], 0, demand.low);
  file.close();
  setup.config = parse_config(sharing.configuration, "cluster.yaml");
  const Results results = Simulation(std::move(setup)).run({});
  EXPECT_EQ(results.outcome, Outcome::done);
  EXPECT_EQ(results.network.drops, 0U);
  Times times;
  // The low job has the longer message in every case.
  const Time longest = results.flows.maximum;
  const auto sum =
      static_cast<Time>(std::llround(results.flows.mean * static_cast<double>(results.flows.count)));
  (demand.low > 0 ? times.low : times.high) = longest;
  if (demand.low > 0 && demand.high > 0) times.high = sum - longest;
  const auto link = std::find_if(results.links.begin(), results.links.end(),
                                 [&](const LinkResult& one) { return one.name == sharing.bottleneck; });
  EXPECT_NE(link, results.links.end()) << sharing.bottleneck;
  if (link == results.links.end()) return times;
  times.busy = link->counters.busy;
  times.last_end = link->counters.last_end;
  times.packet = transmission_time(4096 + 98, link->rate);
  return times;
}

TEST(JobPriorities, TheOtherJobGetsExactlyWhatIsLeft) {
  for (std::uint64_t seed = 0; seed < test::by_size<std::uint64_t>(40, 20, 6); ++seed) {
    const Sharing& sharing = seed % 2 == 0 ? kClasses : kNics;
    RandomStream draws(seed, "two jobs");
    const Demand both{static_cast<Bytes>(20'000 + draws.below(380'000)),
                      static_cast<Bytes>(2'000'000 + draws.below(1'000'000)),
                      static_cast<Time>(10'000 + draws.below(80'000)) * kNanosecond};
    SCOPED_TRACE(fmt::format("{}: {} B at {} ps beside {} B", sharing.name, both.high, both.start, both.low));
    const Times high = run(sharing, {both.high, 0, both.start}), low = run(sharing, {0, both.low, 0}),
                together = run(sharing, both);
    EXPECT_EQ(together.busy, high.busy + low.busy);
    EXPECT_GE(together.high, high.high);
    EXPECT_LE(together.high, high.high + sharing.links * high.packet);
    EXPECT_EQ(together.last_end, low.last_end + high.busy);
    // Behind the bottleneck, packets do not wait for each other, as they do by headers when the job is alone.
    EXPECT_LE(together.low, low.low + high.busy);
    EXPECT_GE(together.low, low.low + high.busy - low.packet);
  }
}

}  // namespace
}  // namespace netsim::job_priorities_test
