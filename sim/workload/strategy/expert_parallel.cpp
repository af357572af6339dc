#include <algorithm>
#include <string>
#include <utility>

#include "sim/workload/strategy/chain_editor.h"
#include "sim/workload/strategy/strategies.h"
#include "sim/workload/strategy/token_counts.h"

namespace netsim {
namespace {

constexpr std::int64_t kHalfBits = 16;

// One all-to-all of an exchange: among all members, or one of the two of an exchange by way of a group.
enum class Leg { direct, across, within };

// One of several parts of rows.
struct Piece {
  std::uint32_t number = 0, of = 1;
  // Earlier pieces have the row more where rows cannot be divided.
  std::int64_t part(std::int64_t rows) const { return (rows + of - 1 - number) / of; }
};

bool has_experts(const ModelLayer& layer) {
  return std::any_of(layer.forward.begin(), layer.forward.end(),
                     [](const ModelPart& part) { return part.exchange.has_value(); });
}

class ExpertParallel final : public Strategy {
 public:
  explicit ExpertParallel(ExpertParallelism parameters) : p_(std::move(parameters)) {}

  void apply(TrainingGraph& graph) const override {
    if (!graph.model.routed) return;
    const std::uint32_t members = graph.mesh.size("ep"), inner = graph.mesh.size("etp");
    graph.sharding.divide(Dimension::experts, members);
    graph.sharding.divide(Dimension::expert_inner, inner);
    graph.sharding.set_routed(copies_of_rank(graph) * inner);
    graph.experts_apart = graph.mesh.along({"edp"}) != graph.mesh.along({"replicas"});
    for (LayerGraph& layer : graph.layers) {
      for (Chain* chain : {&layer.forward, &layer.backward}) {
        complete_sums(graph, *chain);
        if (members > 1 && members < graph.model.routed->experts.count) sort_copies(graph, *chain);
      }
    }
    const ExpertsModel& experts = graph.model.routed->experts;
    const bool counts = !p_.router->even() && !experts.padded && (members > 1 || experts.capacity > 0);
    if (counts) {
      route_layers(graph);
    } else if (members > 1) {
      for (LayerGraph& layer : graph.layers) {
        for (Chain* chain : {&layer.forward, &layer.backward}) *chain = exchanged(graph, *chain, nullptr);
      }
    }
  }

 private:
  // What the router says of a layer, by iteration.
  using Layer = std::vector<TokenCounts>;

  static std::int64_t tokens_of_rank(const TrainingGraph& graph) {
    return routing_shape(*graph.model.routed, graph.mesh).tokens;
  }
  static std::int64_t copies_of_rank(const TrainingGraph& graph) {
    return graph.model.routed->experts.copies_of(tokens_of_rank(graph));
  }
  std::uint32_t group_size(const TrainingGraph& graph) const {
    return p_.group == 0 ? graph.mesh.size("ep") : static_cast<std::uint32_t>(p_.group);
  }

  // Where ranks divide the experts' inner dimension, each has partial sums for the tokens of all of them.
  static void complete_sums(TrainingGraph& graph, Chain& chain) {
    if (graph.mesh.size("etp") == 1) return;
    for (GraphNode& node : chain) {
      if (node.kind != GraphNode::Kind::sum || node.sum.over != Dimension::expert_inner) continue;
      node.kind = GraphNode::Kind::collective;
      node.name = "etp_" + node.sum.name;
      node.stream = Stream::tp;
      node.group = graph.builder.group(graph.mesh.along({"etp"}));
      node.bytes = node.sum.element_bytes * graph.sharding.local(node.sum.tensor);
    }
  }

  // Copies come in the order of their ranks, and a rank with several experts puts them in that of its
  // experts, and back again (read 2, write 2).
  static void sort_copies(const TrainingGraph& graph, Chain& chain) {
    const Extent copies{0, Dimension::routed};  // its size is set
    const Tensor rows{copies, {graph.model.routed->hidden}};
    for (std::size_t i = 0; i < chain.size(); ++i) {
      if (chain[i].kind != GraphNode::Kind::exchange) continue;
      std::vector<Operator>* operators = nullptr;
      if (chain[i].exchange.to_experts) {
        operators = &chain[i + 1].operators;
        operators->insert(operators->begin(), memory_bound("sort_copies", 4, rows));
      } else {
        std::size_t computes = i;
        while (chain[computes].kind != GraphNode::Kind::compute) --computes;
        chain[computes].operators.push_back(memory_bound("sort_copies", 4, rows));
      }
    }
  }

