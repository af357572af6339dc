// infragraph: a host as a device of an InfraGraph document describes it (files/infragraph/infragraph.h). It
// has the device's xpus, CPUs, switches, slots and NICs, and a host port for each link of its instances to
// others. The device is the one that has xpus and is instantiated. Parameters select it where there are
// several, or where its instances are not linked alike.
#include <string>

#include "sim/core/named_file.h"
#include "sim/core/registry.h"
#include "sim/topology/files/infragraph/infragraph.h"

namespace netsim {

namespace {

struct InfragraphHostParameters : DescribedHostParameters {
  InfragraphHostParameters() { nvlink_rate = 12 * 8 * 20 * kGbps; }
};

Parameters<InfragraphHostParameters> infragraph_parameters() {
  using P = InfragraphHostParameters;
  Parameters<P> p = with_file(Parameters<P>(), "the InfraGraph document (YAML, JSON or protobuf)");
  p.text("device", &P::device, "the device with xpus that is the host, where there are several")
      .text("instance", &P::instance, "an instance of the host, where there are several kinds: host.3")
      .rate("nvlink_rate", &P::nvlink_rate, kLinkRates,
            "usable rate of an xpu's NVLinks together, each way, where the file states neither a figure nor "
            "a known name (A100)")
      .bytes("nvlink_piece", &P::nvlink_piece, {4 * kKibibyte, 16 * kMebibyte},
             "size of the pieces of bulk copies over NVLink")
      .time("nvlink_delay", &P::nvlink_delay, kHostDelays,
            "delay of NVLinks for which the file states no latency (SimAI: 25 ns)")
      .time("nvswitch_latency", &P::nvswitch_latency, kHostDelays,
            "time from a piece's first byte into the NVSwitch stage to its first byte out (assumed)");
  return with_pcie_tree(std::move(p));
}

const Registration<Host> kInfragraph{
    "infragraph", "a host as a device of an InfraGraph document describes it", infragraph_parameters(),
    [](const InfragraphHostParameters& p, const ConfigNode& where) {
      return described_host(read_infragraph_file(where), p, where);
    }};

}  // namespace

}  // namespace netsim
