// Expert parallelism over axis "ep" (GShard, arXiv 2006.16668; Megatron-Core's MoE, arXiv 2504.14960). The
// routed experts of a layer are divided among the ranks. Tokens go to their experts and back, forward and
// backward (stream ep).
//
// Axis "etp" divides each expert as "tp" divides an MLP. "etp" and "ep" may lie across other axes: they
// number the ranks of "tp" and "dp" anew (folded_mesh()). The ranks of "edp" hold copies of the same experts.
// The exchange says how tokens and experts meet.
// - all_to_all: an all-to-all moves the copies of tokens, one for each expert of a token. Where the router is
//   not even, it is an all-to-all-v, and each rank computes as many copies as it gets.
// - dispatch: the collective operations dispatch and combine move the tokens. Their algorithm (direct,
//   deepep, deepep_low_latency) says how often a token travels and which way. The sender makes no copies and
//   gets their sums.
// - fetch: tokens stay, and each rank gets the experts that it does not hold (Janus: Liu et al., SIGCOMM'23).
//   expert_fetch.cpp moves them.
//
// As in Megatron-Core, it needs sequence parallelism where "tp" has more than one rank.
#include <algorithm>
#include <string>
#include <utility>

#include "sim/core/errors.h"
#include "sim/training/strategy/chain_editor.h"
#include "sim/training/strategy/fp8_scales.h"
#include "sim/training/strategy/strategy.h"
#include "sim/workload/routing/router.h"
#include "sim/workload/routing/token_counts.h"

namespace netsim {
namespace {

bool has_experts(const ModelLayer& layer) {
  return std::any_of(layer.forward.begin(), layer.forward.end(),
                     [](const ModelPart& part) { return part.exchange.has_value(); });
}

// Returns the number of layers with experts.
std::uint32_t layers_with_experts(const Model& model) {
  std::uint32_t layers = has_experts(model.last) ? 1 : 0;
  for (const std::uint32_t kind : model.body) layers += has_experts(model.kinds[kind]) ? 1 : 0;
  return layers;
}

// Returns the properties of a job that its router depends on.
RoutingShape shape_of(const Model::Routed& routed, const Mesh& mesh) {
  return routing_shape(routed.experts, mesh.size("ep"), routed.tokens / mesh.size("tp") / mesh.size("cp"));
}

struct ExpertParallelism {
  std::shared_ptr<const Router> router;
  std::uint32_t iterations = 1;  // iterations of the job
  ExpertExchange exchange = ExpertExchange::all_to_all;
  std::int64_t ranks_per_host = 8;  // dispatch: number of consecutive ranks of "ep" on one host
  // Precision of what is sent to experts; results come back in half precision.
  Precision precision = Precision::half;
  const ConfigNode& where;  // configuration of the router, for errors
};

// DividedExperts: rewrites the layers with experts of a graph.
class DividedExperts {
 public:
  explicit DividedExperts(ExpertParallelism parameters) : p_(std::move(parameters)) {}

  void apply(TrainingGraph& graph) const {
    const std::uint32_t members = graph.mesh.size("ep"), inner = graph.mesh.size("etp");
    graph.sharding.divide(Dimension::experts, members);
    graph.sharding.divide(Dimension::expert_inner, inner);
    graph.sharding.set_routed(copies_of_rank(graph) * inner);
    graph.experts_apart = graph.mesh.along({"edp"}) != graph.mesh.along({"replicas"});
    for (LayerGraph& layer : graph.layers) {
      for (Chain* chain : {&layer.forward, &layer.backward}) {
        complete_sums(graph, *chain);
        if (members == 1) continue;
        if (p_.exchange == ExpertExchange::dispatch) *chain = without_copies(*chain);
        if (p_.exchange == ExpertExchange::fetch) compute_all_experts(*chain);
        if (p_.exchange != ExpertExchange::fetch && members < graph.model.routed->experts.count)
          sort_copies(graph, *chain);
      }
    }
    const ExpertsModel& experts = graph.model.routed->experts;
    const bool moves = members > 1 && p_.exchange != ExpertExchange::fetch;
    const bool counts = !p_.router->even() && !experts.padded && (moves || experts.capacity > 0);
    if (counts) {
      route_layers(graph);
    } else if (members > 1) {
      Layer alike;
      if (p_.exchange == ExpertExchange::dispatch) alike.push_back(count(graph, 0, 0));
      for (LayerGraph& layer : graph.layers) {
        for (Chain* chain : {&layer.forward, &layer.backward})
          *chain = exchanged(graph, *chain, alike.empty() ? nullptr : &alike);
      }
    }
  }

