// CollectiveLibrary: what holds for all communications of a run, decided by the configuration. Read by all
// sets; only the caches grow, behind their locks.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/execution/algorithm_choice.h"
#include "sim/collectives/execution/chunking.h"
#include "sim/collectives/execution/collectives_parameters.h"
#include "sim/collectives/execution/communicator_layout.h"
#include "sim/collectives/execution/fan_cache.h"
#include "sim/collectives/execution/latency_model.h"
#include "sim/collectives/execution/plan_cache.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// Why it runs so.
struct ConfigReason {
  // The algorithm is the library's default, or the configuration names it; else NCCL chose it.
  bool configured = false;
  const OwnAlgorithm* own = nullptr;     // that the workload names; then neither does
  const AlgorithmRule* entry = nullptr;  // of `choices`, which names it; then neither does
  // What NCCL's cost model believed, in microseconds, of which algorithm; nothing where it was not asked.
  std::optional<double> estimate;
  CostFamily family = CostFamily::ring;
  struct Next {
    CostFamily family = CostFamily::ring;
    Protocol protocol = Protocol::simple;
    double estimate = 0;
  };
  std::optional<Next> next;               // the second best
  const NcclRules::Line* rule = nullptr;  // of a tuner, instead of the model
  bool graph = false;                     // its orders are those of a graph of NCCL's
  const char* without_nvls = nullptr;     // why NVLS was no candidate, where it is one of the algorithm's
  const char* without_collnet = nullptr;  // the same of CollNet, where a fabric adds up
};
std::string text_of(const ConfigReason& reason);

// How a communication runs.
struct CollectiveConfig {
  const Plan* plan = nullptr;
  CostFamily family = CostFamily::ring;
  Reach farthest = Reach::self;  // of a member from the first one
  // Of NCCL's, each a thread block on every GPU: more than the chunking's where those are timed together.
  std::uint32_t channels = 0;
  // Of a lone send: the GPU beside the sender that passes its messages on, and the credits for them;
  // kNoIndex: none does.
  std::uint32_t passed_by = kNoIndex;
  Chunking chunking;
  ChannelOrders orders;
  // Of kernels that do not run by the parameters of their protocol; nothing: these do.
  std::optional<KernelModel> kernels;
  double fan_share = 1;  // SwitchFan::share of all fans
  ConfigReason reason;
};

struct CollectiveLibrary {
  // `section`: `collectives` of the configuration, may be null. ConfigError.
  CollectiveLibrary(const ConfigNode& section, const Endpoint& network);
  CollectiveLibrary(const CollectiveLibrary&) = delete;
  CollectiveLibrary& operator=(const CollectiveLibrary&) = delete;

  const CollectivesParameters parameters;
  const AlgorithmChoice algorithms;
  const LatencyModel latency;
  LayoutCache layouts;
  PlanCache plans;
  FanCache fans;
  const Endpoint& endpoint;
  // Returns KnowsLinkedGpus::linked_gpus() of the endpoint, which the first call finds. Any thread may call
  // it.
  const std::vector<std::vector<std::uint32_t>>& linked_gpus();

 private:
  std::once_flag linked_found_;
  std::vector<std::vector<std::uint32_t>> linked_;
};

// The library as one set asks it: what it has found is found again without a lock.
class LibraryLookup {
 public:
  explicit LibraryLookup(CollectiveLibrary& library)
      : library_(library), layouts_(library.layouts), plans_(library.plans) {}
  // Of a group of two and more.
  CollectiveConfig collective_config(const CommunicationRequest& request);
  // As Executor has it.
  std::string nccl_graph(const std::vector<std::uint32_t>& members);

 private:
  CollectiveConfig point_to_point(const CommunicationRequest& request);
  CollectiveConfig collective(const CommunicationRequest& request);

  CollectiveLibrary& library_;
  LayoutLookup layouts_;
  PlanLookup plans_;
};

}  // namespace netsim
