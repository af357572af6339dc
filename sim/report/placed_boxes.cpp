#include "sim/report/placed_boxes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "sim/report/link_paths.h"

namespace netsim {
namespace {

constexpr double kWidestPlaces = 2400, kPlaceDistance = 120;  // pixels
constexpr double kSmallBox = 54;                              // width of hosts' boxes
constexpr double kHostMargin = 5;                             // distance of hosts' boxes from other boxes

std::vector<Point> places_on_a_cycle(std::size_t switches) {
  const auto count = static_cast<double>(switches);
  const double turn = count / (2 * std::numbers::pi);
  const double radius = std::max(60 * turn, std::clamp(100 * turn, 150.0, 520.0));
  std::vector<Point> places;
  places.reserve(switches);
  for (std::size_t i = 0; i < switches; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / count;
    places.push_back({radius * std::sin(angle), -radius * std::cos(angle)});
  }
  return places;
}

std::vector<Point> places_of_the_topology(const Graph& graph, const std::vector<NodeId>& switches) {
  double low = 0, high = 0;
  for (const NodeId id : switches) {
    low = std::min(low, graph.drawn_at(id)->x);
    high = std::max(high, graph.drawn_at(id)->x);
  }
  const double scale = std::min(kPlaceDistance, kWidestPlaces / std::max(1.0, high - low));
  std::vector<Point> places;
  places.reserve(switches.size());
  for (const NodeId id : switches)
    places.push_back({graph.drawn_at(id)->x * scale, graph.drawn_at(id)->y * scale});
  return places;
}

// Returns the width for boxes at these places that leaves room for lines between boxes whose heights differ
// by less than `near`.
double width_at(const std::vector<Point>& places, double near) {
  double width = kWidestBox;
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      const bool beside = std::abs(places[i].y - places[k].y) < near;
      if (beside) width = std::min(width, std::abs(places[i].x - places[k].x) - 8);
    }
  }
  return std::max(6.0, width);
}

class BoxPlacer {
 public:
  explicit BoxPlacer(const std::vector<Box>& switches) : switches_(switches) {
    Outline all{switches.front().centre, switches.front().centre};
    outlines_.reserve(2 * switches.size());
    for (const Box& box : switches) {
      all.extend(box.centre);
      outlines_.push_back(outline_of(box));
    }
    centre_ = {(all.low.x + all.high.x) / 2, (all.low.y + all.high.y) / 2};
  }

  // Returns a box near a switch, where there is room. Later boxes leave it free.
  Box beside(std::size_t at) {
    const Box& from = switches_[at];
    const double outward = std::atan2(from.centre.y - centre_.y, from.centre.x - centre_.x);
    Box box{from.centre, std::min(kSmallBox, std::max(24.0, from.width))};
    constexpr int kDirections = 24, kRings = 40;
    for (int step = 0; step < kRings * kDirections; ++step) {
      const int turn = step % kDirections;
      const int side = (turn + 1) / 2 * (turn % 2 == 0 ? 1 : -1);
      const double angle = outward + 2 * std::numbers::pi * side / kDirections;
      const double far = 14.0 + 12 * (step / kDirections);
      box.centre = {from.centre.x + std::cos(angle) * (far + (from.width + box.width) / 2),
                    from.centre.y + std::sin(angle) * (far + kBoxHeight)};
      const Outline outline = outline_of(box, kHostMargin);
      const auto is_taken = [&](const Outline& other) { return overlap(outline, other); };
      if (std::none_of(outlines_.begin(), outlines_.end(), is_taken)) break;
    }
    outlines_.push_back(outline_of(box));
    return box;
  }

 private:
  const std::vector<Box>& switches_;
  std::vector<Outline> outlines_;  // of all boxes so far
  Point centre_;
};

}  // namespace

PlacedBoxes place_boxes(const ClusterParts& parts, const std::vector<NodeId>& switches, bool alone) {
  const bool placed = parts.layout() == ClusterParts::Layout::places;
  const std::vector<Point> places =
      placed ? places_of_the_topology(parts.graph(), switches) : places_on_a_cycle(switches.size());
  const double width = width_at(places, kBoxHeight + (placed ? 14 : 4));
  PlacedBoxes all;
  all.switches.reserve(places.size());
  for (const Point& place : places) all.switches.push_back({place, width});
  BoxPlacer placer(all.switches);
  const std::map<NodeId, std::vector<std::uint32_t>> hosts = parts.hosts_by_switch();
  for (std::size_t i = 0; i < switches.size(); ++i) {
    const auto here = hosts.find(switches[i]);
    if (here == hosts.end()) continue;
    if (!alone) {
      all.hosts.push_back({here->second, placer.beside(i)});
      continue;
    }
    for (const std::uint32_t host : here->second) all.hosts.push_back({{host}, placer.beside(i)});
  }
  return all;
}

}  // namespace netsim
