// rail_leaders: an all-reduce by hosts and rails. Chunk c belongs to rail c. At each host one rank of that
// rail, the leader, adds up the chunk of its host. The leaders of a rail send their sums to one of them,
// which returns the total. So no message between hosts leaves its rail. The algorithm is an example; a ring
// or a tree of the leaders would take less time among many hosts.
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/core/plugin.h"
#include "sim/core/registry.h"

NETSIM_PLUGIN

namespace netsim {
namespace {

constexpr const char* kRailLeaders = "rail_leaders";

// The ranks of a group by host, and the leader of each host and rail.
struct RailSites {
  std::vector<std::uint32_t> host_of;              // by rank
  std::vector<std::vector<std::uint32_t>> ranks;   // by host
  std::vector<std::vector<std::uint32_t>> leader;  // by rail and host; kNoIndex: no rank has the rail
  std::uint32_t rails() const { return static_cast<std::uint32_t>(leader.size()); }
};

RailSites rail_sites(const std::vector<RankSite>& sites) {
  RailSites result;
  for (std::uint32_t rank = 0; rank < sites.size(); ++rank) {
    const RankSite& site = sites[rank];
    result.host_of.push_back(site.host);
    if (site.host >= result.ranks.size()) result.ranks.resize(site.host + 1);
    result.ranks[site.host].push_back(rank);
    if (site.rail >= result.leader.size()) result.leader.resize(site.rail + 1);
    std::vector<std::uint32_t>& leaders = result.leader[site.rail];
    if (site.host >= leaders.size()) leaders.resize(site.host + 1, kNoIndex);
    if (leaders[site.host] == kNoIndex) leaders[site.host] = rank;
  }
  return result;
}

// Thread block c of a rank has the steps of chunk c.
class RailLeadersPlan final : public RegularPlan {
 public:
  RailLeadersPlan(const GroupShape& shape, const RailSites& sites)
      : RegularPlan(kRailLeaders, CollectiveKind::all_reduce, shape.ranks), rails_(sites.rails()) {
    steps_.resize(std::size_t{shape.ranks} * rails_);
    for (std::uint32_t rail = 0; rail < rails_; ++rail) add_rail(sites, rail);
  }
  std::uint32_t chunks() const override { return rails_; }
  bool in_place() const override { return true; }
  std::uint32_t blocks(std::uint32_t) const override { return rails_; }
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override {
    return static_cast<std::uint32_t>(list(rank, block).size());
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    return list(rank, block)[index];
  }

 private:
  const std::vector<Step>& list(std::uint32_t rank, std::uint32_t rail) const {
    return steps_[std::size_t{rank} * rails_ + rail];
  }
  void add(std::uint32_t rank, std::uint32_t rail, Step::Kind kind, std::uint32_t peer) {
    Step step;
    step.kind = kind;
    step.source = step.destination = {Buffer::input, rail};
    (kind == Step::Kind::send ? step.to : step.from) = {peer, rail};
    steps_[std::size_t{rank} * rails_ + rail].push_back(step);
  }
  void send(std::uint32_t from, std::uint32_t to, std::uint32_t rail, Step::Kind at_receiver) {
    add(from, rail, Step::Kind::send, to);
    add(to, rail, at_receiver, from);
  }
  // The root of a rail is its leader on another host for each rail, so that hosts share the work.
  void add_rail(const RailSites& sites, std::uint32_t rail) {
    const std::vector<std::uint32_t>& leaders = sites.leader[rail];
    const std::uint32_t root = leaders[rail % leaders.size()];
    for_locals(sites, rail, [&](std::uint32_t rank, std::uint32_t leader) {
      send(rank, leader, rail, Step::Kind::receive_reduce_copy);
    });
    for (const std::uint32_t leader : leaders) {
      if (leader != root) send(leader, root, rail, Step::Kind::receive_reduce_copy);
    }
    for (const std::uint32_t leader : leaders) {
      if (leader != root) send(root, leader, rail, Step::Kind::receive);
    }
    for_locals(sites, rail, [&](std::uint32_t rank, std::uint32_t leader) {
      send(leader, rank, rail, Step::Kind::receive);
    });
  }
  template <class Take>
  static void for_locals(const RailSites& sites, std::uint32_t rail, Take take) {
    for (std::uint32_t host = 0; host < sites.ranks.size(); ++host) {
      const std::uint32_t leader = sites.leader[rail][host];
      for (const std::uint32_t rank : sites.ranks[host]) {
        if (rank != leader) take(rank, leader);
      }
    }
  }

  std::uint32_t rails_;
  std::vector<std::vector<Step>> steps_;  // by rank and rail
};

class RailLeaders final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  PlanTraits traits() const override {
    PlanTraits traits;
    traits.sites = true;
    return traits;
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    if (shape.sites.empty())
      refuse(kRailLeaders, kind, shape.ranks, "needs the hosts and rails of a cluster");
    for (const RankSite& site : shape.sites) {
      if (site.rail == kNoIndex) refuse(kRailLeaders, kind, shape.ranks, "needs a NIC near each rank");
    }
    const RailSites sites = rail_sites(shape.sites);
    for (const std::vector<std::uint32_t>& leaders : sites.leader) {
      bool complete = leaders.size() == sites.ranks.size();
      for (const std::uint32_t leader : leaders) complete = complete && leader != kNoIndex;
      if (!complete) refuse(kRailLeaders, kind, shape.ranks, "needs the same rails at all hosts");
    }
    return std::make_unique<RailLeadersPlan>(shape, sites);
  }
};

const Registration<CollectiveAlgorithm> kRegistration{
    "rail_leaders", "all-reduce in which messages between hosts stay on their rail: a chunk for each rail",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<RailLeaders>(); }};

}  // namespace
}  // namespace netsim
