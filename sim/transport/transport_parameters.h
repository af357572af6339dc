// Parameters of the section `transport` of the configuration, and values derived from them. Private to the
// packet network.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/topology/topology.h"
#include "sim/transport/congestion/congestion_control.h"
#include "sim/transport/packet_network.h"
#include "sim/transport/reliability/reliability.h"

namespace netsim {

// Bytes that packets carry besides payload, as buffers count them.
struct Framing {
  std::uint32_t header = 0;        // in every data packet
  std::uint32_t first_header = 0;  // in addition in a message's first packet
  std::uint32_t ack = 0;           // a whole ACK or NACK
  std::uint32_t cnp = 0;           // a whole congestion notification
};

enum class FramingKind : std::uint8_t { roce_v2, infiniband, ns3 };
Framing framing(FramingKind kind);

enum class EcnEcho : std::uint8_t { cnp, ack };

// The key `transport.acknowledge`.
struct AcknowledgeParameters {
  std::optional<std::int64_t> every;  // a power of two; PacketNetwork::acknowledging() gives the default
};

// Largest number of levels of priority at a NIC.
inline constexpr std::uint32_t kMaxNicLevels = 8;

// The section `transport`.
struct TransportParameters {
  Bytes mtu = 4096;
  std::int64_t queue_pairs = 4;
  AcknowledgeParameters acknowledge;
  FramingKind framing = FramingKind::roce_v2;
  EcnEcho ecn_echo = EcnEcho::cnp;
  Time cnp_delay = 0;
  Bytes nic_buffer = 64 * kKibibyte;
  std::int64_t nic_priorities = 1;
  ConfigNode reliability;
  Time retransmission_timeout = 67'108'864 * kNanosecond;
  std::int64_t retransmission_backoff = 1;
  std::int64_t retries = 7;
  Bytes window = 0;
  bool window_scales = false;
  Time base_rtt = 0;
  ConfigNode congestion_control;
  ConfigNode fabrics;
};

// Returns the keys that the section accepts.
const ParameterTable& transport_parameter_table();
// Reads the section. Throws ConfigError.
TransportParameters read_transport(const ConfigNode& section);
// Returns the parameters of a fabric: `common` with the changes of the fabric's section in
// `transport.fabrics`. `section` may be null for no changes.
TransportParameters fabric_transport(const TransportParameters& common, const ConfigNode* section);
// Create the components that the parameters name.
std::unique_ptr<CongestionControl> make_congestion_control(const TransportParameters& parameters);
std::unique_ptr<Reliability> make_reliability(const TransportParameters& parameters);
// Returns the component's plan with the transport's timeouts and retries.
ReliabilityPlan reliability_plan(const TransportParameters& parameters, const Reliability& reliability);
// Implements PacketNetwork::acknowledging().
Acknowledging acknowledging(const TransportParameters& parameters, const CongestionNeeds& needs,
                            const Cluster& cluster);

}  // namespace netsim
