// AggregationPool: a pool of slots in the switches of an all-reduce tree, and how its members use it
// (slot_pool.h). A packet that is lost on a link is sent again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sim/core/units.h"
#include "sim/network/aggregation/number_format.h"
#include "sim/network/aggregation/switch_sums.h"

namespace netsim {

// BestEffort: how members use switches that add up what finds a free aggregator (aggregator_table.h). One
// member is the parameter server, which completes the sums and sends the results.
struct BestEffort {
  std::uint32_t window = 0;       // largest number of packets in flight of a worker; 0: not best-effort
  Bytes increase = 0;             // bytes that are added to the window after a window without marks
  std::uint32_t server = 0;       // the parameter server, by its number among the members
  std::uint32_t aggregators = 0;  // aggregators of a switch that only this job uses; 0: all are shared
};

struct AggregationPool {
  std::uint32_t slots = 0;  // a power of two; 0: no pool, nothing is sent again and sums complete in order
  Bytes payload = 0;        // bytes of data of a packet; 0: those of the transport
  Bytes header = 0;         // bytes of headers of a packet; 0: those of the transport
  Time timeout = 0;         // time until a packet without its sum is sent again; 0: that of the transport
  // The timeout doubles after so many timeouts of a member. It is the first one again when a message begins
  // with nothing in flight. 0: it stays as it is.
  std::uint32_t timeouts_to_double = 0;
  // Packets of a message, a power of two that is at most `slots`. Members then take sums in order and go back
  // after a gap, and they move their window by whole messages. 0: each slot sends at its own pace.
  std::uint32_t message = 0;
  // Without slots: whether switches that do not add up may be in the tree. They forward packets one by one,
  // as they always do with slots.
  bool passes = false;
  // How switches keep the sums (switch_sums.h); null: as slot_pool.h.
  std::shared_ptr<const SwitchProtocol> protocol = nullptr;

  // The format to which hosts convert the data; nullopt: switches add that of the data.
  std::optional<NumberFormat> format = std::nullopt;

  // With a window `slots` is at least as large, and switches keep no sums by slot.
  BestEffort best_effort = {};

  // Returns whether unfinished sums leave switches (SwitchProtocol).
  bool leaves_unfinished() const { return protocol != nullptr && protocol->leaves_unfinished(); }
  // Returns the number of sums that a switch keeps.
  std::uint32_t kept() const { return protocol == nullptr ? 2 * slots : protocol->kept(slots); }
};

}  // namespace netsim
