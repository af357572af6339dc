#include "sim/topology/layered_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "sim/core/errors.h"
#include "sim/topology/columns_on_demand.h"

namespace netsim {
namespace {

// A row is the number of a switch among the switches of the fabric.
class LayeredRoutes final : public Routes {
 public:
  LayeredRoutes(const Graph& graph, std::span<const HostPort> nics, const std::vector<bool>& down)
      : nics_(nics.begin(), nics.end()), down_ports_(down), access_(graph.node_count(), {kNoId, kNoId}) {
    index_switches(graph);
    for (const HostPort& port : nics) attach(graph, port.nic);
    columns_.resize(targets_.size());
    put_in_order();
  }

  void set_layers(std::uint32_t layers) { layers_ = layers; }
  // Sets as few layers as keep all routes shortest, at least two and at most `most`.
  void find_layers(std::uint32_t most) {
    count_turns();
    layers_ = std::clamp(static_cast<std::uint32_t>(ways_.size()), 2U, most);
  }
  // Returns whether no shortest route turns up again.
  bool never_turns() const {
    const auto turns = [this](std::uint32_t target) { return some_way_turns(target); };
    return std::none_of(targets_.begin(), targets_.end(), turns);
  }

  std::span<const PortId> next_hops(NodeId at, NodeId destination) const override {
    if (row_[at] == kNoId) return {&access_[at].port, 1};
    const Access& target = access_[destination];
    if (row_[at] == targets_[target.column]) return {&to_nic_[destination], 1};
    const Column& column = column_of(target.column);
    return {column.hops.data() + column.begin[row_[at]], column.begin[row_[at] + 1] - column.begin[row_[at]]};
  }

  std::uint32_t channels(RoutingFreedom) const override { return layers_; }

  void add_hops(const Waypoint& packet, std::vector<Hop>& hops) const override {
    const Access& target = access_[packet.destination];
    const std::uint32_t here = row_[packet.at];
    if (here == targets_[target.column]) return hops.push_back({to_nic_[packet.destination], 0});
    if (layers_ == 1) return Routes::add_hops(packet, hops);
    const Column& column = column_of(target.column);
    State state = state_of(packet.came);
    if (column.links[index(here, state)] == kNoWay) state = {layers_ - 1, false};
    const std::uint32_t left = column.links[index(here, state)];
    if (left == kNoWay) return;
    for (const Neighbour& next : neighbours_[here]) {
      State then = state;
      if (usable(next.port) && step(then, next.up) && column.links[index(next.row, then)] + 1U == left)
        hops.push_back({next.port, then.layer});
    }
  }

  std::string channels_in_words() const override {
    if (layers_ == 1) return "1, by layers: routes go up, then down in an order of the switches";
    const std::string text =
        fmt::format("{}, by layers: a packet takes the next one where its route goes up again", layers_);
    std::uint64_t pairs = 0, longer = 0;
    for (std::size_t turns = 0; turns < ways_.size(); ++turns) {
      pairs += ways_[turns];
      if (turns >= layers_) longer += ways_[turns];
    }
    if (longer == 0) return text + "; all routes are shortest ones";
    return text + fmt::format("; {:.3g} % of the routes between switches are longer than the shortest",
                              100 * static_cast<double>(longer) / static_cast<double>(pairs));
  }

  std::unique_ptr<Routes> without(const Graph& graph, std::span<const HostPort>,
                                  const std::vector<bool>& down, std::uint32_t channels) const override {
    auto rest = std::make_unique<LayeredRoutes>(graph, nics_, down);
    rest->set_layers(channels);
    return rest;
  }

 private:
  // A NIC's port into the fabric, and the column of the switch at its other end.
  struct Access {
    PortId port;
    std::uint32_t column;
  };
  struct Neighbour {
    PortId port;
    std::uint32_t row;
    bool up = false;
  };
  // A packet's layer, and whether its last hop in it led down.
  struct State {
    std::uint32_t layer;
    bool down;
  };
  static constexpr std::uint16_t kNoWay = UINT16_MAX;
  // All routes to one switch.
  struct Column {
    std::vector<std::uint16_t> links;     // by row and state: number of links left
    std::vector<std::uint32_t> begin{0};  // by row: start of its range of `hops`
    std::vector<PortId> hops;             // next hops of a packet that starts there
  };

  void index_switches(const Graph& graph) {
    row_.assign(graph.node_count(), kNoId);
    to_nic_.assign(graph.node_count(), kNoId);
    std::vector<NodeId> reached;
    const auto reach = [&](NodeId id) {
      if (graph.node(id).kind != NodeKind::fabric_switch || row_[id] != kNoId) return;
      row_[id] = rows_++;
      reached.push_back(id);
    };
    const auto reach_from = [&](NodeId id) {
      for (const PortId port : graph.ports_of(id)) reach(graph.port(port).peer_node);
    };
    for (const HostPort& port : nics_) reach_from(port.nic);
    for (std::size_t i = 0; i < reached.size(); ++i) reach_from(reached[i]);
    column_.assign(rows_, kNoId);
    direction_.assign(graph.port_count(), Direction::none);
    neighbours_.resize(rows_);
    for (const NodeId id : reached) {
      for (const PortId port : graph.ports_of(id)) {
        const std::uint32_t far = row_[graph.port(port).peer_node];
        if (far != kNoId) neighbours_[row_[id]].push_back({port, far});
      }
    }
  }

