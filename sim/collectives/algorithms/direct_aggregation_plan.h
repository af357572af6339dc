// DirectAggregationPlan: each rank sends its data directly to the heads of its host. It has a thread block
// for each other rank and tree that sends, and one that receives the result. Where only the root has data, or
// gets a result, only the root sends, or receives.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/collectives/algorithms/aggregation_plan.h"

namespace netsim {

class DirectAggregationPlan : public AggregationPlan {
 public:
  DirectAggregationPlan(const char* algorithm, CollectiveKind kind, std::uint32_t ranks, std::uint32_t root,
                        std::uint32_t group, std::uint32_t trees)
      : AggregationPlan(algorithm, kind, ranks, root, group, group * trees, 2 * group * trees),
        trees_(trees),
        adds_(kind != CollectiveKind::all_gather && kind != CollectiveKind::broadcast),
        tree_step_(over_trees() ? 1 : 0) {}
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override {
    if (block >= turn(0)) return turn_steps(rank, block);
    if (block < up(0)) return gives(rank) ? rows_ : 0;
    if (block >= gather()) return takes(rank) ? rows_ : 0;
    if (block >= down(0)) return rows_got(rank) * (tree_step_ + forwards(rank));
    return rows_sent(rank) * steps_up(rank);
  }
  std::uint32_t aggregations() const override { return tree_aggregations(); }
  AggregationGroup aggregation(std::uint32_t number) const override { return tree_aggregation(number); }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    if (block >= turn(0)) return as_switch(rank, block);
    if (block < up(0)) return to_head(rank, block, index);
    if (block >= gather()) return from_head(rank, block - gather(), index);
    if (block < down(0)) return go_up(rank, block - up(0), index);
    return go_down(rank, block - down(0), index);
  }

 private:
  std::uint32_t up(std::uint32_t tree) const { return (group_ - 1) * trees_ + tree; }
  std::uint32_t down(std::uint32_t tree) const { return group_ * trees_ + tree; }
  std::uint32_t gather() const { return (group_ + 1) * trees_; }
  std::uint32_t up_of(std::uint32_t lane) const override { return up(lane % trees_); }
  std::uint32_t down_of(std::uint32_t lane) const override { return down(lane % trees_); }
  std::uint32_t chunk(std::uint32_t row, std::uint32_t head, std::uint32_t tree) const {
    return chunk_of(row, head % group_ * trees_ + tree);
  }

  // Return the other rank of the host with this number, and the inverse.
  std::uint32_t peer(std::uint32_t rank, std::uint32_t number) const {
    const std::uint32_t local = rank % group_;
    return rank - local + (number < local ? number : number + 1);
  }
  std::uint32_t number_of(std::uint32_t rank, std::uint32_t peer) const {
    return peer < rank ? peer % group_ : peer % group_ - 1;
  }

  // Return whether the rank sends data to the other heads of its host, and whether it receives from them.
  bool gives(std::uint32_t rank) const {
    return adds_ || (kind_ == CollectiveKind::broadcast && rank == root_);
  }
  bool takes(std::uint32_t rank) const {
    if (kind_ == CollectiveKind::broadcast) return rank != root_;
    return kind_ == CollectiveKind::reduce ? rank == root_ : kind_ != CollectiveKind::reduce_scatter;
  }
  bool beside_root(std::uint32_t rank) const { return host_of(rank) == host_of(root_) && rank != root_; }

