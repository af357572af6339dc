// LibraryState and LibraryContext: the library of a run with all that it is told and all that is kept for it.
//
// LibraryState is shared by all logical processes. Only its caches grow, protected by locks. Each logical
// process has a LibraryContext, which finds what it has found before without a lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/collectives/library/algorithm_choice.h"
#include "sim/collectives/library/collective_config.h"
#include "sim/collectives/library/collective_library.h"
#include "sim/collectives/library/collectives_parameters.h"
#include "sim/collectives/library/communicator_layout.h"
#include "sim/collectives/library/nvls_groups.h"
#include "sim/collectives/library/plan_cache.h"
#include "sim/core/ids.h"
#include "sim/transport/endpoint.h"

namespace netsim {

class LibraryState {
 public:
  // `section` is `collectives` of the configuration and may be null. Throws ConfigError.
  LibraryState(const ConfigNode& section, const Endpoint& endpoint);
  LibraryState(const LibraryState&) = delete;
  LibraryState& operator=(const LibraryState&) = delete;

  const CollectivesParameters parameters;
  const AlgorithmChoice algorithms;
  const Endpoint& network;
  const std::unique_ptr<CollectiveLibrary> library;
  LayoutCache layouts;
  PlanCache plans;
  NvlsGroups nvls_groups;  // with a limit there is one logical process
  // Returns KnowsLinkedGpus::linked_gpus() of the network. The first call finds them; any thread may call.
  const std::vector<std::vector<GpuId>>& linked_gpus();

 private:
  std::once_flag linked_found_;
  std::vector<std::vector<GpuId>> linked_;
};

class LibraryContext {
 public:
  // `runs` says that communications run as configured here. Others are only looked at, and their
  // communicators take no groups of NVSwitches.
  explicit LibraryContext(LibraryState& state, bool runs = false)
      : state_(state), layouts_(state.layouts), plans_(state.plans), runs_(runs) {}

  // For the executor: returns how a communication of two or more members runs. The result is valid until the
  // next call.
  const CollectiveConfig& configure(const CommunicationRequest& request);
  // For tables: the same, with CollectiveConfig::why.
  CollectiveConfig explain(const CommunicationRequest& request);
  // Returns the text described at Executor::nccl_graph(). Throws InputError where the library writes none.
  std::string nccl_graph(const std::vector<GpuId>& members);

  // For libraries. Layouts and plans live as long as the run.
  const CommunicatorLayout& layout(const std::vector<GpuId>& members) { return layouts_.get(members); }
  // Returns the host and the rail of each member, in group order.
  const std::vector<RankSite>& sites(const std::vector<GpuId>& members);
  // Returns whether NVSwitches have multicast groups for the communicator of the request, which takes them.
  bool has_nvls_groups(const CommunicationRequest& request) {
    NvlsGroups& groups = state_.nvls_groups;
    if (!groups.limited()) return true;
    return runs_ ? groups.take(request.traits.job, *request.members)
                 : groups.may_have(request.traits.job, *request.members);
  }
  // Returns the plan of an algorithm, which is made and proved at the first request of the run. The run owns
  // it. Throws InputError for a group that the algorithm cannot serve.
  const Plan& plan(const CollectiveAlgorithm& algorithm, CollectiveKind kind, const GroupShape& shape) {
    return plans_.get(algorithm, kind, shape);
  }
  const CollectivesParameters& parameters() const { return state_.parameters; }
  const AlgorithmChoice& algorithms() const { return state_.algorithms; }
  const Endpoint& network() const { return state_.network; }
  // Returns, for each GPU, the GPUs that links of the fabric join with it directly; empty: none.
  const std::vector<std::vector<GpuId>>& linked_gpus() { return state_.linked_gpus(); }

 private:
  bool is_last(const CommunicationRequest& request) const;

  LibraryState& state_;
  LayoutLookup layouts_;
  PlanLookup plans_;
  const bool runs_;
  std::map<const CommunicatorLayout*, std::vector<RankSite>> sites_;
  // The last communication and its configuration, because members of one logical process mostly enter
  // together. `asked_.members` is null or refers to `members_`.
  CommunicationRequest asked_;
  std::vector<GpuId> members_;
  CollectiveConfig config_;
};

}  // namespace netsim
