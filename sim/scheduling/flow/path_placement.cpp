#include "sim/scheduling/flow/path_placement.h"

#include <algorithm>
#include <numeric>

#include "sim/scheduling/flow/rules/hedera.h"

namespace netsim {
namespace {

constexpr BitRate kMostLoad = INT64_MAX / 4;  // leaves room for the demands of flows

}  // namespace

// Returns the load of a link before flows are placed; 0 where the view does not have it.
BitRate PathPlacement::load_of(const FlowsView& view, PortId port) const {
  const NetworkView& network = view.network;
  if (source_ == LoadSource::loads && port < network.loads.size())
    return static_cast<BitRate>(network.loads[port] * static_cast<double>(view.port_rates[port]));
  if (source_ == LoadSource::queues && port < network.queues.size()) {
    const Int128 bits = static_cast<Int128>(network.queues[port]) * 8 * kSecond;
    return static_cast<BitRate>(std::min<Int128>(bits / std::max<Time>(view.interval, 1), kMostLoad));
  }
  return 0;
}

std::vector<std::uint32_t> PathPlacement::links_of(const FlowsView& view, const std::vector<PortId>& ports) {
  std::vector<std::uint32_t> links;
  for (const PortId port : ports) {
    const auto [entry, added] = numbers_.try_emplace(port, static_cast<std::uint32_t>(numbers_.size()));
    if (added) {
      capacity_.push_back(view.port_rates[port]);
      load_.push_back(load_of(view, port));
    }
    links.push_back(entry->second);
  }
  return links;
}

std::vector<std::uint32_t> PathPlacement::hints_of(const FlowsView& view, const FlowView& flow) const {
  std::vector<std::uint32_t> all(std::min(most_paths_, view.facts->path_count(flow)));
  std::iota(all.begin(), all.end(), 0U);
  if (view.network.down.empty()) return all;
  std::vector<std::uint32_t> up;
  for (const std::uint32_t hint : all) {
    const std::vector<PortId> ports = view.facts->ports_of_path(flow, hint);
    if (std::none_of(ports.begin(), ports.end(), [&](PortId port) { return view.network.down[port] != 0; }))
      up.push_back(hint);
  }
  return up.empty() ? all : up;
}

void PathPlacement::add_load(const FlowsView& view, const FlowView& flow, std::uint32_t hint,
                             BitRate demand) {
  for (const std::uint32_t link : links_of(view, view.facts->ports_of_path(flow, hint)))
    load_[link] += demand;
}

std::vector<std::uint32_t> PathPlacement::place(const FlowsView& view, std::span<const std::size_t> flows,
                                                std::span<const BitRate> demand) {
  std::vector<std::vector<std::vector<std::uint32_t>>> links(flows.size());
  std::vector<std::vector<std::uint32_t>> hints(flows.size());
  std::vector<RoutedFlow> routed(flows.size());
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const FlowView& flow = view.flows[flows[i]];
    hints[i] = hints_of(view, flow);
    for (const std::uint32_t hint : hints[i])
      links[i].push_back(links_of(view, view.facts->ports_of_path(flow, hint)));
    for (const std::vector<std::uint32_t>& path : links[i]) routed[i].paths.emplace_back(path);
    routed[i].demand = demand[i];
  }
  std::vector<std::uint32_t> chosen = place_on_paths(capacity_, routed, load_);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (!hints[i].empty()) chosen[i] = hints[i][chosen[i]];
  }
  return chosen;
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
