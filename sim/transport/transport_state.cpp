#include "sim/transport/transport_state.h"

#include <bit>

namespace netsim {
namespace {

// Address space is set aside for so many.
constexpr std::size_t kMaxQueuePairs = std::size_t{1} << 26;

std::vector<std::uint8_t> ask_shifts(const TransportParameters& parameters, const CongestionNeeds& needs,
                                     const Cluster& cluster) {
  std::vector<std::uint8_t> shifts;
  const Acknowledging common = acknowledging(parameters, needs, cluster);
  for (const HostGroup& group : cluster.groups) {
    const std::int64_t every = common.every.value_or(group.acknowledge_every);
    shifts.push_back(static_cast<std::uint8_t>(std::countr_zero(static_cast<std::uint64_t>(every))));
  }
  return shifts;
}

}  // namespace

TransportState::TransportState(const Cluster& cluster_in, const ConfigNode& node)
    : cluster(cluster_in),
      parameters(read_transport(node)),
      framing(netsim::framing(parameters.framing)),
      reliability(reliability_plan(parameters)),
      congestion_control(make_congestion_control(parameters)),
      needs(congestion_control->needs()),
      ask_shift(ask_shifts(parameters, needs, cluster)),
      echo_in_acks(needs.ack_echo || parameters.ecn_echo == EcnEcho::ack),
      stamps(needs.telemetry || needs.timestamps),
      senders(kMaxQueuePairs),
      receivers(kMaxQueuePairs),
      records(kMaxQueuePairs),
      outstanding(kMaxQueuePairs),
      selective_senders(kMaxQueuePairs),
      selective_receivers(kMaxQueuePairs),
      state_stride(sizeof(PathConstants) + (needs.state_bytes + 15) / 16 * 16),
      congestion(kMaxQueuePairs * state_stride),
      injector_of_port(cluster.graph.port_count(), kNone),
      gate_of_port(cluster.graph.port_count(), kNone) {}

}  // namespace netsim