 private:
  // Layer: the router's counts for a layer, by iteration.
  using Layer = std::vector<TokenCounts>;

  static std::int64_t tokens_of_rank(const TrainingGraph& graph) {
    return shape_of(*graph.model.routed, graph.mesh).tokens;
  }
  static std::int64_t copies_of_rank(const TrainingGraph& graph) {
    return graph.model.routed->experts.copies_of(tokens_of_rank(graph));
  }
  TokenCounts count(const TrainingGraph& graph, std::uint32_t layer, std::uint32_t iteration) const {
    const RoutingShape shape = shape_of(*graph.model.routed, graph.mesh);
    const auto host = static_cast<std::uint32_t>(std::min<std::int64_t>(p_.ranks_per_host, shape.sources));
    return count_tokens(*p_.router, shape, host, layer, iteration);
  }

  // Adds the sums over the experts' inner dimension. Where ranks divide it, each has partial sums for the
  // tokens of all of them.
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

  // Removes the kernels that make and sum copies. Dispatch sends tokens without copies and returns sums.
  static Chain without_copies(const Chain& chain) {
    ChainEditor edit(chain);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      GraphNode node = chain[i];
      const ChainEditor::Numbers after = edit.waits_for(i);
      const bool had = !node.operators.empty();
      std::erase_if(node.operators, [](const Operator& op) { return op.of_copies; });
      NETSIM_CHECK(!had || !node.operators.empty() || after.size() == 1,
                   "copies are summed up behind one node");
      edit.stands(i, had && node.operators.empty() ? after.front() : edit.add(std::move(node), after));
    }
    return edit.finish();
  }

  // Adds kernels that sort copies. They arrive in the order of their ranks. A rank with several experts puts
  // them in the order of its experts, in the precision in which they were sent. Results are put back in half
  // precision. Each is read and written once.
  void sort_copies(const TrainingGraph& graph, Chain& chain) const {
    const Extent copies{0, Dimension::routed};  // the size is set below
    const Tensor rows{copies, {graph.model.routed->hidden}};
    for (std::size_t i = 0; i < chain.size(); ++i) {
      if (chain[i].kind != GraphNode::Kind::exchange) continue;
      std::vector<Operator>* operators = nullptr;
      if (chain[i].exchange.to_experts) {
        operators = &chain[i + 1].operators;
        const Precision sent = p_.exchange == ExpertExchange::dispatch ? p_.precision : Precision::half;
        operators->insert(operators->begin(), memory_bound("sort_copies", 2 * operand_bits(sent) / 8, rows));
      } else {
        std::size_t computes = i;
        while (chain[computes].kind != GraphNode::Kind::compute) --computes;
        chain[computes].operators.push_back(memory_bound("sort_copies", 4, rows));
      }
    }
  }

