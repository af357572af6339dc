// DeepEP's normal kernels (csrc/kernels/internode.cu and intranode.cu in DeepSeek's DeepEP, v1). Each token
// crosses the fabric once for each host that has experts of its own. It goes from its GPU to the GPU with the
// same number there, which forwards it over NVLink to the GPUs that have these experts. A combine takes the
// opposite routes, with a sum wherever they meet: at the forwarding GPU, and at the token's own.
//
// Ranks are consecutive host by host. With N hosts of k ranks a dispatch has the following thread blocks,
// with t from 0 to N - 2:
//
// - N - 1 thread blocks send to host t + 1 after the rank's own.
// - N - 1 thread blocks receive from host t + 1 before the rank's own.
// - For each host and each other rank of the own host, one forwards and one receives forwarded data. The own
//   host comes last; its data is taken from the input.
//
// Forwarded data is sent in the rounds in which it arrived. Each thread block of a combine is the counterpart
// of one of these.
//
// In DeepEP a channel is two thread blocks of CUDA, with a warp for each connection; here each connection is
// a thread block.
#include <memory>
#include <string>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/each_peer_plan.h"
#include "sim/collectives/algorithms/grouping.h"
#include "sim/collectives/library/deepep/deepep_kernels.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

struct DeepepParameters : GroupParameters, DeepepKernelParameters {};

Parameters<DeepepParameters> deepep_parameters() {
  using P = DeepepParameters;
  return with_deepep_kernels(
      Parameters<P>().integer("group", static_cast<std::int64_t P::*>(&P::group), {1, 1 << 20},
                              "ranks of a host; the number of ranks is a multiple of it, or less"));
}

class ForwardingPlan : public RegularPlan {
 public:
  ForwardingPlan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t group)
      : RegularPlan("deepep", kind, ranks), group_(group) {}
  std::uint32_t chunks() const override { return ranks_; }
  bool in_place() const override { return false; }

 protected:
  std::uint32_t hosts() const { return ranks_ / group_; }
  std::uint32_t host_of(std::uint32_t rank) const { return rank / group_; }
  std::uint32_t inside(std::uint32_t rank) const { return rank % group_; }
  std::uint32_t rank_of(std::uint32_t host, std::uint32_t inside) const { return host * group_ + inside; }
  // Index `turn` stands for host turn + 1 after or before the own one; the last index for the own host.
  std::uint32_t counterpart_behind(std::uint32_t rank, std::uint32_t turn) const {
    return rank_of((host_of(rank) + turn + 1) % hosts(), inside(rank));
  }
  std::uint32_t counterpart_before(std::uint32_t rank, std::uint32_t turn) const {
    return rank_of((host_of(rank) + hosts() - 1 - turn) % hosts(), inside(rank));
  }
  // Return the rank at a distance after or before this one in its own host.
  std::uint32_t peer_behind(std::uint32_t rank, std::uint32_t distance) const {
    return rank_of(host_of(rank), (inside(rank) + distance) % group_);
  }
  std::uint32_t peer_before(std::uint32_t rank, std::uint32_t distance) const {
    return rank_of(host_of(rank), (inside(rank) + group_ - distance) % group_);
  }
  bool same_host(std::uint32_t a, std::uint32_t b) const { return host_of(a) == host_of(b); }

  // The size of the part of a token block that is exchanged between two ranks of one host.
  static Counted in_host(std::uint32_t owner, std::uint32_t rank) {
    return {Counted::What::block_of_host, owner, rank};
  }
  static Counted to_host(std::uint32_t owner, std::uint32_t rank) {
    return {Counted::What::host, owner, rank};
  }

  std::uint32_t group_;
};

