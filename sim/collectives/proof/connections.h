// Connections: the messages in flight while the proof executes a plan. They are first in, first out from each
// thread block to each other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/collectives/proof/goal.h"
#include "sim/core/index.h"

namespace netsim::proof {

// Thread blocks are given by their number in Blocks. Only connections that hold a message are stored. The
// first one of each receiving thread block lies with it. Further ones, which few thread blocks have, lie in a
// hash table with open addressing.
class Connections {
 public:
  explicit Connections(std::uint32_t blocks) : first_(blocks), more_(kSmallest) {}

  // Returns the number of messages on a connection that have not been taken.
  std::uint32_t waiting(std::uint32_t from, std::uint32_t to) const {
    const Queue& first = first_[to];
    if (first.from == from && first.count != 0) [[likely]]
      return first.count;
    return used_ == 0 ? 0 : more_[find(key(from, to))].queue.count;
  }
  void put(std::uint32_t from, std::uint32_t to, const std::vector<Value>& values, std::uint32_t count) {
    const std::uint32_t message = allocate(values, count);
    Queue& queue = queue_for(from, to);
    queue.from = from;
    (queue.count++ == 0 ? queue.first : messages_[queue.last].next) = message;
    queue.last = message;
  }
  // Takes the oldest message of a connection, where waiting() is above 0. Returns its number of chunks.
  std::uint32_t take(std::uint32_t from, std::uint32_t to, std::vector<Value>& values) {
    Queue& first = first_[to];
    if (first.from == from && first.count != 0) [[likely]]
      return pop(first, values);
    const std::size_t at = find(key(from, to));
    const std::uint32_t count = pop(more_[at].queue, values);
    if (more_[at].queue.count == 0) erase(at);
    return count;
  }
  // Finds the connection with waiting messages that has the smallest receiver. Returns false if there is
  // none.
  bool first_waiting(std::uint32_t& from, std::uint32_t& to) const {
    std::uint64_t least = UINT64_MAX;
    for (std::uint32_t i = 0; i < first_.size() && least == UINT64_MAX; ++i) {
      if (first_[i].count != 0) least = key(first_[i].from, i);
    }
    for (const Entry& entry : more_) {
      if (entry.queue.count != 0) least = std::min(least, entry.key);
    }
    to = static_cast<std::uint32_t>(least >> 32);
    from = static_cast<std::uint32_t>(least);
    return least != UINT64_MAX;
  }

 private:
  static constexpr std::size_t kSmallest = 64;
  struct Queue {
    std::uint32_t from = 0;
    std::uint32_t first = 0, last = 0;  // indices in messages_
    std::uint32_t count = 0;            // 0: the entry is free
  };
  struct Entry {
    std::uint64_t key = 0;
    Queue queue;
  };
  struct Message {
    Value value;                    // value of the first chunk
    std::uint32_t more = kNoIndex;  // index in lists_ of all chunks' values, for a message of several
    std::uint32_t next = kNoIndex;
  };

  static std::uint64_t key(std::uint32_t from, std::uint32_t to) {
    return static_cast<std::uint64_t>(to) << 32 | from;
  }
  std::size_t home(std::uint64_t key) const {
    const std::uint64_t mixed = (key ^ key >> 29) * 0x9e3779b97f4a7c15U;
    return static_cast<std::size_t>(mixed >> 20) & (more_.size() - 1);
  }
  std::size_t after(std::size_t at) const { return (at + 1) & (more_.size() - 1); }
  // Returns the position of the key in more_, or the free one where it belongs.
  std::size_t find(std::uint64_t key) const {
    std::size_t at = home(key);
    while (more_[at].queue.count != 0 && more_[at].key != key) at = after(at);
    return at;
  }
  Queue& queue_for(std::uint32_t from, std::uint32_t to) {
    Queue& first = first_[to];
    if (first.from == from && first.count != 0) return first;
    if (first.count == 0 && used_ == 0) return first;
    if (2 * (used_ + 1) > more_.size()) grow();
    Entry& entry = more_[find(key(from, to))];
    if (entry.queue.count != 0) return entry.queue;
    if (first.count == 0) return first;
    ++used_;
    entry.key = key(from, to);
    return entry.queue;
  }
  // Removes an entry. Later entries move up, so that find() meets no gaps.
  void erase(std::size_t gap) {
    --used_;
    for (std::size_t at = after(gap); more_[at].queue.count != 0; at = after(at)) {
      const std::size_t distance = (at - home(more_[at].key)) & (more_.size() - 1);
      if (distance < ((at - gap) & (more_.size() - 1))) continue;
      more_[gap] = more_[at];
      gap = at;
    }
    more_[gap].queue.count = 0;
  }
  void grow() {
    std::vector<Entry> old(2 * more_.size());
    old.swap(more_);
    for (const Entry& entry : old) {
      if (entry.queue.count != 0) more_[find(entry.key)] = entry;
    }
  }
  static std::uint32_t reuse_or_add(std::vector<std::uint32_t>& free, std::size_t size) {
    if (free.empty()) return static_cast<std::uint32_t>(size);
    const std::uint32_t index = free.back();
    free.pop_back();
    return index;
  }
  std::uint32_t allocate(const std::vector<Value>& values, std::uint32_t count) {
    const std::uint32_t index = reuse_or_add(free_, messages_.size());
    if (index == messages_.size()) messages_.emplace_back();
    Message& message = messages_[index];
    message.value = values.front();
    message.more = kNoIndex;
    if (count == 1) return index;
    message.more = reuse_or_add(free_lists_, lists_.size());
    if (message.more == lists_.size()) lists_.emplace_back();
    lists_[message.more].assign(values.begin(), values.begin() + count);
    return index;
  }
  std::uint32_t pop(Queue& queue, std::vector<Value>& values) {
    const Message& message = messages_[queue.first];
    free_.push_back(queue.first);
    queue.first = message.next;
    --queue.count;
    if (message.more == kNoIndex) {
      values.front() = message.value;
      return 1;
    }
    values.swap(lists_[message.more]);
    free_lists_.push_back(message.more);
    return static_cast<std::uint32_t>(values.size());
  }

  std::vector<Queue> first_;  // by receiver
  std::vector<Entry> more_;   // the size is 2^n; at most half of the entries are used
  std::size_t used_ = 0;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_;
  std::vector<std::vector<Value>> lists_;
  std::vector<std::uint32_t> free_lists_;
};

}  // namespace netsim::proof
