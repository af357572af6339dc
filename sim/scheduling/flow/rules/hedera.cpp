#include "sim/scheduling/flow/rules/hedera.h"

#include <algorithm>
#include <numeric>

namespace netsim {
namespace {

// DemandEstimate: Hedera's estimator. Senders and receivers take turns until no demand changes.
class DemandEstimate {
 public:
  DemandEstimate(std::span<const BitRate> rate, std::span<const HostPair> flows)
      : rate_(rate),
        demand_(flows.size(), 0),
        converged_(flows.size(), 0),
        limited_(flows.size(), 0),
        of_source_(rate.size()),
        of_destination_(rate.size()) {
    for (std::uint32_t flow = 0; flow < flows.size(); ++flow) {
      of_source_[flows[flow].source].push_back(flow);
      of_destination_[flows[flow].destination].push_back(flow);
    }
  }

  std::vector<BitRate> run() {
    do {
      changed_ = false;
      for (std::size_t host = 0; host < rate_.size(); ++host) share_source(host);
      for (std::size_t host = 0; host < rate_.size(); ++host) limit_destination(host);
    } while (changed_);
    return demand_;
  }

 private:
  void set(std::uint32_t flow, BitRate demand) {
    changed_ = changed_ || demand_[flow] != demand;
    demand_[flow] = demand;
  }

  // Flows that no receiver has limited get equal shares of what the limited ones leave.
  void share_source(std::size_t host) {
    BitRate room = rate_[host];
    BitRate open = 0;
    for (const std::uint32_t flow : of_source_[host]) {
      if (converged_[flow] != 0)
        room -= demand_[flow];
      else
        ++open;
    }
    for (const std::uint32_t flow : of_source_[host]) {
      if (converged_[flow] == 0) set(flow, room / open);
    }
  }

  // A receiver that gets too much limits its largest flows to equal shares of what the smaller ones leave.
  void limit_destination(std::size_t host) {
    const auto& flows = of_destination_[host];
    BitRate total = 0;
    for (const std::uint32_t flow : flows) {
      limited_[flow] = 1;
      total += demand_[flow];
    }
    if (total <= rate_[host]) return;
    const BitRate share = share_of_largest(flows, rate_[host]);
    for (const std::uint32_t flow : flows) {
      if (limited_[flow] == 0) continue;
      set(flow, share);
      converged_[flow] = 1;
    }
  }

  BitRate share_of_largest(const std::vector<std::uint32_t>& flows, BitRate room) {
    auto open = static_cast<BitRate>(flows.size());
    BitRate share = room / open;
    for (bool again = true; again && open > 0;) {
      again = false;
      for (const std::uint32_t flow : flows) {
        if (limited_[flow] == 0 || demand_[flow] >= share) continue;
        limited_[flow] = 0;
        room -= demand_[flow];
        --open;
        again = true;
      }
      if (open > 0) share = room / open;
    }
    return share;
  }

  std::span<const BitRate> rate_;
  std::vector<BitRate> demand_;
  std::vector<std::uint8_t> converged_;  // by flow: whether a receiver has limited it
  std::vector<std::uint8_t> limited_;    // by flow: whether its receiver may still have to limit it
  std::vector<std::vector<std::uint32_t>> of_source_, of_destination_;
  bool changed_ = false;
};

// LinkUse: the load of a link per capacity, as a fraction.
struct LinkUse {
  BitRate load = 0, capacity = 1;

  bool operator<(const LinkUse& other) const {
    return static_cast<Int128>(load) * other.capacity < static_cast<Int128>(other.load) * capacity;
  }
};

// The most moves that are tried to relieve one link.
constexpr std::uint32_t kMostTries = 4096;

// PathPlacement: flows on paths, with the load of each link.
class PathPlacement {
 public:
  PathPlacement(std::span<const BitRate> capacity, std::span<const RoutedFlow> flows,
                std::span<const BitRate> load)
      : capacity_(capacity),
        flows_(flows),
        load_(load.begin(), load.end()),
        path_(flows.size(), 0),
        moving_(flows.size(), 0),
        order_(flows.size()),
        on_link_(capacity.size()) {
    load_.resize(capacity.size(), 0);
    std::iota(order_.begin(), order_.end(), 0U);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return flows_[a].demand > flows_[b].demand; });
  }

  std::vector<std::uint32_t> run() {
    for (const std::uint32_t flow : order_) {
      if (!flows_[flow].paths.empty()) put(flow, paths_by_use(flow).front());
    }
    while (relieve_fullest_links()) {
    }
    return path_;
  }

 private:
  // Move: a flow that moved, and the path that it had.
  struct Move {
    std::uint32_t flow, from;
  };

