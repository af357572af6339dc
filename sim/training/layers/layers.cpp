// layers: data-parallel training of a chain or graph of layers whose times and sizes are given. It is the
// workload of studies that order, cut or fuse the communication of gradients. All workers run the same
// program (layer_step.h):
//
//   kind: layers
//   iterations: 4
//   warm_up: 1
//   replicas: 2
//   layers:
//     - {name: conv1, forward: 1 ms, backward: 2 ms, bytes: 4 MB}
//     - {name: conv2, forward: 1 ms, backward: 2 ms, bytes: 8 MB}
//     - {name: fc, count: 3, forward: 1 ms, backward: 1 ms, weight_gradient: 1 ms, bytes: 100 MB}
//   exchange: {kind: all_reduce, bucket: 25 MB}
//   optimizer: {per: layer, time: 10 us}
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config_entries.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/training/layers/backward_order.h"
#include "sim/training/layers/gradient_exchange.h"
#include "sim/workload/program/program_file.h"
#include "sim/workload/program/role_program_source.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

enum class UpdateUnit : std::uint8_t { layer, whole };

struct LayerOptimizer {
  UpdateUnit per = UpdateUnit::layer;
  Time time = 0;
};

struct LayersParameters {
  std::string name = "layers";
  std::int64_t replicas = 0;
  ConfigNode layers, exchange, backward;
  std::string file;
  std::int64_t element_bytes = 4;
  LayerScale scale;
  LayerOptimizer optimizer;
  std::int64_t iterations = 1, warm_up = 0;
};

const Parameters<LayerScale>& layer_scale_parameters() {
  using S = LayerScale;
  static constexpr Range<double> kFactors{0, 1e12};
  static const auto p =
      Parameters<S>()
          .real("forward", &S::forward, kFactors, "factor of all forward times")
          .real("backward", &S::backward, kFactors, "factor of all backward times")
          .real("weight_gradient", &S::weight_gradient, kFactors, "factor of all weight_gradient times")
          .real("bytes", &S::bytes, kFactors, "factor of all bytes, gradients and all_to_all");
  return p;
}

const Parameters<LayerOptimizer>& layer_optimizer_parameters() {
  using O = LayerOptimizer;
  static const auto p =
      Parameters<O>()
          .choice(
              "per", &O::per, {{"layer", UpdateUnit::layer}, {"whole", UpdateUnit::whole}},
              "layer: each layer is updated when its gradient has been exchanged, and only its own next "
              "forward waits for that; whole: one update follows all exchanges, and all forwards wait for it")
          .time("time", &O::time, {0, ProgramLimits::kKernelTime},
                "time of one update, of a layer or of all");
  return p;
}

