// NCCL's all-to-all, which its users write as a send to each rank and a receive from each in one group. NCCL
// runs point-to-point operations in rounds, several at a time. Between hosts they go through another GPU
// (PXN).
//
// Rounds (p2pSchedule in src/init.cc of NCCL): in each a rank sends to one rank and receives from one. Rounds
// go from host to host and within a host from rank to rank. Their distances grow by 1, 2, 3, ... modulo the
// next power of two. Distances beyond the number of hosts, or ranks, are left out.
//
// Channel limits: a channel of NCCL runs up to 8 operations at once (NCCL_MAX_DEV_WORK_P2P_PER_BATCH) and
// starts the next ones when these have ended. A peer has `per_peer` of the `channels`. NCCL derives both from
// the topology (library/nccl/peer_channels.h) or from the settings NCCL_MIN_P2P_NCHANNELS,
// NCCL_MAX_P2P_NCHANNELS and NCCL_NCHANNELS_PER_NET_PEER. So 8 channels / per_peer rounds run at once. Here
// each of those is a lane; the lanes take the rounds in turn.
//
// PXN is part of NCCL since 2.12 (Ingvarsson and Jeaugey, "Doubling all2all Performance with NVIDIA
// Collective Communication Library 2.12", 2022). A message to a GPU of another host leaves by the NIC of that
// GPU's rail. The sender writes it over NVLink into the memory of the GPU with the same number in its own
// host, whose proxy sends it. No message crosses from rail to rail outside of hosts.
//
// A lone send and receive (point_to_point) is one message chain on the channels of a peer, also by PXN. It
// has the plan of `direct`, and the executor forwards its messages (execution/outgoing_messages.h).
//
// Thread blocks are the lanes, which send, one for each round, which receives, and one that copies the own
// block. Then come the proxies that forward, one for each other rank of the host and each other host. A lane
// begins a round when its round before has ended, in both directions.
#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/grouping.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

struct NcclP2pParameters : GroupParameters {
  bool pxn = true;
  bool ll_by_peer = false;
  std::optional<std::int64_t> channels, per_peer;
};

Parameters<NcclP2pParameters> nccl_p2p_parameters() {
  using P = NcclP2pParameters;
  return Parameters<P>()
      .integer("group", static_cast<std::int64_t P::*>(&P::group), {1, 1 << 20},
               "ranks of a host; the number of ranks is a multiple of it, or less")
      .flag("pxn", &P::pxn,
            "messages between hosts take the NIC of the receiver's rail (false: NCCL_PXN_DISABLE=1)")
      .flag("ll_by_peer", &P::ll_by_peer,
            "an all-to-all within a host uses LL for messages of up to 16 KiB for each channel of a peer, in "
            "parts of at least 8 KiB, as NCCL did at first (false: up to 16 KiB for each channel of the "
            "message)")
      .integer("channels", &P::channels, {1, 1024}, "as NCCL derives them from the topology",
               "channels of all peers together (between NCCL_MIN_P2P_NCHANNELS and NCCL_MAX_P2P_NCHANNELS)")
      .integer("per_peer", &P::per_peer, {1, 1024}, "as NCCL derives them from the topology",
               "channels that share the messages to a rank of another host (NCCL_NCHANNELS_PER_NET_PEER)");
}

// Returns the distances below `count` in the order of NCCL's rounds.
std::vector<std::uint32_t> distances(std::uint32_t count) {
  std::vector<std::uint32_t> all;
  all.reserve(count);
  const std::uint32_t power = std::bit_ceil(count);
  for (std::uint32_t round = 0, distance = 0; round < power; distance = (distance + ++round) & (power - 1)) {
    if (distance < count) all.push_back(distance);
  }
  return all;
}

