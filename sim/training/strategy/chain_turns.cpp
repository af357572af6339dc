#include "sim/training/strategy/chain_turns.h"

#include <algorithm>
#include <utility>

namespace netsim {
namespace {

// Returns the bytes of a chain's communications in a range of nodes.
double communicated(const TurnLane& lane, std::size_t begin, std::size_t end) {
  double bytes = 0;
  for (std::size_t i = begin; i < end; ++i) {
    if (communicates(*lane.nodes[i])) bytes += static_cast<double>(lane.nodes[i]->bytes);
  }
  return bytes;
}

// WindowShares: how much of a layer of the filler each window gets.
class WindowShares {
 public:
  using Cost = std::function<double(const GraphNode&)>;

  // `begin` and `end` are the filler's nodes to be divided among windows of `bytes` in all.
  WindowShares(const TurnLane& filler, std::size_t begin, std::size_t end, double bytes, const Cost& cost)
      : filler_(filler), next_(begin), end_(end), bytes_(bytes), cost_(cost) {
    for (std::size_t i = begin; i < end; ++i) all_ += cost(*filler.nodes[i]);
  }

  // Returns the end of the nodes that a window gets. A node belongs to the window that its middle falls in.
  // Communication ends a share, because what follows waits for it.
  std::size_t end_of_window(double bytes) {
    passed_ += bytes;
    const double target = bytes_ > 0 ? all_ * passed_ / bytes_ : all_;
    while (next_ < end_) {
      const GraphNode& node = *filler_.nodes[next_];
      const double own = cost_(node);
      if (taken_ + own / 2 > target) break;
      taken_ += own;
      ++next_;
      if (communicates(node)) break;
    }
    return next_;
  }

 private:
  const TurnLane& filler_;
  std::size_t next_, end_;
  double bytes_, all_ = 0, passed_ = 0, taken_ = 0;
  const Cost& cost_;
};

}  // namespace

void TurnLane::add_layer(const std::vector<const Chain*>& chains, std::size_t number,
                         const TaskMemory& memory) {
  const std::size_t first = nodes.size();
  for (const Chain* chain : chains) {
    for (const GraphNode& node : *chain) nodes.push_back(&node);
  }
  layers.push_back({number, nodes.size()});
  if (nodes.size() == first) return;
  TaskMemory &begin = needs[first], &end = needs[nodes.size() - 1];
  begin.begin.insert(begin.begin.end(), memory.begin.begin(), memory.begin.end());
  end.end.insert(end.end.end(), memory.end.begin(), memory.end.end());
}

std::size_t TurnLane::turn_end() const {
  const auto talks = [](const GraphNode* node) { return communicates(*node); };
  if (std::none_of(nodes.begin(), nodes.end(), talks)) return std::min(next + 1, nodes.size());
  const auto first = std::find_if(nodes.begin() + static_cast<std::ptrdiff_t>(next), nodes.end(), talks);
  return static_cast<std::size_t>(std::find_if_not(first, nodes.end(), talks) - nodes.begin());
}

void ChainTurns::alternate(const std::vector<TurnLane*>& lanes) {
  const auto finished = [](const TurnLane* lane) { return lane->finished(); };
  while (!std::all_of(lanes.begin(), lanes.end(), finished)) {
    for (TurnLane* lane : lanes) append_up_to(*lane, lane->turn_end());
  }
  for (TurnLane* lane : lanes) end_layers(*lane);
}

void ChainTurns::fill_windows(TurnLane& lane, TurnLane& filler,
                              const std::function<double(const GraphNode&)>& cost) {
  const auto end_of = [&](std::size_t number) {
    std::size_t end = 0;
    for (const TurnLane::Layer& layer : filler.layers) {
      if (layer.number <= number) end = layer.end;
    }
    return end;
  };
  for (const TurnLane::Layer& layer : lane.layers) {
    append_up_to(filler, end_of(layer.number));
    WindowShares shares(filler, filler.next, end_of(layer.number + 1),
                        communicated(lane, lane.next, layer.end), cost);
    while (lane.next < layer.end) {
      const std::size_t begin = lane.next;
      append_up_to(lane, std::min(lane.turn_end(), layer.end));
      const double bytes = communicated(lane, begin, lane.next);
      if (bytes > 0) append_up_to(filler, shares.end_of_window(bytes));
    }
    end_layers(lane);
  }
}

void ChainTurns::append_up_to(TurnLane& lane, std::size_t end) {
  while (lane.next < end) append_next(lane);
}

void ChainTurns::append_next(TurnLane& lane) {
  end_layers(lane);
  const TurnLane::Layer layer = lane.layers[lane.layer];
  const GraphNode& node = *lane.nodes[lane.next];
  std::vector<Position> after = ChainWriter::waits_for(node, lane.done);
  const bool first = lane.next == (lane.layer == 0 ? 0 : lane.layers[lane.layer - 1].end);
  if (first && lane.begin_layer) {
    const std::vector<Position> more = lane.begin_layer(layer);
    after.insert(after.end(), more.begin(), more.end());
  }
  const Position begin = block_.size();
  lane.done.push_back({writer_.append(block_, node, after)});
  const auto memory = lane.needs.find(lane.next);
  if (memory != lane.needs.end()) block_.add_memory(block_.items() - 1, memory->second);
  ++lane.next;
  if (lane.appended) lane.appended(layer, node, begin);
  end_layers(lane);
}

// Ends the layers whose nodes are all appended, those without nodes too.
void ChainTurns::end_layers(TurnLane& lane) {
  while (lane.layer < lane.layers.size() && lane.layers[lane.layer].end == lane.next) {
    const TurnLane::Layer layer = lane.layers[lane.layer++];
    const std::vector<Position>& last = lane.done.back();
    if (lane.end_layer) lane.end_layer(layer, last.empty() ? block_.size() - 1 : last.front());
  }
}

}  // namespace netsim
