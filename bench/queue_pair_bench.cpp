// Queue pairs and switches. `queue_pair`: two hosts at one switch, 40 MB from one to the other over one queue
// pair: sending, receiving, acknowledging. `switch_incast`: 8 hosts send 2 MB each to a
// ninth, so that the switch pauses them all the time. Items are data packet-hops.
#include <benchmark/benchmark.h>

#include <string>

#include "tests/support/packet_fixture.h"

namespace {

using namespace netsim;
using netsim::test::PacketFixture;

std::int64_t packet_hops(const PacketFixture& fixture) {
  return static_cast<std::int64_t>(
      fixture.network->counters().packet_hops[static_cast<std::size_t>(LinkKind::ethernet)]);
}

std::string star(int hosts, const std::string& transport) {
  return "topology: {kind: star, hosts: " + std::to_string(hosts) +
         ", rate: 100 Gbps, delay: 1 us}\nhost: single_nic\ntransport: {" + transport + "}\n";
}

void queue_pair(benchmark::State& state) {
  std::int64_t hops = 0;
  for (auto unused : state) {
    PacketFixture two(
        star(2, "acknowledge: {every: " + std::to_string(state.range(0)) + "}, congestion_control: dcqcn"));
    two.send(0, 1, 40 * kMegabyte);
    two.loop.run();
    if (!two.all_delivered()) state.SkipWithError("not every message was delivered");
    hops += packet_hops(two);
  }
  state.SetItemsProcessed(hops);
}
BENCHMARK(queue_pair)->ArgName("acknowledge_every")->Arg(1)->Arg(16);

void switch_incast(benchmark::State& state, const char* control) {
  constexpr std::uint32_t kSenders = 8;
  std::int64_t hops = 0;
  for (auto unused : state) {
    PacketFixture incast(star(kSenders + 1, std::string("congestion_control: ") + control));
    for (std::uint32_t i = 0; i < kSenders; ++i) incast.send(i, kSenders, 2 * kMegabyte);
    incast.loop.run();
    if (!incast.all_delivered()) state.SkipWithError("not every message was delivered");
    hops += packet_hops(incast);
  }
  state.SetItemsProcessed(hops);
}
BENCHMARK_CAPTURE(switch_incast, pfc, "none");
BENCHMARK_CAPTURE(switch_incast, dcqcn, "dcqcn");

}  // namespace
