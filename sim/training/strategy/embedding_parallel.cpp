#include <vector>

#include "sim/training/strategy/chain_editor.h"
#include "sim/training/strategy/strategies.h"

namespace netsim {
namespace {

class EmbeddingParallel final : public Strategy {
 public:
  explicit EmbeddingParallel(TableDivision division) : division_(division) {}

  void divide(const Mesh& mesh, Sharding& sharding) const override {
    sharding.divide(Dimension::tables, mesh.size("replicas"));
  }
  void apply(TrainingGraph& graph) const override {
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

}  // namespace

std::unique_ptr<Strategy> embedding_parallel(TableDivision division) {
  return std::make_unique<EmbeddingParallel>(division);
}

}  // namespace netsim
