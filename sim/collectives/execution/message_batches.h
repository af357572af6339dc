// MessageBatches: which messages an operation will send, without running it: by the same plan and
// chunking. For progress, --dry-run and prediction.
#pragma once

#include "sim/collectives/execution/chunking.h"
#include "sim/collectives/execution/collective_library.h"
#include "sim/collectives/execution/executor.h"

namespace netsim {

// Remembers the chunk sizes of the communication last asked about, so that asking for one member after the
// other costs little.
class MessageBatches {
 public:
  explicit MessageBatches(CollectiveLibrary& library) : library_(library) {}
  Bytes scale_out_bytes(std::uint32_t gpu, const CommunicationRequest& request);
  void for_each(std::uint32_t gpu, const CommunicationRequest& request, const Executor::BatchVisitor& visit);

 private:
  template <class Visit>
  void for_each_step(const CommunicationRequest& request, Visit visit);

  CollectiveLibrary& library_;
  ChunkSizes sizes_;
};

}  // namespace netsim
