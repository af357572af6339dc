// centauri: each gradient's collective is cut along three dimensions, as a search by a cost model says: into
// primitives, into groups, and into chunks (partition_plan.h). The source is Chen et al., "Centauri: Enabling
// Efficient Scheduling for Communication-Computation Overlap in Large Model Training via Communication
// Partitioning", ASPLOS 2024.
//
// Collectives within hosts and between hosts have a queue each, so those on different transports run beside
// each other. SYNDICATE calls such collectives motifs, and packs them on transports. Its source is Mahajan et
// al., "Better Together: Jointly Optimizing ML Collective Scheduling and Execution Planning using SYNDICATE",
// NSDI 2023.
//
// The search is not published in full. The one here takes the best partition for all layers, then improves
// one layer after the other. It keeps what a search with fewer parts finds if that is better.
#include <memory>
#include <utility>

#include "sim/core/registry.h"
#include "sim/training/layers/gradient_exchange.h"
#include "sim/training/layers/partition_plan.h"

namespace netsim {
namespace {

struct CentauriParameters {
  std::int64_t per_host = 8;
  PartitionCosts::Transport within = kDgxA100Nvlink, between = kDgxA100Nic;
  PartitionParts parts;
};

// StepSink: writes a planned iteration as a program.
class StepSink {
 public:
  using Node = LayerStep::Node;
  using Nodes = std::vector<Node>;

  StepSink(LayerStep& step, Time update, const PartitionPlanner::Plan& plan)
      : step_(step), update_(update), plan_(plan) {}

  void forward(std::uint32_t layer, const Nodes& gathered) {
    if (!gathered.empty() && update_ > 0)
      step_.compute("update " + step_.layers()[layer].name, update_, gathered);
    step_.forward(layer, gathered);
  }
  void backward() { step_.backward(); }
  const std::vector<std::uint32_t>& ready() const { return step_.ready(); }
  Node gradient(std::uint32_t layer) const { return step_.gradient(layer); }
  Node collective(CollectiveKind kind, CollectiveSpan span, std::uint32_t layer, Bytes bytes,
                  const Nodes& after) {
    const bool within = span == CollectiveSpan::within_host;
    const char* what = kind == CollectiveKind::all_reduce   ? "sum "
                       : kind == CollectiveKind::all_gather ? "gather "
                                                            : "reduce ";
    const char* where = within ? " within" : span == CollectiveSpan::between_hosts ? " between" : "";
    if (span == CollectiveSpan::between_hosts) bytes = (bytes + per_host_ - 1) / per_host_;
    const std::string name = what + step_.layers()[layer].name + where;
    const CollectivePartition& partition = plan_[layer];
    const PartitionSteps steps = partition_steps(CollectiveKind::all_reduce, partition);
    const auto pieces = static_cast<std::uint32_t>(steps.first.size() + steps.then.size()) * partition.chunks;
    if (pieces > 1) step_.builder().cut(name, pieces, "exchange.parts", Stream::dp);
    return step_.collective(name, kind, bytes, after,
                            within                                  ? LayerStep::Span::within_host
                            : span == CollectiveSpan::between_hosts ? LayerStep::Span::between_hosts
                                                                    : LayerStep::Span::all,
                            within ? 1 : 0);
  }
  void wait_for_previous(Node node, Node earlier) { step_.wait_for_previous(node, earlier); }
  void exchanged(std::uint32_t layer, Node node) { step_.exchanged(layer, node); }
  void set_per_host(Bytes per_host) { per_host_ = per_host; }

 private:
  LayerStep& step_;
  Time update_;
  const PartitionPlanner::Plan& plan_;
  Bytes per_host_ = 1;
};

class CentauriExchange final : public GradientExchange {
 public:
  CentauriExchange(const CentauriParameters& p, ConfigNode where) : p_(p), where_(std::move(where)) {}

  std::uint32_t per_host() const override { return static_cast<std::uint32_t>(p_.per_host); }
  void check(const std::vector<TimedLayer>& layers, const ExchangeSettings& settings) const override {
    if (!settings.update_per_layer && p_.parts.primitive && p_.parts.model_tier)
      where_.fail(
          "centauri gathers in the next forward, which updates layers: optimizer.per has to be layer");
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const TimedLayer& layer = layers[i];
      const bool chain =
          i == 0 ? layer.after.empty() : layer.after == std::vector{static_cast<std::uint32_t>(i - 1)};
      if (!chain || layer.all_to_all > 0)
        layer.where.fail("the cost model of centauri has chains of layers without all-to-alls");
    }
  }
  void write(LayerStep& step, const ExchangeSettings& settings) const override {
    const PartitionCosts costs{step.workers(), per_host(), p_.within, p_.between, 0};
    const PartitionPlanner::Plan plan = PartitionPlanner(step.layers(), costs).search(p_.parts);
    StepSink sink(step, settings.update, plan);
    sink.set_per_host(p_.per_host);
    PartitionedIteration<StepSink>(step.layers(), plan, sink).write();
  }

 private:
  CentauriParameters p_;
  ConfigNode where_;
};

Parameters<PartitionParts> part_parameters() {
  using P = PartitionParts;
  return Parameters<P>()
      .flag("primitive", &P::primitive, "an all-reduce may become a reduce-scatter and an all-gather")
      .flag("group", &P::group, "a collective may become collectives within hosts and between hosts")
      .flag("workload", &P::workload, "a gradient may be cut into 2, 4 or 8 chunks")
      .flag("layer_tier", &P::layer_tier, "layers may be cut differently; false: all alike")
      .flag("model_tier", &P::model_tier, "all-gathers may move into the next iteration's forward");
}

const Registration<GradientExchange> kCentauri{
    "centauri",
    "Centauri: collectives cut into primitives, groups and chunks, as a search by a cost model finds; those "
    "within "
    "hosts run beside those between hosts, as SYNDICATE's motifs do",
    Parameters<CentauriParameters>()
        .integer("per_host", &CentauriParameters::per_host, {1, 65'536}, "consecutive workers on one host")
        .section("within", &CentauriParameters::within, transport_parameters(), "collectives within hosts")
        .section("between", &CentauriParameters::between, transport_parameters(),
                 "collectives between hosts and among all workers")
        .section("parts", &CentauriParameters::parts, part_parameters(), "what the search may use"),
    [](const CentauriParameters& p, const ConfigNode& where) {
      return std::make_unique<CentauriExchange>(p, where);
    }};

}  // namespace
}  // namespace netsim