  std::span<const std::uint32_t> links(std::uint32_t flow) const { return flows_[flow].paths[path_[flow]]; }
  LinkUse use(std::uint32_t link, BitRate more = 0) const { return {load_[link] + more, capacity_[link]}; }

  void put(std::uint32_t flow, std::uint32_t path) {
    path_[flow] = path;
    for (const std::uint32_t link : links(flow)) {
      load_[link] += flows_[flow].demand;
      on_link_[link].push_back(flow);
    }
  }

  void take_off(std::uint32_t flow) {
    for (const std::uint32_t link : links(flow)) {
      load_[link] -= flows_[flow].demand;
      std::erase(on_link_[link], flow);
    }
  }

  // Returns the paths of a flow that is on none, that with the least use of its fullest link first.
  std::vector<std::uint32_t> paths_by_use(std::uint32_t flow) const {
    std::vector<LinkUse> fullest(flows_[flow].paths.size());
    for (std::size_t path = 0; path < fullest.size(); ++path) {
      for (const std::uint32_t link : flows_[flow].paths[path])
        fullest[path] = std::max(fullest[path], use(link, flows_[flow].demand));
    }
    std::vector<std::uint32_t> paths(fullest.size());
    std::iota(paths.begin(), paths.end(), 0U);
    std::stable_sort(paths.begin(), paths.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return fullest[a] < fullest[b]; });
    return paths;
  }

  // Lowers the use of one of the fullest links without another link coming to it. Returns false if it cannot.
  bool relieve_fullest_links() {
    LinkUse most;
    for (std::uint32_t link = 0; link < load_.size(); ++link) {
      if (!on_link_[link].empty()) most = std::max(most, use(link));
    }
    if (most.load == 0) return false;
    for (std::uint32_t link = 0; link < load_.size(); ++link) {
      if (on_link_[link].empty() || use(link) < most) continue;
      std::fill(moving_.begin(), moving_.end(), std::uint8_t{0});
      moves_.clear();
      tries_ = 0;
      if (relieve(link, most)) return true;
    }
    return false;
  }

  // Moves flows off the link until it is used less than `most`. Undoes that if it does not succeed.
  bool relieve(std::uint32_t link, const LinkUse& most) {
    const std::size_t before = moves_.size();
    const std::vector<std::uint32_t> flows = on_link_[link];
    for (const std::uint32_t flow : flows) {
      if (use(link) < most) break;
      if (moving_[flow] == 0) move(flow, link, most);
    }
    if (use(link) < most) return true;
    undo(before);
    return false;
  }

  // Moves a flow to a path without `avoided`, and others out of its way. A flow moves once in a search.
  bool move(std::uint32_t flow, std::uint32_t avoided, const LinkUse& most) {
    if (tries_++ >= kMostTries) return false;
    const std::uint32_t from = path_[flow];
    take_off(flow);
    const std::vector<std::uint32_t> paths = paths_by_use(flow);
    put(flow, from);
    for (const std::uint32_t path : paths) {
      const auto& links = flows_[flow].paths[path];
      if (path == from || std::find(links.begin(), links.end(), avoided) != links.end()) continue;
      const std::size_t before = moves_.size();
      take_off(flow);
      put(flow, path);
      moves_.push_back({flow, from});
      moving_[flow] = 1;
      if (std::all_of(links.begin(), links.end(),
                      [&](std::uint32_t link) { return use(link) < most || relieve(link, most); }))
        return true;
      undo(before);
    }
    return false;
  }

  void undo(std::size_t until) {
    for (; moves_.size() > until; moves_.pop_back()) {
      take_off(moves_.back().flow);
      put(moves_.back().flow, moves_.back().from);
      moving_[moves_.back().flow] = 0;
    }
  }

  std::span<const BitRate> capacity_;
  std::span<const RoutedFlow> flows_;
  std::vector<BitRate> load_;         // by link
  std::vector<std::uint32_t> path_;   // by flow
  std::vector<std::uint8_t> moving_;  // by flow: whether the present search moves it
  std::uint32_t tries_ = 0;           // moves that the present search has tried
  std::vector<std::uint32_t> order_;
  std::vector<std::vector<std::uint32_t>> on_link_;  // by link: its flows
  std::vector<Move> moves_;
};

}  // namespace

std::vector<BitRate> estimate_demands(std::span<const BitRate> interface_rate,
                                      std::span<const HostPair> flows) {
  return DemandEstimate(interface_rate, flows).run();
}

std::vector<std::uint32_t> place_on_paths(std::span<const BitRate> capacity,
                                          std::span<const RoutedFlow> flows, std::span<const BitRate> load) {
  return PathPlacement(capacity, flows, load).run();
}

}  // namespace netsim
