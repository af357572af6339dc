// OperationTable: maps job and communication of a GPU's operation to its slot in the executor's arena. A GPU
// has a few collectives at a time, but may have a hundred thousand messages of a flow list. It is a hash
// table with linear probing and entries of 16 bytes. It allocates only to grow and is never iterated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/core/index.h"
#include "sim/core/random.h"

namespace netsim {

class OperationTable {
 public:
  std::size_t size() const { return size_; }
  // Returns the slot; kNoIndex if there is none.
  std::uint32_t find(std::uint32_t job, std::uint64_t communication) const {
    if (size_ == 0) return kNoIndex;
    return entries_[place(job, communication)].slot;
  }
  // Adds an operation that is not in the table; slot < kNoIndex.
  void insert(std::uint32_t job, std::uint64_t communication, std::uint32_t slot) {
    if (2 * (size_ + 1) > entries_.size()) grow();
    entries_[place(job, communication)] = {communication, job, slot};
    ++size_;
  }
  // Removes an operation that is in the table. Later entries that its presence displaced move up, so that no
  // search ends too early.
  void erase(std::uint32_t job, std::uint64_t communication) {
    const std::size_t mask = entries_.size() - 1;
    std::size_t hole = place(job, communication);
    for (std::size_t at = (hole + 1) & mask; entries_[at].slot != kNoIndex; at = (at + 1) & mask) {
      const std::size_t home = hash(entries_[at].job, entries_[at].communication) & mask;
      // The entry would move before its own hash position.
      if (((at - home) & mask) < ((at - hole) & mask)) continue;
      entries_[hole] = entries_[at];
      hole = at;
    }
    entries_[hole].slot = kNoIndex;
    --size_;
  }

 private:
  struct Entry {
    std::uint64_t communication = 0;
    std::uint32_t job = 0;
    std::uint32_t slot = kNoIndex;  // kNoIndex: the entry is free
  };
  static_assert(sizeof(Entry) == 16);

  static std::size_t hash(std::uint32_t job, std::uint64_t communication) {
    return static_cast<std::size_t>(mix64(communication + job * 0x9e3779b97f4a7c15ULL));
  }

  // Returns the position of the operation, or the free entry where it belongs.
  std::size_t place(std::uint32_t job, std::uint64_t communication) const {
    const std::size_t mask = entries_.size() - 1;
    std::size_t at = hash(job, communication) & mask;
    while (entries_[at].slot != kNoIndex &&
           (entries_[at].communication != communication || entries_[at].job != job)) {
      at = (at + 1) & mask;
    }
    return at;
  }

  void grow() {
    std::vector<Entry> before(entries_.empty() ? 4 : 2 * entries_.size());
    std::swap(before, entries_);
    for (const Entry& entry : before) {
      if (entry.slot != kNoIndex) entries_[place(entry.job, entry.communication)] = entry;
    }
  }

  std::vector<Entry> entries_;  // the size is a power of two; at most half of the entries are used
  std::size_t size_ = 0;
};

}  // namespace netsim
