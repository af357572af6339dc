#include "sim/report/screen/network_text.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/text.h"

namespace netsim::screen {
namespace {

std::string slowdown_text(const Slowdowns& slowdowns) {
  return fmt::format("mean {:.2f}, p50 {:.2f}, p95 {:.2f}, p99 {:.2f}", slowdowns.mean, slowdowns.p50,
                     slowdowns.p95, slowdowns.p99);
}

std::string bin_name(std::size_t bin) {
  const auto limit = [](std::size_t i) { return format_bytes(kSizeBins[i]); };
  if (bin == 0) return "below " + limit(0);
  if (bin + 1 == kSizeBins.size()) return "from " + limit(bin - 1);
  return limit(bin - 1) + " to " + limit(bin);
}

}  // namespace

std::string rates_text(const TierOfLinks& tier) {
  const auto gigabits = [](BitRate rate) { return static_cast<double>(rate) * 1e-9; };
  const std::string most = fmt::format("{:.0f} Gb/s", gigabits(tier.most_rate));
  return tier.least_rate == tier.most_rate ? most
                                           : fmt::format("{:.0f} to {}", gigabits(tier.least_rate), most);
}

std::string short_link_name(const std::string& name) {
  const std::size_t arrow = name.find("->"), slash = name.find('/');
  if (arrow == std::string::npos || slash == std::string::npos || slash > arrow) return printable(name);
  const std::string host = name.substr(0, slash + 1);
  const bool inside = name.compare(arrow + 2, host.size(), host) == 0;
  return printable(inside ? name.substr(0, arrow + 2) + name.substr(arrow + 2 + host.size()) : name);
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

void links(Text out, const Results& results, std::size_t width) {
  const std::vector<TierOfLinks> tiers = tiers_of_links(results);
  if (tiers.empty()) return;
  TableColumn name{"links by tier", 0, true, {}}, count{"links", 3, false, {}}, kind{"kind", 8, true, {}},
      rate{"rate", 5, false, {}}, mean{"busy", 0, false, {}}, most{"at most", 2, false, {}},
      busiest{"busiest link", 9, true, {}}, carried{"carried", 6, false, {}},
      queue{"longest queue", 0, false, {}}, where{"where", 1, true, {}}, marks{"ECN marks", 7, false, {}},
      held_back{"held back", 4, false, {}};
  for (const TierOfLinks& tier : tiers) {
    const PortCounters& c = tier.sum;
    name.cells.push_back(tier_name(results, tier));
    count.cells.push_back(fmt::format("{}", tier.links));
    kind.cells.emplace_back(to_string(tier.kind));
    rate.cells.push_back(rates_text(tier));
    mean.cells.push_back(percent_text(tier.mean_utilisation));
    most.cells.push_back(percent_text(tier.most_utilisation));
    busiest.cells.push_back(short_link_name(results.links[tier.busiest].name));
    carried.cells.push_back(human_bytes(static_cast<double>(c.wire_bytes)));
    queue.cells.push_back(human_bytes(static_cast<double>(c.max_queue)));
    where.cells.push_back(c.max_queue > 0 ? short_link_name(results.links[tier.longest_queue].name) : "");
    marks.cells.push_back(fmt::format("{}", c.ecn_marks));
    held_back.cells.push_back(human_seconds(to_seconds(c.paused + c.credit_stalled)));
  }
  fmt::format_to(
      out, "\n{}",
      text_table({name, count, kind, rate, mean, most, busiest, carried, queue, where, marks, held_back}, 2,
                 width));
}

std::string completion_times(const FlowTimes& flows) {
  return fmt::format("mean {}, p50 {}, p99 {}, max {}", human_seconds(flows.mean * 1e-12),
                     human_seconds(to_seconds(flows.p50)), human_seconds(to_seconds(flows.p99)),
                     human_seconds(to_seconds(flows.maximum)));
}

std::string queues_text(const Results& results) {
  const auto bytes = [](auto value) { return human_bytes(static_cast<double>(value)); };
  std::string longest = "longest at a switch " + bytes(results.network.max_queue);
  if (results.network.max_host_queue > 0) longest += ", in a host " + bytes(results.network.max_host_queue);
  const auto& queues = results.sampled_queues;
  if (!queues || queues->count == 0) return longest;
  return fmt::format("{}; sampled while not empty: mean {}, p50 {}, p95 {}, p99 {}", longest,
                     bytes(queues->mean), bytes(queues->p50), bytes(queues->p95), bytes(queues->p99));
}

std::string counters_text(const Results& results) {
  const NetworkCounters& n = results.network;
  bool credits = results.knobs.flow_control == "credits", pauses = !credits;
  for (const FabricResult& fabric : results.fabrics) {
    const bool own = fabric.knobs.flow_control == "credits";
    if (&fabric == &results.fabrics.front()) credits = pauses = false;
    (own ? credits : pauses) = true;
  }
  std::string held = pauses ? fmt::format("{} pauses", n.pfc_pauses) : "";
  if (credits) held += fmt::format("{}{} credit stalls", pauses ? ", " : "", n.credit_stalls);
  const std::string no_way = n.no_route > 0 ? fmt::format("{} packets without a route, ", n.no_route) : "";
  return fmt::format("{} drops, {}{} ECN marks, {} CNPs, {}", n.drops, no_way, n.ecn_marks, n.cnps, held);
}

std::string flow_scheduling_text(const FlowSchedulingSummary& s) {
  std::string text = fmt::format("{}: {} flows, {} decisions", s.scheduler, s.flows, s.decisions);
  if (s.intervals > 0) text += fmt::format(" at {} intervals", s.intervals);
  if (s.late > 0) text += fmt::format(", {} of them too late", s.late);
  if (s.held > 0)
    text += fmt::format("; {} holds, in sum {}", s.held, human_seconds(to_seconds(s.held_time)));
  return text;
}

std::string splits_text(const SplitSummary& s) {
  const auto bytes = [](Bytes value) { return human_bytes(static_cast<double>(value)); };
  return fmt::format("{}: {} of {} messages; {} over their own NICs, {} over NVLink, {} over PCIe",
                     s.splitter, s.split, s.messages, bytes(s.own), bytes(s.nvlink), bytes(s.pcie));
}

std::string aggregation_text(const Results& results) {
  const auto bytes = [](Bytes value) { return human_bytes(static_cast<double>(value)); };
  const AggregatingSwitch all = all_aggregation(results);
  const std::size_t switches = results.aggregation.size();
  std::string text =
      fmt::format("{} switch{} added up {} packets ({}) to {} sums", switches, switches == 1 ? "" : "es",
                  all.counters.packets, bytes(all.counters.bytes), all.counters.sums);
  if (const std::uint64_t again = all.counters.repeated + all.counters.discarded; again > 0)
    text += fmt::format("; {} packets came again", again);
  if (all.counters.unfinished > 0)
    text += fmt::format("; {} sums left switches unfinished", all.counters.unfinished);
  if (all.counters.collided + all.counters.flushed > 0) {
    text += fmt::format("; {} packets found no free aggregator, {} came again", all.counters.collided,
                        all.counters.flushed);
  }
  if (all.memory > 0) text += fmt::format("; at most {} of memory of a switch", bytes(all.memory));
  if (all.waited > 0) text += fmt::format("; {} messages waited for memory", all.waited);
  return text;
}

void network(Text out, const Results& results, std::size_t width) {
  if (!results.packet_network) return;
  fmt::format_to(out, "\n");
  std::string flows = fmt::format("{} done", results.network.flows_done);
  if (results.flows.count > 0) flows += ", completion time " + completion_times(results.flows);
  labelled(out, "flows", flows, width);
  if (results.slowdowns.count > 0) labelled(out, "slowdown", slowdown_text(results.slowdowns), width);
  labelled(out, "queues", queues_text(results), width);
  labelled(out, "network", counters_text(results), width);
  if (!results.aggregation.empty()) labelled(out, "aggregation", aggregation_text(results), width);
  if (!results.flow_scheduling.scheduler.empty())
    labelled(out, "scheduling", flow_scheduling_text(results.flow_scheduling), width);
  if (!results.splits.splitter.empty()) labelled(out, "splits", splits_text(results.splits), width);
}

std::vector<TableColumn> slowdown_table(const Results& results) {
  TableColumn size{"slowdown of flows", 0, true, {}}, flows{"flows", 1, false, {}},
      mean{"mean", 0, false, {}}, p50{"p50", 0, false, {}}, p95{"p95", 2, false, {}},
      p99{"p99", 0, false, {}};
  const auto add = [&](const std::string& name, const Slowdowns& s) {
    size.cells.push_back(name);
    flows.cells.push_back(fmt::format("{}", s.count));
    mean.cells.push_back(fmt::format("{:.2f}", s.mean));
    p50.cells.push_back(fmt::format("{:.2f}", s.p50));
    p95.cells.push_back(fmt::format("{:.2f}", s.p95));
    p99.cells.push_back(fmt::format("{:.2f}", s.p99));
  };
  for (std::size_t bin = 0; bin < kSizeBins.size(); ++bin) {
    if (results.slowdowns_by_size[bin].count > 0) add(bin_name(bin), results.slowdowns_by_size[bin]);
  }
  if (size.cells.size() > 1) add("all", results.slowdowns);
  return {size, flows, mean, p50, p95, p99};
}

void slowdowns_by_size(Text out, const Results& results, std::size_t width) {
  std::vector<TableColumn> table = slowdown_table(results);
  if (!table.front().cells.empty()) fmt::format_to(out, "\n{}\n", text_table(std::move(table), 2, width));
}

std::string flows_done_text(const Results& results) {
  const NetworkCounters& n = results.network;
  return fmt::format("{} done", n.flows_done) +
         (n.flows_done < n.flows_started ? fmt::format(" of {} that began", n.flows_started) : "");
}

std::string throughput_text(const Results& results) {
  const NetworkCounters& n = results.network;
  const double bytes = static_cast<double>(n.bytes_delivered);
  return fmt::format("{:.1f} Gb/s of payload{}, {} in all", bytes * 8e-9 / to_seconds(results.simulated),
                     n.flows_done < n.flows_started ? " in complete flows" : "", human_bytes(bytes));
}

}  // namespace netsim::screen
