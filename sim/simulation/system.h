// System: everything that a configuration describes: cluster, engine, network, collective library and GPUs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "sim/compute/compute_devices.h"
#include "sim/compute/gpu_models.h"
#include "sim/core/config.h"
#include "sim/core/engine.h"
#include "sim/report/output_parameters.h"
#include "sim/scheduling/flow/scheduled_endpoint.h"
#include "sim/scheduling/flow/split_endpoint.h"
#include "sim/scheduling/job/phase_recorder.h"
#include "sim/scheduling/scheduling_parameters.h"
#include "sim/topology/partition.h"
#include "sim/topology/structure.h"
#include "sim/topology/topology.h"
#include "sim/transport/circuit_control.h"
#include "sim/transport/packet_network.h"
#include "sim/workload/workload.h"

namespace netsim {

class System {
 public:
  // `root` must outlive the system. `threads` is the number of threads; 0: one for each core. Throws
  // ConfigError for an invalid configuration.
  System(const ConfigNode& root, std::uint64_t seed, std::uint32_t threads,
         PacketNetwork::FlowObserver observer);

  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  const Cluster& cluster() const { return cluster_; }
  Executor& executor() { return *executor_; }
  const Executor& executor() const { return *executor_; }
  ComputeDevices& devices() { return *devices_; }
  // Return null for `network: ideal`.
  const PacketNetwork* packets() const { return packets_; }
  PacketNetwork* packets() { return packets_; }
  // Return null if the configuration names no flow scheduler.
  const ScheduledEndpoint* flows() const { return flows_; }
  ScheduledEndpoint* flows() { return flows_; }
  // Returns null if the configuration names no flow splitter.
  const SplitEndpoint* splits() const { return splits_; }
  // Returns null if the job scheduler does not ask for the phases of jobs.
  PhaseRecorder* phases() { return phases_; }
  // Returns null if the network has no optical circuits that jobs can request.
  CircuitControl* circuits() { return circuits_; }
  // Returns the structure of the cluster, with its bisection while all links that faults take down are down.
  Structure structure() const;
  // Returns what readers of workloads may know of the cluster and of the configuration.
  WorkloadContext workload_context(std::uint64_t seed) const;
  // Returns the compute models of the GPUs.
  const GpuModels& models() const { return models_; }
  // Returns the section `scheduling`.
  const SchedulingParameters& scheduling() const { return scheduling_; }
  // Returns the section `output`, without samples for `network: ideal`, which has no ports to sample.
  const OutputParameters& output() const { return output_; }
  // By number in Cluster::fabrics; empty for `network: ideal`.
  const std::vector<TransportFigures>& transports() const { return transports_; }
  // Return the event loop of each set, and the set of each GPU's events.
  const std::vector<EventLoop*>& loops() const { return loops_; }
  const std::vector<std::uint32_t>& set_of_gpu() const { return set_of_gpu_; }
  // Returns the first origin that no entity of the system uses.
  std::uint32_t next_origin() const { return next_origin_; }

 private:
  void record_phases();
  void schedule_flows();
  void split_flows();
  std::vector<std::uint32_t> queue_pairs() const;

  const ConfigNode& root_;
  Cluster cluster_;
  Partition partition_;
  Engine engine_;
  std::vector<EventLoop*> loops_;
  std::vector<std::uint32_t> set_of_gpu_;
  SchedulingParameters scheduling_;
  OutputParameters output_;
  std::vector<TransportFigures> transports_;
  PacketNetwork* packets_ = nullptr;
  ScheduledEndpoint* flows_ = nullptr;
  SplitEndpoint* splits_ = nullptr;
  PhaseRecorder* phases_ = nullptr;
  CircuitControl* circuits_ = nullptr;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<ComputeDevices> devices_;
  GpuModels models_;
  std::uint32_t next_origin_ = 0;
};

}  // namespace netsim
