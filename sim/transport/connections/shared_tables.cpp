// The key tables of a switch that all trees share (SwitchAgg): AggregationSessions::shared_tables() and the
// note about what each job got of them.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/core/errors.h"
#include "sim/transport/connections/aggregation_sessions.h"

namespace netsim {

// Returns the key tables of the switch that the tree shares with others; null: it has tables of its own, or
// none. All trees of a switch have as many pairs in a packet.
KeyStore* AggregationSessions::shared_tables(NodeId node, const TreeRules& rules) {
  const SwitchParameters& of_switch = connections_.fabric().switch_parameters(node);
  const auto* const shares = dynamic_cast<const SharesKeyTables*>(rules.protocol.get());
  if (!of_switch.aggregation_pairs || shares == nullptr) return nullptr;
  const std::int64_t pairs = shares->pairs_of_packet();
  const auto front = static_cast<std::uint32_t>(*of_switch.aggregation_pairs / pairs),
             back = static_cast<std::uint32_t>(of_switch.aggregation_back_pairs / pairs);
  KeyStore& store = fabric_.aggregations().key_store_of(node, front, back);
  if (store.places() != front + back) {
    throw InputError(
        fmt::format("trees with different numbers of pairs in a packet share the tables of {} "
                    "(network.switch.aggregation_pairs): give all jobs the same payload (switchagg: payload)",
                    state_.cluster.graph.node(node).name));
  }
  return &store;
}

void AggregationSessions::note_key_stores(std::vector<std::string>& notes) const {
  const Fabric& fabric = connections_.fabric();
  bool given = false;
  for (NodeId node = 0; node < state_.cluster.graph.node_count(); ++node)
    given = given || (fabric.adds_up(node) && fabric.switch_parameters(node).aggregation_pairs);
  if (!given) return;
  for (const auto& [node, store] : fabric_.aggregations().key_stores()) {
    std::map<JobId, KeyStore::Use> of_job;
    for (const KeyStore::Use& use : store.uses()) {
      of_job[use.job].packets += use.packets;
      of_job[use.job].unfinished += use.unfinished;
    }
    std::string jobs;
    for (const auto& [job, use] : of_job) {
      const double share = 100 * static_cast<double>(use.unfinished) /
                           static_cast<double>(std::max<std::uint64_t>(1, use.packets));
      jobs += fmt::format("; for {} of {} packets of job {} a sum left for lack of a place ({:.1f} %)",
                          use.unfinished, use.packets, job, share);
    }
    notes.push_back(
        fmt::format("SwitchAgg: {} job{} shared the tables of {}, at most {} of {} places in use{}",
                    of_job.size(), of_job.size() == 1 ? "" : "s", state_.cluster.graph.node(node).name,
                    store.most_used(), store.places(), jobs));
  }
  notes.push_back(fmt::format(
      "network.switch.aggregation_pairs is given, so the run uses one core: all jobs share the tables of a "
      "switch (engine.sets has no effect), and front and back of switchagg have no effect{}",
      fabric_.aggregations().key_stores().empty() ? "; nothing used them (algorithm switchagg)" : ""));
}

}  // namespace netsim
