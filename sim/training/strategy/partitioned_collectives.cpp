// Collectives in parts. Each collective of a job that joins several ranks on each of several hosts may become
// collectives within hosts and between hosts, in chunks (collective_partition.h). Those within hosts have a
// queue of their own, so that both transports are busy. The source is Centauri (Chen et al., "Centauri:
// Enabling Efficient Scheduling for Communication-Computation Overlap in Large Model Training via
// Communication Partitioning", ASPLOS 2024). SYNDICATE calls such collectives motifs, and packs them on
// transports. Its source is Mahajan et al., "Better Together: Jointly Optimizing ML Collective Scheduling and
// Execution Planning using SYNDICATE", NSDI 2023.
//
// A cost model decides for each kind and size. Collectives that may be in flight together, as buckets of
// gradients are, count as a series that is launched at once. A collective within a layer counts alone.
//
// Centauri's third dimension replaces an all-reduce by a reduce-scatter and an all-gather. Its model tier
// moves the all-gather into the next forward. Keys of ptdp do both: parallel.sequence among tensor-parallel
// ranks, and distributed_adam with overlap_parameter_gather among replicas.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/training/strategy/chain_editor.h"
#include "sim/training/strategy/collective_partition.h"
#include "sim/training/strategy/replicas.h"
#include "sim/training/strategy/strategy.h"
#include "sim/workload/program/rank_grid.h"

namespace netsim {
namespace {

struct CollectivePartitionParameters {
  std::int64_t per_host = 8;
  PartitionCosts::Transport within = kDgxA100Nvlink, between = kDgxA100Nic;
  SearchedParts parts;
};

// HostGroups: the groups of an expression, cut into groups within hosts and groups between hosts.
struct HostGroups {
  std::uint32_t ranks = 1, per_host = 1;
  GroupExpression within, between;
};

// Returns the groups in parts, or nothing unless each group has equally many ranks, two at least, on each of
// several hosts. Rank r is on host r / per_host.
std::optional<HostGroups> host_groups(const GroupExpression& group, const RankGrid& grid,
                                      std::uint32_t per_host) {
  std::vector<std::vector<RankId>> lists = group.lists;
  if (!group.ranks.empty()) lists.push_back(group.ranks);
  if (!group.axes.empty())
    grid.each_group(group.axes, [&](std::vector<RankId> members) { lists.push_back(std::move(members)); });
  HostGroups made;
  made.within.communicator = made.between.communicator = group.communicator;
  for (const std::vector<RankId>& members : lists) {
    std::map<RankId, std::vector<RankId>> hosts;
    for (const RankId rank : members) hosts[rank / per_host].push_back(rank);
    const std::size_t each = hosts.begin()->second.size();
    if (made.ranks == 1) {
      made.ranks = static_cast<std::uint32_t>(members.size());
      made.per_host = static_cast<std::uint32_t>(each);
    }
    const bool alike = std::all_of(hosts.begin(), hosts.end(),
                                   [each](const auto& host) { return host.second.size() == each; });
    if (!alike || made.ranks != members.size() || made.per_host != each) return {};
    std::vector<std::vector<RankId>> across(each);
    for (const auto& [host, ranks] : hosts) {
      for (std::size_t i = 0; i < each; ++i) across[i].push_back(ranks[i]);
      made.within.lists.push_back(ranks);
    }
    for (std::vector<RankId>& ranks : across) made.between.lists.push_back(std::move(ranks));
  }
  if (made.per_host < 2 || made.per_host == made.ranks) return {};
  return made;
}

// GraphPartitioner: cuts the collectives of one graph.
class GraphPartitioner {
 public:
  GraphPartitioner(const CollectivePartitionParameters& p, TrainingGraph& graph)
      : p_(p), graph_(graph), grid_(graph.builder.program().axes) {}

  void apply() {
    for (LayerGraph& layer : graph_.layers) {
      for (Chain* chain : {&layer.forward, &layer.recompute, &layer.backward, &layer.input, &layer.weights,
                           &layer.paired.forward, &layer.paired.recompute, &layer.paired.backward})
        cut_chain(*chain, 1);
    }
    for (StageGraph& stage : graph_.stages) cut_stage(stage);
  }

