#include "sim/report/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <numbers>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/report/canvas.h"
#include "sim/topology/link_names.h"

namespace netsim {
namespace {

constexpr double kWidth = 1200, kMargin = 40, kRow = 120, kReach = 2 * kMargin;
constexpr std::size_t kLongestRow = 32, kOfLongerRows = 14;
constexpr std::size_t kMostPlaced = 2048;  // switches of a drawing that is not by tier
constexpr std::size_t kMostHostKinds = 4;  // number of host kinds whose inside is shown

// From slow to fast. All further rates have the last colour.
constexpr const char* kColours[] = {"#7a8aa0", "#2b7bba", "#2a9d5c", "#e08a1e", "#c8402f", "#7b3fa0"};
constexpr std::size_t kColourCount = std::size(kColours);

Style style_of(NodeKind kind) {
  if (kind == NodeKind::gpu) return Style::gpu;
  if (kind == NodeKind::nic) return Style::nic;
  return kind == NodeKind::fabric_switch || kind == NodeKind::scale_up_switch ? Style::network : Style::other;
}

class Picture {
 public:
  explicit Picture(const Cluster& cluster) : cluster_(cluster), graph_(cluster.graph) {
    find_hosts();
    find_switches();
    find_rates();
  }

  std::string draw() {
    const bool placed = std::all_of(switches_.begin(), switches_.end(),
                                    [&](NodeId id) { return graph_.drawn_at(id) != nullptr; });
    if (placed) {
      draw_placed();
    } else if (tiers_.size() == 1 && switches_.size() > 2) {
      draw_circle();
    } else {
      draw_tiers();
    }
    draw_links();
    draw_insides();
    draw_legend();
    return canvas_.finish(kWidth, bottom_ + kMargin);
  }

 private:
  // ---- Parts of the cluster

  void find_hosts() {
    host_of_atom_.assign(graph_.atom_count(), kNoId);
    for (const Gpu& gpu : cluster_.gpus) host_of_atom_[graph_.node(gpu.node).atom] = gpu.host;
    nodes_of_host_.resize(cluster_.host_count);
    for (NodeId id = 0; id < graph_.node_count(); ++id) {
      const std::uint32_t host = host_of(id);
      if (host != kNoId) nodes_of_host_[host].push_back(id);
    }
  }
  std::uint32_t host_of(NodeId id) const { return host_of_atom_[graph_.node(id).atom]; }

  void find_switches() {
    for (NodeId id = 0; id < graph_.node_count(); ++id) {
      const NodeKind kind = graph_.node(id).kind;
      const bool outside = kind == NodeKind::scale_up_switch && host_of(id) == kNoId;
      if (kind != NodeKind::fabric_switch && !outside) continue;
      switches_.push_back(id);
      tiers_[graph_.node(id).tier].push_back(id);
    }
  }

  void find_rates() {
    std::set<BitRate> rates;
    for (PortId id = 0; id < graph_.port_count(); ++id) rates.insert(graph_.port(id).link.rate);
    for (const BitRate rate : rates) {
      const std::size_t index = colour_.size();
      colour_[rate] = kColours[std::min(index, kColourCount - 1)];
    }
  }

  std::string host_name(std::uint32_t host) const {
    const std::string& name = graph_.node(nodes_of_host_[host].front()).name;
    return name.substr(0, name.find('/'));
  }

  // ---- Layout

  // Returns the entries of a row: numbers from 0 to count, with an empty entry where some are omitted.
  static std::vector<std::optional<std::size_t>> shown(std::size_t count) {
    std::vector<std::optional<std::size_t>> entries;
    const std::size_t first = count <= kLongestRow ? count : kOfLongerRows;
    for (std::size_t i = 0; i < first; ++i) entries.emplace_back(i);
    if (first < count) {
      entries.emplace_back();
      entries.emplace_back(count - 1);
    }
    return entries;
  }

  // Calls draw(number, box) for the shown entries of a row.
  template <class Draw>
  void row(std::size_t count, double y, Draw draw) {
    const auto entries = shown(count);
    const double step = (kWidth - 2 * kMargin) / static_cast<double>(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Box box{{kMargin + (static_cast<double>(i) + 0.5) * step, y}, std::min(kWidestBox, 0.8 * step)};
      if (entries[i]) {
        draw(*entries[i], box);
      } else {
        canvas_.text(box.centre, fmt::format("+{}", count + 1 - entries.size()), kPictureFont, "middle");
      }
    }
  }

