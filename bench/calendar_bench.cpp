// The calendar alone: a steady population of events, each scheduling its successor after a spread of delays.
#include <benchmark/benchmark.h>

#include <vector>

#include "sim/core/event_loop.h"
#include "sim/core/random.h"

namespace {

using namespace netsim;

constexpr std::uint64_t kEventsPerIteration = 100'000;
constexpr std::uint64_t kSpread = 2'000'000;  // ps, of the delays

struct Population {
  EventLoop loop;
  std::vector<Origin> origins;
  RandomStream random{1, "bench"};
  static void handle(void* self, const Event& event) {
    auto* p = static_cast<Population*>(self);
    p->loop.schedule(event.time + 1 + static_cast<Time>(p->random.below(kSpread)), p->origins[event.target],
                     EventKind::job, event.target);
  }
};

void calendar(benchmark::State& state) {
  Population p;
  p.loop.set_handler(EventKind::job, Population::handle, &p);
  for (std::uint32_t i = 0; i < state.range(0); ++i) {
    p.origins.emplace_back(i);
    p.loop.schedule(static_cast<Time>(p.random.below(kSpread)), p.origins[i], EventKind::job, i);
  }
  for (auto unused : state) p.loop.run_some(kEventsPerIteration);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kEventsPerIteration));
}
BENCHMARK(calendar)->Arg(1'000)->Arg(10'000)->Arg(100'000);

}  // namespace
