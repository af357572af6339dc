#include "sim/scheduling/flow/rules/max_min.h"

#include <algorithm>
#include <numeric>

namespace netsim {

bool MaxMin::less(const Share& a, const Share& b) {
  return static_cast<Int128>(a.room) * b.weight < static_cast<Int128>(b.room) * a.weight;
}

bool MaxMin::later(const SharedLink& a, const SharedLink& b) {
  if (less(b.share, a.share)) return true;
  return !less(a.share, b.share) && b.link < a.link;
}

void MaxMin::reset(std::span<const BitRate> capacity, std::size_t flows) {
  links_.assign(capacity.size(), LinkState{});
  for (std::size_t link = 0; link < capacity.size(); ++link) links_[link].free.room = capacity[link];
  frozen_.assign(flows, 0);
  rates_.assign(flows, 0);
  limits_.resize(flows);
  order_.resize(flows);
  std::iota(order_.begin(), order_.end(), 0U);
}

std::span<const BitRate> MaxMin::fair(std::span<const BitRate> capacity, std::span<const RuleFlow> flows) {
  reset(capacity, flows.size());
  fill(flows, order_);
  return rates_;
}

std::span<const BitRate> MaxMin::strict(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                                        std::span<const std::uint32_t> level) {
  reset(capacity, flows.size());
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return level[a] != level[b] ? level[a] < level[b] : a < b;
  });
  std::size_t begin = 0;
  while (begin < order_.size()) {
    std::size_t end = begin;
    while (end < order_.size() && level[order_[end]] == level[order_[begin]]) ++end;
    fill(flows, std::span(order_).subspan(begin, end - begin));
    begin = end;
  }
  return rates_;
}

void MaxMin::fill(std::span<const RuleFlow> flows, std::span<const std::uint32_t> members) {
  index_members(flows, members);
  collect_limited(flows, members);
  heap_.clear();
  for (const std::uint32_t link : used_) {
    if (is_shared(link)) heap_.push_back({links_[link].free, link});
  }
  std::make_heap(heap_.begin(), heap_.end(), later);
  drop_old_tops();
  for (const std::uint32_t index : limited_) {
    while (frozen_[index] == 0 && !limit_comes_first(flows[index], limits_[index]))
      freeze_fullest_link(flows);
    if (frozen_[index] == 0) freeze(flows[index], index, limits_[index]);
    drop_old_tops();
  }
  while (!heap_.empty()) freeze_fullest_link(flows);
  for (const std::uint32_t link : used_) links_[link].first = links_[link].last = 0;
}

// Gives every link in use the list of its flows. A flow without links has its limit at once.
void MaxMin::index_members(std::span<const RuleFlow> flows, std::span<const std::uint32_t> members) {
  used_.clear();
  for (const std::uint32_t member : members) {
    for (const std::uint32_t link : flows[member].links) {
      if (links_[link].last++ == 0) used_.push_back(link);
      links_[link].free.weight += flows[member].weight;
    }
  }
  std::uint32_t total = 0;
  for (const std::uint32_t link : used_) {
    const std::uint32_t count = links_[link].last;
    links_[link].first = links_[link].last = total;
    total += count;
  }
  crossings_.resize(total);
  for (const std::uint32_t member : members) {
    for (const std::uint32_t link : flows[member].links) crossings_[links_[link].last++] = member;
    if (flows[member].links.empty()) freeze(flows[member], member, flows[member].limit);
  }
}

// Lists the flows that have a limit: their own, or a link that no other flow crosses.
void MaxMin::collect_limited(std::span<const RuleFlow> flows, std::span<const std::uint32_t> members) {
  limited_.clear();
  for (const std::uint32_t member : members) {
    BitRate& limit = limits_[member] = flows[member].limit;
    for (const std::uint32_t link : flows[member].links) {
      if (!is_shared(link)) limit = std::min(limit, links_[link].free.room);
    }
    if (limit != RuleFlow::kNoLimit && frozen_[member] == 0) limited_.push_back(member);
  }
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    const Share of_a{limits_[a], flows[a].weight}, of_b{limits_[b], flows[b].weight};
    if (less(of_a, of_b)) return true;
    return !less(of_b, of_a) && a < b;
  };
  if (!std::is_sorted(limited_.begin(), limited_.end(), earlier))
    std::sort(limited_.begin(), limited_.end(), earlier);
}

bool MaxMin::limit_comes_first(const RuleFlow& flow, BitRate limit) const {
  return heap_.empty() || !less(heap_.front().share, Share{limit, flow.weight});
}

void MaxMin::freeze(const RuleFlow& flow, std::uint32_t index, BitRate rate) {
  frozen_[index] = 1;
  rates_[index] = rate;
  for (const std::uint32_t link : flow.links) {
    links_[link].free.room -= rate;
    links_[link].free.weight -= flow.weight;
  }
}

// The flows of the link with the smallest share get that share. It is the same for all, so it is read once.
void MaxMin::freeze_fullest_link(std::span<const RuleFlow> flows) {
  const LinkState link = links_[heap_.front().link];
  for (std::uint32_t i = link.first; i < link.last; ++i) {
    const std::uint32_t index = crossings_[i];
    if (frozen_[index] != 0) continue;
    const Int128 part = static_cast<Int128>(link.free.room) * flows[index].weight / link.free.weight;
    freeze(flows[index], index, static_cast<BitRate>(part));
  }
  drop_old_tops();
}

void MaxMin::push(std::uint32_t link) {
  heap_.push_back({links_[link].free, link});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

// Replaces entries on top whose link has changed since, and removes links whose flows all have their rates.
void MaxMin::drop_old_tops() {
  while (!heap_.empty() && heap_.front().share != links_[heap_.front().link].free) {
    const std::uint32_t link = heap_.front().link;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
    if (links_[link].free.weight > 0) push(link);
  }
}

}  // namespace netsim
