// GradientExchange: how the workers of `kind: layers` combine their gradients. Each exchange is one file.
//
// An exchange has parameters only. It writes its communications into a LayerStep, which is made anew for each
// program.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/training/layers/layer_step.h"

namespace netsim {

// ExchangeSettings: facts about the job that an exchange may need.
struct ExchangeSettings {
  std::uint32_t iterations = 1;
  std::int64_t element_bytes = 4;  // bytes of an element of a gradient
  // The optimizer runs once for each layer, `update` for each, or once for the whole network.
  bool update_per_layer = true;
  Time update = 0;
};

class GradientExchange {
 public:
  static constexpr const char* kComponentKind = "gradient_exchange";
  virtual ~GradientExchange() = default;

  // Returns the number of ranks behind the workers, for which write() adds roles.
  virtual std::uint32_t servers() const { return 0; }
  // Returns the consecutive workers on a host, where the exchange has collectives within hosts and between
  // them; else 1.
  virtual std::uint32_t per_host() const { return 1; }
  // Throws ConfigError where the exchange is not for these layers. Called once, before anything else.
  virtual void check(const std::vector<TimedLayer>& /*layers*/, const ExchangeSettings& /*settings*/) const {}
  // Writes an iteration: step.forwards() or a forward() for each layer, step.backward(), and communications.
  // It calls step.exchanged() for each layer whose next forward has to wait. The workload then adds the
  // optimizer's operations for these layers.
  virtual void write(LayerStep& step, const ExchangeSettings& settings) const = 0;
};

// FusedGradients: gradients of several layers that are exchanged as one.
struct FusedGradients {
  std::vector<std::uint32_t> layers;  // in the order in which their gradients are computed
  Bytes bytes = 0;
};
// Returns the groups that PyTorch's DDP makes of the gradients in the order in which they are computed. A
// group is closed when it has at least `limit` bytes, the first one with `first_limit`. With a limit of 0
// each layer is a group. The last group has what is left.
std::vector<FusedGradients> fuse_gradients(const LayerStep& step, Bytes first_limit, Bytes limit);
// Returns the operations that compute the gradients of a group.
std::vector<LayerStep::Node> gradients_of(const LayerStep& step, const FusedGradients& group);
// Returns a name: "what LAYER", or "what FIRST to LAST" for several layers.
std::string fused_name(const std::string& what, const LayerStep& step, const FusedGradients& group);

}  // namespace netsim
