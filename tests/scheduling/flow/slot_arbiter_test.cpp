// Tests Fastpass' arbiter on fat trees whose links have different delays. The packets of all slots are
// replayed in queues, and none of them may wait.
#include "sim/scheduling/flow/rules/slot_arbiter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

#include "sim/core/random.h"

namespace netsim::slot_arbiter_test {
namespace {

// FatTree: `up` uplinks of each switch, hosts of each rack and racks of each pod.
class FatTree {
 public:
  FatTree(std::uint32_t up, Time packet, Time gap, std::array<Time, 3> delays)
      : up_(up), packet_(packet), gap_(gap), delays_(delays) {
    for (std::uint32_t rack = 0; rack < 2 * up * up; ++rack) pods.push_back(rack / up);
  }
  std::uint32_t hosts() const { return 2 * up_ * up_ * up_; }
  std::uint32_t rack(std::uint32_t host) const { return host / up_; }

  std::vector<SlotPath> paths(std::uint32_t from, std::uint32_t to) {
    std::vector<SlotPath> result;
    const std::uint32_t from_rack = rack(from), to_rack = rack(to);
    const std::uint32_t from_pod = pods[from_rack], to_pod = pods[to_rack];
    for (std::uint32_t up = 0; up < (from_rack == to_rack ? 1 : up_); ++up) {
      for (std::uint32_t core = 0; core < (from_pod == to_pod ? 1 : up_); ++core) {
        SlotPath& path = result.emplace_back();
        path.place = {up, core};
        Time at = 0;
        add(path, at, {0, from, 0, 0}, 0);
        if (from_rack != to_rack) add(path, at, {1, from_rack, up, 0}, 1);
        if (from_pod != to_pod) {
          add(path, at, {2, from_pod, up, core}, 2);
          add(path, at, {3, to_pod, up, core}, 2);
        }
        if (from_rack != to_rack) add(path, at, {4, to_rack, up, 0}, 1);
        add(path, at, {5, to, 0, 0}, 0);
      }
    }
    return result;
  }

  std::vector<std::uint32_t> pods;  // by rack

 private:
  // Adds a port. The packet is at the next one when it has been sent and the link's delay is over.
  void add(SlotPath& path, Time& at, const std::array<std::uint32_t, 4>& port, std::size_t tier) {
    const auto next = static_cast<std::uint32_t>(ports_.size());
    const std::uint32_t number = ports_.try_emplace(port, next).first->second;
    path.steps.push_back({number, at, at + packet_ + gap_});
    at += packet_ + delays_[tier];
  }

  std::uint32_t up_;
  Time packet_, gap_;
  std::array<Time, 3> delays_;
  std::map<std::array<std::uint32_t, 4>, std::uint32_t> ports_;
};

// SlotRun: serves demands slot by slot and keeps the packets.
struct SlotRun {
  struct Packet {
    Time leaves;
    const SlotPath* path;
  };
  FatTree tree;
  Time packet, length;
  std::vector<SlotFlow> flows;
  std::vector<std::vector<SlotPath>> paths;
  std::vector<SlotTurn> turns;
  std::vector<Packet> packets;
  SlotArbiter arbiter;
  std::uint64_t slot = 0;

  SlotRun(std::uint32_t up, Time packet_in, Time gap, std::array<Time, 3> delays)
      : tree(up, packet_in, gap, delays), packet(packet_in), length(packet_in + gap) {}

  void add(std::uint32_t from, std::uint32_t to, std::uint64_t count) {
    SlotFlow& flow = flows.emplace_back();
    static_cast<SlotDemand&>(flow) = {from, to, count, 0};
    flow.from_rack = tree.rack(from);
    flow.to_rack = tree.rack(to);
    paths.push_back(tree.paths(from, to));
  }

