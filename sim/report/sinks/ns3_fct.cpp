// fct.txt in the format of HPCC's family of ns-3 simulators (third.cc, qp_finish). It has a
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
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/registry.h"
#include "sim/report/csv_table.h"
#include "sim/report/result_sink.h"
#include "sim/workload/readers/ns3_flows.h"
#include "sim/workload/task.h"

namespace netsim {
namespace {

constexpr std::uint32_t kFirstPort = 10'000;
// 14 B for PPP, 20 for IPv4, 8 for UDP, 6 for sequence and group; without telemetry
constexpr Bytes kHeaders = 48;

// Returns the address 11.x.x.1, where x.x is the node's number in two bytes.
std::uint32_t address(std::uint32_t node) { return 0x0b000001U + ((node & 0xffffU) << 8); }

class Ns3Fct : public ResultSink, public Receives<FlowRecord> {
 public:
  std::vector<std::string> files() const override { return {"fct.txt"}; }
  bool in_every_run() const override { return true; }
  // Only a run of a flow list in ns-3's notation has the file.
  bool open(SinkFiles& files, const RunView& run) override {
    if (run.jobs.size() != 1 || run.cluster == nullptr) return false;
    const auto* list = dynamic_cast<const Ns3FlowList*>(run.jobs.front().source);
    if (list == nullptr) return false;
    ports_ = &list->ports();
    cluster_ = run.cluster;
    payload_ = run.payload;
    lines_.emplace(files.open("fct.txt"), "", run.output.max_rows);
    return true;
  }
  void add(const FlowRecord& flow) override {
    if (lines_->begin_row()) lines_->line(line_of(flow));
  }
  void finish(const FinishedRun& /*run*/, SinkFiles& /*files*/) override {}
  std::vector<std::string> notes() const override { return lines_->notes(); }

 private:
  // Returns the flow's line, without its line break.
  std::string line_of(const FlowRecord& flow) const;
  std::uint32_t number(GpuId gpu) const;
  // Returns the ideal time in ns, computed as the tool does.
  std::int64_t ideal(const FlowRecord& flow) const;

  const Cluster* cluster_ = nullptr;
  Bytes payload_ = 0;
  const std::vector<std::uint16_t>* ports_ = nullptr;
  std::optional<CsvTable> lines_;
};

std::string Ns3Fct::line_of(const FlowRecord& flow) const {
  const Message& message = flow.message;
  const std::uint32_t number_in_file = message.name & ~kNumberedName;
  const Time end = flow.acknowledged > 0 ? flow.acknowledged : flow.end;
  return fmt::format("{:08x} {:08x} {} {} {} {} {} {}", address(number(message.source)),
                     address(number(message.destination)), kFirstPort + message.traits.channel,
                     number_in_file < ports_->size() ? (*ports_)[number_in_file] : 0, flow.bytes,
                     flow.start / kNanosecond, (end - flow.start) / kNanosecond, ideal(flow));
}

std::uint32_t Ns3Fct::number(GpuId gpu) const {
  return gpu < cluster_->host_numbers.size() ? cluster_->host_numbers[gpu] : std::uint32_t{gpu};
}

std::int64_t Ns3Fct::ideal(const FlowRecord& flow) const {
  constexpr std::int64_t kPerSecond = 1'000'000'000;
  const Message& message = flow.message;
  const Cluster::NicEnds ends =
      cluster_->nic_ends(message.source, message.destination, message.traits.channel);
  const NodeId destination = ends.to.nic;
  std::int64_t round_trip = 0;
  BitRate slowest = std::numeric_limits<BitRate>::max();
  NodeId at = ends.from.nic;
  while (at != destination) {
    const auto hops = cluster_->routes->next_hops(at, destination);
    if (hops.empty()) break;
    const PortSpec& port = cluster_->graph.port(hops.front());
    round_trip += 2 * (port.link.delay / kNanosecond) + payload_ * 8 * kPerSecond / port.link.rate;
    slowest = std::min(slowest, port.link.rate);
    at = port.peer_node;
  }
  const Bytes packets = (flow.bytes - 1) / payload_ + 1;
  const Int128 bits = static_cast<Int128>(flow.bytes + packets * kHeaders) * 8;
  return round_trip + static_cast<std::int64_t>(bits * kPerSecond / slowest);
}

const Registration<ResultSink> kNs3FctRegistration{
    "ns3_fct", "fct.txt: a line for each flow of an ns-3 flow.txt, as HPCC's simulator writes it",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Ns3Fct>(); }};

}  // namespace
}  // namespace netsim
