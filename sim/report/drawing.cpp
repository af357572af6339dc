#include "sim/report/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/text.h"
#include "sim/report/canvas.h"
#include "sim/report/cluster_parts.h"
#include "sim/report/node_link_picture.h"
#include "sim/report/placed_boxes.h"
#include "sim/report/tier_rows.h"
#include "sim/topology/link_names.h"

namespace netsim {
namespace {

constexpr double kWidth = 1200, kNarrowestPage = 640;
constexpr std::size_t kMostPlaced = 128;      // switches of a drawing that is not by tier
constexpr std::size_t kMostHostKinds = 4;     // number of host kinds whose inside is shown
constexpr std::size_t kMostSingleHosts = 24;  // with more hosts, those of a switch share a box
constexpr const char* kNoRail = "#777777";
// Strokes and gaps that tell classes of links apart where colours tell rails apart.
constexpr std::array kDashes{"", "7 3", "2 2", "9 2 2 2", "4 4", "14 3", "1 4", "9 2 2 2 2 2"};

Style style_of(NodeKind kind) {
  if (kind == NodeKind::gpu) return Style::gpu;
  if (kind == NodeKind::nic) return Style::nic;
  return kind == NodeKind::fabric_switch || kind == NodeKind::scale_up_switch ? Style::network : Style::other;
}

// Returns the row of a node of a host: NVSwitches on top, then GPUs, PCIe switches, NICs, CPUs.
int row_of(NodeKind kind) {
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

// Legend: samples of lines and boxes with their meanings, in lines below a picture.
class Legend {
 public:
  Legend(Canvas& canvas, double top, double width) : canvas_(canvas), y_(top), width_(width) {}

  void line(const LineStyle& style, const std::string& meaning) {
    const double x = place(34 + text_width(meaning));
    canvas_.path({{{x, y_}, {x + 28, y_}}}, style, meaning);
    canvas_.text({x + 34, y_ + 4}, meaning);
  }
  void box(Style style, const std::string& border, const std::string& meaning) {
    const double x = place(26 + text_width(meaning));
    canvas_.box({{x + 10, y_}, 20}, style, "", meaning, border);
    canvas_.text({x + 26, y_ + 4}, meaning);
  }
  void note(const std::string& words) {
    next_line();
    canvas_.text({kPictureMargin, y_ + 4}, words);
    y_ += kLine;
  }
  void next_line() {
    if (x_ == kPictureMargin) return;
    x_ = kPictureMargin;
    y_ += kLine;
  }
  double bottom() const { return y_; }

 private:
  static constexpr double kLine = 26, kBetween = 24;
  double place(double width) {
    if (x_ > kPictureMargin && x_ + width > width_ - kPictureMargin) next_line();
    const double x = x_;
    x_ += width + kBetween;
    return x;
  }

  Canvas& canvas_;
  double x_ = kPictureMargin, y_, width_;
};

class Picture {
 public:
  explicit Picture(const Cluster& cluster)
      : cluster_(cluster), graph_(cluster.graph), parts_(cluster), boxes_(parts_) {}

  std::string draw() {
    const ClusterParts::Layout layout = parts_.layout();
    layout == ClusterParts::Layout::tiers ? draw_tiers() : draw_placed();
    draw_insides();
    draw_legend();
    return canvas_.finish(width_, bottom_ + kPictureMargin);
  }

 private:
  // ---- Boxes

  std::size_t add_switch(NodeId id) {
    const Node& node = graph_.node(id);
    shown_styles_.insert(Style::network);
    picture_.nodes.push_back({node.name, fmt::format("{}: {} ports", node.name, graph_.ports_of(id).size()),
                              Style::network, rail_colour(parts_.rail_of(id))});
    boxes_.add_switch(id, picture_.nodes.size() - 1);
    return picture_.nodes.size() - 1;
  }

  // Adds one box for some hosts.
  std::size_t add_hosts(const std::vector<std::uint32_t>& hosts) {
    const std::string first = parts_.host_name(hosts.front());
    const bool one = hosts.size() == 1;
    has_hosts_ = true;
    picture_.nodes.push_back({one ? first : counted(hosts.size(), "host"),
                              one ? first : first + " to " + parts_.host_name(hosts.back()), Style::gpu, ""});
    for (const std::uint32_t host : hosts) boxes_.add_host(host, picture_.nodes.size() - 1);
    return picture_.nodes.size() - 1;
  }

  // ---- Links

  static std::string rail_colour(std::uint32_t rail) {
    return rail == kNoId ? "" : kDistinctColours[rail % kDistinctColours.size()];
  }
  // Returns the rail of a link: that of both ends, or of the only one that has a rail.
  std::uint32_t rail_of_link(PortId port) const {
    const std::uint32_t a = parts_.rail_of(graph_.port(port).node),
                        b = parts_.rail_of(graph_.port(port).peer_node);
    if (a == kNoId) return b;
    return b == kNoId || a == b ? a : kNoId;
  }
  // Returns the style of a class of links. Colours are those of rails if there are rails, else of classes.
  LineStyle style_of_class(std::size_t link_class, std::uint32_t rail) {
    const auto known = std::find(shown_classes_.begin(), shown_classes_.end(), link_class);
    const auto number = static_cast<std::size_t>(known - shown_classes_.begin());
    if (known == shown_classes_.end()) shown_classes_.push_back(link_class);
    const std::size_t colours = kDistinctColours.size();
    if (parts_.rails() > 0)
      return {rail == kNoId ? kNoRail : rail_colour(rail), 1, kDashes[number % kDashes.size()]};
    return {kDistinctColours[number % colours], 1, kDashes[number / colours % kDashes.size()]};
  }

  std::string link_title(PortId id, std::uint64_t links) const {
    const LinkSpec& link = graph_.port(id).link;
    const BitRate back = graph_.port(id ^ 1U).link.rate;
    return fmt::format("{}: {} x {}{} {}, {}", bundle_name(graph_, id), links, format_rate(link.rate),
                       back != link.rate ? fmt::format(" (back {})", format_rate(back)) : "",
                       to_string(link.kind), format_time(link.delay));
  }

  // Adds the links between the boxes to the picture. Parallel links of one class and rail are one line.
  template <class NodeOf>
  void add_links(NodeLinkPicture& picture, const std::vector<PortId>& ports, NodeOf node_of) {
    using Key = std::tuple<std::size_t, std::size_t, std::size_t, std::uint32_t>;
    std::map<Key, std::pair<PortId, std::uint64_t>> bundles;  // first port and number of links
    std::vector<Key> order;
    for (const PortId id : ports) {
      const auto from = node_of(graph_.port(id).node), to = node_of(graph_.port(id).peer_node);
      if (!from || !to || *from == *to) continue;
      const Key key{*from, *to, parts_.class_of(id), rail_of_link(id)};
      const auto [at, fresh] = bundles.try_emplace(key, id, 0);
      if (fresh) order.push_back(key);
      ++at->second.second;
    }
    for (const Key& key : order) {
      const auto& [from, to, link_class, rail] = key;
      const auto& [port, links] = bundles.at(key);
      LineStyle style = style_of_class(link_class, rail);
      style.width = std::min(4.0, (style.dash.empty() ? 0.8 : 1.3) + 0.4 * static_cast<double>(links - 1));
      has_bundles_ = has_bundles_ || links > 1;
      if (rail != kNoId) shown_rails_.insert(rail);
      picture.links.push_back({from, to, style, link_title(port, links)});
    }
  }
  void add_fabric_links() {
    const std::vector<bool> down = graph_.circuits_down();
    std::vector<PortId> ports;
    ports.reserve(graph_.port_count() / 2);
    for (PortId id = 0; id < graph_.port_count(); id += 2) {
      if (!parts_.is_inside_host(id) && (down.empty() || !down[id])) ports.push_back(id);
    }
    add_links(picture_, ports, [this](NodeId id) { return boxes_.box_of(id); });
  }

  // ---- By tier

  void draw_tiers() {
    const TierRows tiers = rows_of_tiers(parts_);
    std::vector<std::vector<std::size_t>> rows;
    rows.reserve(tiers.rows.size());
    for (const std::vector<TierEntry>& entries : tiers.rows) {
      rows.emplace_back();
      for (const TierEntry& entry : entries) rows.back().push_back(add_entry(entry));
    }
    notes_.insert(notes_.end(), tiers.notes.begin(), tiers.notes.end());
    add_fabric_links();
    bottom_ = picture_.draw_rows(canvas_, rows, kPictureMargin, kWidth);
  }
  std::size_t add_entry(const TierEntry& entry) {
    if (!entry.hosts.empty()) return add_hosts(entry.hosts);
    if (entry.switches.empty()) {
      picture_.nodes.push_back({fmt::format("+{}", entry.left_out), "", Style::other, "", true});
      return picture_.nodes.size() - 1;
    }
    const std::size_t node = add_switch(entry.switches.front());
    if (entry.switches.size() == 1) return node;
    for (const NodeId id : entry.switches) boxes_.add_switch(id, node);
    const std::string &first = graph_.node(entry.switches.front()).name,
                      &last = graph_.node(entry.switches.back()).name;
    picture_.nodes[node].name = name_of_switches(entry.switches, graph_);
    picture_.nodes[node].title = fmt::format("{} to {}", first, last);
    return node;
  }

  // ---- On a cycle, or at places of the topology

  void draw_placed() {
    const std::vector<NodeId> switches = parts_.first_switches(kMostPlaced, notes_);
    const PlacedBoxes boxes = place_boxes(parts_, switches, cluster_.host_count <= kMostSingleHosts);
    const auto place = [this](std::size_t number, const Box& box) {
      picture_.nodes[number].at = box.centre;
      picture_.nodes[number].width = box.width;
    };
    for (std::size_t i = 0; i < switches.size(); ++i) place(add_switch(switches[i]), boxes.switches[i]);
    for (const HostsBox& hosts : boxes.hosts) place(add_hosts(hosts.hosts), hosts.box);
    add_fabric_links();
    const NodeLinkPicture::Placed placed = picture_.draw_placed(canvas_, kNarrowestPage);
    width_ = placed.width;
    bottom_ = placed.bottom;
    if (placed.unnamed > 0)
      notes_.push_back(
          fmt::format("Names without room are left out: {} of {}.", placed.unnamed, picture_.nodes.size()));
    if (placed.stubs > 0)
      notes_.push_back(fmt::format("Links without a free path show only their two ends: {} of {}.",
                                   placed.stubs, picture_.links.size()));
  }

  // ---- Inside hosts

  // Returns a text that is equal for hosts of one kind: their nodes' kinds and links, by position in the
  // host. Routers in a host belong to the fabric.
  std::string signature(std::uint32_t host) const {
    std::string text;
    const std::vector<NodeId>& nodes = parts_.nodes_of(host);
    for (const NodeId id : nodes) {
      if (is_switch(graph_, id)) continue;
      text += std::to_string(static_cast<int>(graph_.node(id).kind));
      for (const PortId port : graph_.ports_of(id)) {
        const NodeId peer = graph_.port(port).peer_node;
        if (parts_.host_of(peer) == host && !is_switch(graph_, peer))
          text += fmt::format(",{}:{}", peer - nodes.front(), graph_.port(port).link.rate);
      }
      text += ";";
    }
    return text;
  }

  void draw_insides() {
    std::set<std::string> seen;
    for (std::uint32_t host = 0; host < cluster_.host_count && seen.size() < kMostHostKinds; ++host) {
      const std::vector<NodeId>& nodes = parts_.nodes_of(host);
      const bool simple = std::none_of(nodes.begin(), nodes.end(),
                                       [&](NodeId id) { return graph_.node(id).kind == NodeKind::gpu; });
      if (!simple && seen.insert(signature(host)).second) draw_inside(host);
    }
  }

  void draw_inside(std::uint32_t host) {
    std::map<int, std::vector<NodeId>> levels;
    for (const NodeId id : parts_.nodes_of(host)) {
      if (!is_switch(graph_, id)) levels[row_of(graph_.node(id).kind)].push_back(id);
    }
    // Without PCIe switches CPUs connect to the NICs.
    if (!levels.contains(2) && levels.contains(4)) levels[2].swap(levels[4]);
    std::erase_if(levels, [](const auto& level) { return level.second.empty(); });
    NodeLinkPicture inside;
    std::map<NodeId, std::size_t> numbers;
    std::vector<std::vector<std::size_t>> rows;
    for (const auto& [level, nodes] : levels) {
      rows.emplace_back();
      for (const NodeId id : nodes) {
        numbers[id] = inside.nodes.size();
        rows.back().push_back(inside.nodes.size());
        inside.nodes.push_back(node_inside(graph_.node(id), id));
      }
    }
    std::vector<PortId> ports;
    for (const auto& [id, number] : numbers) {
      for (const PortId port : graph_.ports_of(id)) {
        if ((port & 1U) == 0) ports.push_back(port);
      }
    }
    add_links(inside, ports, [&](NodeId id) {
      const auto found = numbers.find(id);
      return found == numbers.end() ? std::nullopt : std::optional(found->second);
    });
    bottom_ += 1.5 * kPictureMargin;
    canvas_.text({kPictureMargin, bottom_}, "inside " + parts_.host_name(host), 13);
    width_ = std::max(width_, kWidth);
    bottom_ = inside.draw_rows(canvas_, rows, bottom_ + kPictureMargin / 2, kWidth);
  }
  PictureNode node_inside(const Node& node, NodeId id) {
    shown_styles_.insert(style_of(node.kind));
    return {node.name.substr(node.name.find('/') + 1), node.name, style_of(node.kind),
            rail_colour(node.kind == NodeKind::nic ? parts_.rail_of(id) : kNoId)};
  }

  // ---- The legend

  void draw_legend() {
    Legend legend(canvas_, bottom_ + 1.2 * kPictureMargin, width_);
    const auto box = [&](Style style, const char* meaning) {
      if (shown_styles_.contains(style)) legend.box(style, "", meaning);
    };
    box(Style::network, "switch");
    const bool gpus = shown_styles_.contains(Style::gpu);
    if (has_hosts_ || gpus) legend.box(Style::gpu, "", !gpus ? "host" : has_hosts_ ? "host or GPU" : "GPU");
    box(Style::nic, "NIC");
    box(Style::other, "PCIe switch or CPU");
    legend.next_line();
    const std::size_t colours = kDistinctColours.size();
    for (std::size_t i = 0; i < std::min<std::size_t>(colours, parts_.rails()); ++i) {
      std::string rails;
      for (const std::uint32_t rail : shown_rails_) {
        if (rail % colours == i) append_item(rails, std::to_string(rail));
      }
      if (!rails.empty()) legend.line({kDistinctColours[i], 3, ""}, "rail " + rails);
    }
    legend.next_line();
    for (const std::size_t i : shown_classes_) {
      const LinkClass& links = parts_.link_classes()[i];
      LineStyle style = style_of_class(i, kNoId);
      style.width = 2;
      legend.line(style, fmt::format("{} {}", format_rate(links.rate), to_string(links.kind)));
    }
    legend.next_line();
    add_notes();
    for (const std::string& words : notes_) legend.note(words);
    bottom_ = legend.bottom();
  }
  void add_notes() {
    if (parts_.unused_switches() > 0)
      notes_.push_back(fmt::format("Switches that no path between hosts needs are left out: {}.",
                                   parts_.unused_switches()));
    if (has_bundles_) notes_.emplace_back("A thicker line is several parallel links.");
  }

  const Cluster& cluster_;
  const Graph& graph_;
  ClusterParts parts_;
  NodeLinkPicture picture_;
  BoxIndex boxes_;
  std::set<Style> shown_styles_;
  std::vector<std::size_t> shown_classes_;  // in the order of their first lines
  std::set<std::uint32_t> shown_rails_;
  bool has_hosts_ = false, has_bundles_ = false;
  std::vector<std::string> notes_;
  Canvas canvas_;
  double width_ = kWidth, bottom_ = 0;
};

}  // namespace

std::string draw_cluster(const Cluster& cluster) { return Picture(cluster).draw(); }

}  // namespace netsim
