// A plan written out as tables, so that tests can damage it or write one by hand.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/collectives/plan.h"

namespace netsim {

// Steps of `count` chunks from these places on.
inline Step send(ChunkAt source, Partner to, std::uint32_t count = 1) {
  return {
      .kind = Step::Kind::send, .source = source, .destination = {}, .count = count, .to = to, .from = {}};
}
inline Step receive(ChunkAt destination, Partner from, std::uint32_t count = 1) {
  return {.kind = Step::Kind::receive,
          .source = {},
          .destination = destination,
          .count = count,
          .to = {},
          .from = from};
}
inline Step copy(ChunkAt source, ChunkAt destination, std::uint32_t count = 1) {
  return {.kind = Step::Kind::copy,
          .source = source,
          .destination = destination,
          .count = count,
          .to = {},
          .from = {}};
}
inline Step reduce(ChunkAt source, ChunkAt destination, std::uint32_t count = 1) {
  Step step = copy(source, destination, count);
  step.kind = Step::Kind::reduce;
  return step;
}
// Adds arriving data to the data that is there.
inline Step receive_reduce(ChunkAt at, Partner from, std::uint32_t count = 1) {
  Step step = receive(at, from, count);
  step.kind = Step::Kind::receive_reduce_copy;
  step.source = at;
  return step;
}
inline Step after(std::uint32_t block, std::uint32_t index, Step step = {}) {
  step.after_block = block;
  step.after_step = index;
  return step;
}

inline ChunkAt input(std::uint32_t chunk) { return {Buffer::input, chunk}; }
inline ChunkAt output(std::uint32_t chunk) { return {Buffer::output, chunk}; }
inline ChunkAt scratch(std::uint32_t chunk) { return {Buffer::scratch, chunk}; }

class TablePlan : public Plan {
 public:
  TablePlan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t blocks, std::uint32_t chunks,
            bool in_place = true)
      : kind_(kind),
        ranks_(ranks),
        chunks_(chunks),
        in_place_(in_place),
        scratch_(ranks),
        lists_(ranks, std::vector<std::vector<Step>>(blocks)) {}
  // Makes a plan from lists of steps by rank and thread block.
  TablePlan(CollectiveKind kind, std::uint32_t chunks, std::vector<std::vector<std::vector<Step>>> lists)
      : TablePlan(kind, static_cast<std::uint32_t>(lists.size()), 0, chunks) {
    lists_ = std::move(lists);
  }
  explicit TablePlan(const Plan& other)
      : TablePlan(other.kind(), other.ranks(), 0, other.chunks(), other.in_place()) {
    root_ = other.root();
    channels_ = other.channels();
    for (std::uint32_t i = 0; i < other.aggregations(); ++i) aggregations_.push_back(other.aggregation(i));
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      scratch_[rank] = other.scratch_chunks(rank);
      lists_[rank].resize(other.blocks(rank));
      for (std::uint32_t block = 0; block < other.blocks(rank); ++block) {
        block_channels_.push_back(other.channel(rank, block));
        for (std::uint32_t i = 0; i < other.steps(rank, block); ++i)
          list(rank, block).push_back(other.step(rank, block, i));
      }
    }
  }

  std::vector<Step>& list(std::uint32_t rank, std::uint32_t block) { return lists_[rank][block]; }
  void set_root(std::uint32_t root) { root_ = root; }
  void add_group(const AggregationGroup& aggregation) { aggregations_.push_back(aggregation); }
  void set_scratch(std::uint32_t chunks) { scratch_.assign(ranks_, chunks); }
  void set_largest_count(std::uint32_t count) { largest_count_ = count; }
  void set_channel(std::uint32_t of_all_blocks) { channel_ = of_all_blocks; }

  CollectiveKind kind() const override { return kind_; }
  const char* algorithm() const override { return "table"; }
  std::uint32_t ranks() const override { return ranks_; }
  std::uint32_t root() const override { return root_; }
  std::uint32_t chunks() const override { return chunks_; }
  std::uint32_t scratch_chunks(std::uint32_t rank) const override { return scratch_[rank]; }
  bool in_place() const override { return in_place_; }
  std::uint32_t largest_count() const override {
    std::uint32_t largest = 1;
    for (const auto& blocks : lists_) {
      for (const auto& steps : blocks) {
        for (const Step& step : steps) largest = std::max(largest, step.count);
      }
    }
    return largest_count_ == 0 ? largest : largest_count_;
  }
  std::uint32_t channels() const override { return channels_; }
  std::uint32_t aggregations() const override { return static_cast<std::uint32_t>(aggregations_.size()); }
  AggregationGroup aggregation(std::uint32_t number) const override { return aggregations_[number]; }
  std::uint32_t blocks(std::uint32_t rank) const override {
    return static_cast<std::uint32_t>(lists_[rank].size());
  }
  std::uint32_t channel(std::uint32_t rank, std::uint32_t block) const override {
    if (block_channels_.empty()) return channel_;
    for (std::uint32_t before = 0; before < rank; ++before) block += blocks(before);
    return block_channels_[block];
  }
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override {
    return static_cast<std::uint32_t>(lists_[rank][block].size());
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    return lists_[rank][block][index];
  }

 private:
  CollectiveKind kind_;
  std::uint32_t ranks_, chunks_;
  bool in_place_;
  std::uint32_t root_ = 0, channels_ = 1, channel_ = 0;
  std::uint32_t largest_count_ = 0;  // 0: as its steps have it
  std::vector<std::uint32_t> scratch_;
  std::vector<AggregationGroup> aggregations_;
  std::vector<std::uint32_t> block_channels_;  // of all thread blocks of all ranks; empty: channel_
  std::vector<std::vector<std::vector<Step>>> lists_;
};

}  // namespace netsim