  // Makes each rank compute all experts, for exchanges that bring the experts to the tokens. Copies of tokens
  // are in the order of experts already.
  static void compute_all_experts(Chain& chain) {
    const auto whole = [](Extent& extent) {
      if (extent.along == Dimension::experts) extent.along = Dimension::whole;
    };
    for (GraphNode& node : chain) {
      for (Operator& op : node.operators) {
        for (Extent* extent : {&op.m, &op.n, &op.k, &op.batch}) whole(*extent);
        for (Traffic& traffic : op.traffic)
          std::for_each(traffic.tensor.begin(), traffic.tensor.end(), whole);
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
      if (p_.exchange == ExpertExchange::fetch) {
        NETSIM_CHECK(after.size() == 1, "what is exchanged comes from one node");
        edit.stands(i, after.front());
        continue;
      }
      // Dispatch kernels exchange the numbers themselves (DeepEP's notify_dispatch).
      if (node.exchange.asks && p_.exchange == ExpertExchange::all_to_all)
        after = {edit.add(number_exchange(graph, node), after)};
      edit.stands(i, edit.add(collective(graph, node, layer), after));
    }
    return edit.finish();
  }

  // Returns the all-gather of how many copies each rank has for each expert, 8 bytes each. Megatron-Core's
  // dispatcher of tokens gathers its num_local_tokens_per_expert among ranks of "etp" and "ep".
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

  GraphNode collective(TrainingGraph& graph, const GraphNode& node, const Layer* layer) const {
    GraphNode made;
    made.kind = GraphNode::Kind::collective;
    made.name = "ep_" + node.exchange.name;
    made.stream = Stream::ep;
    made.group = graph.builder.group(graph.mesh.along({"ep"}));
    const Bytes token = token_bytes(graph, node.exchange.to_experts);
    if (layer == nullptr) {
      made.collective = CollectiveKind::all_to_all;
      made.bytes = copies_of_rank(graph) * token;
      return made;
    }
    made.collective = p_.exchange == ExpertExchange::all_to_all ? CollectiveKind::all_to_all_v
                      : node.exchange.to_experts                ? CollectiveKind::dispatch
                                                                : CollectiveKind::combine;
    choose_counts(graph, made, *layer, token, node.exchange.to_experts);
    return made;
  }
  Bytes token_bytes(const TrainingGraph& graph, bool to_experts) const {
    const std::int64_t hidden = graph.model.routed->hidden;
    if (!to_experts || p_.precision == Precision::half) return 2 * hidden;
    return hidden * operand_bits(p_.precision) / 8 +
           (hidden + kScaledElements - 1) / kScaledElements * kScaleBytes;
  }

  // ---- Routing that is counted

  // Makes every layer with experts a kind of its own.
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
    Layer layer;
    for (std::uint32_t i = 0; i < (p_.router->changes() ? p_.iterations : 1); ++i)
      layer.push_back(count(graph, number, i));
    std::vector<std::int64_t> rows;
    rows.reserve(layer.size() * graph.mesh.ranks());
    for (const TokenCounts& counts : layer) {
      std::vector<std::int64_t> computed;
      for (std::uint32_t member = 0; member < members; ++member) {
        const std::int64_t copies =
            p_.exchange == ExpertExchange::fetch ? counts.sent(member) : counts.received(member);
        computed.push_back(copies * graph.mesh.size("etp"));
      }
      for (RankId rank = 0; rank < graph.mesh.ranks(); ++rank)
        rows.push_back(computed[graph.mesh.coordinate(rank, "ep")]);
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

  // Sets the counts of an all-to-all-v by iteration.
  void choose_counts(TrainingGraph& graph, GraphNode& node, const Layer& layer, Bytes token,
                     bool to_experts) const {
    std::vector<std::int64_t> choice;
    choice.reserve(layer.size() * graph.mesh.ranks());
    for (std::uint32_t iteration = 0; iteration < layer.size(); ++iteration) {
      const bool each_copy = p_.exchange == ExpertExchange::all_to_all;
      BlockCounts counts =
          each_copy ? every_copy(layer[iteration], token, !to_experts) : once_each(layer[iteration], token);
      if (counts.busiest() == 0) {
        p_.where.fail("in iteration " + std::to_string(iteration) + " no token leaves its rank in '" +
                      node.name + "': an all-to-all has to carry something");
      }
      choice.insert(choice.end(), graph.mesh.ranks(), graph.builder.counts(std::move(counts)));
    }
    node.counts_plus_one = static_cast<std::uint32_t>(choice.front()) + 1;
    const bool same = std::all_of(choice.begin(), choice.end(), [&](auto c) { return c == choice.front(); });
    if (!same) node.choice_plus_one = graph.builder.table(std::move(choice)) + 1;
  }

  ExpertParallelism p_;
};

struct ExpertParameters {
  std::int64_t expert = 1;
  std::optional<std::int64_t> expert_tensor;
  ExpertExchange exchange = ExpertExchange::all_to_all;
  ConfigNode router;
  std::int64_t ranks_per_host = 8;
  Precision precision = Precision::half;
};

class ExpertParallel final : public Strategy {
 public:
  explicit ExpertParallel(const ExpertParameters& p)
      : p_(p), router_(Registry<Router>::instance().create(p.router, "uniform")) {}

  // Embedding tables are exchanged first; no model has both.
  StrategyOrder order() const override {
    return {.after = {"tensor_parallel", "embedding_parallel"}, .before = {"sequence_parallel"}};
  }
  void describe(JobShape& job) const override {
    job.expert = p_.expert;
    job.expert_tensor_given = p_.expert_tensor;
    job.expert_exchange = p_.exchange;
    job.ranks_per_host = p_.ranks_per_host;
    job.dispatch_precision = p_.precision;
  }
  bool takes_part(const JobShape& job) const override { return job.has_experts(); }
  void check(const JobShape& job) const override {
    if (!job.has_experts()) return refuse_keys_of_experts(job);
    check_degrees(job);
    if (job.tensor > 1 && !job.sequence) {
      job.key("parallel", "sequence")
          .fail("sequence has to be true: experts beside tensor parallelism need sequence parallelism");
    }
    check_exchange(job);
    // Parameter servers and groups of replicas are refused by the strategies that have them.
    if (job.servers > 0 || job.shard_group > 0) return;
    const std::optional<Mesh> mesh = job.mesh_with_experts();
    if (!mesh) {
      job.key("parallel", "expert")
          .fail(
              "tensor (x context), and expert_tensor x expert (fetch: or x those of a host), have to divide "
              "each other");
    }
    const Model model = job.model->make(job.sub_batch(), 2);
    router_->check(shape_of(*model.routed, *mesh), layers_with_experts(model));
  }
  void apply(TrainingGraph& graph, const JobShape& job) const override {
    DividedExperts({router_, static_cast<std::uint32_t>(job.iterations), p_.exchange, p_.ranks_per_host,
                    p_.precision, p_.router.is_null() ? job.where : p_.router})
        .apply(graph);
  }

 private:
  void refuse_keys_of_experts(const JobShape& job) const {
    for (const char* key : {"router", "dispatch"}) {
      if (job.gives(key)) job.key(key).fail("no layer of the model has routed experts");
    }
    if (p_.expert > 1) job.key("parallel", "expert").fail("no layer of the model has routed experts");
  }
  void check_degrees(const JobShape& job) const {
    const ExpertsModel& experts = *job.model->experts();
    job.require_divides("expert", p_.expert, "model.experts.count", experts.count);
    job.require_divides("expert_tensor", job.expert_tensor(), "tensor", job.tensor);
    job.require_divides("expert_tensor", job.expert_tensor(), "model.experts.inner", experts.inner);
    job.require_divides("expert", p_.expert * job.expert_tensor(), "tensor x context x data",
                        job.ranks_of_stage());
  }
  void check_exchange(const JobShape& job) const {
    if (p_.exchange == ExpertExchange::dispatch && job.model->experts()->padded) {
      job.key("parallel", "expert_exchange")
          .fail("tokens that are dispatched are not filled up: model.experts.padded has to be false");
    }
    if (p_.exchange == ExpertExchange::fetch && p_.expert % job.experts_per_host() != 0) {
      job.key("dispatch", "ranks_per_host")
          .fail("the " + std::to_string(p_.expert) + " ranks of expert cannot be divided into hosts of " +
                std::to_string(job.experts_per_host()));
    }
  }

  ExpertParameters p_;
  std::shared_ptr<const Router> router_;
};

Parameters<ExpertParameters> expert_parameters() {
  using P = ExpertParameters;
  return in_section(
             kParallelSection,
             Parameters<P>()
                 .integer("expert", &P::expert, {1, 65'536},
                          "ranks that divide the routed experts of a layer among them")
                 .integer("expert_tensor", &P::expert_tensor, {1, 65'536}, "tensor",
                          "ranks that divide each of these experts: as many as tensor, or fewer")
                 .choice("expert_exchange", &P::exchange,
                         {{"all_to_all", ExpertExchange::all_to_all},
                          {"dispatch", ExpertExchange::dispatch},
                          {"fetch", ExpertExchange::fetch}},
                         "how tokens and experts meet: copies of tokens, one for each expert, go by "
                         "all-to-alls; tokens go by the collectives dispatch and combine, as their algorithm "
                         "says; or experts are fetched to where the tokens are"))
      .component("router", &P::router, "router", "uniform", "how tokens are spread over routed experts")
      .section(kDispatchSection.name,
               Parameters<P>()
                   .integer("ranks_per_host", &P::ranks_per_host, {1, 1 << 20},
                            "with expert_exchange: dispatch or fetch, number of consecutive expert-parallel "
                            "ranks on a host")
                   .choice("precision", &P::precision, {{"half", Precision::half}, {"fp8", Precision::fp8}},
                           "precision of the tokens that are sent to experts, with their scales; results "
                           "return in half precision"),
               kDispatchSection.doc);
}

const Registration<Strategy> kExpertParallel{
    "expert_parallel",
    "ranks divide the routed experts of a layer, and tokens travel to their experts and back",
    ptdp_keys(expert_parameters()),
    [](const ExpertParameters& p, const ConfigNode&) { return std::make_unique<ExpertParallel>(p); }};

}  // namespace
}  // namespace netsim
