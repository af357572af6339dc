#include "sim/collectives/library/channel_orders.h"

#include <algorithm>

namespace netsim {

std::uint32_t rank_at(std::span<const std::uint32_t> order, std::uint32_t place) {
  if (order.empty()) return place;
  return static_cast<std::uint32_t>(std::find(order.begin(), order.end(), place) - order.begin());
}

ChannelOrders::ChannelOrders(const CommunicatorLayout& layout, RankOrder order, std::uint32_t channels,
                             std::uint32_t first, std::uint32_t root)
    : first_(first) {
  order = layout.order(order, root != kNoIndex);
  if (order == RankOrder::rings) orders_ = layout.rings;
  if (order == RankOrder::chains) orders_ = layout.chains;
  if (orders_.empty()) return;
  each_ = static_cast<std::uint32_t>(orders_.size());
  if (order == RankOrder::chains) {
    each_ /= 2;
    half_ = (channels + 1) / 2;
  }
  channels_each_ = (std::min(channels, half_) + each_ - 1) / each_;
  if (order != RankOrder::rings || root == kNoIndex) return;
  rooted_ = &layout;
  root_ = root;
}

std::vector<ChannelOrders::Channels> ChannelOrders::sets(std::uint32_t channels) const {
  if (orders_.empty()) return {{0, 1, channels, {}}};
  std::vector<Channels> sets;
  for (std::uint32_t i = 0; i < orders_.size(); ++i) {
    const bool second = i >= each_;
    // `begin` and `end` count channels of the group.
    std::uint32_t begin = second ? half_ + i - each_ : i;
    const std::uint32_t end = second ? first_ + channels : std::min(first_ + channels, half_);
    if (begin < first_) begin += (first_ - begin + each_ - 1) / each_ * each_;
    if (begin >= end) continue;
    sets.push_back({begin - first_, each_, (end - begin + each_ - 1) / each_, this->order(i)});
  }
  return sets;
}

}  // namespace netsim