 private:
  using Number = ChainEditor::Number;
  // Queues within hosts, beside those of other collectives of the stream.
  static constexpr std::uint32_t kWithinHosts = 1024;

  struct Groups {
    std::uint32_t ranks = 1, per_host = 1;
    std::uint32_t within = 0, between = 0;  // numbers in the program
  };
  struct Cut {
    Groups groups;
    PartitionCosts costs;
    CollectivePartition partition;
  };

  const std::optional<Groups>& groups_of(std::uint32_t group) {
    const auto known = groups_.find(group);
    if (known != groups_.end()) return known->second;
    const GroupExpression expression = graph_.builder.program().groups[group];
    const std::optional<HostGroups> parts =
        host_groups(expression, grid_, static_cast<std::uint32_t>(p_.per_host));
    std::optional<Groups> made;
    if (parts) {
      made = Groups{parts->ranks, parts->per_host, graph_.builder.group(parts->within),
                    graph_.builder.group(parts->between)};
    }
    return groups_.emplace(group, made).first->second;
  }

  // Returns how to cut a collective of a series of `count`, or nothing where it stays whole.
  std::optional<Cut> cut_of(const GraphNode& node, std::uint32_t count) {
    if (!may_cut(node)) return {};
    const std::optional<Groups>& groups = groups_of(node.group);
    if (!groups) return {};
    PartitionCosts costs{groups->ranks, groups->per_host, p_.within, p_.between, 0};
    costs.ring_rate = std::min(p_.within.rate, p_.between.rate * static_cast<BitRate>(groups->per_host));
    const auto [known, fresh] =
        searched_.try_emplace({node.collective, node.bytes, groups->ranks, groups->per_host, count});
    if (fresh) known->second = best_partition(costs, node.collective, node.bytes, count, p_.parts);
    if (known->second == CollectivePartition{}) return {};
    return Cut{*groups, costs, known->second};
  }
  // All-to-alls stay whole: in groups they send as many bytes between hosts.
  static bool may_cut(const GraphNode& node) {
    constexpr std::array kKinds{CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                CollectiveKind::all_gather};
    return node.kind == GraphNode::Kind::collective && node.row_bytes == 0 &&
           std::find(kKinds.begin(), kKinds.end(), node.collective) != kKinds.end();
  }

  // Returns a part of a collective, without what it waits for.
  static GraphNode part(const GraphNode& node, const Cut& cut, const PartitionStep& step,
                        std::uint32_t chunk) {
    GraphNode made = node;
    made.after.clear();
    made.memory = {};
    made.sum = {};
    made.collective = step.kind;
    made.bytes = cut.costs.part_bytes(step.span, chunk_bytes(node.bytes, cut.partition.chunks, chunk));
    if (step.span == CollectiveSpan::all) return made;
    const bool within = step.span == CollectiveSpan::within_host;
    made.name += within ? "_within" : "_between";
    made.group = within ? cut.groups.within : cut.groups.between;
    if (within) made.queue += kWithinHosts;
    return made;
  }
  // Appends the parts of a collective. `append(node, after)` returns the number of a node. The first part
  // allocates the memory of the whole, and the last one releases it.
  template <class Node, class Append>
  static std::vector<Node> append_parts(const GraphNode& node, const Cut& cut, const std::vector<Node>& after,
                                        Append append) {
    const PartitionSteps steps = partition_steps(node.collective, cut.partition);
    const std::size_t all = (steps.first.size() + steps.then.size()) * cut.partition.chunks;
    std::size_t appended = 0;
    return append_partition<Node>(
        node.collective, cut.partition, after,
        [&](const PartitionStep& step, std::uint32_t chunk, const std::vector<Node>& waits) {
          GraphNode made = part(node, cut, step, chunk);
          cut_into(made, static_cast<std::int64_t>(all), "strategies: partitioned_collectives.parts");
          if (appended == 0) made.memory.begin = node.memory.begin;
          if (++appended == all) made.memory.end = node.memory.end;
          return append(std::move(made), waits);
        });
  }

