// AggregationPlan: what plans over hosts whose network adds up have in common: aggregation trees in the
// switches of the fabric (Graham et al., Scalable Hierarchical Aggregation Protocol (SHArP), COMHPC 2016).
//
// The ranks of a host follow each other, and all hosts have as many. The buffer, or each host's part of it
// where ranks have parts of their own (an all_gather, a reduce_scatter), is a row of lanes, which are shared
// out to the ranks of a host as evenly as may be: the rank of a lane is its head. Heads of a lane of all
// hosts are the members of a tree, one for each chunk. What goes up it and comes down is the kind's: of an
// all_reduce the sum of all hosts to all, of a reduce_scatter and a reduce the sum to one of them, of an
// all_gather and a broadcast what one has to all. In a single host there is none.
//
// A plan that derives from it says which thread blocks of a head send to the trees and receive from them, and
// what is done in the hosts. The switches' thread blocks come behind its own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/collectives/algorithms/regular_plan.h"

namespace netsim {

class AggregationPlan : public RegularPlan {
 public:
  // Whether ranks have parts of their own.
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
  // `group`: ranks of a host, of which there are a multiple. `own_blocks`: thread blocks of each rank.
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
  // The thread block of a lane's heads that sends to its tree, and the one that receives.
  virtual std::uint32_t up_of(std::uint32_t lane) const = 0;
  virtual std::uint32_t down_of(std::uint32_t lane) const = 0;

  bool over_trees() const { return hosts_ > 1; }
  std::uint32_t host_of(std::uint32_t rank) const { return rank / group_; }
  // Of a lane, the head's number in its host; and the first of the lanes of such a number.
  std::uint32_t local_of(std::uint32_t lane) const {
    return static_cast<std::uint32_t>(std::uint64_t{lane} * group_ / lanes_);
  }
  std::uint32_t first_lane(std::uint32_t local) const {
    return static_cast<std::uint32_t>((std::uint64_t{local} * lanes_ + group_ - 1) / group_);
  }
  std::uint32_t chunk_of(std::uint32_t row, std::uint32_t lane) const { return row * lanes_ + lane; }

  // Whether the host's heads send up the trees of a row, and get what comes down.
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
  Partner adding(std::uint32_t chunk) const { return Partner::of_fan(chunk); }
  Partner copying(std::uint32_t chunk) const { return Partner::of_fan(chunks() + chunk); }

  // Fans of the trees come before all others, those that add up first.
  std::uint32_t tree_fans() const { return over_trees() ? 2 * chunks() : 0; }
  Fan tree_fan(std::uint32_t number) const {
    const std::uint32_t row = number % chunks() / lanes_, lane = number % lanes_, local = local_of(lane);
    const bool up = number < chunks();
    Fan fan;
    fan.head = row * group_ + local;
    fan.head_block = turn(lane - first_lane(local));
    fan.block = up ? up_of(lane) : down_of(lane);
    const bool one = up ? kind_ == CollectiveKind::all_gather || kind_ == CollectiveKind::broadcast
                        : kind_ == CollectiveKind::reduce_scatter || kind_ == CollectiveKind::reduce;
    const std::uint32_t host = rows_ > 1 ? row : host_of(root_);
    fan.first = one ? host * group_ + local : local;
    fan.members = one ? 1 : hosts_;
    fan.stride = group_;
    return fan;
  }

  // The switches' thread blocks, one for each lane of the rank in its host's row.
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
