// NCCL's cost model (src/graph/tuning.cc, 2.30): what it believes that a collective takes by each protocol,
// and so which one it uses. The latencies are those of the section `collectives`, the bandwidths the tables'
// own.
//
// It is a choice and no timing: what the chosen protocol takes is simulated. So the model's caps on bandwidth
// (llMaxBws, perChMaxRingLL128Bws, ...) decide where protocols change and slow nothing down.
#pragma once

#include <optional>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/execution/collectives_parameters.h"
#include "sim/collectives/execution/communicator_layout.h"

namespace netsim {

// One collective, as the model sees it.
struct TuningCase {
  CollectiveKind kind = CollectiveKind::all_reduce;
  CostFamily family = CostFamily::ring;
  Bytes bytes = 0;
  std::uint32_t ranks = 2;
  std::uint32_t nodes = 1;  // what NVLink or PCIe joins
  std::uint32_t channels = 1;
  bool nvlink = true;    // within a node
  double bandwidth = 0;  // GB/s of all channels together: the model's bus bandwidth
  GpuGeneration generation = GpuGeneration::ampere;
};

// Microseconds; nothing where NCCL does not use the protocol.
std::optional<double> estimated_time(const TuningCase& one, Protocol protocol,
                                     const CollectivesParameters& parameters);
// The one that takes least; of equal ones the first of kProtocols.
Protocol chosen_protocol(const TuningCase& one, const CollectivesParameters& parameters);

// What a group's links give a ring or a tree. Of a NIC's rate the model takes 12 GB/s of each 12.5
// (src/graph/topo.h, NET_BW).
double model_bandwidth(const CommunicatorLayout& layout);
// Of a GPU by its model's name in the configuration, such as a100_80gb; nothing if that is not known.
std::optional<GpuGeneration> generation_of(const std::string& gpu_model);

}  // namespace netsim
