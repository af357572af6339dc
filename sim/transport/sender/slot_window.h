// SlotWindow: the packets that a member of an aggregation group with a pool of slots may send (slot_pool.h).
// A slot's next packet may be sent when the sum of the one before is there. So each slot sends at its own
// pace, and one that has lost a packet does not hold back the others.
//
// A packet without a sum is sent again after a timeout. Waiting slots are in order of sending. Timeouts only
// become longer, so that is the order of the timeouts too.
//
// A pool with messages (AggregationPool::message) has the rules of go-back-N instead. A sum after a gap is
// dropped, and all packets from the gap on are sent again. The window moves when all sums of a message are
// there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/core/units.h"
#include "sim/network/aggregation/aggregation_pool.h"
#include "sim/transport/sender/pool_timeout.h"
#include "sim/transport/sender/pool_window.h"
#include "sim/transport/sender/slot_list.h"

namespace netsim {

class SlotWindow final : public PoolWindow {
 public:
  // `key` is as in PoolWindow.
  SlotWindow(const AggregationPool& pool, std::uint32_t key)
      : PoolWindow(key),
        mask_(pool.slots - 1),
        limit_(pool.slots),
        pool_(pool),
        timeout_(pool),
        slots_(pool.slots) {
    for (std::uint32_t slot = 0; slot < pool.slots; ++slot) slots_[slot].psn = slot;
  }

  // Returns whether packets that are lost are sent again.
  bool repairs() const override { return !pool_.leaves_unfinished(); }

  // Adds the packets up to `end` - 1 to those that are to be sent.
  void extend(std::uint32_t end) override {
    if (waiting_.empty() && ready_.empty()) {
      timeout_.begin_anew();
      begin_ = first_;
    }
    const std::uint32_t begin = end_;
    end_ = end;
    if (pool_.message != 0) return release();
    for (std::uint32_t psn = begin; psn != end && psn - begin <= mask_; ++psn) {
      if (slots_[psn & mask_].psn == psn) append(Place::ready, psn & mask_);
    }
  }
  bool has_ready() const override { return !ready_.empty(); }
  // Returns the packet to be sent next. There must be one.
  std::uint32_t next() const override { return slots_[ready_.front()].psn; }
  // Called when that packet is sent. Returns whether it was sent before.
  bool take(Time now) override {
    const std::uint32_t slot = ready_.front();
    Slot& s = slots_[slot];
    remove(slot);
    s.due = repairs() ? now + timeout_.wait() : kNever;
    append(Place::waiting, slot);
    const bool again = s.sent;
    s.sent = true;
    return again;
  }
  // Called when the sum of a packet has arrived. Returns false if it had arrived before, or is dropped.
  bool take_sum(std::uint32_t psn, bool /*marked*/) override {
    if (pool_.message != 0) return take_in_order(psn);
    const std::uint32_t slot = psn & mask_;
    Slot& s = slots_[slot];
    if (s.psn != psn || s.place == Place::idle) return false;
    remove(slot);
    s.psn += mask_ + 1;
    s.sent = false;
    timeout_.answered();
    if (static_cast<std::int32_t>(s.psn - end_) < 0) append(Place::ready, slot);
    return true;
  }
  // Returns whether the sum of a packet has arrived, which is at most one pool before the slot's next one.
  bool has_sum(std::uint32_t psn) const override { return slots_[psn & mask_].psn != psn; }

  // Returns when the oldest packet without a sum must be sent again; kNever if there is none.
  Time due() const override { return waiting_.empty() ? kNever : slots_[waiting_.front()].due; }
  // Makes all packets that are due be sent again, and returns their number.
  std::uint32_t time_out(Time now) override {
    if (pool_.message != 0) {
      if (due() > now) return 0;
      timeout_.timed_out();
      return go_back();
    }
    std::uint32_t count = 0;
    while (due() <= now) {
      const std::uint32_t slot = waiting_.front();
      remove(slot);
      append(Place::ready, slot);
      ++count;
      timeout_.timed_out();
    }
    return count;
  }
  std::uint64_t fruitless_rounds() const override {
    return timeout_.in_a_row() / (pool_.message != 0 ? 1 : std::max(1U, waiting_.size() + ready_.size()));
  }

 private:
  enum class Place : std::uint8_t { ready, waiting, idle };  // idle: there is no packet to be sent
  struct Slot : SlotLink {
    std::uint32_t psn = 0;  // its oldest packet without a sum
    bool sent = false;      // whether that packet was sent before
    Time due = 0;
    Place place = Place::idle;
  };

  SlotList& list_of(Place place) { return place == Place::ready ? ready_ : waiting_; }
  void append(Place place, std::uint32_t slot) {
    slots_[slot].place = place;
    list_of(place).append(slots_, slot);
  }
  void remove(std::uint32_t slot) {
    list_of(slots_[slot].place).remove(slots_, slot);
    slots_[slot].place = Place::idle;
  }
  // The following functions serve pools with messages. Their packets are sent in order, so those that wait
  // have lower numbers than those that are ready.
  bool take_in_order(std::uint32_t psn) {
    if (psn != first_) {
      // A receiver reports each gap once.
      if (static_cast<std::int32_t>(psn - first_) > 0 && !went_back_) went_back_ = go_back() > 0;
      return false;
    }
    const std::uint32_t slot = psn & mask_;
    remove(slot);
    slots_[slot].psn += mask_ + 1;
    slots_[slot].sent = false;
    timeout_.answered();
    went_back_ = false;
    ++first_;
    if ((first_ - begin_) % pool_.message == 0 || first_ == end_) {
      limit_ = first_ + mask_ + 1;
      release();
    }
    return true;
  }
  // Makes the packets below the window's limit ready.
  void release() {
    for (; released_ != end_ && released_ != limit_; ++released_) append(Place::ready, released_ & mask_);
  }
  // Makes all packets without a sum ready again. Returns 1, or 0 if none has been sent.
  std::uint32_t go_back() {
    if (waiting_.empty()) return 0;
    for (std::uint32_t slot = waiting_.front(); slot != kNoSlot; slot = slots_[slot].next)
      slots_[slot].place = Place::ready;
    ready_.prepend(slots_, waiting_);
    return 1;
  }

  std::uint32_t mask_, end_ = 0;
  // Used with messages: the oldest packet without a sum, the first one that has not been made ready, and the
  // first one beyond the window.
  std::uint32_t first_ = 0, released_ = 0, limit_;
  std::uint32_t begin_ = 0;  // with messages: the first packet since nothing was in flight
  bool went_back_ = false;   // whether the gap at first_ was reported
  AggregationPool pool_;
  PoolTimeout timeout_;
  SlotList ready_, waiting_;
  std::vector<Slot> slots_;
};

}  // namespace netsim
