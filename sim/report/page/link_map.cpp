#include "sim/report/page/link_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/core/text.h"
#include "sim/report/canvas.h"
#include "sim/report/cluster_parts.h"
#include "sim/report/tier_rows.h"

namespace netsim {
namespace {

constexpr double kMapWidth = 1200, kMapMargin = 40, kMapRow = 110, kMapBox = 90;
constexpr double kRoomForNames = 100;          // distance of switches whose names are drawn
constexpr std::size_t kLongestMapRow = 64;     // boxes in a row that is not folded
constexpr std::size_t kMostMapSwitches = 512;  // of a map that is not by tier

class MapMaker {
 public:
  MapMaker(const Cluster& cluster, const Results& results)
      : graph_(cluster.graph), results_(results), parts_(cluster), boxes_(parts_) {}

  LinkMap make() {
    const ClusterParts::Layout layout = parts_.layout();
    if (layout == ClusterParts::Layout::tiers) {
      place_rows();
    } else {
      place_switches(layout == ClusterParts::Layout::places);
    }
    add_lines();
    return std::move(map_);
  }

 private:
  std::size_t add_node(Point at, double width, const char* kind, std::string name) {
    map_.nodes.push_back({at.x, at.y, width, kind, std::move(name)});
    return map_.nodes.size() - 1;
  }

  std::string hosts_name(const std::vector<std::uint32_t>& hosts) const {
    std::string first = parts_.host_name(hosts.front());
    if (hosts.size() == 1) return first;
    const std::string last = parts_.host_name(hosts.back());
    if (hosts.size() == 2) return first + ", " + last;
    const bool consecutive = hosts.back() - hosts.front() + 1 == hosts.size();
    return fmt::format("{} ({} {} {})", counted(hosts.size(), "host"), first, consecutive ? "to" : "...",
                       last);
  }

  // ---- By tier

  void place_rows() {
    const TierRows tiers = rows_of_tiers(parts_, kLongestMapRow);
    map_.notes = tiers.notes;
    double y = kMapMargin;
    for (const std::vector<TierEntry>& row : tiers.rows) {
      const double step =
          (kMapWidth - 2 * kMapMargin) / static_cast<double>(std::max<std::size_t>(row.size(), 1));
      for (std::size_t i = 0; i < row.size(); ++i)
        add_entry(row[i], {kMapMargin + (static_cast<double>(i) + 0.5) * step, y},
                  std::min(kMapBox, 0.8 * step));
      y += kMapRow;
    }
    map_.width = kMapWidth;
    map_.height = y - kMapRow + kMapMargin;
  }

  void add_entry(const TierEntry& entry, Point at, double width) {
    if (!entry.hosts.empty()) {
      const std::size_t node = add_node(at, width, "host", hosts_name(entry.hosts));
      for (const std::uint32_t host : entry.hosts) boxes_.add_host(host, node);
      return;
    }
    if (entry.switches.empty()) {
      add_node(at, width, "other", fmt::format("+{}", entry.left_out));
      return;
    }
    const std::size_t node = add_node(at, width, "switch", name_of_switches(entry.switches, graph_));
    for (const NodeId id : entry.switches) boxes_.add_switch(id, node);
  }

  // ---- At places of the topology, or on a cycle

  void place_switches(bool placed) {
    const std::vector<NodeId> switches = parts_.first_switches(kMostMapSwitches, map_.notes);
    const std::vector<Point> places = placed ? given_places(switches) : cycle(switches.size());
    const double space = least_distance(places);
    const double width = std::clamp(0.5 * space, 6.0, kMapBox);
    for (std::size_t i = 0; i < switches.size(); ++i)
      boxes_.add_switch(switches[i], add_node(places[i], width, "switch", graph_.node(switches[i]).name));
    place_hosts(0.7 * width, std::clamp(0.4 * space, 6.0, 60.0));
    for (LinkMap::Node& node : map_.nodes) node.has_room = space >= kRoomForNames;
    map_.width = kMapWidth;
    for (const LinkMap::Node& node : map_.nodes) map_.height = std::max(map_.height, node.y + kMapMargin);
  }

