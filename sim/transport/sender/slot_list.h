// SlotList: slots of a window of packets, in the order in which they were appended. A slot holds its
// neighbours (SlotLink), and is in at most one list.
#pragma once

#include <cstdint>
#include <utility>

namespace netsim {

inline constexpr std::uint32_t kNoSlot = UINT32_MAX;

struct SlotLink {
  std::uint32_t before = kNoSlot, next = kNoSlot;
};

class SlotList {
 public:
  bool empty() const { return head_ == kNoSlot; }
  // Returns the number of slots in the list.
  std::uint32_t size() const { return size_; }
  // Returns the first slot; kNoSlot if the list is empty.
  std::uint32_t front() const { return head_; }

  // The functions below take the slots, whose elements derive from SlotLink.
  template <class Slots>
  void append(Slots& slots, std::uint32_t slot) {
    SlotLink& link = slots[slot];
    link = {tail_, kNoSlot};
    (tail_ == kNoSlot ? head_ : slots[tail_].next) = slot;
    tail_ = slot;
    ++size_;
  }
  // Removes a slot of this list.
  template <class Slots>
  void remove(Slots& slots, std::uint32_t slot) {
    const SlotLink& link = slots[slot];
    (link.before == kNoSlot ? head_ : slots[link.before].next) = link.next;
    (link.next == kNoSlot ? tail_ : slots[link.next].before) = link.before;
    --size_;
  }
  // Puts all slots of the other list before those of this one. The other list is empty then.
  template <class Slots>
  void prepend(Slots& slots, SlotList& other) {
    if (other.empty()) return;
    (head_ == kNoSlot ? tail_ : slots[head_].before) = other.tail_;
    slots[other.tail_].next = head_;
    head_ = other.head_;
    size_ += std::exchange(other, {}).size_;
  }

 private:
  std::uint32_t head_ = kNoSlot, tail_ = kNoSlot, size_ = 0;
};

}  // namespace netsim