  // Return the number of rows that a head sends up a tree or handles for its host, and the steps for each. It
  // receives the data of the others, and with the last of that it sends the sum to the tree.
  std::uint32_t rows_sent(std::uint32_t rank) const {
    if (kind_ == CollectiveKind::all_gather) return 1;
    return sends_up(host_of(rank), 0) ? rows_ : 0;
  }
  std::uint32_t steps_up(std::uint32_t rank) const { return std::max(taken(rank), tree_step_); }
  std::uint32_t taken(std::uint32_t rank) const {
    if (adds_) return group_ - 1;
    return kind_ == CollectiveKind::broadcast && beside_root(rank) ? 1 : 0;
  }
  // Return the number of rows that a head receives from a tree or has for other ranks of its host. forwards()
  // is the number of these ranks.
  std::uint32_t rows_got(std::uint32_t rank) const {
    if (kind_ == CollectiveKind::reduce_scatter) return 1;
    return gets(host_of(rank), 0) ? rows_ : 0;
  }
  std::uint32_t forwards(std::uint32_t rank) const {
    if (kind_ == CollectiveKind::reduce_scatter) return 0;
    if (kind_ == CollectiveKind::reduce) return beside_root(rank) ? 1 : 0;
    return kind_ == CollectiveKind::broadcast && beside_root(rank) ? group_ - 2 : group_ - 1;
  }
  // Returns rank number `index` of these.
  std::uint32_t forwarded(std::uint32_t rank, std::uint32_t index) const {
    if (kind_ == CollectiveKind::reduce) return root_;
    const bool passes_root = kind_ == CollectiveKind::broadcast && beside_root(rank);
    return peer(rank, passes_root && index >= number_of(rank, root_) ? index + 1 : index);
  }

  Step to_head(std::uint32_t rank, std::uint32_t block, std::uint32_t row) const {
    const std::uint32_t head = peer(rank, block / trees_), tree = block % trees_;
    Step step = about(chunk(row, head, tree));
    step.kind = Step::Kind::send;
    step.to = {head, up(tree)};
    return step;
  }
  Step from_head(std::uint32_t rank, std::uint32_t block, std::uint32_t row) const {
    const std::uint32_t head = peer(rank, block / trees_), tree = block % trees_;
    Step step = about(chunk(row, head, tree));
    step.kind = Step::Kind::receive;
    step.from = {head, down(tree)};
    if (gives(rank)) {
      step.after_block = block;  // it has sent the data that this overwrites
      step.after_step = row;
    }
    return step;
  }
  Step go_up(std::uint32_t rank, std::uint32_t tree, std::uint32_t index) const {
    const std::uint32_t each = steps_up(rank), number = index % each;
    const std::uint32_t row = kind_ == CollectiveKind::all_gather ? host_of(rank) : index / each;
    Step step = about(chunk(row, rank, tree));
    const bool to_tree = over_trees() && number + 1 == each;
    if (to_tree) step.to = adding(chunk(row, rank, tree));
    if (taken(rank) == 0) {
      step.kind = Step::Kind::send;
      return step;
    }
    const std::uint32_t other = adds_ ? peer(rank, number) : root_;
    step.from = {other, number_of(other, rank) * trees_ + tree};
    if (adds_) {
      step.kind = to_tree ? Step::Kind::receive_reduce_send : Step::Kind::receive_reduce_copy;
    } else {
      step.kind = to_tree ? Step::Kind::receive_copy_send : Step::Kind::receive;
    }
    return step;
  }
  Step go_down(std::uint32_t rank, std::uint32_t tree, std::uint32_t index) const {
    const std::uint32_t each = tree_step_ + forwards(rank), number = index % each;
    const std::uint32_t host = host_of(rank);
    const std::uint32_t row = kind_ == CollectiveKind::reduce_scatter && over_trees() ? host : index / each;
    Step step = about(chunk(row, rank, tree));
    if (number == 0 && sends_up(host, row) && steps_up(rank) > 0) {
      step.after_block = up(tree);
      step.after_step = (kind_ == CollectiveKind::all_gather ? 1 : row + 1) * steps_up(rank) - 1;
    }
    if (number < tree_step_) {
      step.kind = Step::Kind::receive;
      step.from = copying(chunk(row, rank, tree));
      return step;
    }
    const std::uint32_t other = forwarded(rank, number - tree_step_);
    step.kind = Step::Kind::send;
    step.to = {other, gather() + number_of(other, rank) * trees_ + tree};
    return step;
  }

  std::uint32_t trees_;
  bool adds_;                // whether heads add up the data of the others
  std::uint32_t tree_step_;  // 1 where there are trees, otherwise 0
};

}  // namespace netsim
