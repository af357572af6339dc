#include "sim/network/aggregation/aggregator_table.h"

#include <algorithm>
#include <bit>

#include "sim/core/errors.h"
#include "sim/core/random.h"

namespace netsim {

AggregatorTable::Outcome AggregatorTable::add(std::uint32_t index, Key key, std::uint64_t all, bool again,
                                              Contribution& packet) {
  NETSIM_CHECK(packet.workers != 0 && (packet.workers & ~all) == 0, "a packet of no worker below the switch");
  Aggregator* const held = aggregators_.empty() ? nullptr : &aggregators_[index];
  const bool is_own = held != nullptr && held->sum.workers != 0 && held->key == key;
  if (again) return flush(is_own ? held : nullptr, packet);
  if (packet.workers == all && !is_own) return Outcome::passes;
  if (held == nullptr || (held->sum.workers != 0 && !is_own)) {
    packet.collided = true;
    return Outcome::collides;
  }
  if (!is_own) {
    *held = {key, packet};
    most_used_ = std::max(most_used_, ++used_);
    return Outcome::joins;
  }
  Contribution& sum = held->sum;
  // The packet's data is in the aggregator already; the server drops what it has twice.
  if ((sum.workers & packet.workers) != 0) return Outcome::passes;
  sum.workers |= packet.workers;
  sum.value += packet.value;
  sum.marked = sum.marked || packet.marked;
  sum.collided = sum.collided || packet.collided;
  if (sum.workers != all) return Outcome::joins;
  packet = sum;
  return Outcome::completes;
}

// Handles a packet that was sent again. Its own aggregator's sum goes on with it, or in its place if the
// packet is part of it. A sum that has only some of the packet's workers is dropped; they send again.
AggregatorTable::Outcome AggregatorTable::flush(Aggregator* held, Contribution& packet) {
  if (held == nullptr) return Outcome::flushes;
  const Contribution sum = held->sum;
  clear(*held);
  packet.marked = packet.marked || sum.marked;
  packet.collided = packet.collided || sum.collided;
  if ((sum.workers & packet.workers) == 0) {
    packet.workers |= sum.workers;
    packet.value += sum.value;
  } else if ((packet.workers & ~sum.workers) == 0) {
    packet.workers = sum.workers;
    packet.value = sum.value;
  }
  return Outcome::flushes;
}

void AggregatorTable::free(std::uint32_t index, Key key) {
  if (aggregators_.empty()) return;
  Aggregator& held = aggregators_[index];
  if (held.sum.workers != 0 && held.key == key) clear(held);
}

void AggregatorTable::clear(Aggregator& aggregator) {
  aggregator.sum = {};
  --used_;
}

AggregatorIndices::AggregatorIndices(std::uint64_t seed, std::uint32_t window, std::uint32_t first,
                                     std::uint32_t count)
    : seed_(seed),
      window_(window),
      mask_(4 * std::bit_ceil(window) - 1),
      first_(first),
      count_(count),
      by_packet_(std::size_t{mask_} + 1, 0),
      used_(count, false),
      unused_(count) {
  if (count == 0) return;
  for (std::uint32_t psn = 0; psn < window; ++psn)
    by_packet_[psn] = unused_ > 0 ? unused_index() : by_packet_[psn - count];
}

void AggregatorIndices::choose_next(std::uint32_t psn, bool collided) {
  if (count_ == 0) return;
  by_packet_[(psn + window_) & mask_] = collided && unused_ > 0 ? unused_index() : by_packet_[psn & mask_];
}

// Returns an index that the session has not used; there must be one. It is found by hashing until one fits,
// as ATP's workers do. After many hashes the next unused index is taken.
std::uint32_t AggregatorIndices::unused_index() {
  constexpr std::uint32_t kHashes = 16;
  std::uint32_t index = 0;
  for (std::uint32_t i = 0; i < kHashes; ++i) {
    index = static_cast<std::uint32_t>(hash_combine(seed_, tried_++) % count_);
    if (!used_[index]) break;
  }
  while (used_[index]) index = index + 1 == count_ ? 0 : index + 1;
  used_[index] = true;
  --unused_;
  return index;
}

}  // namespace netsim
