#include "sim/collectives/proof/access_order.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "sim/collectives/proof/wording.h"

namespace netsim::proof {

AccessNumbers::AccessNumbers(const Plan& plan, const Blocks& blocks) {
  std::uint32_t most_blocks = 0, most_steps = 1;
  for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    most_blocks = std::max(most_blocks, blocks.of(rank));
    for (std::uint32_t block = 0; block < blocks.of(rank); ++block)
      most_steps = std::max(most_steps, plan.steps(rank, block));
  }
  step_bits_ = static_cast<std::uint32_t>(std::bit_width(most_steps - 1));
  narrow_ = std::uint64_t{most_blocks} << step_bits_ <= UINT32_MAX;
}

AccessOrder::AccessOrder(const Plan& plan, const CellRange& range, const AccessNumbers& numbers,
                         StepOrder& order)
    : plan_(plan),
      range_(range),
      numbers_(numbers),
      order_(order),
      narrow_(numbers.are_narrow() ? range.size() : 0, {kNoIndex, kNoIndex}),
      wide_(numbers.are_narrow() ? 0 : range.size()) {}

std::string AccessOrder::touched(std::uint32_t rank, std::uint32_t block, std::uint32_t index,
                                 const Step& step, ChunkAt at, Cell cell, bool writes) {
  if (!range_.has(cell)) return "";
  const std::size_t number = range_.at(rank, cell);
  const Last before = last(number);
  const Now now{rank, {block, index}, step, at};
  if (!ordered(now, before.write)) return conflict(now, before.write);
  if (!writes) {
    add_read(number, before, now.access);
    return "";
  }
  if (before.read.block != kNoIndex) {
    if (!ordered(now, before.read)) return conflict(now, before.read);
    if (const auto more = more_reads_.find(number); more != more_reads_.end()) {
      take_last_ones(more->second.all);
      for (const Access& read : more->second.all) {
        if (!ordered(now, read)) return conflict(now, read);
      }
      more_reads_.erase(more);
    }
  }
  set_last(number, {now.access, {}});
  return "";
}

void AccessOrder::add_read(std::size_t number, Last last, Access now) {
  if (last.read.block == kNoIndex || last.read.block == now.block) {
    last.read = now;
    set_last(number, last);
    return;
  }
  Reads& more = more_reads_[number];
  if (!more.all.empty() && more.all.back().block == now.block) {
    more.all.back() = now;
    return;
  }
  more.all.push_back(now);
  if (more.all.size() < more.next_look) return;
  take_last_ones(more.all);
  more.next_look = std::max(more.next_look, 2 * more.all.size());
}

// Keeps the last read of each thread block, at the position of its first one.
void AccessOrder::take_last_ones(std::vector<Access>& reads) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> by_block;  // thread block and position
  by_block.reserve(reads.size());
  for (const Access& read : reads) by_block.emplace_back(read.block, by_block.size());
  std::sort(by_block.begin(), by_block.end());
  std::vector<Access> left(reads.size());
  for (std::size_t first = 0, end = 0; first < by_block.size(); first = end) {
    while (end < by_block.size() && by_block[end].first == by_block[first].first) ++end;
    left[by_block[first].second] = reads[by_block[end - 1].second];
  }
  std::erase(left, Access());
  reads = std::move(left);
}

std::string AccessOrder::conflict(const Now& now, Access earlier) const {
  const auto [block, index] = now.access;
  return place(now.rank, block, index) + ": " + text(now.step) + ": thread block " + number(earlier.block) +
         " step " + number(earlier.step) + " (" + text(plan_.step(now.rank, earlier.block, earlier.step)) +
         ") touches " + text(now.at, 1) + " too, and nothing orders the two";
}

}  // namespace netsim::proof
