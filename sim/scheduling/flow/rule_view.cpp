#include "sim/scheduling/flow/rule_view.h"

#include <algorithm>
#include <map>

namespace netsim {
namespace {

CoflowName name_of(const FlowView& flow, CoflowKey key) {
  switch (key) {
    case CoflowKey::communication:
      return {flow.job, flow.communication};
    case CoflowKey::name:
      return {flow.job, flow.name};
    case CoflowKey::job:
      break;
  }
  return {flow.job, 0};
}

// Returns the ports in ascending order, each once, and replaces each one in `ports` by its place among them.
// `total` is above all ports. Few ports are sorted, and many are counted.
std::vector<PortId> number_ports(std::vector<PortId>& ports, std::size_t total) {
  constexpr std::size_t kFew = 32;
  std::vector<PortId> known;
  if (ports.size() * kFew < total) {
    known = ports;
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    for (PortId& port : ports)
      port = static_cast<std::uint32_t>(std::lower_bound(known.begin(), known.end(), port) - known.begin());
    return known;
  }
  std::vector<std::uint32_t> number(total, 0);
  for (const PortId port : ports) number[port] = 1;
  for (PortId port = 0; port < total; ++port) {
    if (number[port] == 0) continue;
    number[port] = static_cast<std::uint32_t>(known.size());
    known.push_back(port);
  }
  for (PortId& port : ports) port = number[port];
  return known;
}

}  // namespace

RuleView::RuleView(const FlowsView& view, double use) : view_(view) {
  for (const FlowView& flow : view.flows) links_.insert(links_.end(), flow.ports.begin(), flow.ports.end());
  for (const PortId port : number_ports(links_, view.port_rates.size()))
    capacity_.push_back(static_cast<BitRate>(static_cast<double>(view.port_rates[port]) * use));
  flows_.reserve(view.flows.size());
  std::size_t first = 0;
  for (const FlowView& flow : view.flows) {
    flows_.push_back({std::span(links_).subspan(first, flow.ports.size()), flow.left});
    first += flow.ports.size();
  }
}

std::uint32_t RuleView::group_by(CoflowKey key) {
  std::map<CoflowName, std::uint32_t> numbers;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const auto next = static_cast<std::uint32_t>(numbers.size());
    const auto [entry, added] = numbers.try_emplace(name_of(view_.flows[i], key), next);
    if (added) coflows_.push_back(entry->first);
    flows_[i].group = entry->second;
  }
  return static_cast<std::uint32_t>(numbers.size());
}

void set_rates(const FlowsView& view, std::span<const BitRate> rates, FlowDecisions& decisions) {
  for (std::size_t i = 0; i < rates.size(); ++i) decisions.rate(view.flows[i].id, rates[i]);
}

FlowTreatment admit_centrally(const FlowView& flow, bool waits) {
  FlowTreatment treatment = flow;
  treatment.held = waits;
  return treatment;
}

}  // namespace netsim