  static double least_distance(const std::vector<Point>& places) {
    double least = kMapWidth;
    for (std::size_t i = 0; i < places.size(); ++i) {
      for (std::size_t j = i + 1; j < places.size(); ++j)
        least = std::min(least, std::hypot(places[i].x - places[j].x, places[i].y - places[j].y));
    }
    return least;
  }

  std::vector<Point> given_places(const std::vector<NodeId>& switches) const {
    Point low{1e300, 1e300}, high{-1e300, -1e300};
    for (const NodeId id : switches) {
      const DrawnAt& at = *graph_.drawn_at(id);
      low = {std::min(low.x, at.x), std::min(low.y, at.y)};
      high = {std::max(high.x, at.x), std::max(high.y, at.y)};
    }
    const double scale = std::min(120.0, (kMapWidth - 4 * kMapMargin) / std::max(1.0, high.x - low.x));
    std::vector<Point> places;
    places.reserve(switches.size());
    for (const NodeId id : switches) {
      const DrawnAt& at = *graph_.drawn_at(id);
      places.push_back({2 * kMapMargin + (at.x - low.x) * scale, 2 * kMapMargin + (at.y - low.y) * scale});
    }
    return places;
  }

  static std::vector<Point> cycle(std::size_t count) {
    const double radius = kMapWidth / 3, middle = radius + 2 * kMapMargin;
    std::vector<Point> places;
    places.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(count);
      places.push_back({kMapWidth / 2 + radius * std::sin(angle), middle - radius * std::cos(angle)});
    }
    return places;
  }

  // Draws the hosts of each switch as one box below it.
  void place_hosts(double width, double below) {
    for (const auto& [at, of_switch] : parts_.hosts_by_switch()) {
      const std::optional<std::size_t> found = boxes_.box_of(at);
      if (!found) continue;
      const LinkMap::Node& above = map_.nodes[*found];
      const std::size_t node =
          add_node({above.x + 0.4 * below, above.y + below}, width, "host", hosts_name(of_switch));
      for (const std::uint32_t host : of_switch) boxes_.add_host(host, node);
    }
  }

  // ---- Links

  void add_lines() {
    std::map<std::pair<std::size_t, std::size_t>, LinkMap::Line> lines;
    std::uint64_t omitted = 0;
    for (PortId port = 0; port + 1 < graph_.port_count(); port += 2) {
      const NodeId a = graph_.port(port).node, b = graph_.port(port).peer_node;
      if (parts_.is_inside_host(port)) continue;
      const auto from = boxes_.box_of(a), to = boxes_.box_of(b);
      if (!from || !to) ++omitted;
      if (!from || !to || *from == *to) continue;
      LinkMap::Line& line = lines[std::minmax(*from, *to)];
      std::tie(line.from, line.to) = std::minmax(*from, *to);
      ++line.links;
      for (const PortId direction : {port, port ^ 1U}) add_use(line, results_.links[direction]);
    }
    map_.lines.reserve(lines.size());
    for (auto& [ends, line] : lines) {
      line.mean /= 2 * static_cast<double>(line.links);
      map_.lines.push_back(line);
    }
    if (omitted > 0)
      map_.notes.push_back(
          fmt::format("{} have an end that is not drawn; links.csv has all.", counted(omitted, "link")));
    keep_busiest();
  }

  void add_use(LinkMap::Line& line, const LinkResult& link) const {
    const double busy = utilisation(link, results_.simulated);
    line.mean += busy;  // the sum, until all links are added
    line.maximum = std::max(line.maximum, busy);
    line.longest_queue = std::max(line.longest_queue, link.counters.max_queue);
  }

  void keep_busiest() {
    if (map_.lines.size() <= LinkMap::kMostLines) return;
    std::stable_sort(map_.lines.begin(), map_.lines.end(),
                     [](const LinkMap::Line& a, const LinkMap::Line& b) { return a.maximum > b.maximum; });
    map_.notes.push_back(
        fmt::format("The {} busiest of {} lines are drawn.", LinkMap::kMostLines, map_.lines.size()));
    map_.lines.resize(LinkMap::kMostLines);
  }

  const Graph& graph_;
  const Results& results_;
  ClusterParts parts_;
  LinkMap map_;
  BoxIndex boxes_;
};

}  // namespace

LinkMap link_map(const Cluster& cluster, const Results& results) { return MapMaker(cluster, results).make(); }

}  // namespace netsim
