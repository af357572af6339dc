#include "sim/collectives/proof/access_order.h"

#include "sim/collectives/proof/wording.h"

namespace netsim::proof {

std::string AccessOrder::touched(std::uint32_t rank, std::uint32_t block, std::uint32_t index, ChunkAt at,
                                 Cell cell, bool writes) {
  if (!range_.has(cell)) return "";
  const std::size_t number = range_.at(rank, cell);
  Last& last = accesses_[number];
  const Access now{block, index};
  if (!ordered(rank, now, last.write)) return conflict(rank, now, at, last.write);
  if (!writes) {
    add_read(number, now);
    return "";
  }
  if (!ordered(rank, now, last.read)) return conflict(rank, now, at, last.read);
  if (const auto more = more_reads_.find(number); more != more_reads_.end()) {
    for (const Access& read : more->second) {
      if (!ordered(rank, now, read)) return conflict(rank, now, at, read);
    }
    more_reads_.erase(more);
  }
  last = {now, kNone};
  return "";
}

void AccessOrder::add_read(std::size_t number, Access now) {
  Access& read = accesses_[number].read;
  if (read.block == kNone.block || read.block == now.block) {
    read = now;
    return;
  }
  std::vector<Access>& more = more_reads_[number];
  for (Access& other : more) {
    if (other.block != now.block) continue;
    other = now;
    return;
  }
  more.push_back(now);
}

std::string AccessOrder::conflict(std::uint32_t rank, Access now, ChunkAt at, Access earlier) const {
  return place(rank, now.block, now.step) + ": " + text(plan_.step(rank, now.block, now.step)) +
         ": thread block " + number(earlier.block) + " step " + number(earlier.step) + " (" +
         text(plan_.step(rank, earlier.block, earlier.step)) + ") touches " + text(at, 1) +
         " too, and nothing orders the two";
}

}  // namespace netsim::proof
