// Routes: where packets may go in a fabric, and in which virtual channels.
//
// A virtual channel is a queue and a buffer of its own on a link (Dally, Virtual-Channel Flow Control, ISCA
// 1990). Where ways turn back on themselves, as round a ring, packets change their channel on the way, so
// that no circle of full buffers can come to wait for itself (Dally and Seitz, IEEE Transactions on
// Computers, 1987). Fabrics without such circles need one channel, and none of what is said of channels here.
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

// What packets may do besides going straight: it decides how many channels they need.
enum class Freedom : std::uint8_t {
  none,     // they take next hops only
  detours,  // or go to an intermediate first (Valiant and Brebner, STOC 1981)
  adaptive  // or take any shortest way by what they meet, with an escape (Duato, IEEE TPDS, 1993)
};

// A packet at a fabric switch, as far as routing has to know it.
struct Waypoint {
  NodeId at = kNoId;
  Hop came;                    // the link that it came over and its channel there
  NodeId destination = kNoId;  // NIC
  std::uint32_t via = kNoId;   // the intermediate that it still has to pass
  bool turned = false;         // it has passed its intermediate here
  std::uint32_t choice = 0;    // below Routes::choices(); the same all the way
};

struct HostPort;

class Routes {
 public:
  virtual ~Routes() = default;
  // Equally good next hops on the straight way, in a stable order; by arithmetic where the shape allows, so
  // that no table of all hosts exists. `at`: a NIC or a fabric switch; `destination`: a NIC node. Empty only
  // where links that are down leave no way. The span stays valid as long as the graph, and when it is moved.
  virtual std::span<const PortId> next_hops(NodeId at, NodeId destination) const = 0;

  // Virtual channels of each link that packets of such freedom need, or that the user gave.
  virtual std::uint32_t channels(Freedom) const { return 1; }
  // Appends the hops that the packet may take at a switch, each of which leads on to its destination, or to
  // its intermediate first. All that it may wait for in a queue: together they must not run in circles.
  virtual void add_hops(const Waypoint& packet, std::vector<Hop>& hops) const;
  // Appends what it may take besides while it need not wait for it (Freedom::adaptive): all shortest ways, in
  // channels that add_hops() does not use. Empty: the fabric has no such ways, or is just before the end.
  virtual void add_adaptive_hops(const Waypoint&, std::vector<Hop>&) const {}
  // Which channel those are in; kNoId: there is none.
  virtual std::uint32_t adaptive_channel() const { return kNoId; }
  // In how many ways ties are decided that have to be decided alike all along a way.
  virtual std::uint32_t choices() const { return 1; }

  // Intermediates of ways that are not straight: numbers below this; 0: the fabric has none.
  virtual std::uint32_t intermediates() const { return 0; }
  // Whether a packet at this switch, or NIC, has passed the intermediate.
  virtual bool passes(NodeId, std::uint32_t /*via*/) const { return true; }

  // Why no circle of waiting packets can come to be, whatever the sizes; "": it has to be looked for.
  virtual const char* free_of_circles() const { return ""; }
  // How packets come to their virtual channels, for people; "": the shape of the fabric says it.
  virtual std::string channels_in_words() const { return {}; }

  // Routes over what is left while the ports of which `down` is true carry nothing, in at most so many
  // channels: the shortest ways (lit_routes.h), the channel by hops (hop_ordered_routes.h), unless the fabric
  // has a rule of its own for that. `nics`: of all packet fabrics of the cluster.
  virtual std::unique_ptr<Routes> without(const Graph& graph, std::span<const HostPort> nics,
                                          const std::vector<bool>& down, std::uint32_t channels) const;
};

}  // namespace netsim
