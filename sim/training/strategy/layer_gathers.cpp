#include "sim/training/strategy/layer_gathers.h"

#include <algorithm>

namespace netsim {

std::vector<StepGathers::Position> StepGathers::next(BlockBuilder& block, std::optional<Position> before) {
  const std::size_t layer = layer_++;
  if (layers_ == nullptr) return {};
  const std::size_t end = std::min(layers_->size(), layer + 1 + ahead_.value_or(0));
  std::vector<Position> after = begin_;
  if (ahead_ && before) after = {*before};
  while (appended_.size() < end)
    appended_.push_back(writer_.append_beside(block, (*layers_)[appended_.size()], after));
  return layer < appended_.size() ? appended_[layer] : std::vector<Position>();
}

void LayerGathers::begin_layers_of(TurnLane& lane, BlockBuilder& block) {
  lane.begin_layer = [this, &lane, &block](const TurnLane::Layer& layer) {
    for (; begun_ <= layer.number; ++begun_) {
      const std::vector<Position>& last = lane.done.back();
      const bool first = begun_ == 0 || last.empty();
      for (StepGathers& each : gathers_) {
        const std::vector<Position> next =
            each.next(block, first ? std::nullopt : std::optional<Position>(last.front()));
        gathered_[begun_].insert(gathered_[begun_].end(), next.begin(), next.end());
      }
    }
    return gathered_[layer.number];
  };
}

}  // namespace netsim
