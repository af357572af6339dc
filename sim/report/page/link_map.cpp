#include "sim/report/page/link_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/core/text.h"
#include "sim/report/canvas.h"
#include "sim/report/cluster_parts.h"
#include "sim/report/link_paths.h"
#include "sim/report/placed_boxes.h"
#include "sim/report/tier_rows.h"

namespace netsim {
namespace {

constexpr double kMapWidth = 1200, kMapMargin = 40, kMapRow = 110, kMapBox = 90;
constexpr double kFirstArcHeight = 6, kArcHeightStep = 6, kMostArcHeight = 66;  // above boxes of a row
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
      place_switches();
    }
    add_lines();
    layout == ClusterParts::Layout::tiers ? route_rows() : route_placed();
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

  void place_switches() {
    const std::vector<NodeId> switches = parts_.first_switches(kMostMapSwitches, map_.notes);
    const PlacedBoxes boxes = place_boxes(parts_, switches, false);
    const auto add = [this](const Box& box, const char* kind, const std::string& name) {
      const std::size_t node = add_node(box.centre, box.width, kind, name);
      map_.nodes[node].named_below = false;
      return node;
    };
    for (std::size_t i = 0; i < switches.size(); ++i)
      boxes_.add_switch(switches[i], add(boxes.switches[i], "switch", graph_.node(switches[i]).name));
    for (const HostsBox& joined : boxes.hosts) {
      const std::size_t node = add(joined.box, "host", hosts_name(joined.hosts));
      if (joined.hosts.size() > 1) map_.nodes[node].short_name = counted(joined.hosts.size(), "host");
      for (const std::uint32_t host : joined.hosts) boxes_.add_host(host, node);
    }
  }

  // ---- Paths of lines

  static Box box_of(const LinkMap::Node& node) { return {{node.x, node.y}, node.width}; }
  static Outline outline_of_box(const LinkMap::Node& node) { return outline_of(box_of(node)); }

  std::vector<Box> boxes_of_nodes() const {
    std::vector<Box> boxes;
    boxes.reserve(map_.nodes.size());
    for (const LinkMap::Node& node : map_.nodes) boxes.push_back(box_of(node));
    return boxes;
  }

  void route_placed() {
    if (map_.lines.empty()) return;
    LinkPaths router(boxes_of_nodes());
    std::size_t ends_only = 0;
    for (LinkMap::Line& line : map_.lines) {
      const Path path = router.between(line.from, line.to);
      if (path.points.empty()) {
        line.paths = {router.stub(line.from, line.to), router.stub(line.to, line.from)};
        std::erase_if(line.paths, [](const Path& end) { return end.points.empty(); });
        ++ends_only;
      } else if (path.curved || path.points.size() > 2) {
        line.paths = {path};
      }
    }
    if (ends_only > 0)
      map_.notes.push_back(
          fmt::format("{} without a free path: only the two ends are drawn.", counted(ends_only, "line")));
  }

  // Lines between neighbouring rows are straight.
  void route_rows() {
    if (map_.lines.empty()) return;
    const LinkPaths router(boxes_of_nodes());
    for (LinkMap::Line& line : map_.lines) {
      const LinkMap::Node *a = &map_.nodes[line.from], *b = &map_.nodes[line.to];
      if (a->y > b->y) std::swap(a, b);
      if (b->y - a->y > 1.5 * kMapRow) {
        const Path path = router.down({a->x, outline_of_box(*a).high.y}, {b->x, outline_of_box(*b).low.y});
        if (path.points.size() > 2) line.paths = {path};
      } else if (a->y == b->y) {
        line.paths = {arc_between(*a, *b)};
      }
    }
  }

  // Returns an arc above a row, the higher the more boxes it passes.
  static Path arc_between(const LinkMap::Node& a, const LinkMap::Node& b) {
    const double passed = std::abs(b.x - a.x) / a.width;
    const double height = std::min(kMostArcHeight, kFirstArcHeight + kArcHeightStep * passed);
    const double top = outline_of_box(a).low.y;
    return LinkPaths::arc({a.x, top}, {b.x, top}, height);
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
