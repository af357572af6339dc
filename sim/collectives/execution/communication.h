// The requests to the executor, and its reports when they are done.
//
// A communication is a collective or a point-to-point transfer as a whole, over all members of its group. The
// operation of a GPU is that GPU's part in it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/block_counts.h"
#include "sim/collectives/collective_kind.h"
#include "sim/core/ids.h"
#include "sim/core/index.h"
#include "sim/core/units.h"
#include "sim/transport/transfer_traits.h"

namespace netsim {

struct OwnAlgorithm;

// CommunicationRequest: one rank's call of a collective or of one side of a point-to-point transfer. All
// members must give the same kind, members, root, bytes, counts and raw. The code that builds requests from
// user input checks this, possibly after the members have entered.
struct CommunicationRequest {
  CollectiveKind kind = CollectiveKind::all_reduce;
  // GPUs in group order, valid until communication_done(). A point-to-point transfer with one GPU is a copy
  // between it and its host's memory (traits.from_host). Such a copy is one message, without the library.
  const std::vector<GpuId>* members = nullptr;
  std::uint32_t index = 0;  // index of this rank in the group
  std::uint32_t root = 0;   // index of the root in the group, for kinds with a root
  Bytes bytes = 0;          // meaning as in CollectiveKindInfo::bytes; > 0
  // Counts by index in the group, for kinds with counts; `bytes` is then counts->busiest(). Valid until
  // communication_done().
  const BlockCounts* counts = nullptr;
  // Number of the communication, the same at all members. It is unique within its job (traits.job) until the
  // last acknowledgement.
  std::uint64_t communication = 0;
  // For tables, where this is a part of the communication `whole`: Message::part and Message::whole.
  std::uint32_t part = kNoIndex;
  std::uint64_t whole = 0;
  std::uint32_t handle = 0;  // value of the caller, returned to CommunicationListener
  std::uint32_t name = 0;    // Message::name
  // Position of a collective in a grouped call, which decides its share of the channels. It is the same at
  // all members.
  GroupedTraffic grouped;
  // Algorithm of a collective, which must live as long as the executor; null: the configuration decides. It
  // is the same at all members.
  const OwnAlgorithm* algorithm = nullptr;
  // The members paused before this collective (CollectiveTask::pause), so its queue pairs begin as new ones.
  bool paused_before = false;
  // Point-to-point only: the transfer is one message on one queue pair without the library (an RDMA write).
  bool raw = false;
  // Traits of its messages. The library chooses the channels unless `raw` is set.
  TransferTraits traits;
};

inline bool is_copy(const CommunicationRequest& request) {
  return !is_collective(request.kind) && request.members->size() == 1;
}

class CommunicationListener {
 public:
  virtual ~CommunicationListener() = default;
  // Reports that the operation of GPU `gpu` is done, at now() of the GPU's loop. `request` is the one given
  // to start(), valid during the call. `started` is the rank's own start, or its sender's start for the
  // receiver of a point-to-point transfer.
  //
  // The call comes from events of the GPU's logical process, never from inside Executor::start(). It may
  // itself start operations.
  virtual void communication_done(GpuId gpu, const CommunicationRequest& request, Time started) = 0;
};

}  // namespace netsim
