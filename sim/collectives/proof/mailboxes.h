// Mailboxes: the messages in flight while the proof executes a schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/collectives/proof/rank_sets.h"
#include "sim/core/index.h"

namespace netsim::proof {

// Messages in flight, FIFO per (source, destination, thread block): one list per thread block that receives,
// in order of arrival. Lists are short, because ranks advance about evenly; finding a source in them is a
// search.
struct Message {
  std::uint32_t source = 0;
  std::uint32_t chunk = 0;
  RankSets::Set set;
  std::uint32_t next = kNoIndex;
};

class Mailboxes {
 public:
  explicit Mailboxes(std::size_t receivers) : lists_(receivers) {}

  void put(std::size_t receiver, std::uint32_t source, std::uint32_t chunk, RankSets::Set set) {
    const std::uint32_t slot = allocate();
    messages_[slot] = {source, chunk, set, kNoIndex};
    List& list = lists_[receiver];
    (list.last == kNoIndex ? list.first : messages_[list.last].next) = slot;
    list.last = slot;
  }
  // The oldest message from `source`; false if there is none.
  bool take(std::size_t receiver, std::uint32_t source, Message& message) {
    List& list = lists_[receiver];
    std::uint32_t before = kNoIndex, slot = list.first;
    while (slot != kNoIndex && messages_[slot].source != source) {
      before = slot;
      slot = messages_[slot].next;
    }
    if (slot == kNoIndex) return false;
    message = messages_[slot];
    (before == kNoIndex ? list.first : messages_[before].next) = message.next;
    if (list.last == slot) list.last = before;
    free_.push_back(slot);
    return true;
  }
  // The oldest message to `receiver`, or nullptr.
  const Message* first(std::size_t receiver) const {
    const std::uint32_t slot = lists_[receiver].first;
    return slot == kNoIndex ? nullptr : &messages_[slot];
  }

 private:
  struct List {
    std::uint32_t first = kNoIndex, last = kNoIndex;
  };
  std::uint32_t allocate() {
    if (free_.empty()) {
      messages_.emplace_back();
      return static_cast<std::uint32_t>(messages_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  std::vector<List> lists_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_;
};

}  // namespace netsim::proof
