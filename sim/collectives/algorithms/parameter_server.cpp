// Parameter server as an all-reduce: workers push their contributions to the servers and pull the sums back.
// Each server owns a part of the buffer and adds it up (Li et al., OSDI 2014; BytePS: Jiang et al., OSDI
// 2020, section 4.1). The last `servers` members of the group are dedicated servers: they contribute nothing
// and need no result.
//
// The split decides which part of the M bytes each owns, with n workers and k servers (B: the rate of a
// port):
//
//   colocated  each worker M / n, a dedicated server nothing     2 (n-1) M / (n B)
//   dedicated  each server M / k, a worker nothing               max(M / B, n M / (k B))
//   optimal    BytePS's: a server 2 (n-1) M / D, a worker (n-k) M / D, with D = n^2 + kn - 2k, which loads
//              the ports of both alike: 2 n (n-1) M / (D B); from k = n on it is dedicated
//
// Owners and workers are each numbered from 0. Thread block i pushes to owner i, and block `owners` adds up
// the pushed data in one order. Block owners + 1 + j sends the sum to worker j once that is done. Block
// owners + 1 + workers + i receives the sum of owner i, once block i has pushed the data that it overwrites.
// So a port that is busy delays no other, and rounds overlap.
#include <algorithm>
#include <numeric>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

enum class Split : std::uint8_t { optimal, colocated, dedicated };

// Owned: the number of chunks that each worker and each dedicated server owns.
struct Owned {
  std::uint32_t worker = 0, server = 0;
};

Owned owned(Split split, std::uint64_t workers, std::uint64_t servers) {
  if (servers == 0 || split == Split::colocated) return {1, 0};
  if (split == Split::dedicated || servers >= workers) return {0, 1};
  const std::uint64_t worker = workers - servers, server = 2 * (workers - 1);
  const std::uint64_t common = std::gcd(worker, server);
  return {static_cast<std::uint32_t>(worker / common), static_cast<std::uint32_t>(server / common)};
}

class ParameterServerPlan final : public RegularPlan {
 public:
  ParameterServerPlan(std::uint32_t ranks, std::uint32_t servers, Owned owned)
      : RegularPlan("parameter_server", CollectiveKind::all_reduce, ranks),
        workers_(ranks - servers),
        owned_(owned),
        first_owner_(owned.worker > 0 ? 0 : workers_),
        owners_((owned.server > 0 ? ranks : workers_) - first_owner_) {}

  std::uint32_t workers() const override { return workers_; }
  std::uint32_t chunks() const override {
    return workers_ * owned_.worker + (ranks_ - workers_) * owned_.server;
  }
  std::uint32_t largest_count() const override { return std::max(owned_.worker, owned_.server); }
  bool in_place() const override { return true; }
  std::uint32_t blocks(std::uint32_t) const override { return receive_sum_from(owners_); }
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override {
    if (block == adder()) return is_owner(rank) ? others(rank, workers_) : 0;
    if (block > adder() && block < receive_sum_from(0))
      return is_owner(rank) && block - send_sum_to(0) != rank ? 1 : 0;
    const std::uint32_t owner = first_owner_ + (block < adder() ? block : block - receive_sum_from(0));
    return rank < workers_ && owner != rank ? 1 : 0;
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    if (block < adder()) return push(rank, first_owner_ + block);
    if (block == adder()) return add(rank, index);
    if (block < receive_sum_from(0)) return send_sum(rank, block - send_sum_to(0));
    return receive_sum(rank, first_owner_ + block - receive_sum_from(0));
  }

 private:
  bool is_owner(std::uint32_t rank) const { return rank - first_owner_ < owners_; }
  // Return thread blocks, by numbers of owners and workers; the first ones push.
  std::uint32_t adder() const { return owners_; }
  std::uint32_t send_sum_to(std::uint32_t worker) const { return owners_ + 1 + worker; }
  std::uint32_t receive_sum_from(std::uint32_t owner) const { return send_sum_to(workers_) + owner; }
  // Returns how many of the first `count` ranks are other ranks than this one.
  static std::uint32_t others(std::uint32_t rank, std::uint32_t count) {
    return count - (rank < count ? 1 : 0);
  }

