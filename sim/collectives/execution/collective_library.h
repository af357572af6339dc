// CollectiveLibrary: the state that all communications of a run share, set by the configuration. All logical
// processes read it. Only its caches grow, protected by locks.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/execution/aggregation_cache.h"
#include "sim/collectives/execution/algorithm_choice.h"
#include "sim/collectives/execution/chunking.h"
#include "sim/collectives/execution/collectives_parameters.h"
#include "sim/collectives/execution/communicator_layout.h"
#include "sim/collectives/execution/latency_model.h"
#include "sim/collectives/execution/plan_cache.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// ConfigReason: why a collective has its configuration.
struct ConfigReason {
  // True: the algorithm is the library's default or named by the configuration. False: NCCL's choice.
  bool configured = false;
  // Algorithm that the workload names. It takes precedence over `configured`.
  const OwnAlgorithm* own = nullptr;
  // Entry of `choices` that names the algorithm. It also takes precedence over `configured`.
  const AlgorithmRule* entry = nullptr;
  // Time that NCCL's cost model estimates, in microseconds, for the algorithm of `family`; nullopt: the model
  // was not used.
  std::optional<double> estimate;
  CostFamily family = CostFamily::ring;
  struct Next {
    CostFamily family = CostFamily::ring;
    Protocol protocol = Protocol::simple;
    double estimate = 0;
  };
  std::optional<Next> next;               // the second best estimate
  const NcclRules::Line* rule = nullptr;  // rule of a tuner that replaced the model's choice
  bool graph = false;                     // whether the orders of the ranks come from an NCCL graph file
  const char* without_nvls = nullptr;     // why NVLS was no candidate, where the algorithm has it as one
  const char* without_collnet = nullptr;  // why CollNet was no candidate, where a fabric aggregates
};
std::string text_of(const ConfigReason& reason);

// CollectiveConfig: how a communication runs.
struct CollectiveConfig {
  const Plan* plan = nullptr;
  CostFamily family = CostFamily::ring;
  Reach farthest = Reach::self;  // reach from the first member to the farthest one
  // Number of channels in NCCL's sense, each a thread block on every GPU. It exceeds the number in `chunking`
  // if several channels are simulated as one.
  std::uint32_t channels = 0;
  // For a lone send: the GPU beside the sender that forwards its messages and the credits for them. kNoIndex:
  // none.
  std::uint32_t forwarding_gpu = kNoIndex;
  Chunking chunking;
  ChannelOrders orders;
  // Kernels that do not run by the parameters of their protocol; nullopt: the parameters apply.
  std::optional<KernelModel> kernels;
  double aggregation_share = 1;  // its groups' share of the switch ports' efficiency (SwitchAggregation)
  ConfigReason reason;
};

struct CollectiveLibrary {
  // `section` is `collectives` of the configuration and may be null. Throws ConfigError.
  CollectiveLibrary(const ConfigNode& section, const Endpoint& network);
  CollectiveLibrary(const CollectiveLibrary&) = delete;
  CollectiveLibrary& operator=(const CollectiveLibrary&) = delete;

  const CollectivesParameters parameters;
  const AlgorithmChoice algorithms;
  const LatencyModel latency;
  LayoutCache layouts;
  PlanCache plans;
  AggregationCache aggregations;
  const Endpoint& endpoint;
  // Returns KnowsLinkedGpus::linked_gpus() of the endpoint. The first call finds them; any thread may call.
  const std::vector<std::vector<std::uint32_t>>& linked_gpus();

 private:
  std::once_flag linked_found_;
  std::vector<std::vector<std::uint32_t>> linked_;
};

// LibraryLookup: one logical process's access to the library. Entries found before are found again without a
// lock.
class LibraryLookup {
 public:
  explicit LibraryLookup(CollectiveLibrary& library)
      : library_(library), layouts_(library.layouts), plans_(library.plans) {}
  // Returns how a communication of two or more members runs.
  CollectiveConfig collective_config(const CommunicationRequest& request);
  // Returns the text described at Executor::nccl_graph().
  std::string nccl_graph(const std::vector<std::uint32_t>& members);

 private:
  CollectiveConfig point_to_point(const CommunicationRequest& request);
  CollectiveConfig collective(const CommunicationRequest& request);

  CollectiveLibrary& library_;
  LayoutLookup layouts_;
  PlanLookup plans_;
};

}  // namespace netsim
