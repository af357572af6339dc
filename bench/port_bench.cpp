// Measures the egress ports of switches alone. Packets of 4,158 bytes enter the first of `hops` ports of 100
// Gb/s, in bursts that keep it 80 % busy. A burst of one packet finds the port idle (one event a hop). In
// longer bursts all packets but the first wait (two events). Admission to the shared buffer, PFC accounting
// and RED are included. Items are packet-hops.
#include <benchmark/benchmark.h>

#include <vector>

#include "tests/support/port_fixture.h"

namespace {

using namespace netsim;
using netsim::test::Hop;
using netsim::test::PortFixture;

constexpr std::uint32_t kBytes = 4158;
constexpr Time kPeriod = (kBytes + 20) * 80 * 5 / 4;  // ps between packets on average
constexpr std::uint64_t kPackets = 50'000;

void port(benchmark::State& state) {
  const auto hops = static_cast<std::size_t>(state.range(0));
  const auto burst = static_cast<std::uint64_t>(state.range(1));
  for (auto unused : state) {
    std::uint64_t made = 0;
    const auto arrivals = [&made, burst]() -> PortFixture::Arrival {
      if (made == kPackets) return {0, 0};
      return {static_cast<Time>(made++ / burst * burst) * kPeriod, kBytes};
    };
    PortFixture line(std::vector<Hop>(hops, Hop{100 * kGbps, 1 * kMicrosecond}), "switch: {marker: red}",
                     arrivals, [](const PortFixture::Passage&) {});
    line.loop.run();
    if (line.left() != kPackets) state.SkipWithError("not every packet arrived");
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kPackets * hops));
}
BENCHMARK(port)->ArgNames({"hops", "burst"})->Args({1, 1})->Args({1, 32})->Args({4, 1})->Args({4, 32});

}  // namespace