  void cut_chain(Chain& chain, std::uint32_t count) {
    if (std::none_of(chain.begin(), chain.end(), [&](const GraphNode& node) { return cut_of(node, count); }))
      return;
    ChainEditor edit(chain);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const std::optional<Cut> cut = cut_of(chain[i], count);
      const ChainEditor::Numbers after = edit.waits_for(i);
      if (!cut) {
        edit.stands(i, edit.add(chain[i], after));
        continue;
      }
      edit.stands(i, append_parts<Number>(chain[i], *cut, after,
                                          [&](GraphNode node, const ChainEditor::Numbers& waits) {
                                            return edit.add(std::move(node), waits);
                                          }));
    }
    chain = edit.finish();
  }
  // Cuts nodes that wait for what precedes the list, unless they name others.
  void cut_beside(std::vector<GraphNode>& nodes, std::uint32_t count) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].after.empty()) nodes[i].after = {static_cast<std::uint32_t>(i) + 1};
    }
    cut_chain(nodes, count);
    for (GraphNode& node : nodes) {
      if (node.after.empty()) node.after = {1};
    }
  }

  using Lists = std::vector<std::vector<GraphNode>>;
  static std::uint32_t collectives_in(const Lists& lists) {
    std::uint32_t count = 0;
    for (const std::vector<GraphNode>& nodes : lists)
      count += static_cast<std::uint32_t>(std::count_if(nodes.begin(), nodes.end(), may_cut));
    return count;
  }

  void cut_stage(StageGraph& stage) {
    std::uint32_t reductions = 0;
    for (const ChunkGraph& chunk : stage.chunks) reductions += collectives_in(chunk.reductions);
    for (const ChunkGraph& chunk : stage.chunks) reductions += collectives_in({chunk.reduced_at_step});
    for (const FinishNode& finish : stage.finish) reductions += may_cut(finish.node) ? 1 : 0;
    for (ChunkGraph& chunk : stage.chunks) {
      const std::uint32_t gathers = collectives_in(chunk.gathers),
                          again = collectives_in(chunk.gathers_again);
      for (std::vector<GraphNode>& nodes : chunk.reductions) cut_beside(nodes, reductions);
      cut_beside(chunk.reduced_at_step, reductions);
      for (std::vector<GraphNode>& nodes : chunk.gathers) cut_beside(nodes, gathers);
      for (std::vector<GraphNode>& nodes : chunk.gathers_again) cut_beside(nodes, again);
    }
    cut_finish(stage, reductions);
    cut_chain(stage.update, 1);
    cut_chain(stage.average, 1);
  }

  // Nodes of `finish` in one queue run one after the other. So who waits for one of them waits for the last
  // part in each of its queues up to there.
  void cut_finish(StageGraph& stage, std::uint32_t count) {
    const std::vector<FinishNode> old = std::exchange(stage.finish, {});
    using Queue = std::pair<Stream, std::uint32_t>;
    std::map<Queue, std::map<std::uint32_t, std::uint32_t>> last;  // by queue: the last part by its queue
    std::vector<std::vector<std::uint32_t>> ends;                  // by old node
    const auto renumbered = [&](const std::vector<std::uint32_t>& after) {
      std::vector<std::uint32_t> all;
      for (const std::uint32_t i : after) {
        if (i == 0 || i == FinishNode::kReductions) {
          all.push_back(i);
        } else {
          all.insert(all.end(), ends[i - 1].begin(), ends[i - 1].end());
        }
      }
      return all;
    };
    const auto append = [&](GraphNode node, const std::vector<std::uint32_t>& after) {
      stage.finish.push_back({std::move(node), after});
      return static_cast<std::uint32_t>(stage.finish.size());
    };
    for (const FinishNode& finish : old) {
      const std::vector<std::uint32_t> after = renumbered(finish.after);
      const std::optional<Cut> cut = cut_of(finish.node, count);
      if (!cut) {
        append(finish.node, after);
      } else {
        append_parts<std::uint32_t>(finish.node, *cut, after, append);
      }
      if (finish.node.kind != GraphNode::Kind::collective) {
        ends.push_back({static_cast<std::uint32_t>(stage.finish.size())});
        continue;
      }
      auto& queues = last[{finish.node.stream, finish.node.queue}];
      queues[stage.finish.back().node.queue] = static_cast<std::uint32_t>(stage.finish.size());
      ends.emplace_back();
      for (const auto& [queue, number] : queues) ends.back().push_back(number);
    }
    stage.finished = renumbered(stage.finished);
  }

  const CollectivePartitionParameters& p_;
  TrainingGraph& graph_;
  RankGrid grid_;
  std::map<std::uint32_t, std::optional<Groups>> groups_;  // by group number in the program
  std::map<std::tuple<CollectiveKind, Bytes, std::uint32_t, std::uint32_t, std::uint32_t>,
           CollectivePartition>
      searched_;
};

