// Flow schedulers. `max_min` is one decision about flows over six ports each, as on P1024: the view of the
// rule and the rates. `flow_table` sends and ends messages of that many flows, one after the other. Items are
// flows or messages. Both are without a network.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "sim/core/random.h"
#include "sim/scheduling/flow/flow_scheduler.h"
#include "sim/scheduling/flow/flow_table.h"
#include "sim/scheduling/flow/rule_view.h"
#include "sim/scheduling/flow/rules/max_min.h"
#include "sim/transport/endpoint.h"

namespace {

using namespace netsim;

// Flow i goes from host i to host i + n/2, over four random ones of 4 n ports of switches.
struct Flows {
  std::vector<std::vector<PortId>> ports;
  std::vector<FlowView> views;
  std::vector<BitRate> rates;

  explicit Flows(std::uint32_t hosts) : rates(std::size_t{6} * hosts, 100 * kGbps) {
    RandomStream random(1, "bench");
    for (std::uint32_t host = 0; host < hosts; ++host) {
      std::vector<PortId>& path = ports.emplace_back(std::vector<PortId>{host});
      for (std::uint32_t hop = 0; hop < 4; ++hop)
        path.push_back(hosts * (hop + 1) + static_cast<PortId>(random.below(hosts)));
      path.push_back(5 * hosts + (host + hosts / 2) % hosts);
    }
    for (std::uint32_t host = 0; host < hosts; ++host) {
      FlowView& view = views.emplace_back();
      view.id = host;
      view.left = view.bytes = 10 * kMegabyte;
      view.ports = ports[host];
    }
  }
};

void max_min(benchmark::State& state) {
  const Flows flows(static_cast<std::uint32_t>(state.range(0)));
  FlowsView view;
  view.flows = flows.views;
  view.port_rates = flows.rates;
  MaxMin rule;
  for (auto unused : state) {
    RuleView rows(view);
    FlowDecisions decisions;
    set_rates(view, rule.fair(rows.capacity(), rows.flows()), decisions);
    benchmark::DoNotOptimize(decisions.list().data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(max_min)->Arg(16)->Arg(128)->Arg(1024)->Arg(8192);

// LastSent: a network that only remembers the last message.
class LastSent final : public Endpoint {
 public:
  void set_listener(MessageListener*) override {}
  MessageHandle send(const SendRequest& request) override {
    last = request;
    return {request.message.source, 0, 1};
  }
  bool hold(const MessageHandle&) override { return true; }
  bool release(const MessageHandle&) override { return true; }
  bool set_priority(const MessageHandle&, std::uint8_t) override { return true; }
  bool set_rate(const MessageHandle&, BitRate) override { return true; }
  bool set_path(const MessageHandle&, std::uint32_t) override { return true; }
  Bytes left(const MessageHandle&) const override { return 0; }
  Bytes cancel(const MessageHandle&) override { return 0; }
  void tell_delays() override {}
  Reach reach(GpuId, GpuId) const override { return Reach::scale_out; }
  std::uint32_t gpu_count() const override { return 2; }

  SendRequest last;
};

class Central final : public FlowScheduler {
 public:
  FlowNeeds needs() const override { return {.central = true}; }
};

void flow_table(benchmark::State& state) {
  const auto flows = static_cast<std::uint32_t>(state.range(0));
  LastSent network;
  Central scheduler;
  FlowTable table(network, scheduler, kMillisecond);
  SendRequest request;
  request.message.bytes = 4096;
  for (auto unused : state) {
    for (std::uint32_t flow = 0; flow < flows; ++flow) {
      request.message.source = flow;
      request.message.destination = flow + flows;
      table.send(request, 0, 0);
      table.end(network.last, 0);
    }
    table.take_news();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(flow_table)->Arg(16)->Arg(1024);

}  // namespace
