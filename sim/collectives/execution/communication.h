// What the executor is asked to do, and what it tells when that is done.
//
// A communication is a collective or a point-to-point transfer as a whole, over all members of its group; the
// operation of a GPU is that GPU's part in it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/block_counts.h"
#include "sim/collectives/collective_kind.h"
#include "sim/core/units.h"
#include "sim/transport/transfer_traits.h"

namespace netsim {

struct OwnAlgorithm;

// One rank's call of a collective or of one side of a point-to-point transfer. All members must give the
// same kind, members, root, bytes, counts and raw: whoever builds requests from user input checks that,
// though maybe only after the members have met here.
struct CommunicationRequest {
  CollectiveKind kind = CollectiveKind::all_reduce;
  // GPUs in group order; until communication_done(). Of a point-to-point transfer one GPU alone: a copy
  // between it and its host's memory (traits.from_host), one message, without the library.
  const std::vector<std::uint32_t>* members = nullptr;
  std::uint32_t index = 0;  // this rank's place in the group
  std::uint32_t root = 0;   // of kinds that have one: a place in the group
  Bytes bytes = 0;          // as the kind's CollectiveKindInfo says; > 0
  // Of kinds with counts, whose `bytes` are counts->busiest(): by the places of the members; until
  // communication_done().
  const BlockCounts* counts = nullptr;
  // The same at all members; unique among the communications of its job (traits.job) until the last
  // acknowledgement.
  std::uint64_t communication = 0;
  std::uint32_t handle = 0;  // the caller's own: CommunicationListener is given it back
  std::uint32_t name = 0;    // SendRequest::name
  // Of a collective: it has the channels of its part of the traffic. The same at all members.
  GroupedTraffic grouped;
  // Of a collective: what runs it, as long as the executor; null: what the configuration says. The same at
  // all members.
  const OwnAlgorithm* algorithm = nullptr;
  // The members of the collective have rested before it (Task::pause): its queue pairs begin as new ones.
  bool rested = false;
  // Point-to-point only: one message on one queue pair, no library in between (an RDMA write).
  bool raw = false;
  // Of its messages. What is not raw has channels of the library's choice.
  TransferTraits traits;
};

inline bool is_copy(const CommunicationRequest& request) {
  return !is_collective(request.kind) && request.members->size() == 1;
}

class CommunicationListener {
 public:
  virtual ~CommunicationListener() = default;
  // The operation of GPU `gpu` is done (at now() of the GPU's loop). `request`: what it was started with,
  // valid during the call. `started`: for the receiver of a point-to-point transfer the instant its sender
  // started it; otherwise the rank's own start. Called from events of the GPU's set, never from inside
  // Executor::start(); it may itself start operations.
  virtual void communication_done(std::uint32_t gpu, const CommunicationRequest& request, Time started) = 0;
};

}  // namespace netsim
