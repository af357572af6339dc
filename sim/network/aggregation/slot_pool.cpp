#include "sim/network/aggregation/slot_pool.h"

#include <bit>

#include "sim/core/errors.h"

namespace netsim {

SlotPool::SlotPool(std::uint32_t slots, std::uint32_t members)
    : slots_(slots),
      shift_(static_cast<std::uint32_t>(std::countr_zero(slots))),
      members_(members),
      words_((members + 63) / 64),
      sums_(std::size_t{2} * slots),
      seen_(std::size_t{2} * slots * words_) {
  NETSIM_CHECK(std::has_single_bit(slots), "a pool whose number of slots is no power of two");
}

SlotPool::Arrival SlotPool::add(std::uint32_t member, Addend& addend) {
  const std::uint32_t psn = addend.psn;
  const std::uint32_t slot = psn & (slots_ - 1), version = psn >> shift_ & 1U;
  Sum& sum = sums_[version * slots_ + slot];
  const std::uint64_t bit = std::uint64_t{1} << (member & 63U);
  std::uint64_t& seen = seen_[(std::size_t{version} * slots_ + slot) * words_ + member / 64];
  if ((seen & bit) != 0) {
    NETSIM_CHECK(sum.psn == psn, "a packet came again after its slot was used for another one");
    if (sum.packets < members_) return Arrival::absorbed;
    addend.value = sum.value;
    return Arrival::repeats;
  }
  seen |= bit;
  seen_[(std::size_t{1 - version} * slots_ + slot) * words_ + member / 64] &= ~bit;
  if (sum.packets == 0 || sum.packets == members_) sum = {psn, 0, 0};
  NETSIM_CHECK(sum.psn == psn, "packets of different numbers are added up");
  sum.value += addend.value;
  if (++sum.packets < members_) return Arrival::waits;
  addend.value = sum.value;
  return Arrival::completes;
}

}  // namespace netsim
