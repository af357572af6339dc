// Divides the embedding tables of a recommendation model over axis "replicas", which has copies of all else.
// The sources are Naumov et al. (arXiv 1906.00091, section 3) and Mudigere et al. (arXiv 2104.05158). The
// communication is on stream ep. Computation that does not need it runs meanwhile (Exchange::beside).
// - tables: each rank has whole tables. All-to-alls take indices to them and rows back, and then gradients of
//   rows.
// - rows: each rank has some rows of every table. Indices are all-gathered, sums of rows reduce-scattered,
//   and their gradients all-gathered. The memory traffic for writing partial sums of other ranks' samples is
//   not counted.
#include <vector>

#include "sim/training/strategy/chain_editor.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

enum class TableDivision : std::uint8_t { tables, rows };
struct EmbeddingParameters {
  TableDivision division = TableDivision::tables;
};

class EmbeddingParallel final : public Strategy {
 public:
  explicit EmbeddingParallel(const EmbeddingParameters& p) : division_(p.division) {}

  StrategyOrder order() const override {
    return {.after = {"tensor_parallel"}, .before = {"pipeline_parallel"}};
  }
  bool takes_part(const JobShape& job) const override { return job.model->tables() > 0; }
  void check(const JobShape& job) const override {
    if (!takes_part(job)) {
      if (job.gives("parallel", "embedding"))
        job.key("parallel", "embedding").fail("the model has no embedding tables of sparse features");
    } else if (division_ == TableDivision::tables && job.model->tables() % job.data != 0) {
      job.key("parallel", "data")
          .fail("model.tables (" + std::to_string(job.model->tables()) + ") cannot be divided by " +
                std::to_string(job.data) + " replicas: parallel.embedding: rows divides the rows of each");
    }
  }

  void divide(const Mesh& mesh, Sharding& sharding) const override {
    sharding.divide(Dimension::tables, mesh.size("replicas"));
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    if (graph.mesh.size("replicas") == 1) return;
    const std::uint32_t group = graph.builder.group(graph.mesh.along({"replicas"}));
    for (LayerGraph& layer : graph.layers) {
      for (Chain* chain : {&layer.forward, &layer.backward}) *chain = exchanged(graph, *chain, group);
    }
  }

 private:
  using Number = ChainEditor::Number;
  using Numbers = ChainEditor::Numbers;

  Chain exchanged(const TrainingGraph& graph, const Chain& chain, std::uint32_t group) const {
    ChainEditor edit(chain);
    // State of the last exchange. `beside` further nodes run beside it and wait for `before`. The node after
    // them waits for the exchange, `arrived`.
    std::uint32_t beside = 0;
    Numbers before;
    std::vector<Number> arrived;
    for (std::size_t i = 0; i < chain.size(); ++i) {
      Numbers after = edit.waits_for(i);
      if (chain[i].kind == GraphNode::Kind::exchange && chain[i].exchange.over == Dimension::tables) {
        arrived = {edit.add(communication(graph, chain[i], group), after)};
        before = after;
        beside = chain[i].exchange.beside;
        edit.stands(i, arrived.front());
        continue;
      }
      if (beside > 0) {
        after = before;
        --beside;
        before = {edit.add(chain[i], after)};
        edit.stands(i, before.front());
        continue;
      }
      after.insert(after.end(), arrived.begin(), arrived.end());
      arrived.clear();
      edit.stands(i, edit.add(chain[i], after));
    }
    return edit.finish();
  }

  // Returns the collective of an exchange. Each rank has samples for all tables. With whole tables, an
  // all-to-all takes indices to their tables or rows back. With rows of all tables, every rank gets all
  // indices and contributes to every sum.
  GraphNode communication(const TrainingGraph& graph, const GraphNode& node, std::uint32_t group) const {
    const std::int64_t ranks = graph.mesh.size("replicas");
    const Exchange& exchange = node.exchange;
    GraphNode made;
    made.kind = GraphNode::Kind::collective;
    made.name = "ep_" + node.name;
    made.stream = Stream::ep;
    made.group = group;
    made.bytes = exchange.element_bytes * graph.sharding.local(exchange.tensor);
    made.collective = CollectiveKind::all_to_all;
    if (division_ == TableDivision::rows) {
      made.bytes *= ranks;
      made.collective = exchange.to_experts ? CollectiveKind::all_gather : CollectiveKind::reduce_scatter;
    }
    return made;
  }

  TableDivision division_;
};

const Registration<Strategy> kEmbeddingParallel{
    "embedding_parallel", "replicas divide the embedding tables of a recommendation model",
    ptdp_keys(
        in_section(kParallelSection, Parameters<EmbeddingParameters>().choice(
                                         "embedding", &EmbeddingParameters::division,
                                         {{"tables", TableDivision::tables}, {"rows", TableDivision::rows}},
                                         "what replicas divide of a recommendation model's embedding: whole "
                                         "tables, or the rows of each"))),
    [](const EmbeddingParameters& p, const ConfigNode&) { return std::make_unique<EmbeddingParallel>(p); }};

}  // namespace
}  // namespace netsim