  // ---- Exchanges

  Chain exchanged(TrainingGraph& graph, const Chain& chain, const Layer* layer) const {
    ChainEditor edit(chain);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const GraphNode& node = chain[i];
      ChainEditor::Numbers after = edit.waits_for(i);
      if (node.kind != GraphNode::Kind::exchange) {
        edit.stands(i, edit.add(node, after));
        continue;
      }
      if (node.exchange.asks) after = {edit.add(number_exchange(graph, node), after)};
      const std::vector<Leg> both = legs(graph, node.exchange);
      const std::uint32_t pieces = both.size() > 1 ? pieces_of(graph, layer) : 1;
      // What goes on waits for the piece that has come; the first leg's pieces wait for what is before them
      // all.
      std::vector<ChainEditor::Numbers> come(pieces, after);
      for (const Leg leg : both) {
        for (std::uint32_t piece = 0; piece < pieces; ++piece)
          come[piece] = {edit.add(collective(graph, node, leg, layer, {piece, pieces}), come[piece])};
      }
      edit.stands(i, edit.last());
    }
    return edit.finish();
  }

  // The pieces of an exchange by way of groups: none may be empty.
  std::uint32_t pieces_of(const TrainingGraph& graph, const Layer* layer) const {
    std::int64_t most = p_.pieces;
    for (const Leg leg : {Leg::across, Leg::within}) {
      if (layer == nullptr) most = std::min(most, even_rows(graph, leg));
      for (std::size_t i = 0; layer != nullptr && i < layer->size(); ++i) {
        for (std::uint32_t c = 0; c < communicators(graph, leg); ++c)
          most = std::min(most, block_counts((*layer)[i], leg, c, 1, true, {}).largest);
      }
    }
    return static_cast<std::uint32_t>(std::max<std::int64_t>(1, most));
  }

  // How many copies each rank has for each expert: 8 bytes for each, gathered by all (Megatron-Core's
  // dispatcher of tokens gathers its num_local_tokens_per_expert among ranks of "etp" and "ep").
  static GraphNode number_exchange(TrainingGraph& graph, const GraphNode& node) {
    GraphNode made;
    made.kind = GraphNode::Kind::collective;
    made.name = "ep_numbers_" + node.exchange.name.substr(node.exchange.name.find('_') + 1);
    made.collective = CollectiveKind::all_gather;
    made.stream = Stream::ep;
    made.group = graph.builder.group(graph.mesh.along({"etp", "ep"}));
    made.bytes = 8 * graph.model.routed->experts.count * graph.mesh.size("etp") * graph.mesh.size("ep");
    return made;
  }

  std::vector<Leg> legs(const TrainingGraph& graph, const Exchange& exchange) const {
    std::vector<Leg> legs;
    if (p_.group == 0) return {Leg::direct};
    if (group_size(graph) < graph.mesh.size("ep")) legs.push_back(Leg::across);
    if (group_size(graph) > 1) legs.push_back(Leg::within);
    if (!exchange.to_experts) std::reverse(legs.begin(), legs.end());
    return legs;
  }

  GraphNode collective(TrainingGraph& graph, const GraphNode& node, Leg leg, const Layer* layer,
                       const Piece& piece) const {
    const std::string suffix = leg == Leg::direct ? "" : leg == Leg::across ? "_across" : "_within";
    GraphNode made;
    made.kind = GraphNode::Kind::collective;
    made.name = "ep_" + node.exchange.name + suffix;
    made.stream = Stream::ep;
    made.queue = leg == Leg::within ? 1 : 0;  // of their own, so that pieces of both legs go on at a time
    made.group = graph.builder.group(graph.mesh.along({"ep" + suffix}));
    const std::int64_t bits = node.exchange.to_experts ? operand_bits(p_.precision) : kHalfBits;
    const std::int64_t row_bytes = graph.model.routed->hidden * bits / 8;
    if (layer == nullptr) {
      made.collective = CollectiveKind::all_to_all;
      made.bytes = piece.part(even_rows(graph, leg)) * row_bytes;
      return made;
    }
    made.collective = CollectiveKind::all_to_all_v;
    choose_counts(graph, made, *layer, leg, row_bytes, node.exchange.to_experts, piece);
    return made;
  }