  void attach(const Graph& graph, NodeId nic) {
    for (const PortId port : graph.ports_of(nic)) {
      const std::uint32_t row = row_[graph.port(port).peer_node];
      if (row == kNoId) continue;
      if (column_[row] == kNoId) {
        column_[row] = static_cast<std::uint32_t>(targets_.size());
        targets_.push_back(row);
      }
      access_[nic] = {port, column_[row]};
      to_nic_[nic] = port ^ 1U;
      return;
    }
    NETSIM_CHECK(false, graph.node(nic).name + " is not joined to the fabric");
  }

  bool usable(PortId port) const { return down_ports_.empty() || !down_ports_[port]; }
  bool usable_both_ways(PortId port) const { return usable(port) && usable(port ^ 1U); }

  // ---- The order

  // Returns the rows joined to `from`, breadth first, and sets the row from which each was reached.
  std::vector<std::uint32_t> reach(std::uint32_t from, std::vector<std::uint32_t>& parent) const {
    std::vector<std::uint32_t> reached{from};
    std::fill(parent.begin(), parent.end(), kNoId);
    parent[from] = from;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const Neighbour& next : neighbours_[reached[i]]) {
        if (parent[next.row] != kNoId || !usable_both_ways(next.port)) continue;
        parent[next.row] = reached[i];
        reached.push_back(next.row);
      }
    }
    return reached;
  }

  // Returns the middle of the route between two rows that are far apart.
  std::uint32_t middle(std::uint32_t of, std::vector<std::uint32_t>& parent) const {
    const std::uint32_t end = reach(reach(of, parent).back(), parent).back();
    std::vector<std::uint32_t> way{end};
    while (parent[way.back()] != way.back()) way.push_back(parent[way.back()]);
    return way[way.size() / 2];
  }

  // Orders the rows. In each connected part, every row but the first has a neighbour before it. So a route
  // up, then down, joins any two rows.
  void put_in_order() {
    std::vector<std::uint32_t> place(rows_, kNoId), parent(rows_);
    std::uint32_t placed = 0;
    for (std::uint32_t row = 0; row < rows_; ++row) {
      if (place[row] != kNoId) continue;
      for (const std::uint32_t next : reach(middle(row, parent), parent)) place[next] = placed++;
    }
    for (std::uint32_t row = 0; row < rows_; ++row) {
      for (Neighbour& next : neighbours_[row]) {
        next.up = place[next.row] < place[row];
        direction_[next.port] = next.up ? Direction::up : Direction::down;
      }
    }
  }

  // ---- The layers

  // Advances the state by one hop, up or down. Returns false if no layer is left for it.
  bool step(State& state, bool up) const {
    if (up && state.down) ++state.layer;
    state.down = !up;
    return state.layer < layers_;
  }
  State state_of(const Hop& came) const {
    if (came.port == kNoId || direction_[came.port] == Direction::none) return {0, false};
    return {std::min(came.channel, layers_ - 1), direction_[came.port] == Direction::down};
  }
  std::size_t index(std::uint32_t row, const State& state) const {
    return (std::size_t{row} * layers_ + state.layer) * 2 + (state.down ? 1 : 0);
  }

  // Distances of rows over shortest routes, and the rows in ascending order of distance.
  struct Distances {
    std::vector<std::uint32_t> links, reached;
    bool nearer(std::uint32_t row, std::uint32_t than) const {
      return links[row] != kNoId && links[row] + 1 == links[than];
    }
  };
  Distances distances(std::uint32_t target) const {
    Distances from{std::vector<std::uint32_t>(rows_, kNoId), {target}};
    from.links[target] = 0;
    for (std::size_t i = 0; i < from.reached.size(); ++i) {
      for (const Neighbour& next : neighbours_[from.reached[i]]) {
        if (from.links[next.row] != kNoId) continue;
        from.links[next.row] = from.links[from.reached[i]] + 1;
        from.reached.push_back(next.row);
      }
    }
    return from;
  }

  bool some_way_turns(std::uint32_t target) const {
    const Distances from = distances(target);
    return std::any_of(from.reached.begin(), from.reached.end(), [&](std::uint32_t row) {
      bool on_up = false, came_down = false;
      for (const Neighbour& next : neighbours_[row]) {
        on_up = on_up || (next.up && from.nearer(next.row, row));
        came_down = came_down || (next.up && from.nearer(row, next.row));
      }
      return on_up && came_down;
    });
  }