  Step of_part(std::uint32_t owner) const {
    Step step;
    step.count = owner < workers_ ? owned_.worker : owned_.server;
    const std::uint32_t first = owner < workers_
                                    ? owner * owned_.worker
                                    : workers_ * owned_.worker + (owner - workers_) * owned_.server;
    step.source = step.destination = {Buffer::input, first};
    return step;
  }

  // A push to another worker waits for a push to a server. Otherwise a NIC that serves its destinations in
  // turn would send the small parts of workers first, and leave servers idle meanwhile.
  Step push(std::uint32_t rank, std::uint32_t owner) const {
    Step step = of_part(owner);
    step.kind = Step::Kind::send;
    step.to = {owner, adder()};
    if (owner < workers_ && owned_.server > 0) {
      step.after_block = workers_ - first_owner_ + (rank + owner) % (ranks_ - workers_);
      step.after_step = 0;
    }
    return step;
  }
  // Adds the data of the workers after this rank, in order, without its own. A dedicated server has no
  // contribution, so it stores the first one.
  Step add(std::uint32_t rank, std::uint32_t index) const {
    Step step = of_part(rank);
    step.kind = rank >= workers_ && index == 0 ? Step::Kind::receive : Step::Kind::receive_reduce_copy;
    const std::uint32_t worker = (rank % workers_ + index + (rank < workers_ ? 1 : 0)) % workers_;
    step.from = {worker, rank - first_owner_};
    return step;
  }
  Step send_sum(std::uint32_t rank, std::uint32_t worker) const {
    Step step = of_part(rank);
    step.kind = Step::Kind::send;
    step.to = {worker, receive_sum_from(rank - first_owner_)};
    step.after_block = adder();
    step.after_step = others(rank, workers_) - 1;
    return step;
  }
  Step receive_sum(std::uint32_t rank, std::uint32_t owner) const {
    Step step = of_part(owner);
    step.kind = Step::Kind::receive;
    step.from = {owner, send_sum_to(rank)};
    step.after_block = owner - first_owner_;
    step.after_step = 0;
    return step;
  }

  std::uint32_t workers_;
  Owned owned_;
  std::uint32_t first_owner_, owners_;
};

struct ParameterServerParameters {
  std::int64_t servers = 0;
  Split split = Split::optimal;
};

class ParameterServer final : public CollectiveAlgorithm {
 public:
  explicit ParameterServer(const ParameterServerParameters& p)
      : servers_(static_cast<std::uint32_t>(p.servers)), split_(p.split) {}
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    if (servers_ + 2 > shape.ranks) {
      refuse("parameter_server", kind, shape.ranks,
             "needs at least two workers besides its servers, " + std::to_string(servers_));
    }
    const Owned parts = owned(split_, shape.ranks - servers_, servers_);
    const std::uint64_t workers = shape.ranks - servers_;
    check_chunks("parameter_server", kind, shape.ranks,
                 workers * parts.worker + std::uint64_t{servers_} * parts.server);
    return std::make_unique<ParameterServerPlan>(shape.ranks, servers_, parts);
  }

 private:
  std::uint32_t servers_;
  Split split_;
};

const Registration<CollectiveAlgorithm> kParameterServer{
    "parameter_server",
    "runs all-reduce by servers to which all ranks push and from which all pull; servers are the workers, "
    "dedicated members, or both as in BytePS",
    Parameters<ParameterServerParameters>()
        .integer("servers", &ParameterServerParameters::servers, {0, 1 << 20},
                 "number of members that only serve and contribute nothing; they are the last ones of the "
                 "group (BytePS's CPU machines)")
        .choice(
            "split", &ParameterServerParameters::split,
            {{"optimal", Split::optimal}, {"colocated", Split::colocated}, {"dedicated", Split::dedicated}},
            "owners of the buffer's parts: all members in BytePS's optimal split, the workers, or the "
            "servers"),
    [](const ParameterServerParameters& p, const ConfigNode& where) {
      if (p.split == Split::dedicated && p.servers == 0)
        where.fail("split: dedicated needs servers (allowed: 1 and more)");
      return std::make_unique<ParameterServer>(p);
    }};

}  // namespace
}  // namespace netsim
