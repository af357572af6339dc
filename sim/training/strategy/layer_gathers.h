// Gathers of parameters, and copies from the host, before the layers of a pipeline step.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/training/strategy/chain_turns.h"

namespace netsim {

// StepGathers: the gathers for the layers of a step, which run one after the other.
class StepGathers {
 public:
  using Position = BlockBuilder::Position;

  // `layers` holds the gathers by layer, in the order in which layers are computed, and may be shorter; null:
  // there are none. `begin` holds the positions that the first gathers wait for. The gathers of a layer begin
  // when the layer `ahead` layers before it begins. Without `ahead` they do not wait for layers.
  StepGathers(const ChainWriter& writer, const std::vector<std::vector<GraphNode>>* layers,
              std::vector<Position> begin, std::optional<std::uint32_t> ahead)
      : writer_(writer), layers_(layers), begin_(std::move(begin)), ahead_(ahead) {}

  // Has to be called before each layer is appended. `before` is the end of the layer before it, if there is
  // one. Appends the gathers that may begin now. Returns the positions that the layer has to wait for.
  std::vector<Position> next(BlockBuilder& block, std::optional<Position> before);

 private:
  const ChainWriter& writer_;
  const std::vector<std::vector<GraphNode>>* layers_;
  std::vector<Position> begin_;
  std::optional<std::uint32_t> ahead_;
  std::vector<std::vector<Position>> appended_;  // by layer
  std::size_t layer_ = 0;
};

// LayerGathers: gathers and copies before the layers of several lanes. The first lane that comes to a layer
// appends them; the layer waits for them in all lanes.
class LayerGathers {
 public:
  using Position = BlockBuilder::Position;

  // `layers` is the number of layers.
  LayerGathers(std::vector<StepGathers> gathers, std::size_t layers)
      : gathers_(std::move(gathers)), gathered_(layers) {}

  // Makes a lane wait for them. Lane, block and this object have to live until all lanes are appended.
  void begin_layers_of(TurnLane& lane, BlockBuilder& block);
  // Returns the positions that a layer waits for, once a lane has begun it.
  const std::vector<Position>& of(std::size_t layer) const { return gathered_[layer]; }

 private:
  std::vector<StepGathers> gathers_;
  std::vector<std::vector<Position>> gathered_;  // by layer
  std::size_t begun_ = 0;                        // number of layers whose gathers are appended
};

}  // namespace netsim