  const Box* keep(const Box& box) { return &boxes_.emplace_back(box); }

  void draw_switch(NodeId id, const Box& box) {
    box_of_node_[id] = keep(box);
    const Node& node = graph_.node(id);
    canvas_.box(box, Style::network, node.name,
                fmt::format("{}: {} ports", node.name, graph_.ports_of(id).size()));
  }

  // Draws one box for some consecutive hosts.
  void draw_hosts(const std::vector<std::uint32_t>& hosts, const Box& box) {
    const Box* kept = keep(box);
    for (const std::uint32_t host : hosts) box_of_host_[host] = kept;
    const std::string first = host_name(hosts.front());
    const std::string name = hosts.size() == 1 ? first : fmt::format("{} hosts", hosts.size());
    canvas_.box(box, Style::gpu, name, hosts.size() == 1 ? first : first + " to " + host_name(hosts.back()));
  }

  // Returns groups of hosts that are connected to the same switches, in the order of their first hosts. Hosts
  // are single groups if they all fit.
  std::vector<std::vector<std::uint32_t>> host_groups() const {
    std::vector<std::set<NodeId>> joined(cluster_.host_count);
    for (const HostPort& port : cluster_.nics)
      joined[port.host].insert(graph_.port(graph_.ports_of(port.nic).back()).peer_node);
    std::vector<std::vector<std::uint32_t>> groups;
    std::map<std::set<NodeId>, std::size_t> known;
    for (std::uint32_t host = 0; host < cluster_.host_count; ++host) {
      const bool alone = cluster_.host_count <= kLongestRow;
      const auto [at, fresh] = known.try_emplace(joined[host], groups.size());
      if (alone || fresh) groups.emplace_back();
      (alone ? groups.back() : groups[at->second]).push_back(host);
    }
    return groups;
  }

  void draw_tiers() {
    double y = kMargin;
    for (auto tier = tiers_.rbegin(); tier != tiers_.rend(); ++tier) {
      row(tier->second.size(), y, [&](std::size_t i, const Box& box) { draw_switch(tier->second[i], box); });
      y += kRow;
    }
    const auto groups = host_groups();
    row(groups.size(), y, [&](std::size_t i, const Box& box) { draw_hosts(groups[i], box); });
    bottom_ = y + kBoxHeight;
  }

  // Draws switches with their hosts. A switch in a host's atom is drawn as the host. Other hosts lie behind
  // their switch as seen from `centre`, at most kReach away, because the outermost switches have no more
  // space.
  void draw_with_hosts(const std::vector<Point>& places, double space, Point centre) {
    const double behind = std::min(0.5 * space, kReach);
    const double width = std::min(kWidestBox, 0.6 * space);
    for (std::size_t i = 0; i < places.size(); ++i) draw_switch(switches_[i], {places[i], width});
    std::map<NodeId, std::vector<std::uint32_t>> hosts;
    for (const HostPort& port : cluster_.nics) {
      const NodeId at = graph_.port(graph_.ports_of(port.nic).back()).peer_node;
      if (host_of(at) == kNoId) hosts[at].push_back(port.host);
    }
    for (const auto& [at, here] : hosts) {
      const auto found = box_of_node_.find(at);
      if (found == box_of_node_.end()) continue;
      const Point from = found->second->centre;
      const double length = std::max(1.0, std::hypot(from.x - centre.x, from.y - centre.y));
      const Point away{(from.x - centre.x) / length, (from.y - centre.y) / length};
      const double part = width / static_cast<double>(here.size());
      for (std::size_t i = 0; i < here.size(); ++i) {
        const double aside = (static_cast<double>(i) - static_cast<double>(here.size() - 1) / 2) * part * 1.1;
        draw_hosts({here[i]},
                   {{from.x + away.x * behind - away.y * aside, from.y + away.y * behind + away.x * aside},
                    std::min(part, width / 2)});
      }
    }
  }

  std::size_t keep_first_switches() {
    const std::size_t all = switches_.size();
    if (all > kMostPlaced) {
      canvas_.text({kMargin, 20}, fmt::format("the first {} of {} switches", kMostPlaced, all));
      switches_.resize(kMostPlaced);
    }
    return switches_.size();
  }