  std::vector<SlotGrant> next(SlotOrder order) {
    turns.resize(flows.size());
    for (std::size_t i = 0; i < flows.size(); ++i) {
      flows[i].paths = paths[i];
      flows[i].turn = &turns[i];
    }
    const Time now = static_cast<Time>(slot++) * length;
    const auto grants = arbiter.serve(now, length, flows, tree.hosts(), tree.pods, order);
    for (const SlotGrant& grant : grants) packets.push_back({now, &paths[grant.flow][grant.path]});
    return grants;
  }
};

bool overlap(const SlotPath& a, Time a_begins, const SlotPath& b, Time b_begins) {
  for (const SlotStep& x : a.steps) {
    for (const SlotStep& y : b.steps) {
      if (x.port == y.port && a_begins + x.begin < b_begins + y.end && b_begins + y.begin < a_begins + x.end)
        return true;
    }
  }
  return false;
}

// Replays the packets in first-in-first-out queues. Returns the longest wait of a packet at a port.
Time longest_wait(const SlotRun& run) {
  using Arrival = std::tuple<Time, std::size_t, std::size_t>;  // time, packet, step
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals;
  for (std::size_t i = 0; i < run.packets.size(); ++i) arrivals.emplace(run.packets[i].leaves, i, 0);
  std::map<std::uint32_t, Time> busy_until;
  Time longest = 0;
  while (!arrivals.empty()) {
    const auto [time, packet, step] = arrivals.top();
    arrivals.pop();
    const std::vector<SlotStep>& steps = run.packets[packet].path->steps;
    Time& busy = busy_until[steps[step].port];
    const Time begin = std::max(time, busy);
    longest = std::max(longest, begin - time);
    busy = begin + run.packet;
    if (step + 1 < steps.size())
      arrivals.emplace(begin + steps[step + 1].begin - steps[step].begin, packet, step + 1);
  }
  return longest;
}

// Checks one slot: ends differ, and a flow that was not served has a busy end or no free path.
void check_slot(const SlotRun& run, const std::vector<SlotGrant>& grants) {
  std::set<std::uint32_t> sends, receives, served;
  for (const SlotGrant& grant : grants) {
    EXPECT_TRUE(sends.insert(run.flows[grant.flow].source).second);
    EXPECT_TRUE(receives.insert(run.flows[grant.flow].destination).second);
    EXPECT_GT(run.flows[grant.flow].slots, 0U);
    served.insert(grant.flow);
  }
  const Time now = static_cast<Time>(run.slot - 1) * run.length;
  for (std::uint32_t i = 0; i < run.flows.size(); ++i) {
    const SlotFlow& flow = run.flows[i];
    if (served.contains(i) || flow.slots == 0 || flow.turn->booked != kNever) continue;
    if (sends.contains(flow.source) || receives.contains(flow.destination)) continue;
    for (const SlotPath& path : flow.paths) {
      bool reserved = false;
      for (const SlotRun::Packet& packet : run.packets)
        reserved |= overlap(path, now, *packet.path, packet.leaves);
      for (std::size_t j = 0; j < run.turns.size(); ++j) {
        const SlotTurn& turn = run.turns[j];
        if (turn.booked != kNever)
          reserved |= overlap(path, now, run.paths[j][turn.booked_path], turn.booked);
      }
      EXPECT_TRUE(reserved) << "flow " << i << " could have been served";
    }
  }
}

TEST(SlotArbiter, NoPacketWaitsOnAThousandFatTrees) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    RandomStream random(seed, "slots");
    const auto packet = static_cast<Time>(1000 + random.below(1000));
    const auto gap = static_cast<Time>(random.below(50));
    std::array<Time, 3> delays;
    for (Time& delay : delays) delay = static_cast<Time>(random.below(3000));
    SlotRun run(2, packet, gap, delays);
    std::uint64_t left = 0;
    for (std::uint64_t flows = 2 + random.below(24); flows > 0; --flows) {
      const auto from = static_cast<std::uint32_t>(random.below(16));
      const auto to = static_cast<std::uint32_t>((from + 1 + random.below(15)) % 16);
      const std::uint64_t count = 1 + random.below(5);
      run.add(from, to, count);
      left += count;
    }
    const SlotOrder order = seed % 2 == 0 ? SlotOrder::least_recent : SlotOrder::fewest_left;
    while (left > 0 && run.slot < 2000) {
      const auto grants = run.next(order);
      check_slot(run, grants);
      for (const SlotGrant& grant : grants) {
        --run.flows[grant.flow].slots;
        run.flows[grant.flow].last_slot = run.slot;
        --left;
      }
    }
    EXPECT_EQ(left, 0U) << seed;
    EXPECT_EQ(longest_wait(run), 0) << seed;
    if (HasFailure()) return;
  }
}

// Hosts send to the next pod. All paths have one length, so edge colours serve every host in every slot.
TEST(SlotArbiter, APermutationIsServedInEverySlot) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    RandomStream random(seed, "permutation of slots");
    const auto up = static_cast<std::uint32_t>(2 + seed % 2);
    SlotRun run(up, 1000, 20, {100, 200, 300});
    const std::uint32_t pod = up * up, hosts = run.tree.hosts();
    std::vector<std::uint32_t> to(hosts);
    for (std::uint32_t i = 0; i < hosts; ++i) to[i] = (i + pod) % hosts;
    for (std::uint32_t first = 0; first < hosts; first += pod) {
      for (std::uint32_t i = pod - 1; i > 0; --i) std::swap(to[first + i], to[first + random.below(i + 1)]);
    }
    for (std::uint32_t i = 0; i < hosts; ++i) run.add(i, to[i], 4);
    for (int slot = 0; slot < 4; ++slot) EXPECT_EQ(run.next(SlotOrder::least_recent).size(), hosts);
    EXPECT_EQ(longest_wait(run), 0);
  }
}

// A flow over a short path shares its destination with one over a long path. Without bookings the long one
// would reserve every time at which the short one could arrive.
TEST(SlotArbiter, AShortPathIsServedBesideALongOne) {
  SlotRun run(2, 1000, 0, {0, 500, 0});
  run.add(0, 1, 1000);
  run.add(15, 1, 1000);
  std::array<int, 2> served = {0, 0};
  for (int slot = 0; slot < 400; ++slot) {
    for (const SlotGrant& grant : run.next(SlotOrder::least_recent)) {
      ++served[grant.flow];
      run.flows[grant.flow].last_slot = run.slot;
    }
  }
  EXPECT_GT(served[0], 20);
  EXPECT_GT(served[1], 20);
  EXPECT_EQ(longest_wait(run), 0);
}

}  // namespace
}  // namespace netsim::slot_arbiter_test
