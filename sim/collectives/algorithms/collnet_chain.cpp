// CollNetChain: NCCL's all-reduce along chains, over hosts whose network aggregates (src/device/all_reduce.h,
// NCCL_ALGO_COLLNET_CHAIN). In each host a chain of its ranks leads to the rank at a NIC. Each rank adds its
// contribution to the received sum and passes it on. The last rank sends the sum up an aggregation tree of
// the fabric's switches, whose members are the last ranks of all hosts. The result goes along the chain in
// the opposite direction.
//
// So n bytes leave a host by its NICs and n come in, as with `sharp`. Over NVLink n bytes pass from rank to
// rank in each direction. Hosts need no NVSwitches; two consecutive ranks only need a link.
//
// There is a chain for each NIC near a host's ranks, each with a part of the buffer. Chain c begins at rank c
// k / C of the k in the host, and passes the others in the order of the group, cyclically.
//
// Each chain has a thread block that passes sums on to the NIC, and one that passes the result on from there.
// The switches' thread blocks come last.
//
// - latencies: NCCL's model (tuning.cc, hwLatencies, CollNetChain) has 2.8 us for each rank of the chain, up
//   and down, and 30 us for the network in both directions. The base latency is 0.
// - chunk: 256 KiB, less where fewer than 64, 8 or 1 of them would come for each channel and rank of a chain
//   (calcCollChunking in src/enqueue.cc: 128, 64, 32 KiB). The buffer holds NCCL_STEPS = 8 of them.
#include <algorithm>
#include <string>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/aggregation_plan.h"
#include "sim/collectives/library/kernel_model.h"
#include "sim/collectives/library/nccl/collnet_kernels.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

struct ChainParameters : CollnetParameters {
  std::int64_t chains = 0;
  ChainParameters() {
    hop_latency = 2'800 * kNanosecond;
    hop_latency_net = 30'000 * kNanosecond;
    chunk = 256 * kKibibyte;
  }
};

Parameters<ChainParameters> collnet_chain_parameters() {
  using P = ChainParameters;
  return collnet_parameters<P>("CollNetChain", "")
      .integer("chains", &P::chains, {0, 64}, "chains in each host; 0: one for each NIC near its ranks");
}

class CollnetChainPlan final : public AggregationPlan {
 public:
  CollnetChainPlan(std::uint32_t ranks, std::uint32_t group, std::uint32_t chains)
      : AggregationPlan("collnet_chain", CollectiveKind::all_reduce, ranks, 0, group, chains, 2 * chains) {}
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override {
    return block >= turn(0) ? turn_steps(rank, block) : 1;
  }
  std::uint32_t aggregations() const override { return tree_aggregations(); }
  AggregationGroup aggregation(std::uint32_t number) const override { return tree_aggregation(number); }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t) const override {
    if (block >= turn(0)) return as_switch(rank, block);
    return block < down_of(0) ? go_up(rank, block) : go_down(rank, block - down_of(0));
  }

 private:
  std::uint32_t up_of(std::uint32_t lane) const override { return lane; }
  std::uint32_t down_of(std::uint32_t lane) const override { return lanes_ + lane; }
  // Return the number of ranks of the chain between this one and the NIC, and the rank at such a distance.
  std::uint32_t place(std::uint32_t rank, std::uint32_t lane) const {
    return (rank % group_ + group_ - local_of(lane)) % group_;
  }
  std::uint32_t at(std::uint32_t rank, std::uint32_t lane, std::uint32_t place) const {
    return rank / group_ * group_ + (local_of(lane) + place) % group_;
  }

  Step go_up(std::uint32_t rank, std::uint32_t lane) const {
    Step step = about(chunk_of(0, lane));
    const std::uint32_t mine = place(rank, lane);
    const bool adds = mine + 1 < group_, passes_on = mine > 0 || over_trees();
    if (adds) step.from = {at(rank, lane, mine + 1), up_of(lane)};
    if (mine > 0) {
      step.to = {at(rank, lane, mine - 1), up_of(lane)};
    } else if (passes_on) {
      step.to = adding(chunk_of(0, lane));
    }
    step.kind = !adds       ? Step::Kind::send
                : passes_on ? Step::Kind::receive_reduce_send
                            : Step::Kind::receive_reduce_copy;
    return step;
  }
  // The result overwrites the sum that went up.
  Step go_down(std::uint32_t rank, std::uint32_t lane) const {
    Step step = about(chunk_of(0, lane));
    const std::uint32_t mine = place(rank, lane);
    const bool gets = mine > 0 || over_trees(), passes_on = mine + 1 < group_;
    if (mine > 0) {
      step.from = {at(rank, lane, mine - 1), down_of(lane)};
    } else if (gets) {
      step.from = copying(chunk_of(0, lane));
    }
    if (passes_on) step.to = {at(rank, lane, mine + 1), down_of(lane)};
    step.kind = !gets ? Step::Kind::send : passes_on ? Step::Kind::receive_copy_send : Step::Kind::receive;
    step.after_block = up_of(lane);
    return step;
  }
};

class CollnetChain final : public CollectiveAlgorithm, public WithKernels, public WithNcclTraits {
 public:
  explicit CollnetChain(const ChainParameters& p) : p_(p) {}
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  NcclTraits nccl_traits() const override { return {.family = CostFamily::collnet_chain}; }
  PlanTraits traits() const override {
    return {.protocol = Protocol::simple, .hosts = true, .sums = PlanTraits::FabricSums::of_data};
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    const std::uint32_t group =
        group_of(p_.group_size(shape, "collnet_chain", kind), "collnet_chain", kind, shape.ranks);
    const auto chains = p_.chains != 0 ? static_cast<std::uint32_t>(p_.chains) : std::max(1U, shape.nics);
    return std::make_unique<CollnetChainPlan>(shape.ranks, group, chains);
  }
  KernelModel kernel_model(const KernelLoad& load) const override {
    // Where the number of NICs is not known, a host is assumed to have one for each of its ranks.
    const Bytes length = p_.group_size(load), chains = p_.chains != 0 ? p_.chains : length;
    return collnet_kernels(p_, load.bytes, length * chains);
  }

 private:
  ChainParameters p_;
};

const Registration<CollectiveAlgorithm> kCollnetChain{
    "collnet_chain",
    "runs all-reduce along a chain in each host to a NIC, where aggregation trees in the fabric's switches "
    "add up (NCCL CollNetChain)",
    collnet_chain_parameters(),
    [](const ChainParameters& p, const ConfigNode&) { return std::make_unique<CollnetChain>(p); }};

}  // namespace
}  // namespace netsim
