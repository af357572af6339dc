#include "sim/report/ns3_fct.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/workload/task.h"

namespace netsim {
namespace {

constexpr std::uint32_t kFirstPort = 10'000;
// 14 B for PPP, 20 for IPv4, 8 for UDP, 6 for sequence and group; without telemetry
constexpr Bytes kHeaders = 48;

// Returns the address 11.x.x.1, where x.x is the node's number in two bytes.
std::uint32_t address(std::uint32_t node) { return 0x0b000001U + ((node & 0xffffU) << 8); }

}  // namespace

Ns3Fct::Ns3Fct(const Cluster& cluster, Bytes payload, const std::vector<std::uint16_t>& ports)
    : cluster_(cluster), payload_(payload), ports_(ports) {}

std::string Ns3Fct::line(const FlowRecord& flow) const {
  const SendRequest& request = flow.request;
  const std::uint32_t number_in_file = request.name & ~kNumberedName;
  const Time end = flow.acknowledged > 0 ? flow.acknowledged : flow.end;
  return fmt::format("{:08x} {:08x} {} {} {} {} {} {}\n", address(number(request.source)),
                     address(number(request.destination)), kFirstPort + request.traits.channel,
                     number_in_file < ports_.size() ? ports_[number_in_file] : 0, request.bytes,
                     flow.start / kNanosecond, (end - flow.start) / kNanosecond, ideal(request));
}

std::uint32_t Ns3Fct::number(std::uint32_t gpu) const {
  return gpu < cluster_.host_numbers.size() ? cluster_.host_numbers[gpu] : gpu;
}

std::int64_t Ns3Fct::ideal(const SendRequest& flow) const {
  constexpr std::int64_t kPerSecond = 1'000'000'000;
  const Cluster::NicEnds ends = cluster_.nic_ends(flow.source, flow.destination, flow.traits.channel);
  const NodeId destination = ends.to.nic;
  std::int64_t round_trip = 0;
  BitRate slowest = std::numeric_limits<BitRate>::max();
  NodeId at = ends.from.nic;
  while (at != destination) {
    const auto hops = cluster_.routes->next_hops(at, destination);
    if (hops.empty()) break;
    const PortSpec& port = cluster_.graph.port(hops.front());
    round_trip += 2 * (port.link.delay / kNanosecond) + payload_ * 8 * kPerSecond / port.link.rate;
    slowest = std::min(slowest, port.link.rate);
    at = port.peer_node;
  }
  const Bytes packets = (flow.bytes - 1) / payload_ + 1;
  const Int128 bits = static_cast<Int128>(flow.bytes + packets * kHeaders) * 8;
  return round_trip + static_cast<std::int64_t>(bits * kPerSecond / slowest);
}

}  // namespace netsim
