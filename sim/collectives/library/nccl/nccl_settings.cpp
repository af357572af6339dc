#include "sim/collectives/library/nccl/nccl_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/named_file.h"
#include "sim/core/output.h"

namespace netsim {

NcclSettings read_nccl_settings(const CollectivesParameters& parameters) {
  NcclSettings settings;
  if (!parameters.nccl_algo.is_null()) settings.rules.set_algorithms(parameters.nccl_algo);
  if (!parameters.nccl_proto.is_null()) settings.rules.set_protocols(parameters.nccl_proto);
  if (!parameters.tuner.is_null()) settings.rules.read_tuner(parameters.tuner);
  if (!parameters.graph.is_null()) {
    const std::string path = find_input_file(read_text(parameters.graph), parameters.graph.place());
    settings.graph = read_nccl_graph(read_file(path, kLargestDescription), path);
  }
  if (settings.rules.lists_protocols() && parameters.protocol)
    parameters.nccl_proto.fail("it lists what may be chosen: 'protocol: auto' lets NCCL choose");
  return settings;
}

void check_gpus(const NcclGraph& file, const Endpoint& network) {
  const NcclGraph::Graph& graph = file.graphs.front();
  std::map<std::uint32_t, std::uint32_t> gpus;  // by host
  for (std::uint32_t gpu = 0; gpu < network.gpu_count(); ++gpu) ++gpus[network.site(gpu).host];
  std::uint32_t most = 0;
  for (const auto& [host, count] : gpus) most = std::max(most, count);
  for (const NcclGraph::Channel& channel : graph.channels) {
    for (const NcclGraph::Device& gpu : channel.gpus) {
      if (gpu.number < most) continue;
      throw InputError(channel.place, fmt::format("GPU {:#x}, and the hosts have {} GPUs at most (from 0 on)",
                                                  gpu.number, most));
    }
  }
}

}  // namespace netsim