  // Of a rank, its own included, where all experts get as many and every token goes to as many groups as it
  // may.
  std::int64_t even_rows(const TrainingGraph& graph, Leg leg) const {
    if (leg == Leg::direct) return copies_of_rank(graph);
    const ExpertsModel& e = graph.model.routed->experts;
    const std::int64_t members = graph.mesh.size("ep"), group = group_size(graph), groups = members / group;
    // Of the groups of ranks, those that the groups of experts which a token may go to are spread over.
    const std::int64_t allowed =
        groups > e.groups ? (e.group_limit * groups + e.groups - 1) / e.groups : e.group_limit;
    const std::int64_t reached = std::min({e.top_k, groups, allowed});
    if (leg == Leg::across) return tokens_of_rank(graph) * reached;
    return tokens_of_rank(graph) * std::min(e.top_k, reached * group);
  }

  // ---- Routing that is counted

  // Every layer with experts becomes a kind of its own.
  void route_layers(TrainingGraph& graph) const {
    std::uint32_t layers = 0;
    for (std::uint32_t& kind : graph.model.body) {
      const LayerGraph& layer = graph.layers[TrainingGraph::kBody + kind];
      if (!has_experts(graph.model.kinds[kind])) continue;
      LayerGraph made = routed_layer(graph, layer, layers++);
      graph.layers.push_back(std::move(made));
      graph.model.kinds.push_back(graph.model.kinds[kind]);
      kind = static_cast<std::uint32_t>(graph.model.kinds.size() - 1);
    }
    if (has_experts(graph.model.last))
      graph.layers[TrainingGraph::kLast] = routed_layer(graph, graph.layers[TrainingGraph::kLast], layers);
  }

  LayerGraph routed_layer(TrainingGraph& graph, LayerGraph made, std::uint32_t number) const {
    const std::uint32_t members = graph.mesh.size("ep");
    const RoutingShape shape = routing_shape(*graph.model.routed, graph.mesh);
    Layer layer;
    for (std::uint32_t i = 0; i < (p_.router->changes() ? p_.iterations : 1); ++i)
      layer.push_back(
          count_tokens(*p_.router, shape, graph.model.routed->experts, group_size(graph), number, i));
    std::vector<std::int64_t> rows;
    rows.reserve(layer.size() * graph.mesh.ranks());
    for (const TokenCounts& counts : layer) {
      std::vector<std::int64_t> received;
      for (std::uint32_t member = 0; member < members; ++member)
        received.push_back(counts.received(member) * graph.mesh.size("etp"));
      for (std::uint32_t rank = 0; rank < graph.mesh.ranks(); ++rank)
        rows.push_back(received[graph.mesh.coordinate(rank, "ep")]);
    }
    graph.routed_rows.push_back(std::move(rows));
    for (Chain* chain : {&made.forward, &made.backward}) {
      if (members > 1) *chain = exchanged(graph, *chain, &layer);
      for (GraphNode& node : *chain) {
        node.rows_plus_one = static_cast<std::uint32_t>(graph.routed_rows.size());
        if (node.kind == GraphNode::Kind::collective && node.sum.over == Dimension::expert_inner)
          node.row_bytes = node.sum.element_bytes * graph.model.routed->hidden;
      }
    }
    return made;
  }

  // Communicators of a leg in a group of "ep": one; one for each place in a group; one for each group.
  std::uint32_t communicators(const TrainingGraph& graph, Leg leg) const {
    return leg == Leg::direct   ? 1
           : leg == Leg::across ? group_size(graph)
                                : graph.mesh.size("ep") / group_size(graph);
  }