class NcclP2pPlan final : public RegularPlan {
 public:
  NcclP2pPlan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t group, bool pxn, std::uint32_t lanes)
      : RegularPlan("nccl_p2p", kind, ranks),
        group_(group),
        pxn_(pxn),
        lanes_(std::min(lanes, ranks - 1)),
        host_distances_(distances(ranks / group)),
        distances_(distances(group)) {}

  std::uint32_t chunks() const override { return ranks_; }
  // A forwarded block has the size that it has in the sender's input.
  std::uint32_t scratch_chunks(std::uint32_t) const override { return relays() == 0 ? 0 : group_ * ranks_; }
  bool in_place() const override { return false; }
  // The chunk number identifies a block's source and destination at each GPU that it passes.
  Counted counted(std::uint32_t rank, const Step& step) const override {
    switch (step.kind) {
      case Step::Kind::send:
        return {Counted::What::block, rank, step.source.chunk};
      case Step::Kind::receive:
        return {Counted::What::block, step.destination.chunk, rank};
      default: {
        const std::uint32_t from = step.destination.chunk / ranks_;
        return {Counted::What::block, rank_of(host_of(rank), from), step.destination.chunk % ranks_};
      }
    }
  }
  bool waits_between_blocks() const override { return lanes_ < ranks_ - 1; }
  std::uint32_t blocks(std::uint32_t) const override { return proxies() + relays(); }
  bool is_proxy(std::uint32_t, std::uint32_t block) const override { return block >= proxies(); }
  // Round 0 is the own block; the others are dealt out to the lanes.
  std::uint32_t steps(std::uint32_t, std::uint32_t block) const override {
    return block < lanes_ ? (ranks_ - 1 - block + lanes_ - 1) / lanes_ : 1;
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    if (block >= proxies()) return pass_on(rank, block - proxies());
    Step step;
    if (block + 1 == proxies()) {
      step.kind = Step::Kind::copy;
      step.source = {Buffer::input, rank};
      step.destination = {Buffer::output, rank};
      return step;
    }
    if (block >= lanes_) return receive(rank, block - lanes_ + 1);
    const std::uint32_t round = 1 + block + index * lanes_;
    step = send(rank, round);
    if (index > 0) step.after_block = receiver(round - lanes_);
    return step;
  }

 private:
  std::uint32_t hosts() const { return ranks_ / group_; }
  std::uint32_t host_of(std::uint32_t rank) const { return rank / group_; }
  std::uint32_t inside(std::uint32_t rank) const { return rank % group_; }
  std::uint32_t rank_of(std::uint32_t host, std::uint32_t inside) const { return host * group_ + inside; }
  std::uint32_t relays() const { return pxn_ ? (group_ - 1) * (hosts() - 1) : 0; }
  std::uint32_t lane(std::uint32_t round) const { return (round - 1) % lanes_; }
  std::uint32_t receiver(std::uint32_t round) const { return lanes_ + round - 1; }
  std::uint32_t proxies() const { return lanes_ + ranks_; }

  std::uint32_t behind(std::uint32_t rank, std::uint32_t round) const {
    return rank_of((host_of(rank) + host_distances_[round / group_]) % hosts(),
                   (inside(rank) + distances_[round % group_]) % group_);
  }
  std::uint32_t before(std::uint32_t rank, std::uint32_t round) const {
    return rank_of((host_of(rank) + hosts() - host_distances_[round / group_]) % hosts(),
                   (inside(rank) + group_ - distances_[round % group_]) % group_);
  }
  bool is_relayed(std::uint32_t from, std::uint32_t to) const {
    return pxn_ && host_of(from) != host_of(to) && inside(from) != inside(to);
  }
  // Returns the GPU of the sender's host that has the NIC of the receiver's rail, and its thread block that
  // forwards.
  Partner relay(std::uint32_t from, std::uint32_t to) const {
    const std::uint32_t by = rank_of(host_of(from), inside(to));
    const std::uint32_t peer = (inside(from) + group_ - inside(by)) % group_ - 1;
    const std::uint32_t host = (host_of(to) + hosts() - host_of(from)) % hosts() - 1;
    return {by, proxies() + peer * (hosts() - 1) + host};
  }
  // Returns the round in which a rank sends to another.
  std::uint32_t round_of(std::uint32_t from, std::uint32_t to) const {
    return place(host_distances_, (host_of(to) + hosts() - host_of(from)) % hosts()) * group_ +
           place(distances_, (inside(to) + group_ - inside(from)) % group_);
  }
  static std::uint32_t place(const std::vector<std::uint32_t>& order, std::uint32_t distance) {
    return static_cast<std::uint32_t>(std::find(order.begin(), order.end(), distance) - order.begin());
  }

  Step send(std::uint32_t rank, std::uint32_t round) const {
    Step step;
    step.kind = Step::Kind::send;
    const std::uint32_t to = behind(rank, round);
    step.source = {Buffer::input, to};
    step.to = is_relayed(rank, to) ? relay(rank, to) : Partner{to, receiver(round)};
    return step;
  }
  Step receive(std::uint32_t rank, std::uint32_t round) const {
    Step step;
    step.kind = Step::Kind::receive;
    const std::uint32_t from = before(rank, round);
    step.destination = {Buffer::output, from};
    step.from = is_relayed(from, rank) ? relay(from, rank) : Partner{from, lane(round)};
    return step;
  }
  Step pass_on(std::uint32_t rank, std::uint32_t relay) const {
    const std::uint32_t from = rank_of(host_of(rank), (inside(rank) + 1 + relay / (hosts() - 1)) % group_);
    const std::uint32_t to = rank_of((host_of(rank) + 1 + relay % (hosts() - 1)) % hosts(), inside(rank));
    const std::uint32_t round = round_of(from, to);
    Step step;
    step.kind = Step::Kind::receive_copy_send;
    step.from = {from, lane(round)};
    step.destination = {Buffer::scratch, inside(from) * ranks_ + to};
    step.to = {to, receiver(round)};
    return step;
  }

  std::uint32_t group_;
  bool pxn_;
  std::uint32_t lanes_;
  std::vector<std::uint32_t> host_distances_, distances_;
};

