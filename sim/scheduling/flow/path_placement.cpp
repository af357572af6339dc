#include "sim/scheduling/flow/path_placement.h"

#include <algorithm>

#include "sim/scheduling/flow/rules/hedera.h"

namespace netsim {

std::vector<std::uint32_t> PathPlacement::links_of(const FlowsView& view, const std::vector<PortId>& ports) {
  std::vector<std::uint32_t> links;
  for (const PortId port : ports) {
    const auto [entry, added] = numbers_.try_emplace(port, static_cast<std::uint32_t>(numbers_.size()));
    if (added) {
      capacity_.push_back(view.port_rates[port]);
      load_.push_back(0);
    }
    links.push_back(entry->second);
  }
  return links;
}

void PathPlacement::add_load(const FlowsView& view, const FlowView& flow, std::uint32_t hint,
                             BitRate demand) {
  for (const std::uint32_t link : links_of(view, view.facts->ports_of_path(flow, hint)))
    load_[link] += demand;
}

std::vector<std::uint32_t> PathPlacement::place(const FlowsView& view, std::span<const std::size_t> flows,
                                                std::span<const BitRate> demand) {
  std::vector<std::vector<std::vector<std::uint32_t>>> links(flows.size());
  std::vector<RoutedFlow> routed(flows.size());
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const FlowView& flow = view.flows[flows[i]];
    const std::uint32_t paths = std::min(most_paths_, view.facts->path_count(flow));
    for (std::uint32_t hint = 0; hint < paths; ++hint)
      links[i].push_back(links_of(view, view.facts->ports_of_path(flow, hint)));
    for (const std::vector<std::uint32_t>& path : links[i]) routed[i].paths.emplace_back(path);
    routed[i].demand = demand[i];
  }
  return place_on_paths(capacity_, routed, load_);
}

std::vector<BitRate> demands_of(const FlowsView& view) {
  std::map<GpuId, std::uint32_t> numbers;
  std::vector<BitRate> rates;
  std::vector<HostPair> pairs;
  // A flow into an all-reduce tree shares its destination with no other.
  const auto number = [&](GpuId gpu, PortId port) {
    const auto next = static_cast<std::uint32_t>(rates.size());
    const std::uint32_t end = gpu.is_none() ? next : numbers.try_emplace(gpu, next).first->second;
    if (end == next) rates.push_back(view.port_rates[port]);
    return end;
  };
  for (const FlowView& flow : view.flows) {
    if (flow.ports.empty()) {
      pairs.push_back({});
      continue;
    }
    const std::uint32_t source = number(flow.source, flow.ports.front());
    pairs.push_back({source, number(flow.destination, flow.ports.back())});
  }
  return estimate_demands(rates, pairs);
}

}  // namespace netsim