class PartitionedCollectives final : public Strategy {
 public:
  PartitionedCollectives(const CollectivePartitionParameters& p, ConfigNode where)
      : p_(p), where_(std::move(where)) {}

  StrategyOrder order() const override {
    return {.after = {"pipeline_parallel", "sliced_boundaries", "recompute_windows", "expert_fetch",
                      "reduced_parameters", "data_parallel", "local_steps", "parameter_servers",
                      "sharded_replicas", "sequence_gradients", "optimizer", "optimizer_offload",
                      "activation_offload", "parameter_gather", "layer_optimizer", "delayed_updates"}};
  }
  double operations_of_layer(const JobShape&) const override { return p_.parts.workload ? 280 : 24; }
  void check(const JobShape& job) const override {
    if (std::count(job.strategies.begin(), job.strategies.end(), "partitioned_collectives") > 1)
      where_.fail("partitioned_collectives is listed twice: a collective is cut once");
    if (job.gives("parallel", "stages")) {
      job.key("parallel", "stages")
          .fail("stages with other degrees may begin within a host: no partitioned_collectives");
    }
    if (job.servers > 0) {
      job.key("parallel", "servers")
          .fail("parameter servers are no ranks of a collective within a host: no partitioned_collectives");
    }
  }
  std::vector<std::string> notes(const JobShape& job) const override {
    const Mesh mesh = job.mesh();
    const RankGrid grid(mesh.axes());
    for (const char* axis : {"tp", "cp", "replicas", "shards", "dp_unsharded", "ep", "etp", "edp"}) {
      if (mesh.size(axis) > 1 &&
          host_groups(mesh.along({axis}), grid, static_cast<std::uint32_t>(p_.per_host)))
        return {};
    }
    return {"partitioned_collectives cuts nothing: no group of '" + job.name +
            "' has several ranks on each of several hosts of " + std::to_string(p_.per_host) +
            " (partitioned_collectives.per_host)"};
  }
  void apply(TrainingGraph& graph, const JobShape&) const override { GraphPartitioner(p_, graph).apply(); }

 private:
  CollectivePartitionParameters p_;
  ConfigNode where_;
};

Parameters<SearchedParts> searched_parts_parameters() {
  using P = SearchedParts;
  return Parameters<P>()
      .flag("group", &P::group, "a collective may become collectives within hosts and between hosts")
      .flag("workload", &P::workload, "a collective may be cut into 2, 4 or 8 chunks");
}

const Registration<Strategy> kPartitionedCollectives{
    "partitioned_collectives",
    "collectives become collectives within hosts and between hosts, in chunks, as a cost model finds "
    "(Centauri); those on different transports run beside each other (SYNDICATE)",
    Parameters<CollectivePartitionParameters>()
        .integer("per_host", &CollectivePartitionParameters::per_host, {1, 65'536},
                 "consecutive ranks on one host")
        .section("within", &CollectivePartitionParameters::within, transport_parameters(),
                 "collectives within hosts")
        .section("between", &CollectivePartitionParameters::between, transport_parameters(),
                 "collectives between hosts, and among ranks of several hosts, whose rings use the NICs of "
                 "all ranks of a host")
        .section("parts", &CollectivePartitionParameters::parts, searched_parts_parameters(),
                 "what the search may use"),
    [](const CollectivePartitionParameters& p, const ConfigNode& where) {
      return std::make_unique<PartitionedCollectives>(p, where);
    }};

}  // namespace
}  // namespace netsim
