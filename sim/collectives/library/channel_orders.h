// ChannelOrders: the order of a plan's ranks on each channel of a group.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/collectives/library/communicator_layout.h"
#include "sim/core/index.h"

namespace netsim {

// Returns the index in the group of rank `rank` in an order. An empty order maps each rank to the same index.
constexpr std::uint32_t place_of(std::span<const std::uint32_t> order, std::uint32_t rank) {
  return order.empty() ? rank : order[rank];
}
// Returns the rank of the member with index `place` in the group; the inverse of place_of().
std::uint32_t rank_at(std::span<const std::uint32_t> order, std::uint32_t place);

// ChannelOrders: the order of a plan's ranks on each channel of a group. As in NCCL, channels take the rings
// in turn. The first half of the channels takes the chains of the first tree.
class ChannelOrders {
 public:
  // All channels use the order of the group.
  ChannelOrders() = default;
  // Holds the orders of `channels` channels of a group from `first` on; channel 0 here is the group's channel
  // `first`. `layout` must outlive this. `root` is the member whose rank equals its index on all channels;
  // kNoIndex: none.
  ChannelOrders(const CommunicatorLayout& layout, RankOrder order, std::uint32_t channels,
                std::uint32_t first = 0, std::uint32_t root = kNoIndex);

  // Returns the number of orders that the channels use in turn.
  std::uint32_t count() const { return orders_.empty() ? 1 : static_cast<std::uint32_t>(orders_.size()); }

  // Returns the index in the group of each rank. Empty: rank r has index r.
  std::span<const std::uint32_t> of(std::uint32_t channel) const {
    if (orders_.empty()) return {};
    channel += first_;
    const std::uint32_t tree = channel < half_ ? 0 : 1;
    return order(tree * each_ + (channel - tree * half_) % each_);
  }

  // Returns the endpoint's number of a channel (TransferTraits::channel). Channels that may join the same two
  // members have consecutive numbers, so that they use different queue pairs.
  std::uint32_t number(std::uint32_t channel) const {
    channel += first_;
    if (orders_.empty()) return channel;
    const std::uint32_t tree = channel < half_ ? 0 : 1;
    const std::uint32_t in_tree = channel - tree * half_;
    return (in_tree % each_ * channels_each_ + in_tree / each_) * trees() + tree;
  }
  // Returns the difference of the numbers of consecutive channels of an order.
  std::uint32_t number_step() const { return trees(); }

  // Channels: the channels first, first + step, ...
  struct Channels {
    std::uint32_t first = 0, step = 1, count = 0;
    std::span<const std::uint32_t> order;
  };
  // Returns the sets of channels, among the first `channels`, that share an order.
  std::vector<Channels> sets(std::uint32_t channels) const;

 private:
  std::uint32_t trees() const { return half_ == kNoIndex ? 1 : 2; }
  std::span<const std::uint32_t> order(std::uint32_t number) const {
    if (rooted_ == nullptr) return orders_[number];
    const std::vector<std::uint32_t>& places = rooted_->ring_places[number];
    const auto ranks = static_cast<std::uint32_t>(places.size());
    const std::uint32_t ahead = (places[root_] + ranks - root_) % ranks;
    return std::span(rooted_->rings_twice[number]).subspan(ahead, ranks);
  }

  std::span<const std::vector<std::uint32_t>> orders_;
  std::uint32_t first_ = 0;
  std::uint32_t each_ = 1;           // number of orders of a tree, or of all rings
  std::uint32_t channels_each_ = 1;  // largest number of channels of an order
  std::uint32_t half_ = kNoIndex;    // first channel of the second tree
  const CommunicatorLayout* rooted_ = nullptr;
  std::uint32_t root_ = kNoIndex;
};

}  // namespace netsim
