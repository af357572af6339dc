// OpenLinks: the links that packets of one flow may take where every switch routes each packet.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/fabric_state.h"

namespace netsim {

class OpenLinks {
 public:
  explicit OpenLinks(const FabricState& state) : state_(state) {}
  // Returns the ports by which a packet that came by `entry` may leave switches on its way to the NIC.
  // Present routes decide, without detours. Nearer ones come first. Valid until the next call.
  std::span<const PortId> toward(PortId entry, NodeId nic);

 private:
  // Marks `index` as seen by this search and returns whether it was not seen before.
  bool is_new(std::vector<std::uint32_t>& seen, std::size_t index) const;
  void add_hops(const Hop& came, NodeId at, NodeId nic);

  const FabricState& state_;
  std::uint32_t search_ = 0;
  // Number of the last search that reached each node, port, and pair of port and channel.
  std::vector<std::uint32_t> seen_nodes_, seen_ports_, seen_hops_;
  std::vector<Hop> queue_, hops_;
  std::vector<PortId> ports_;
};

}  // namespace netsim
