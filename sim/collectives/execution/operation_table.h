// OperationTable: which slot of the executor's arena an operation of one GPU is in, by its job and
// communication. A GPU has a few collectives at a time, but may have a hundred thousand messages of a flow
// list: a hash table with linear probing, of 16 bytes an entry, that allocates only to grow and is looked up,
// never iterated.
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
  // kNoIndex if it is not there.
  std::uint32_t find(std::uint32_t job, std::uint64_t communication) const {
    if (size_ == 0) return kNoIndex;
    return entries_[place(job, communication)].slot;
  }
  // Not there yet; slot < kNoIndex.
  void insert(std::uint32_t job, std::uint64_t communication, std::uint32_t slot) {
    if (2 * (size_ + 1) > entries_.size()) grow();
    entries_[place(job, communication)] = {communication, job, slot};
    ++size_;
  }
  // Of an operation that is in the table. Entries behind it that were pushed along move up, so that no search
  // ends too early.
  void erase(std::uint32_t job, std::uint64_t communication) {
    const std::size_t mask = entries_.size() - 1;
    std::size_t hole = place(job, communication);
    for (std::size_t at = (hole + 1) & mask; entries_[at].slot != kNoIndex; at = (at + 1) & mask) {
      const std::size_t home = hash(entries_[at].job, entries_[at].communication) & mask;
      if (((at - home) & mask) < ((at - hole) & mask)) continue;  // it would come to lie before its home
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
    std::uint32_t slot = kNoIndex;  // kNoIndex: free
  };
  static_assert(sizeof(Entry) == 16);

  static std::size_t hash(std::uint32_t job, std::uint64_t communication) {
    return static_cast<std::size_t>(mix64(communication + job * 0x9e3779b97f4a7c15ULL));
  }

  // Where it is, or the free entry where it would be.
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

  std::vector<Entry> entries_;  // a power of two, at most half of them taken
  std::size_t size_ = 0;
};

}  // namespace netsim