  // Counts the pairs of switches with NICs by the least number of turns up on a shortest route between them.
  void count_turns() {
    for (const std::uint32_t target : targets_) {
      const Distances from = distances(target);
      std::vector<Turns> turns(rows_, {0, 0});
      for (const std::uint32_t row : from.reached) {
        if (row == target) continue;
        turns[row] = fewest_turns(row, from, turns);
        if (column_[row] == kNoId) continue;
        if (ways_.size() <= turns[row][0]) ways_.resize(turns[row][0] + 1);
        ++ways_[turns[row][0]];
      }
    }
  }
  using Turns = std::array<std::uint32_t, 2>;  // of a packet that arrived by a hop up, or down
  Turns fewest_turns(std::uint32_t row, const Distances& from, const std::vector<Turns>& turns) const {
    Turns fewest{kNoId, kNoId};
    for (const Neighbour& next : neighbours_[row]) {
      if (!from.nearer(next.row, row)) continue;
      const std::uint32_t on = turns[next.row][next.up ? 0 : 1];
      fewest[0] = std::min(fewest[0], on);
      fewest[1] = std::min(fewest[1], on + (next.up ? 1 : 0));
    }
    return fewest;
  }

  // ---- Columns

  const Column& column_of(std::uint32_t column) const {
    return columns_.get(column, [&] { return search(targets_[column]); });
  }

  // Computes a column, breadth first from the target, hop by hop backward.
  Column search(std::uint32_t target) const {
    Column column;
    column.links.assign(std::size_t{rows_} * layers_ * 2, kNoWay);
    std::vector<std::pair<std::uint32_t, State>> reached;
    const auto reach = [&](std::uint32_t row, const State& state, std::uint32_t links) {
      std::uint16_t& known = column.links[index(row, state)];
      if (known != kNoWay) return;
      known = static_cast<std::uint16_t>(links);
      reached.emplace_back(row, state);
    };
    for (std::uint32_t layer = 0; layer < layers_; ++layer) {
      for (const bool down : {false, true}) reach(target, {layer, down}, 0);
    }
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const auto [row, state] = reached[i];
      const std::uint32_t links = column.links[index(row, state)] + 1U;
      for (const Neighbour& next : neighbours_[row]) {
        const bool hop_up = !next.up;  // from there to here
        if (hop_up == state.down || !usable(next.port ^ 1U)) continue;
        reach(next.row, {state.layer, false}, links);
        if (!hop_up) reach(next.row, {state.layer, true}, links);
        if (hop_up && state.layer > 0) reach(next.row, {state.layer - 1, true}, links);
      }
    }
    add_hops_from(column);
    return column;
  }

  // Adds the next hops of packets that start at each row. With one layer they must not depend on the arrival:
  // where a route that only goes down exists, it is taken.
  void add_hops_from(Column& column) const {
    for (std::uint32_t row = 0; row < rows_; ++row) {
      State state{0, false};
      if (layers_ == 1 && column.links[index(row, {0, true})] != kNoWay) state.down = true;
      const std::uint32_t left = column.links[index(row, state)];
      for (const Neighbour& next : neighbours_[row]) {
        State then = state;
        if (left != kNoWay && usable(next.port) && step(then, next.up) &&
            column.links[index(next.row, then)] + 1U == left)
          column.hops.push_back(next.port);
      }
      column.begin.push_back(static_cast<std::uint32_t>(column.hops.size()));
    }
  }

  enum class Direction : std::uint8_t { none, up, down };

  std::uint32_t layers_ = 1;
  std::vector<std::uint64_t> ways_;  // pairs of switches with NICs, by the fewest turns of a shortest route
  std::vector<HostPort> nics_;
  std::vector<bool> down_ports_;
  std::uint32_t rows_ = 0;
  std::vector<std::uint32_t> row_;  // by node; kNoId for nodes that are not switches of the fabric
  std::vector<std::vector<Neighbour>> neighbours_;  // by row, over links between switches
  std::vector<Direction> direction_;                // by port of those links
  std::vector<std::uint32_t> column_;               // row -> column; kNoId for switches without NICs
  std::vector<std::uint32_t> targets_;              // column -> row
  std::vector<Access> access_;                      // by node
  std::vector<PortId> to_nic_;                      // by node: the port from the switch to the NIC
  mutable ColumnsOnDemand<Column> columns_;
};

}  // namespace

std::unique_ptr<Routes> layered_routes(const Graph& graph, std::span<const HostPort> nics,
                                       std::uint32_t layers, std::uint32_t most) {
  auto routes = std::make_unique<LayeredRoutes>(graph, nics, std::vector<bool>());
  if (layers == 0 && routes->never_turns()) return shortest_path_routes(graph, nics);
  routes->find_layers(most);
  if (layers != 0) routes->set_layers(layers);
  return routes;
}

}  // namespace netsim