  void draw_circle() {
    const std::size_t count = keep_first_switches();
    const double radius = kWidth / 2 - 3 * kMargin;
    const Point centre{kWidth / 2, kWidth / 2};
    std::vector<Point> places;
    for (std::size_t i = 0; i < count; ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(count);
      places.push_back({centre.x + radius * std::sin(angle), centre.y - radius * std::cos(angle)});
    }
    draw_with_hosts(places, 2 * std::numbers::pi * radius / static_cast<double>(count), centre);
    bottom_ = kWidth - kMargin;
  }

  void draw_placed() {
    columns_ = true;
    const std::size_t count = keep_first_switches();
    Point low{1e300, 1e300}, high{-1e300, -1e300};
    for (const NodeId id : switches_) {
      const DrawnAt& at = *graph_.drawn_at(id);
      low = {std::min(low.x, at.x), std::min(low.y, at.y)};
      high = {std::max(high.x, at.x), std::max(high.y, at.y)};
    }
    const double scale = std::min(120.0, (kWidth - 4 * kMargin) / std::max(1.0, high.x - low.x));
    std::vector<Point> places;
    for (std::size_t i = 0; i < count; ++i) {
      const DrawnAt& at = *graph_.drawn_at(switches_[i]);
      places.push_back({2 * kMargin + (at.x - low.x) * scale, 2 * kMargin + (at.y - low.y) * scale});
    }
    bottom_ = 3 * kMargin + (high.y - low.y) * scale;
    draw_with_hosts(places, scale, {kWidth / 2, bottom_ / 2});
  }

  // ---- Links

  const Box* box_of(NodeId id) const {
    const auto node = box_of_node_.find(id);
    if (node != box_of_node_.end()) return node->second;
    const auto host = box_of_host_.find(host_of(id));
    return host != box_of_host_.end() ? host->second : nullptr;
  }

  // Draws parallel links between two boxes as one line.
  void draw_links() {
    struct Bundle {
      std::uint64_t links = 0;
      PortId port = 0;
    };
    std::map<std::tuple<const Box*, const Box*, BitRate, BitRate>, Bundle> bundles;
    std::vector<std::tuple<const Box*, const Box*, BitRate, BitRate>> order;
    const std::vector<bool> down = graph_.circuits_down();
    for (PortId id = 0; id < graph_.port_count(); id += 2) {
      if (!down.empty() && down[id]) continue;
      const PortSpec& port = graph_.port(id);
      const Box *from = box_of(port.node), *to = box_of(port.peer_node);
      if (from == nullptr || to == nullptr || from == to) continue;
      const std::tuple key{from, to, port.link.rate, graph_.port(id ^ 1U).link.rate};
      Bundle& bundle = bundles[key];
      if (bundle.links++ == 0) {
        bundle.port = id;
        order.push_back(key);
      }
    }
    for (const auto& key : order) {
      const auto& [from, to, rate, back] = key;
      const Bundle& bundle = bundles.at(key);
      canvas_.line(from->centre, to->centre, colour_.at(std::max(rate, back)), bundle.links,
                   link_title(bundle.port, bundle.links), bend_of(*from, *to));
    }
  }

  // Returns the bend of a link. Links between boxes of a row, or of a grid's column, that are not neighbours
  // would hide behind those between neighbours.
  double bend_of(const Box& from, const Box& to) const {
    const double across = std::abs(from.centre.x - to.centre.x), down = std::abs(from.centre.y - to.centre.y);
    const bool straight = down < 1 || (columns_ && across < 1);
    return straight && std::max(across, down) > 1.8 * from.width ? std::min(30.0, std::max(across, down) / 12)
                                                                 : 0;
  }

  std::string link_title(PortId id, std::uint64_t links) const {
    const LinkSpec& link = graph_.port(id).link;
    const BitRate back = graph_.port(id ^ 1U).link.rate;
    return fmt::format("{}: {} x {}{} {}, {}", bundle_name(graph_, id), links, format_rate(link.rate),
                       back != link.rate ? fmt::format(" (back {})", format_rate(back)) : "",
                       to_string(link.kind), format_time(link.delay));
  }

  // ---- Inside hosts

