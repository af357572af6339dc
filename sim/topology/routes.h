// Routes: the next hops of packets in a fabric, and their virtual channels.
//
// A virtual channel is a queue and a buffer of its own on a link (Dally, Virtual-Channel Flow Control, ISCA
// 1990). Where routes form cycles, as in a ring, packets change their channel along the route. Then no cycle
// of full buffers can wait for itself (Dally and Seitz, IEEE Transactions on Computers, 1987). Fabrics
// without such cycles need one channel.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/topology/graph.h"

namespace netsim {

// A hop: the port by which a packet leaves a node, and its virtual channel on that link.
struct Hop {
  PortId port = kNoId;
  std::uint32_t channel = 0;
  friend bool operator==(const Hop&, const Hop&) = default;
};

// The routes that packets may take besides the shortest ones. This decides how many channels they need.
enum class RoutingFreedom : std::uint8_t {
  none,     // packets take next_hops() only
  detours,  // they may visit an intermediate first (Valiant and Brebner, STOC 1981)
  // They may take any shortest route, chosen by load, with escape channels (Duato, IEEE TPDS, 1993).
  adaptive
};

// The state of a packet at a fabric switch, as far as routing depends on it.
struct Waypoint {
  NodeId at = kNoId;
  Hop came;                           // the link by which the packet arrived, and its channel there
  NodeId destination = kNoId;         // a NIC
  std::uint32_t via = kNoId;          // number of the intermediate still to be visited; kNoId: none
  bool reached_intermediate = false;  // the packet reached its intermediate at this switch
  std::uint32_t choice = 0;           // resolves ties; below Routes::choices(), constant along the route
};

struct HostPort;

class Routes {
 public:
  virtual ~Routes() = default;
  // Returns the equal-cost next hops of the direct route, in a stable order. `at` is a NIC or a fabric
  // switch, `destination` a NIC. Regular topologies compute them by arithmetic, without a table of all hosts.
  // The span stays valid as long as the graph, also when the graph is moved. It is empty only where links
  // that are down leave no route.
  virtual std::span<const PortId> next_hops(NodeId at, NodeId destination) const = 0;

  // Returns the number of virtual channels of each link: what packets of such freedom need, or what the user
  // gave.
  virtual std::uint32_t channels(RoutingFreedom) const { return 1; }
  // Appends the hops that a packet may take at a switch. Each leads to its intermediate, if it has one, else
  // to its destination. A packet may wait in the queue of any of them, so their channel dependencies must not
  // form a cycle.
  virtual void add_hops(const Waypoint& packet, std::vector<Hop>& hops) const;
  // Appends the hops that the packet may take only while it need not wait for them
  // (RoutingFreedom::adaptive). They are all shortest routes, in channels that add_hops() does not use. It
  // appends nothing where the fabric has no such routes, or at the last switch.
  virtual void add_adaptive_hops(const Waypoint&, std::vector<Hop>&) const {}
  // Returns the channel of add_adaptive_hops(); kNoId: there is none.
  virtual std::uint32_t adaptive_channel() const { return kNoId; }
  // Returns the number of ways to resolve ties that must be resolved alike at all hops of a route.
  virtual std::uint32_t choices() const { return 1; }

  // Returns the number of intermediates for detours; 0: the fabric has none.
  virtual std::uint32_t intermediates() const { return 0; }
  // Returns whether a packet at this switch, or NIC, has reached the intermediate.
  virtual bool passes(NodeId, std::uint32_t /*via*/) const { return true; }

  // Returns the reason why the channel dependencies have no cycle, whatever the sizes; "": they must be
  // searched.
  virtual const char* free_of_cycles() const { return ""; }
  // Returns for users how packets are assigned to virtual channels; "": the topology's kind implies it.
  virtual std::string channels_in_words() const { return {}; }

  // Returns the routes while no port with `down` true carries packets, in at most `channels` channels. The
  // default is shortest routes (up_routes.h) with channels by hops (hop_ordered_routes.h). `nics` are those
  // of all packet fabrics of the cluster.
  virtual std::unique_ptr<Routes> without(const Graph& graph, std::span<const HostPort> nics,
                                          const std::vector<bool>& down, std::uint32_t channels) const;
};

}  // namespace netsim
