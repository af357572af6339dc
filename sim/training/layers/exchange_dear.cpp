// dear: each group of gradients is reduced (reduce-scatter) beside the backward, and gathered beside the next
// forward (Zhang et al., "DeAR", ICDCS 2023; lzhangbv/dear_pytorch, dopt_rsag.py). Together they are an
// all-reduce.
//
// Groups are made in the order in which gradients are computed. When all reduce-scatters have ended, the
// group of the first layers is gathered. The forward of a group waits for its all-gather, launches the one of
// the next group, updates its own parameters and computes.
//
// Each iteration begins with the all-gathers of the gradients of the iteration before. So the first iteration
// gathers what nobody has reduced, and the last one reduces what nobody gathers. Leave out the first one by
// `warm_up`.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/training/layers/gradient_exchange.h"

namespace netsim {
namespace {

struct DearParameters {
  Bytes group = 25 * kMebibyte;
};

class DearExchange final : public GradientExchange {
 public:
  DearExchange(const DearParameters& p, const ConfigNode& where) : p_(p), where_(where) {}

  void check(const std::vector<TimedLayer>&, const ExchangeSettings& settings) const override {
    if (settings.update_per_layer) return;
    where_.fail("dear updates each group in the next forward: optimizer.per has to be layer");
  }

  void write(LayerStep& step, const ExchangeSettings& settings) const override {
    const std::vector<FusedGradients> groups = fuse_gradients(step, p_.group, p_.group);
    const LayerStep::Node first_gather = write_forwards(step, settings, in_forward_order(groups));
    step.backward();
    if (groups.empty()) return;
    step.wait_for_previous(first_gather, step.last_compute());
    for (const FusedGradients& group : groups) {
      const LayerStep::Node reduced =
          step.collective(fused_name("reduce", step, group), CollectiveKind::reduce_scatter, group.bytes,
                          gradients_of(step, group));
      step.wait_for_previous(first_gather, reduced);
    }
  }

 private:
  static std::uint32_t first_of(const FusedGradients& group) {
    return *std::min_element(group.layers.begin(), group.layers.end());
  }
  static std::vector<FusedGradients> in_forward_order(std::vector<FusedGradients> groups) {
    std::sort(groups.begin(), groups.end(),
              [](const FusedGradients& a, const FusedGradients& b) { return first_of(a) < first_of(b); });
    return groups;
  }

  // Appends the forwards with gathers and updates. Returns the gather of the first group.
  static LayerStep::Node write_forwards(LayerStep& step, const ExchangeSettings& settings,
                                        const std::vector<FusedGradients>& groups) {
    constexpr std::uint32_t kNoGroup = UINT32_MAX;
    std::vector<std::uint32_t> group_of(step.layers().size(), kNoGroup);
    for (std::uint32_t i = 0; i < groups.size(); ++i) {
      for (const std::uint32_t layer : groups[i].layers) group_of[layer] = i;
    }
    std::vector<LayerStep::Node> gathers;
    const auto gather = [&](std::vector<LayerStep::Node> after) {
      const FusedGradients& group = groups[gathers.size()];
      gathers.push_back(
          step.collective(fused_name("gather", step, group), CollectiveKind::all_gather, group.bytes, after));
    };
    if (!groups.empty()) gather({});
    for (std::uint32_t layer = 0; layer < step.layers().size(); ++layer) {
      const std::uint32_t group = group_of[layer];
      if (group == kNoGroup) {
        step.forward(layer, {});
        continue;
      }
      if (group + 1 < groups.size() && layer == first_of(groups[group])) {
        std::vector<LayerStep::Node> reached{gathers[group]};
        if (step.last_compute() != LayerStep::kNoNode) reached.push_back(step.last_compute());
        gather(std::move(reached));
      }
      if (settings.update > 0)
        step.compute("update " + step.layers()[layer].name, settings.update, {gathers[group]});
      step.forward(layer, {gathers[group]});
    }
    return gathers.empty() ? LayerStep::kNoNode : gathers.front();
  }

  DearParameters p_;
  ConfigNode where_;
};

Parameters<DearParameters> dear_parameters() {
  using P = DearParameters;
  return Parameters<P>().bytes("group", &P::group, {0, 1000 * kGigabyte},
                               "bytes at which a group of layers is full; 0: each layer is a group");
}

const Registration<GradientExchange> kDear{"dear",
                                           "DeAR: a reduce-scatter of each group of gradients beside the "
                                           "backward, and its all-gather beside the next "
                                           "forward, one group ahead",
                                           dear_parameters(),
                                           [](const DearParameters& p, const ConfigNode& where) {
                                             return std::make_unique<DearExchange>(p, where);
                                           }};

}  // namespace
}  // namespace netsim
