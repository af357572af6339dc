#include "sim/network/spread_time.h"

#include <algorithm>
#include <deque>

namespace netsim {
namespace {

// Routes of larger fabrics are not followed link by link, which would take longer than their packets do.
// Their messages have the ideal time of packets that may take any link.
constexpr std::size_t kMostPorts = 4096;

constexpr std::size_t kSizes = 2;

// Keeps the smaller times; returns whether any was smaller.
template <class Times>
bool lower(Times& times, const Times& by) {
  bool any = false;
  for (std::size_t i = 0; i < kSizes; ++i) {
    any = any || by[i] < times[i];
    times[i] = std::min(times[i], by[i]);
  }
  return any;
}

template <class Times>
Times sum(Times a, const Times& b) {
  for (std::size_t i = 0; i < kSizes; ++i) a[i] += b[i];
  return a;
}

}  // namespace

SpreadTimes::SpreadTimes(const FabricState& state)
    : state_(state), open_(state), by_links_(state.graph.port_count() <= kMostPorts) {}

Time SpreadTimes::over_routes(std::span<const PortId> way, const PacketTrain& train, std::uint64_t routes) {
  if (!by_links_) return anywhere(way, train);
  Known& k = known(train);
  if (k.routes != routes) k.passages.clear();
  k.routes = routes;
  const Shared ends = shared(way);
  const PortId entry = ends.before.back();
  const NodeId first = state_.graph.port(entry).peer_node;
  const NodeId last = state_.graph.port(way[way.size() - ends.behind.size() - 1]).peer_node;
  const auto [found, is_new] = k.passages.try_emplace({first, last});
  if (is_new) {
    set_links(open_.toward(entry, last));
    BitRate most = 0;  // rate at which packets come to the first switch
    for (const PortId port : state_.graph.ports_of(first)) {
      if (!is_switch(state_.graph.port(port).peer_node)) most = std::max(most, rate(port ^ 1U));
    }
    found->second = passage(k, first, last, most);
  }
  return found->second.one_way ? ideal_time(state_, way, train) : bound(k, ends, found->second, train);
}

Time SpreadTimes::anywhere(std::span<const PortId> way, const PacketTrain& train) {
  Known& k = known(train);
  const Shared ends = shared(way);
  const NodeId first = state_.graph.port(ends.before.back()).peer_node;
  const NodeId last = state_.graph.port(way[way.size() - ends.behind.size() - 1]).peer_node;
  const auto [found, is_new] = k.anywhere.try_emplace({first, last});
  if (is_new) found->second = passage_anywhere(k, first, last);
  return bound(k, ends, found->second, train);
}

Time SpreadTimes::over_ways(std::span<const std::vector<PortId>> ways, const PacketTrain& train) {
  const std::vector<PortId>& some = ways.front();
  std::size_t before = some.size(), behind = some.size();
  for (const std::vector<PortId>& way : ways) {
    before = std::min(
        before, static_cast<std::size_t>(
                    std::mismatch(some.begin(), some.end(), way.begin(), way.end()).first - some.begin()));
    behind = std::min(behind, static_cast<std::size_t>(
                                  std::mismatch(some.rbegin(), some.rend(), way.rbegin(), way.rend()).first -
                                  some.rbegin()));
  }
  std::vector<PortId> ports;
  // Routes may have changed the virtual channel, so that later packets overtake others at a switch of the
  // way.
  const bool in_order = state_.channels == 1;
  if (!in_order) before = std::min(before, shared(some).before.size());
  for (const std::vector<PortId>& way : ways) behind = std::min(behind, way.size() - before);
  if (in_order && before + behind == some.size()) return ideal_time(state_, some, train);
  for (const std::vector<PortId>& way : ways)
    ports.insert(ports.end(), way.begin() + static_cast<std::ptrdiff_t>(before),
                 way.end() - static_cast<std::ptrdiff_t>(behind));
  std::sort(ports.begin(), ports.end());
  ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
  set_links(ports);
  const std::span<const PortId> all(some);
  const Shared ends{all.first(before), all.last(behind)};
  const Known& k = known(train);
  const NodeId first = state_.graph.port(some[before]).node;
  const NodeId last = state_.graph.port(some[some.size() - behind - 1]).peer_node;
  return bound(k, ends, passage(k, first, last, INT64_MAX), train);
}

// ---- Links and sizes

SpreadTimes::Known& SpreadTimes::known(const PacketTrain& train) {
  const Bytes largest = std::max({train.first, train.full, train.last});
  for (Known& k : known_) {
    if (k.largest == largest) return k;
  }
  Known& k = known_.emplace_back();
  k.largest = largest;
  // Times on a wire are rounded, by 1 ps at most or to the resolution. The times stored here are rounded the
  // other way, passages down and wires up, so that they give a lower bound.
  const Time rounding = std::max<Time>(state_.resolution / 2, 1);
  for (PortId port = 0; port < state_.graph.port_count(); ++port) {
    LinkTimes& times = k.links.emplace_back();
    const Bytes sizes[kSizes] = {1, largest};
    for (std::size_t i = 0; i < kSizes; ++i) {
      const Time wire = wire_time(state_, port, sizes[i]);
      times.wire[i] = wire + rounding;
      times.passage[i] =
          std::max(passage_time(state_, port, sizes[i], wire) - rounding, state_.ports[port].delay);
    }
  }
  return k;
}

BitRate SpreadTimes::rate(PortId port) const {
  return state_.best_rates.empty() ? state_.graph.port(port).link.rate : state_.best_rates[port];
}

SpreadTimes::Shared SpreadTimes::shared(std::span<const PortId> way) const {
  std::size_t before = 0, end = way.size();
  while (!is_switch(state_.graph.port(way[before]).peer_node)) ++before;
  while (!is_switch(state_.graph.port(way[end - 1]).node)) --end;
  return {way.first(before + 1), way.subspan(end)};
}

std::uint32_t SpreadTimes::number(NodeId node) {
  if (number_[node] == kNoId) {
    number_[node] = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(node);
  }
  return number_[node];
}

void SpreadTimes::set_links(std::span<const PortId> ports) {
  number_.resize(state_.graph.node_count(), kNoId);
  for (const NodeId node : nodes_) number_[node] = kNoId;
  nodes_.clear();
  links_.clear();
  for (const PortId port : ports) {
    const PortSpec& spec = state_.graph.port(port);
    const std::uint32_t from = number(spec.node);
    links_.push_back({port, from, number(spec.peer_node)});
  }
}

// ---- Ways over given links

// Analyses the ways from `first` to `last` over links_. Cuts of rate `most` or more are left out, because
// they cannot bound a message.
SpreadTimes::Passage SpreadTimes::passage(const Known& known, NodeId first, NodeId last, BitRate most) {
  Passage result;
  const std::uint32_t from = number(first), to = number(last);
  reached_.assign(nodes_.size(), {});
  spread(known, from, to);
  result.time = reached_[to].before;
  const std::uint32_t length = reached_[to].from_first;
  result.one_way = links_.size() == length;
  if (result.one_way || length == kNoId) return result;
  add_cuts(known, result, length, true);
  add_cuts(known, result, length, false);
  std::erase_if(result.cuts, [most](const Cut& cut) { return cut.rate >= most; });
  result.cuts.erase(std::unique(result.cuts.begin(), result.cuts.end()), result.cuts.end());
  return result;
}

// Finds the least numbers of links and least times from the first node and to the last one. The nearest links
// come first, so one round is mostly enough.
void SpreadTimes::spread(const Known& known, std::uint32_t first, std::uint32_t last) {
  reached_[first].from_first = 0;
  reached_[last].to_last = 0;
  const auto relax = [&](std::uint32_t& links, TwoSizes& times, std::uint32_t links_there,
                         const TwoSizes& times_there, PortId port) {
    if (links_there == kNoId) return false;
    const TwoSizes by = sum(times_there, known.links[port].passage);
    if (links == kNoId) {
      links = links_there + 1;
      times = by;
      return true;
    }
    const bool nearer = links_there + 1 < links;
    links = std::min(links, links_there + 1);
    return lower(times, by) || nearer;
  };
  for (bool any = true; any;) {
    any = false;
    for (const Link& link : links_) {
      const Reached& from = reached_[link.from];
      Reached& to = reached_[link.to];
      if (link.to != first)
        any = relax(to.from_first, to.before, from.from_first, from.before, link.port) || any;
    }
  }
  for (bool any = true; any;) {
    any = false;
    for (auto link = links_.rbegin(); link != links_.rend(); ++link) {
      Reached& from = reached_[link->from];
      const Reached& to = reached_[link->to];
      if (link->from != last)
        any = relax(from.to_last, from.behind, to.to_last, to.behind, link->port) || any;
    }
  }
}

// Adds a cut for each distance from one end. Every way goes from each distance to the next at least once.
void SpreadTimes::add_cuts(const Known& known, Passage& passage, std::uint32_t length,
                           bool from_first) const {
  std::vector<Cut> cuts(length);
  for (const Link& link : links_) {
    const Reached &from = reached_[link.from], &to = reached_[link.to];
    if (from.from_first == kNoId || to.to_last == kNoId) continue;
    const std::uint32_t near = from_first ? from.from_first : to.to_last;
    const std::uint32_t far = from_first ? to.from_first : from.to_last;
    if (far != near + 1 || near >= length) continue;
    add_to(cuts[near], link.port, known.links[link.port], from.before, to.behind);
  }
  passage.cuts.insert(passage.cuts.end(), cuts.begin(), cuts.end());
}

void SpreadTimes::add_to(Cut& cut, PortId port, const LinkTimes& times, const TwoSizes& before,
                         const TwoSizes& behind) const {
  TwoSizes rest = sum(behind, times.passage);
  for (std::size_t i = 0; i < kSizes; ++i) rest[i] -= times.wire[i];
  const Bytes overhead = state_.graph.port(port).link.overhead;
  if (cut.rate == 0) {
    cut.before = before;
    cut.behind = rest;
    cut.overhead = overhead;
  }
  lower(cut.before, before);
  lower(cut.behind, rest);
  cut.overhead = std::min(cut.overhead, overhead);
  cut.rate += rate(port);
  cut.fastest = std::max(cut.fastest, rate(port));
}

// ---- Ways over any links

// Returns the least times from every switch to this one, over any switches.
const std::vector<SpreadTimes::TwoSizes>& SpreadTimes::times_to(Known& known, NodeId last_switch) {
  const Graph& graph = state_.graph;
  if (switch_number_.empty()) {
    for (NodeId node = 0; node < graph.node_count(); ++node)
      switch_number_.push_back(is_switch(node) ? switches_++ : kNoId);
  }
  const auto [found, is_new] = known.to_switch.try_emplace(last_switch);
  std::vector<TwoSizes>& times = found->second;
  if (!is_new) return times;
  times.assign(switches_, {kNever, kNever});
  times[switch_number_[last_switch]] = {0, 0};
  std::deque<NodeId> changed{last_switch};
  for (; !changed.empty(); changed.pop_front()) {
    const TwoSizes here = times[switch_number_[changed.front()]];
    for (const PortId back : graph.ports_of(changed.front())) {
      const NodeId from = graph.port(back).peer_node;
      if (is_switch(from) && lower(times[switch_number_[from]], sum(here, known.links[back ^ 1U].passage)))
        changed.push_back(from);
    }
  }
  return times;
}

SpreadTimes::TwoSizes SpreadTimes::least_from(Known& known, NodeId from, NodeId last) {
  TwoSizes least{kNever, kNever};
  if (from == last) return {0, 0};
  for (const PortId back : state_.graph.ports_of(last)) {
    const NodeId end = state_.graph.port(back).peer_node;
    if (!is_switch(end)) continue;
    const TwoSizes& way = times_to(known, end)[switch_number_[from]];
    if (way[0] != kNever) lower(least, sum(way, known.links[back ^ 1U].passage));
  }
  return least;
}

// The cuts are the links out of the first switch, into the last one, and into the NIC.
SpreadTimes::Passage SpreadTimes::passage_anywhere(Known& known, NodeId first, NodeId last) {
  const Graph& graph = state_.graph;
  Passage result;
  result.time = least_from(known, first, last);
  Cut out, in, end;
  std::vector<NodeId> last_switches;
  for (const PortId back : graph.ports_of(last)) {
    if (is_switch(graph.port(back).peer_node)) last_switches.push_back(graph.port(back).peer_node);
  }
  // Returns the least time to the port of a switch next to the end.
  const auto before = [&](NodeId at, PortId port) {
    TwoSizes time = times_to(known, at)[switch_number_[first]];
    if (port != kNoId) {
      for (std::size_t i = 0; i < kSizes; ++i)
        time[i] = std::max<Time>(time[i] - known.links[port].passage[i], 0);
    }
    return time;
  };
  for (const PortId port : graph.ports_of(first)) {
    const NodeId next = graph.port(port).peer_node;
    if (next != last && !is_switch(next)) continue;
    const TwoSizes rest = least_from(known, next, last);
    if (rest[0] != kNever) add_to(out, port, known.links[port], {}, rest);
  }
  for (const PortId back : graph.ports_of(last)) {
    const NodeId there = graph.port(back).peer_node;
    if (is_switch(there)) add_to(end, back ^ 1U, known.links[back ^ 1U], before(there, kNoId), {});
  }
  result.cuts = {out, end};
  if (std::count(last_switches.begin(), last_switches.end(), first) > 0) return result;
  std::sort(last_switches.begin(), last_switches.end());
  last_switches.erase(std::unique(last_switches.begin(), last_switches.end()), last_switches.end());
  for (const NodeId there : last_switches) {
    const TwoSizes rest = least_from(known, there, last);
    for (const PortId back : graph.ports_of(there)) {
      if (is_switch(graph.port(back).peer_node))
        add_to(in, back ^ 1U, known.links[back ^ 1U], before(there, back ^ 1U), rest);
    }
  }
  result.cuts.push_back(in);
  return result;
}

// ---- Bounds

// Returns the largest of the bounds. The packets leave the shared ports one behind the other and then cross
// every cut.
Time SpreadTimes::bound(const Known& known, const Shared& shared, const Passage& passage,
                        const PacketTrain& train) const {
  const auto alone = [&](std::span<const PortId> ports, Bytes bytes) {
    Time time = 0;
    for (const PortId port : ports) time += passage_time(state_, port, bytes, wire_time(state_, port, bytes));
    return time;
  };
  const auto chord = [&](const TwoSizes& times, Bytes bytes) {
    return times[0] + static_cast<Time>(static_cast<Int128>(times[1] - times[0]) * (bytes - 1) /
                                        std::max<Bytes>(known.largest - 1, 1));
  };
  Time least = ideal_time(state_, shared.before, train) + chord(passage.time, train.last) +
               alone(shared.behind, train.last);
  // Size of the packet that is sent first.
  const Bytes leading = train.count == 1 ? train.last : train.first;
  const Bytes smallest = std::min(leading, train.last);
  // The first packet is the first at a cut, unless the last one is smaller and overtakes it.
  const auto head = [&](const TwoSizes& before) {
    const Time first = alone(shared.before, leading) + chord(before, leading);
    if (train.last >= leading) return first;
    const Time waits = shared.before.empty() ? 0 : wire_time(state_, shared.before.front(), train.first);
    return std::min(first, waits + alone(shared.before, train.last) + chord(before, train.last));
  };
  const auto add = [&](const Cut& cut, Time before, Time behind) {
    if (cut.rate == 0) return;
    Bytes bytes = train.last + static_cast<Bytes>(train.count) * cut.overhead;
    if (train.count > 1) bytes += train.first + static_cast<Bytes>(train.count - 2) * train.full;
    Int128 time = static_cast<Int128>(bytes) * 8 * kSecond;
    time -= static_cast<Int128>(train.count) * cut.fastest * (state_.resolution / 2);
    least = std::max(least, before + static_cast<Time>(std::max<Int128>(time / cut.rate, 0)) + behind);
  };
  for (const Cut& cut : passage.cuts)
    add(cut, head(cut.before), std::min(cut.behind[0], cut.behind[1]) + alone(shared.behind, smallest));
  for (std::size_t i = 0; i < shared.behind.size(); ++i) {
    const PortId port = shared.behind[i];
    const auto rest = shared.behind.subspan(i);
    const Time behind = std::min(alone(rest, smallest) - wire_time(state_, port, smallest),
                                 alone(rest, known.largest) - wire_time(state_, port, known.largest));
    add({rate(port), rate(port), state_.graph.port(port).link.overhead, {}, {}},
        head(passage.time) + alone(shared.behind.first(i), smallest), behind);
  }
  return least;
}

}  // namespace netsim