class DispatchPlan final : public ForwardingPlan {
 public:
  DispatchPlan(std::uint32_t ranks, std::uint32_t group)
      : ForwardingPlan(CollectiveKind::dispatch, ranks, group) {}
  std::uint32_t blocks(std::uint32_t) const override { return takes(hosts()) + 1; }
  std::uint32_t steps(std::uint32_t, std::uint32_t) const override { return 1; }
  Counted counted(std::uint32_t rank, const Step& step) const override {
    if (sends(step.kind)) {
      if (!same_host(rank, step.to.rank)) return to_host(rank, step.to.rank);
      return in_host(step.source.buffer == Buffer::input ? rank : step.source.chunk, step.to.rank);
    }
    if (!same_host(rank, step.from.rank)) return to_host(step.from.rank, rank);
    return in_host(step.destination.chunk, rank);
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t) const override {
    if (block < comes(0)) return send_out(rank, block);
    if (block < passes(0)) return take_in(rank, block - comes(0));
    const std::uint32_t others = group_ - 1;
    if (block < takes(0)) return pass_on(rank, (block - passes(0)) / others, (block - passes(0)) % others);
    if (block < takes(hosts())) return take(rank, (block - takes(0)) / others, (block - takes(0)) % others);
    Step step;
    step.kind = Step::Kind::copy;
    step.destination = {Buffer::output, rank};
    return step;
  }

 private:
  // Return the first thread block of index `turn` that receives from another host, forwards, or receives
  // forwarded data.
  std::uint32_t comes(std::uint32_t turn) const { return hosts() - 1 + turn; }
  std::uint32_t passes(std::uint32_t turn) const { return 2 * (hosts() - 1) + turn * (group_ - 1); }
  std::uint32_t takes(std::uint32_t turn) const { return passes(hosts()) + turn * (group_ - 1); }
  bool is_own(std::uint32_t turn) const { return turn + 1 == hosts(); }

  Step send_out(std::uint32_t rank, std::uint32_t turn) const {
    Step step;
    step.kind = Step::Kind::send;
    step.source = {Buffer::input, 0};
    step.to = {counterpart_behind(rank, turn), comes(turn)};
    return step;
  }
  Step take_in(std::uint32_t rank, std::uint32_t turn) const {
    Step step;
    step.kind = Step::Kind::receive;
    step.from = {counterpart_before(rank, turn), turn};
    step.destination = {Buffer::output, step.from.rank};
    return step;
  }
  Step pass_on(std::uint32_t rank, std::uint32_t turn, std::uint32_t peer) const {
    Step step;
    step.kind = Step::Kind::send;
    step.to = {peer_behind(rank, peer + 1), takes(turn) + peer};
    if (is_own(turn)) {
      step.source = {Buffer::input, 0};
    } else {
      step.source = {Buffer::output, counterpart_before(rank, turn)};
      step.after_block = comes(turn);
    }
    return step;
  }
  Step take(std::uint32_t rank, std::uint32_t turn, std::uint32_t peer) const {
    Step step;
    step.kind = Step::Kind::receive;
    step.from = {peer_before(rank, peer + 1), passes(turn) + peer};
    step.destination = {Buffer::output, counterpart_before(step.from.rank, turn)};
    return step;
  }
};

// A thread block for each peer of the own host sends it what is for its counterparts, host by host in turn
// (kNVLSender). So messages to one host do not wait for all that have room at another.
//
// A thread block of index `turn` adds up. It sums what the peers send for the own counterpart and sends it
// there. For the own host it continues with what comes from the other hosts.
class CombinePlan final : public ForwardingPlan {
 public:
  CombinePlan(std::uint32_t ranks, std::uint32_t group)
      : ForwardingPlan(CollectiveKind::combine, ranks, group) {}
  std::uint32_t scratch_chunks(std::uint32_t) const override { return ranks_; }
  bool waits_between_blocks() const override { return false; }
  std::uint32_t blocks(std::uint32_t) const override { return adds(hosts()); }
  std::uint32_t steps(std::uint32_t, std::uint32_t block) const override {
    if (block < adds(0)) return hosts();
    // A thread block that adds up takes the own contribution and those of the peers. Then it sends the sum to
    // the other host, or receives those of all other hosts.
    return group_ + (is_own(block - adds(0)) ? hosts() - 1 : 1);
  }
  Counted counted(std::uint32_t rank, const Step& step) const override {
    if (sends(step.kind)) {
      if (!same_host(rank, step.to.rank)) return to_host(step.to.rank, rank);
      return in_host(step.source.chunk, rank);
    }
    if (!same_host(rank, step.from.rank)) return to_host(rank, step.from.rank);
    return in_host(step.destination.buffer == Buffer::output ? rank : step.destination.chunk, step.from.rank);
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    if (block < adds(0)) return give(rank, block, index);
    return add_up(rank, block - adds(0), index);
  }

