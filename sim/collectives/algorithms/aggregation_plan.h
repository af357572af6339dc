// AggregationPlan: the common part of plans for hosts whose network aggregates. Aggregation trees run in the
// switches of the fabric (Graham et al., Scalable Hierarchical Aggregation Protocol (SHArP), COMHPC 2016).
//
// The ranks of a host are consecutive, and all hosts have the same number. The buffer is a row of lanes, its
// aggregation sessions. In an all_gather and a reduce_scatter, where ranks own parts, each host's part is a
// row. The lanes are shared out to the ranks of a host as evenly as possible; the rank that has a lane is its
// head.
//
// The heads of a lane in all hosts are the members of a tree, one tree for each chunk. In an all_reduce the
// sum of all hosts goes to all of them; in a reduce_scatter and a reduce it goes to one. In an all_gather and
// a broadcast the data of one host goes to all. A single host has no tree.
//
// A derived plan defines which thread blocks of a head send to the trees and receive from them, and what
// happens within the hosts. The thread blocks of the switches come after its own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/collectives/algorithms/regular_plan.h"

namespace netsim {

class AggregationPlan : public RegularPlan {
 public:
  // Returns whether ranks own parts of the buffer, so that each host has a row.
  static bool has_rows(CollectiveKind kind) {
    return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
  }
  std::uint32_t chunks() const override { return rows_ * lanes_; }
  std::uint32_t scratch_chunks(std::uint32_t rank) const override { return turns(rank, 0) ? chunks() : 0; }
  bool in_place() const override { return true; }
  bool in_switch(std::uint32_t, std::uint32_t block) const override { return block >= turn(0); }
  std::uint32_t blocks(std::uint32_t) const override {
    return turn(hosts_ > 1 ? (lanes_ + group_ - 1) / group_ : 0);
  }

 protected:
  // `group` is the number of ranks of a host and divides `ranks`. `own_blocks` is the number of thread blocks
  // of each rank.
  AggregationPlan(const char* algorithm, CollectiveKind kind, std::uint32_t ranks, std::uint32_t root,
                  std::uint32_t group, std::uint32_t lanes, std::uint32_t own_blocks)
      : RegularPlan(algorithm, kind, ranks, root),
        group_(group),
        lanes_(lanes),
        hosts_(ranks / group),
        rows_(has_rows(kind) ? hosts_ : 1),
        own_blocks_(own_blocks) {
    check_chunks(algorithm, kind, ranks, std::uint64_t{rows_} * lanes_);
  }
  // Return the thread block of a lane's heads that sends to its tree, and the one that receives from it.
  virtual std::uint32_t up_of(std::uint32_t lane) const = 0;
  virtual std::uint32_t down_of(std::uint32_t lane) const = 0;

  bool over_trees() const { return hosts_ > 1; }
  std::uint32_t host_of(std::uint32_t rank) const { return rank / group_; }
  // Return the number in its host of a lane's head, and the first lane of the head with such a number.
  std::uint32_t local_of(std::uint32_t lane) const {
    return static_cast<std::uint32_t>(std::uint64_t{lane} * group_ / lanes_);
  }
  std::uint32_t first_lane(std::uint32_t local) const {
    return static_cast<std::uint32_t>((std::uint64_t{local} * lanes_ + group_ - 1) / group_);
  }
  std::uint32_t chunk_of(std::uint32_t row, std::uint32_t lane) const { return row * lanes_ + lane; }

  // Return whether the host's heads send up the trees of a row, and whether they get the result.
  bool sends_up(std::uint32_t host, std::uint32_t row) const {
    if (kind_ == CollectiveKind::all_gather) return host == row;
    return kind_ != CollectiveKind::broadcast || host == host_of(root_);
  }
  bool gets(std::uint32_t host, std::uint32_t row) const {
    if (kind_ == CollectiveKind::reduce_scatter) return host == row;
    return kind_ != CollectiveKind::reduce || host == host_of(root_);
  }

  Step about(std::uint32_t chunk) const {
    Step step;
    step.source = step.destination = {whole(), chunk};
    return step;
  }
  Partner adding(std::uint32_t chunk) const { return Partner::of_aggregation(chunk); }
  Partner copying(std::uint32_t chunk) const { return Partner::of_aggregation(chunks() + chunk); }

  // The AggregationGroups of the trees come before all others: first those that add up, then those that copy.
  std::uint32_t tree_aggregations() const { return over_trees() ? 2 * chunks() : 0; }
  AggregationGroup tree_aggregation(std::uint32_t number) const {
    const std::uint32_t row = number % chunks() / lanes_, lane = number % lanes_, local = local_of(lane);
    const bool up = number < chunks();
    AggregationGroup aggregation;
    aggregation.head = row * group_ + local;
    aggregation.head_block = turn(lane - first_lane(local));
    aggregation.block = up ? up_of(lane) : down_of(lane);
    const bool one = up ? kind_ == CollectiveKind::all_gather || kind_ == CollectiveKind::broadcast
                        : kind_ == CollectiveKind::reduce_scatter || kind_ == CollectiveKind::reduce;
    const std::uint32_t host = rows_ > 1 ? row : host_of(root_);
    aggregation.first = one ? host * group_ + local : local;
    aggregation.members = one ? 1 : hosts_;
    aggregation.stride = group_;
    return aggregation;
  }

  // The thread blocks of the switches, one for each lane of the rank in its host's row.
  std::uint32_t turn(std::uint32_t number) const { return own_blocks_ + number; }
  std::uint32_t turn_steps(std::uint32_t rank, std::uint32_t block) const {
    return turns(rank, block - turn(0)) ? 1 : 0;
  }
  Step as_switch(std::uint32_t rank, std::uint32_t block) const {
    const std::uint32_t chunk = chunk_of(host_of(rank), first_lane(rank % group_) + block - turn(0));
    Step step;
    step.kind = Step::Kind::receive_copy_send;
    step.destination = {Buffer::scratch, chunk};
    step.from = adding(chunk);
    step.to = copying(chunk);
    return step;
  }

  std::uint32_t group_, lanes_, hosts_, rows_;

 private:
  bool turns(std::uint32_t rank, std::uint32_t number) const {
    const std::uint32_t local = rank % group_;
    return over_trees() && host_of(rank) < rows_ &&
           first_lane(local) + number < (local + 1 < group_ ? first_lane(local + 1) : lanes_);
  }

  std::uint32_t own_blocks_;
};

}  // namespace netsim