  // Counts of an all-to-all-v, for each rank those of its communicator.
  void choose_counts(TrainingGraph& graph, GraphNode& node, const Layer& layer, Leg leg,
                     std::int64_t row_bytes, bool to_experts, const Piece& piece) const {
    const std::uint32_t group = group_size(graph);
    std::vector<std::int64_t> choice;
    choice.reserve(layer.size() * graph.mesh.ranks());
    for (std::uint32_t iteration = 0; iteration < layer.size(); ++iteration) {
      std::vector<std::int64_t> counts;
      for (std::uint32_t c = 0; c < communicators(graph, leg); ++c) {
        Blocks made = block_counts(layer[iteration], leg, c, row_bytes, to_experts, piece);
        if (made.largest == 0) {
          p_.where.fail("in iteration " + std::to_string(iteration) + " no token leaves its rank in '" +
                        node.name + "': an all-to-all has to carry something");
        }
        counts.push_back(graph.builder.counts(BlockCounts(made.members, std::move(made.rows))));
      }
      for (std::uint32_t rank = 0; rank < graph.mesh.ranks(); ++rank) {
        const std::uint32_t member = graph.mesh.coordinate(rank, "ep");
        choice.push_back(counts[leg == Leg::direct   ? 0
                                : leg == Leg::across ? member % group
                                                     : member / group]);
      }
    }
    node.counts_plus_one = static_cast<std::uint32_t>(choice.front()) + 1;
    const bool same = std::all_of(choice.begin(), choice.end(), [&](auto c) { return c == choice.front(); });
    if (!same) node.choice_plus_one = graph.builder.table(std::move(choice)) + 1;
  }

  // What is sent to experts, or the same the other way.
  struct Blocks {
    std::uint32_t members;
    std::vector<Bytes> rows;
    Bytes largest = 0;  // from one to another
  };
  static Blocks block_counts(const TokenCounts& counts, Leg leg, std::uint32_t communicator,
                             std::int64_t row_bytes, bool to_experts, const Piece& piece) {
    const std::uint32_t group = counts.group(), groups = counts.members() / group;
    const std::uint32_t size = leg == Leg::direct ? counts.members() : leg == Leg::across ? groups : group;
    Blocks blocks{size, std::vector<Bytes>(std::size_t{size} * size, 0)};
    for (std::uint32_t from = 0; from < size; ++from) {
      for (std::uint32_t to = 0; to < size; ++to) {
        const std::size_t block = to_experts ? std::size_t{from} * size + to : std::size_t{to} * size + from;
        blocks.rows[block] = row_bytes * piece.part(sent(counts, leg, communicator, from, to));
        if (from != to) blocks.largest = std::max(blocks.largest, blocks.rows[block]);
      }
    }
    return blocks;
  }
  static std::int64_t sent(const TokenCounts& counts, Leg leg, std::uint32_t communicator, std::uint32_t from,
                           std::uint32_t to) {
    const std::uint32_t group = counts.group();
    if (leg == Leg::direct) return counts.copies(from, to);
    if (leg == Leg::across) return counts.to_group(from * group + communicator, to);
    // A rank has got the tokens of all that have its place in their groups.
    std::int64_t tokens = 0;
    for (std::uint32_t g = 0; g < counts.members() / group; ++g)
      tokens += counts.tokens(g * group + from, communicator * group + to);
    return tokens;
  }

  ExpertParallelism p_;
};

}  // namespace

std::uint32_t layers_with_experts(const Model& model) {
  std::uint32_t layers = has_experts(model.last) ? 1 : 0;
  for (const std::uint32_t kind : model.body) layers += has_experts(model.kinds[kind]) ? 1 : 0;
  return layers;
}

RoutingShape routing_shape(const Model::Routed& routed, const Mesh& mesh) {
  const auto narrow = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  RoutingShape shape;
  shape.sources = mesh.size("ep");
  shape.tokens = narrow(routed.tokens / mesh.size("tp") / mesh.size("cp"));
  shape.experts = narrow(routed.experts.count);
  shape.top_k = narrow(routed.experts.top_k);
  shape.groups = narrow(routed.experts.groups);
  shape.group_limit = narrow(routed.experts.group_limit);
  return shape;
}

std::unique_ptr<Strategy> expert_parallel(ExpertParallelism parameters) {
  return std::make_unique<ExpertParallel>(std::move(parameters));
}

}  // namespace netsim