class NcclP2p final : public CollectiveAlgorithm, public WithNcclTraits {
 public:
  explicit NcclP2p(const NcclP2pParameters& p)
      : p_(p), direct_(Registry<CollectiveAlgorithm>::instance().create("direct")) {}
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_to_all || kind == CollectiveKind::all_to_all_v ||
           kind == CollectiveKind::point_to_point;
  }
  PlanTraits traits() const override { return {.channels = !p_.channels || !p_.per_peer}; }
  NcclTraits nccl_traits() const override {
    return {.scale_out_channels = static_cast<std::uint32_t>(p_.per_peer.value_or(0)),
            .sends_and_receives = true,
            .ll_by_peer = p_.ll_by_peer,
            .pxn = p_.pxn};
  }
  // Where the channels are not known, they are NCCL's between hosts with eight NICs behind PCIe switches.
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    if (kind == CollectiveKind::point_to_point) return direct_->plan(kind, shape);
    constexpr std::int64_t kAtOnce = 8;
    constexpr std::uint32_t kChannels = 16, kPerPeer = 2;
    const std::uint32_t ranks = shape.ranks;
    const bool known = shape.channels_per_peer > 0;
    check_all_to_all("nccl_p2p", kind, ranks);
    const std::uint32_t group = group_of(p_, "nccl_p2p", kind, ranks);
    if (p_.pxn) check_chunks("nccl_p2p", kind, ranks, std::uint64_t{group} * ranks);
    const std::int64_t channels = p_.channels.value_or(known ? shape.peers_channels : kChannels);
    const std::int64_t per_peer = p_.per_peer.value_or(known ? shape.channels_per_peer : kPerPeer);
    const auto lanes = static_cast<std::uint32_t>(std::max<std::int64_t>(1, kAtOnce * channels / per_peer));
    return std::make_unique<NcclP2pPlan>(kind, ranks, group, p_.pxn, lanes);
  }

 private:
  NcclP2pParameters p_;
  std::unique_ptr<CollectiveAlgorithm> direct_;
};

const Registration<CollectiveAlgorithm> kNcclP2p{
    "nccl_p2p",
    "sends and receives as NCCL does, alone or grouped into an all-to-all (v), in rounds of a limited "
    "number; messages between hosts pass the NIC of the receiver's rail (PXN)",
    nccl_p2p_parameters(),
    [](const NcclP2pParameters& p, const ConfigNode&) { return std::make_unique<NcclP2p>(p); }};

}  // namespace
}  // namespace netsim
