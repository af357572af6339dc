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

}  // namespace

RuleView::RuleView(const FlowsView& view, double use) : view_(view) {
  std::vector<PortId> ports;
  for (const FlowView& flow : view.flows) ports.insert(ports.end(), flow.ports.begin(), flow.ports.end());
  links_.reserve(ports.size());
  std::vector<PortId> known = ports;
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (const PortId port : known)
    capacity_.push_back(static_cast<BitRate>(static_cast<double>(view.port_rates[port]) * use));
  for (const PortId port : ports) {
    const auto at = std::lower_bound(known.begin(), known.end(), port);
    links_.push_back(static_cast<std::uint32_t>(at - known.begin()));
  }
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
