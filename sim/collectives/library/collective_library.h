// CollectiveLibrary: decides how each communication runs: by which algorithm, protocol and channels, with
// which latencies, and in which order of the ranks. `nccl` (nccl/nccl_library.cpp) chooses as NCCL does.
// `as_configured` (as_configured.cpp) takes what the configuration names. A library is a component and one
// .cpp file; the key `library` of the section `collectives` names it.
//
// A library is told these facts:
//
// - The communication: kind, members (GPUs in group order), root, bytes, counts, part of a grouped call.
// - The hosts and NICs of the members, and what joins them (CommunicatorLayout).
// - The host and the rail of each member (LibraryContext::sites()).
// - The network: Endpoint::site() and reach() of any GPU, and the GPUs that links of a fabric join directly.
// - The section `collectives`: the algorithm that it names for the kind, the protocol, latencies, channels.
//
// The answer of a library depends on nothing but the request and the configuration. All members of a
// communication get the same answer, whenever they ask and in whichever thread. `index`, `handle` and `name`
// of the request have no influence.
//
// Several threads may call configure() at the same time. A library that keeps results protects them by a
// lock. It need not keep layouts and plans, because the context finds them again without a lock.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/execution/communication.h"
#include "sim/collectives/protocol.h"
#include "sim/core/ids.h"
#include "sim/core/units.h"

namespace netsim {

class AlgorithmChoice;
class ConfigNode;
class Endpoint;
class LibraryContext;
struct CollectiveConfig;
struct CollectivesParameters;
struct CommunicatorLayout;

// LibraryRequest: the question how one communication of two or more members runs.
struct LibraryRequest {
  const CommunicationRequest& communication;
  LibraryContext& context;  // facts and plans, for the logical process that asks; valid during the call
  bool explain = false;     // whether CollectiveConfig::why is wanted
};

// LibrarySetup: what a library is told once, before the run. All but `section` lives as long as the library.
struct LibrarySetup {
  const ConfigNode& section;  // the section as it was read, for the places of errors; may be null
  const CollectivesParameters& parameters;  // the section `collectives`
  const AlgorithmChoice& algorithms;        // the algorithms that the section names
  const Endpoint& network;
};

class CollectiveLibrary {
 public:
  static constexpr const char* kComponentKind = "collective_library";
  virtual ~CollectiveLibrary() = default;
  // Prepares the library for a run. The executor calls it once, before all other functions. Throws
  // ConfigError where the section and the library do not fit.
  virtual void prepare(const LibrarySetup& /*setup*/) {}
  // Returns how a communication runs. The executor asks once for each communication in each logical process,
  // and for each member where the communication has counts. Throws InputError where it cannot run.
  virtual CollectiveConfig configure(const LibraryRequest& request) const = 0;
  // Changes the layout of a group, above all the orders of rings and chains, before any communication uses
  // it. It is called once for each group, by one thread at a time.
  virtual void adjust(const std::vector<GpuId>& /*members*/, CommunicatorLayout& /*layout*/) const {}
  // Returns how long a GPU that forwards the messages of another one (CollectiveConfig::forwarding_gpu) takes
  // to send each on to another host.
  virtual Time forwarding_latency(Protocol /*protocol*/) const { return 0; }
};

}  // namespace netsim
