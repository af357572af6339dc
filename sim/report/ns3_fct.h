// Ns3Fct: writes fct.txt in the format of HPCC's family of ns-3 simulators (third.cc, qp_finish). It has a
// line for each flow that ended:
//
//   sip dip sport dport size start fct ideal
//
// - addresses in hexadecimal: 0b00NN01, where NN is the node's number in the file (two bytes).
// - the source's port: 10000 plus the number of the flow among those of its two nodes. The destination's
//   port is that of flow.txt.
// - times in whole nanoseconds; a flow ends when its last acknowledgement is back at the sender.
// - ideal: the tool's own estimate, base round trip + (size + 48 B per packet) / bandwidth.
//
// The round trip is that of a data packet of full payload without headers and an answer of zero transmission
// time. The bandwidth is the lowest on the route. Equal-cost routes have the same bandwidth in the trees that
// the tool is used with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/topology/topology.h"
#include "sim/transport/packet_network.h"

namespace netsim {

class Ns3Fct {
 public:
  // `payload` is that of a packet, in bytes; `ports` is TaskSource::ns3_ports(). `cluster` and `ports` must
  // outlive this.
  Ns3Fct(const Cluster& cluster, Bytes payload, const std::vector<std::uint16_t>& ports);
  // Returns the flow's line, with its line break.
  std::string line(const FlowRecord& flow) const;

 private:
  std::uint32_t number(std::uint32_t gpu) const;
  // Returns the ideal time in ns, computed as the tool does.
  std::int64_t ideal(const SendRequest& flow) const;

  const Cluster& cluster_;
  Bytes payload_;
  const std::vector<std::uint16_t>& ports_;
};

}  // namespace netsim
