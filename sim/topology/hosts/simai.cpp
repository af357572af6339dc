// simai: a server of a topology of SimAI (files/simai.h). It has its GPUs with their NVSwitches, and a NIC
// for each link of a GPU to a switch. The tool has no delay between a GPU and its NIC, and none in an
// NVSwitch.
#include <string>

#include "sim/core/named_file.h"
#include "sim/core/registry.h"
#include "sim/topology/files/simai.h"

namespace netsim {

namespace {

struct SimaiHostParameters : DescribedHostParameters {
  SimaiHostParameters() { nvswitch_latency = 0; }
};

Parameters<SimaiHostParameters> simai_parameters() {
  using P = SimaiHostParameters;
  Parameters<P> p = with_file(Parameters<P>(), "SimAI's topology");
  p.text("instance", &P::instance, "a server of the host's kind, where there are several kinds: server0")
      .bytes("nvlink_piece", &P::nvlink_piece, {4 * kKibibyte, 16 * kMebibyte},
             "size of the pieces of bulk copies over NVLink")
      .time(
          "nvswitch_latency", &P::nvswitch_latency, kHostDelays,
          "time from a piece's first byte into the NVSwitch stage to its first byte out; the tool has none");
  return p;
}

const Registration<Host> kSimai{
    "simai", "a server of a topology of SimAI: GPUs, NVSwitches, and a NIC for each link to a switch",
    simai_parameters(), [](const SimaiHostParameters& p, const ConfigNode& where) {
      const InputText input = read_named_file(where, "simai_topology", kMaxInputFile);
      return described_host(parse_simai_topology(input.text, input.path, true), p, where);
    }};

}  // namespace

}  // namespace netsim
