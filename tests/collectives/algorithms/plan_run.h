// PlanRun: executes a plan with numbers, by the rules of sim/collectives/plan.h and nothing else: thread
// blocks in turn, bounded first-in-first-out connections, values that are added. It knows what it has
// counted: messages, bytes, the longest chain of messages that follow from each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/collectives/plan.h"
#include "tests/collectives/aggregation_ends.h"

namespace netsim::test {

class PlanRun {
 public:
  PlanRun(const Plan& plan, std::uint32_t slots) : plan_(plan), slots_(slots) {
    for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) begin(rank);
    for (bool moved = true; moved && error_.empty();) {
      moved = false;
      for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) {
        for (std::uint32_t block = 0; block < plan.blocks(rank); ++block) {
          while (error_.empty() && advance(rank, block)) moved = true;
        }
      }
    }
    if (error_.empty()) check();
  }

  const std::string& error() const { return error_; }
  // Returns the length of the longest chain of messages of which each needs the one before.
  std::uint32_t longest_chain() const { return longest_; }
  std::uint64_t messages() const { return sent_; }

 private:
  struct Value {
    bool valid = false;
    std::uint64_t number = 0;
  };
  struct Message {
    std::vector<Value> values;
    std::uint32_t chain = 0;
  };
  struct Block {
    std::uint32_t index = 0, chain = 0;
    std::vector<std::uint32_t> chains;  // after each step
  };

  // Returns what rank `of` contributes to piece `piece`. In an all_to_all it is the block that the rank sends
  // to the owner of the piece.
  static std::uint64_t contribution(std::uint32_t of, std::uint32_t piece) {
    std::uint64_t x = (std::uint64_t{of} << 32 | piece) + 0x9E37'79B9'7F4A'7C15;
    x = (x ^ x >> 30) * 0xBF58'476D'1CE4'E5B9;
    x = (x ^ x >> 27) * 0x94D0'49BB'1331'11EB;
    return x ^ x >> 31;
  }
  bool owned(ChunkRanks ranks) const { return ranks == ChunkRanks::owner; }
  bool is_one(ChunkRanks ranks, std::uint32_t rank) const {
    return ranks != ChunkRanks::root || rank == plan_.root();
  }
  std::uint32_t part() const { return plan_.chunks() / plan_.ranks(); }

  void begin(std::uint32_t rank) {
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch})
      cells_.emplace_back(chunks_of(plan_, rank, buffer));
    blocks_.emplace_back(plan_.blocks(rank));
    const CollectiveGoal& goal = info_of(plan_.kind()).goal;
    if (!is_one(goal.contributors, rank)) return;
    for (std::uint32_t i = 0; i < chunks_of(plan_, rank, Buffer::input); ++i) {
      const std::uint32_t piece = owned(goal.contributors) ? rank * part() + i : i;
      cell(rank, {Buffer::input, i}) = {true, contribution(rank, piece)};
    }
  }

  // In place, the whole buffer is the larger one of the two.
  Value& cell(std::uint32_t rank, ChunkAt at) {
    const CollectiveGoal& goal = info_of(plan_.kind()).goal;
    if (plan_.in_place() && at.buffer != Buffer::scratch) {
      const bool parts = at.buffer == Buffer::input ? owned(goal.contributors) : owned(goal.holders);
      const bool gathers = owned(goal.contributors);
      at = {gathers ? Buffer::output : Buffer::input, parts ? rank * part() + at.chunk : at.chunk};
    }
    std::vector<Value>& buffer = cells_[3 * std::size_t{rank} + static_cast<std::size_t>(at.buffer)];
    if (at.chunk >= buffer.size()) fail(rank, "a chunk beyond the end of a buffer");
    return at.chunk < buffer.size() ? buffer[at.chunk] : nowhere_;
  }
  Value read(std::uint32_t rank, ChunkAt at) {
    const Value value = cell(rank, at);
    if (!value.valid) fail(rank, "reads a chunk that nobody has written");
    return value;
  }
  void fail(std::uint32_t rank, const std::string& what) {
    if (error_.empty()) error_ = "rank " + std::to_string(rank) + ": " + what;
  }

  bool advance(std::uint32_t rank, std::uint32_t number) {
    Block& block = blocks_[rank][number];
    if (block.index == plan_.steps(rank, number)) return false;
    const Step step = plan_.step(rank, number, block.index);
    if (step.after_block != kNoIndex && blocks_[rank][step.after_block].index <= step.after_step)
      return false;
    std::vector<std::deque<Message>*> from, to;
    if (receives(step.kind)) {
      for (const test::Ends& ends : test::ends_of(plan_, rank, number, step.from, false)) {
        from.push_back(&connections_[ends]);
        if (from.back()->empty()) return false;
      }
    }
    if (sends(step.kind)) {
      for (const test::Ends& ends : test::ends_of(plan_, rank, number, step.to, true)) {
        to.push_back(&connections_[ends]);
        if (to.back()->size() >= (ends.second.first == test::kInFan ? kReductionSlots : slots_)) return false;
      }
      if (step.count > plan_.largest_count()) fail(rank, "a count above the largest one");
    }
    if (step.after_block != kNoIndex)
      block.chain = std::max(block.chain, blocks_[rank][step.after_block].chains[step.after_step]);
    execute(rank, block, step, from, to);
    block.chains.push_back(block.chain);
    ++block.index;
    return true;
  }

  void execute(std::uint32_t rank, Block& block, const Step& step,
               const std::vector<std::deque<Message>*>& from, const std::vector<std::deque<Message>*>& to) {
    Message message;
    message.values.resize(step.count);
    for (std::deque<Message>* one : from) {
      const Message part = one->front();
      one->pop_front();
      block.chain = std::max(block.chain, part.chain);
      if (part.values.size() != step.count) return fail(rank, "another count than was sent");
      for (std::uint32_t i = 0; i < step.count; ++i)
        message.values[i] = {true, message.values[i].number + part.values[i].number};
    }
    for (std::uint32_t i = 0; i < step.count; ++i) {
      Value& value = message.values[i];
      const ChunkAt source{step.source.buffer, step.source.chunk + i};
      const ChunkAt destination{step.destination.buffer, step.destination.chunk + i};
      if (step.kind == Step::Kind::reduce) value = read(rank, destination);
      if (reads_source(step.kind)) value = {true, value.number + read(rank, source).number};
      if (writes_destination(step.kind)) cell(rank, destination) = value;
    }
    message.chain = block.chain + 1;
    for (std::deque<Message>* one : to) {
      ++sent_;
      longest_ = std::max(longest_, message.chain);
      one->push_back(message);
    }
  }

  void check() {
    for (std::uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
      for (std::uint32_t block = 0; block < plan_.blocks(rank); ++block) {
        if (blocks_[rank][block].index < plan_.steps(rank, block))
          fail(rank, "waits forever in thread block " + std::to_string(block) + " step " +
                         std::to_string(blocks_[rank][block].index));
      }
      check_result(rank);
    }
    for (const auto& [connection, messages] : connections_) {
      if (!messages.empty()) fail(connection.first.first, "sends what nobody receives");
    }
  }
  void check_result(std::uint32_t rank) {
    const CollectiveGoal& goal = info_of(plan_.kind()).goal;
    if (!is_one(goal.holders, rank)) return;
    for (std::uint32_t i = 0; i < chunks_of(plan_, rank, Buffer::output) && error_.empty(); ++i) {
      const Value value = cell(rank, {Buffer::output, i});
      if (!value.valid || value.number != expected(rank, i))
        fail(rank, "has something wrong in chunk " + std::to_string(i) + " at the end");
    }
  }
  std::uint64_t expected(std::uint32_t rank, std::uint32_t chunk) const {
    const CollectiveGoal& goal = info_of(plan_.kind()).goal;
    const std::uint32_t piece = owned(goal.holders) ? rank * part() + chunk : chunk;
    switch (goal.contributors) {
      case ChunkRanks::owner:
        return contribution(piece / part(), piece);
      case ChunkRanks::root:
        return contribution(plan_.root(), piece);
      case ChunkRanks::source:
        return contribution(chunk / part(), rank * part() + chunk % part());
      default:
        break;
    }
    std::uint64_t sum = 0;
    for (std::uint32_t of = 0; of < plan_.ranks(); ++of) sum += contribution(of, piece);
    return sum;
  }

  const Plan& plan_;
  std::uint32_t slots_;
  std::vector<std::vector<Value>> cells_;  // by rank and buffer
  std::vector<std::vector<Block>> blocks_;
  std::map<test::Ends, std::deque<Message>> connections_;
  Value nowhere_;
  std::string error_;
  std::uint32_t longest_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace netsim::test