  // Returns a text that is equal for hosts of one kind: their nodes' kinds and links, by position in the
  // host. Routers in a host belong to the fabric.
  std::string signature(std::uint32_t host) const {
    std::string text;
    const std::vector<NodeId>& nodes = nodes_of_host_[host];
    const auto of_fabric = [this](NodeId id) { return is_switch(graph_, id); };
    for (const NodeId id : nodes) {
      if (of_fabric(id)) continue;
      text += std::to_string(static_cast<int>(graph_.node(id).kind));
      for (const PortId port : graph_.ports_of(id)) {
        const NodeId peer = graph_.port(port).peer_node;
        if (host_of(peer) == host && !of_fabric(peer))
          text += fmt::format(",{}:{}", peer - nodes.front(), graph_.port(port).link.rate);
      }
      text += ";";
    }
    return text;
  }

  void draw_insides() {
    std::set<std::string> seen;
    for (std::uint32_t host = 0; host < cluster_.host_count && seen.size() < kMostHostKinds; ++host) {
      const bool simple = std::none_of(nodes_of_host_[host].begin(), nodes_of_host_[host].end(),
                                       [&](NodeId id) { return graph_.node(id).kind == NodeKind::gpu; });
      if (!simple && seen.insert(signature(host)).second) draw_inside(host);
    }
  }

  // Returns the row of a node: NVSwitches on top, then GPUs, PCIe switches, NICs, CPUs. Without PCIe switches
  // CPUs connect to the NICs.
  static int row_of(NodeKind kind) {
    switch (kind) {
      case NodeKind::scale_up_switch:
        return 0;
      case NodeKind::gpu:
        return 1;
      case NodeKind::nic:
        return 3;
      case NodeKind::cpu:
        return 4;
      default:
        return 2;
    }
  }

  void draw_inside(std::uint32_t host) {
    bottom_ += 1.5 * kMargin;
    canvas_.text({kMargin, bottom_}, "inside " + host_name(host), 12);
    std::map<int, std::vector<NodeId>> rows;
    for (const NodeId id : nodes_of_host_[host]) {
      if (graph_.node(id).kind != NodeKind::fabric_switch) rows[row_of(graph_.node(id).kind)].push_back(id);
    }
    if (!rows.contains(2) && rows.contains(4)) rows[2].swap(rows[4]);
    std::erase_if(rows, [](const auto& level) { return level.second.empty(); });
    columns_ = false;
    std::map<NodeId, Box> boxes;
    double y = bottom_ + kMargin;
    for (const auto& level : rows) {
      const std::vector<NodeId>& nodes = level.second;
      row(nodes.size(), y, [&](std::size_t i, const Box& box) {
        boxes[nodes[i]] = box;
        const Node& node = graph_.node(nodes[i]);
        canvas_.box(box, style_of(node.kind), node.name.substr(node.name.find('/') + 1), node.name);
      });
      y += kRow;
    }
    for (const auto& [id, box] : boxes) draw_links_inside(id, box, boxes);
    bottom_ = y - kRow + kBoxHeight;
  }

  void draw_links_inside(NodeId id, const Box& box, const std::map<NodeId, Box>& boxes) {
    for (const PortId port : graph_.ports_of(id)) {
      const auto peer = boxes.find(graph_.port(port).peer_node);
      if (peer == boxes.end() || (port & 1U) != 0) continue;
      canvas_.line(box.centre, peer->second.centre, colour_.at(graph_.port(port).link.rate), 1,
                   link_title(port, 1), bend_of(box, peer->second));
    }
  }

  void draw_legend() {
    bottom_ += 1.2 * kMargin;
    double x = kMargin;
    for (const auto& [rate, colour] : colour_) {
      canvas_.line({x, bottom_}, {x + 30, bottom_}, colour, 4, format_rate(rate));
      canvas_.text({x + 36, bottom_ + 4}, format_rate(rate));
      x += 130;
      if (x + 130 < kWidth) continue;
      x = kMargin;
      bottom_ += 18;
    }
  }

  const Cluster& cluster_;
  const Graph& graph_;
  std::vector<std::uint32_t> host_of_atom_;  // kNoId: the atom of a switch
  std::vector<std::vector<NodeId>> nodes_of_host_;
  std::vector<NodeId> switches_;
  std::map<int, std::vector<NodeId>> tiers_;
  std::map<BitRate, const char*> colour_;
  std::deque<Box> boxes_;
  std::map<NodeId, const Box*> box_of_node_;
  std::map<std::uint32_t, const Box*> box_of_host_;
  Canvas canvas_;
  double bottom_ = 0;
  bool columns_ = false;  // boxes are in columns, not only in rows
};

}  // namespace

std::string draw_cluster(const Cluster& cluster) { return Picture(cluster).draw(); }

}  // namespace netsim
