// fct.txt as users of HPCC's family of ns-3 simulators know it (third.cc, qp_finish): a line for each flow
// that is over,
//
//   sip dip sport dport size start fct ideal
//
// - addresses in hexadecimal: 0b00NN01 with the node's number in the file for NN (two bytes);
// - the source's port: 10000 and the number of the flow among those of its two nodes; the destination's is
//   that of flow.txt;
// - times in whole nanoseconds; a flow is over when its last acknowledgement is back at the sender;
// - ideal: the tool's own estimate, base round trip + (size + 48 B a packet) / bandwidth. The round trip is
//   that of a data packet of full payload without headers and of an answer that takes no time to send, the
//   bandwidth the least on the way; equal-cost ways have the same in the trees that the tool is used with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/topology/topology.h"
#include "sim/transport/packet_network.h"

namespace netsim {

class Ns3Fct {
 public:
  // `payload` of a packet; `ports`: TaskSource::ns3_ports(). Both must outlive this.
  Ns3Fct(const Cluster& cluster, Bytes payload, const std::vector<std::uint16_t>& ports);
  // With the line break.
  std::string line(const FlowRecord& flow) const;

 private:
  std::uint32_t number(std::uint32_t gpu) const;
  // In ns, as the tool has it.
  std::int64_t ideal(const SendRequest& flow) const;

  const Cluster& cluster_;
  Bytes payload_;
  const std::vector<std::uint16_t>& ports_;
};

}  // namespace netsim
