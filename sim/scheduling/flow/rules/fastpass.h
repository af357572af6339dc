// Fastpass' arbiter: it gives each packet a time slot and a path, so that no queue builds up in the network.
// Source: Perry et al., "Fastpass: a centralized 'zero-queue' datacenter network", SIGCOMM 2014, sections
// 3, 4.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace netsim {

// SlotDemand: what one source has for one destination. Several demands may have the same two ends.
struct SlotDemand {
  std::uint32_t source = 0, destination = 0;  // numbers of network interfaces
  std::uint64_t slots = 0;                    // slots, of one packet each, that it still needs
  std::uint64_t last_slot = 0;                // slot in which it was served last; 0: never
};

// SlotOrder: which demand is asked first. The first gives max-min fairness over slots, the second ends short
// demands early. Ties go to the lower number of the demand.
enum class SlotOrder : std::uint8_t { least_recent, fewest_left };

// Returns all demands, by index, in the order in which they are asked.
std::vector<std::uint32_t> asked_in_order(std::span<const SlotDemand> demands, SlotOrder order);

// Returns the demands served in one slot, in the order in which they were asked. Each source sends one packet
// at most, and each destination gets one. The matching is maximal: any other demand has a busy end. Demands
// that need no slot are left out. `interfaces` is above all numbers of ends.
std::vector<std::uint32_t> maximal_matching(std::span<const SlotDemand> demands, std::uint32_t interfaces,
                                            SlotOrder order);

// Serves the demands of each slot from `slot` on, `count` slots, and returns them by slot. It counts down
// `slots` and sets `last_slot`. `slot` is at least 1.
std::vector<std::vector<std::uint32_t>> allocate_slots(std::span<SlotDemand> demands,
                                                       std::uint32_t interfaces, std::uint64_t slot,
                                                       std::uint64_t count, SlotOrder order);

// Returns a colour for each edge (left node, right node), so that the edges of a node have different colours.
// Colours are numbers from 0, fewer than or as many as the largest number of edges at a node (Koenig). With
// racks as nodes and packets of a slot as edges, a colour is the spine of the path. `nodes` is above all
// numbers.
std::vector<std::uint32_t> edge_colours(std::span<const std::pair<std::uint32_t, std::uint32_t>> edges,
                                        std::uint32_t nodes);

// ClosPath: the way of a packet through a fat tree: the uplink that its rack's switch takes, and the uplink
// that the switch above takes. Both count from 0; `core` is 0 for packets that stay in a pod.
struct ClosPath {
  std::uint32_t aggregation = 0, core = 0;
  bool operator==(const ClosPath&) const = default;
};

// Returns the paths of packets between racks in a tree of two levels above the racks. No two packets share a
// link if no rack sends or gets more packets than it has uplinks. Pods then need as many uplinks to each core
// group as they have racks. `pod_of` has the pod of each rack. Packets with equal ends need no path, and get
// 0.
std::vector<ClosPath> clos_paths(std::span<const std::pair<std::uint32_t, std::uint32_t>> packets,
                                 std::span<const std::uint32_t> pod_of);

}  // namespace netsim