const Parameters<LayersParameters>& layers_parameters() {
  using P = LayersParameters;
  static const auto p =
      Parameters<P>()
          .text("name", &P::name, "name of the job")
          .integer("replicas", &P::replicas, {0, kMaxTrafficRanks},
                   "workers, each with a copy of the network; 0: all GPUs that are no servers")
          .text("file", &P::file,
                "CSV file with the layers, instead of 'layers'; it has the columns name, forward, backward, "
                "weight_gradient, bytes, after, matrix and all_to_all, or rows of elements, forward and "
                "backward in ns, as in SwitchML's DNN benchmark")
          .integer("element_bytes", &P::element_bytes, {1, 16},
                   "bytes of an element of a gradient, where elements are counted")
          .section("scale", &P::scale, layer_scale_parameters(),
                   "factors for the times and sizes of all layers, such as those of another batch or GPU")
          .component("backward", &P::backward, "backward_order", "in_order",
                     "order in which gradients are computed")
          .component("exchange", &P::exchange, "gradient_exchange", "all_reduce",
                     "how the workers combine their gradients")
          .section("optimizer", &P::optimizer, layer_optimizer_parameters(), "the update of the parameters")
          .integer("iterations", &P::iterations, {1, 1'000'000}, "training iterations")
          .integer("warm_up", &P::warm_up, {0, 999'999}, "number of first iterations that means exclude");
  return p;
}

class LayersWorkload final : public WorkloadKind {
 public:
  LayersWorkload(LayersParameters p, const ConfigNode& where)
      : p_(std::move(p)),
        where_(where),
        layers_(read_layers({where, p_.layers, p_.file, p_.element_bytes, p_.scale})),
        exchange_(Registry<GradientExchange>::instance().create(p_.exchange, "all_reduce")),
        settings_{static_cast<std::uint32_t>(p_.iterations), p_.element_bytes,
                  p_.optimizer.per == UpdateUnit::layer, p_.optimizer.time},
        backward_(
            Registry<BackwardOrder>::instance().create(p_.backward, "in_order")->order(layers_.layers)) {
    if (const ConfigNode* warm_up = where.find("warm_up");
        warm_up != nullptr && p_.warm_up >= p_.iterations) {
      warm_up->fail(std::to_string(p_.warm_up) + " of " + std::to_string(p_.iterations) +
                    " iterations: warm_up has to be fewer than all");
    }
    if (p_.replicas == 1) check_one_worker();
    if (p_.replicas + std::int64_t{exchange_->servers()} > kMaxTrafficRanks)
      entry_or_self(where, "replicas")
          .fail("at most " + std::to_string(kMaxTrafficRanks) + " ranks are allowed");
    const std::string problem = backward_problem(layers_.layers, backward_);
    if (!problem.empty()) entry_or_self(where, "backward").fail("this order is impossible: " + problem);
    exchange_->check(layers_.layers, settings_);
  }

  std::string compile() const override {
    if (p_.replicas == 0) where_.fail("'replicas' is missing: a compiled file needs a fixed number of ranks");
    return serialize_program(program(static_cast<std::uint32_t>(p_.replicas)));
  }
  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    return make_role_program_source(program(workers(context.gpus)), where_.place().file, {}, layers_.notes);
  }

 private:
  // One worker is enough only where servers are its partners.
  void check_one_worker() const {
    bool alone = exchange_->servers() == 0;
    for (const TimedLayer& layer : layers_.layers) alone = alone || layer.all_to_all > 0;
    if (!alone) return;
    entry_or_self(where_, "replicas").fail("1 worker has nobody to communicate with: at least 2 are needed");
  }
  std::uint32_t workers(std::uint32_t gpus) const {
    const std::int64_t servers = exchange_->servers();
    const std::int64_t workers = p_.replicas > 0 ? p_.replicas : gpus - servers;
    if (workers < 1 || workers + servers > gpus) {
      throw InputError(place_of(where_, "replicas"), std::to_string(std::max<std::int64_t>(workers, 1)) +
                                                         " workers and " + std::to_string(servers) +
                                                         " servers, but the cluster has " +
                                                         std::to_string(gpus) + " GPUs");
    }
    if (workers == 1) check_one_worker();
    return static_cast<std::uint32_t>(workers);
  }

  std::uint32_t per_host(std::uint32_t workers) const {
    const std::uint32_t ranks = exchange_->per_host();
    if (workers % ranks != 0) {
      throw InputError(
          place_of(where_, "exchange"),
          std::to_string(workers) + " workers cannot be divided into hosts of " + std::to_string(ranks));
    }
    return ranks;
  }

  Program program(std::uint32_t workers) const {
    ProgramBuilder builder(p_.name);
    builder.program().iterations = settings_.iterations;
    builder.program().warm_up = static_cast<std::uint32_t>(p_.warm_up);
    LayerStep step(builder, layers_.layers, backward_, workers, exchange_->servers(), per_host(workers));
    exchange_->write(step, settings_);
    write_updates(step);
    step.finish();
    return builder.finish();
  }

  // Appends the updates of the layers that were exchanged, and connects them with the next forwards.
  void write_updates(LayerStep& step) const {
    std::vector<LayerStep::Node> all;
    for (std::uint32_t layer = 0; layer < layers_.layers.size(); ++layer) {
      const std::vector<LayerStep::Node>& exchanged = step.exchanged_by(layer);
      if (exchanged.empty()) continue;
      if (!settings_.update_per_layer) {
        all.insert(all.end(), exchanged.begin(), exchanged.end());
        continue;
      }
      if (settings_.update == 0) {
        for (const LayerStep::Node node : exchanged) step.wait_for_previous(step.forward_of(layer), node);
        continue;
      }
      // It is in no order with other computations, which would wait for the exchange too.
      const LayerStep::Node updated =
          step.compute("update " + layers_.layers[layer].name, settings_.update, exchanged, false);
      step.wait_for_previous(step.forward_of(layer), updated);
    }
    if (all.empty()) return;
    const LayerStep::Node updated = step.compute("update", settings_.update, all);
    step.wait_for_previous(step.forward_of(0), updated);
  }

  LayersParameters p_;
  ConfigNode where_;
  TimedLayers layers_;
  std::unique_ptr<GradientExchange> exchange_;
  ExchangeSettings settings_;
  std::vector<BackwardStep> backward_;
};

ParameterTable layers_workload_table() {
  ParameterInfo list;
  list.name = "layers";
  list.type = "list";
  list.doc = "the layers of the network; this or 'file' has to be given";
  list.children = layer_table();
  ParameterTable table = layers_parameters().table();
  table.push_back(list);
  return table;
}

const Registration<WorkloadKind> kLayersWorkload{
    "layers",
    "data-parallel training of a chain or graph of layers with given times and bytes, for studies of the "
    "order "
    "of communication",
    layers_workload_table(), [](const ConfigNode& node) {
      const ConfigNode own = node.is_scalar() ? ConfigNode() : node;
      LayersParameters p = layers_parameters().parse(own, {"kind", "layers"});
      if (const ConfigNode* list = own.find("layers"); list != nullptr) p.layers = *list;
      return std::make_unique<LayersWorkload>(std::move(p), node);
    }};

}  // namespace
}  // namespace netsim