 private:
  std::uint32_t adds(std::uint32_t turn) const { return group_ - 1 + turn; }
  bool is_own(std::uint32_t turn) const { return turn + 1 == hosts(); }

  Step give(std::uint32_t rank, std::uint32_t peer, std::uint32_t turn) const {
    Step step;
    step.kind = Step::Kind::send;
    step.to = {peer_before(rank, peer + 1), adds(turn)};
    step.source = {Buffer::input, counterpart_before(step.to.rank, turn)};
    return step;
  }
  Step add_up(std::uint32_t rank, std::uint32_t turn, std::uint32_t index) const {
    const std::uint32_t owner = counterpart_before(rank, turn);
    const ChunkAt sum = is_own(turn) ? ChunkAt{Buffer::output, 0} : ChunkAt{Buffer::scratch, owner};
    Step step;
    step.source = step.destination = sum;
    if (index == 0) {
      step.kind = Step::Kind::copy;
      step.source = {Buffer::input, owner};
    } else if (index < group_) {
      step.kind = Step::Kind::receive_reduce_copy;
      step.from = {peer_behind(rank, index), index - 1};
    } else if (!is_own(turn)) {
      step.kind = Step::Kind::send;
      step.to = {owner, adds(hosts() - 1)};
    } else {
      const std::uint32_t there = index - group_;
      step.kind = Step::Kind::receive_reduce_copy;
      step.from = {counterpart_behind(rank, there), adds(there)};
    }
    return step;
  }
};

// Checks that the workload counts tokens once for each of the plan's hosts.
void check_token_host(CollectiveKind kind, std::uint32_t group, std::uint32_t counted) {
  if (counted == 0 || counted == group) return;
  throw InputError(std::string(to_string(kind)) + ": 'deepep' sends each token once to " +
                   std::to_string(group) + " ranks, the workload counts it once for " +
                   std::to_string(counted));
}

class Deepep final : public CollectiveAlgorithm, public WithKernels {
 public:
  explicit Deepep(const DeepepParameters& p) : p_(p) {}
  bool supports(CollectiveKind kind) const override { return has_tokens(kind); }
  PlanTraits traits() const override { return {.protocol = Protocol::simple, .tokens = true}; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    check_all_to_all("deepep", kind, shape.ranks);
    const std::uint32_t group = group_of(p_, "deepep", kind, shape.ranks);
    if (group == shape.ranks) return std::make_unique<EachPeerPlan>("deepep", kind, shape.ranks);
    check_token_host(kind, group, shape.token_host);
    if (kind == CollectiveKind::combine) return std::make_unique<CombinePlan>(shape.ranks, group);
    return std::make_unique<DispatchPlan>(shape.ranks, group);
  }
  KernelModel kernel_model(const KernelLoad& load) const override { return deepep_kernels(p_, load); }

 private:
  DeepepParameters p_;
};

const Registration<CollectiveAlgorithm> kDeepep{
    "deepep",
    "sends tokens to their experts and back as DeepEP's normal kernels do, once to each host and from there "
    "over NVLink",
    deepep_parameters(), [](const DeepepParameters& p, const ConfigNode& where) {
      if (p.buffer < kSlots * p.chunk) {
        where.fail("buffer: " + std::to_string(p.buffer) + " tokens are too few for chunks of " +
                   std::to_string(p.chunk) + " (allowed: " + std::to_string(kSlots * p.chunk) + " and more)");
      }
      return std::make_unique<Deepep>(p);
    }};

}  // namespace
}  // namespace netsim
