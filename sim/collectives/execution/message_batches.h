// MessageBatches: which messages an operation will send, without running it: by the same plan and
// chunking. For progress, --dry-run and prediction.
#pragma once

#include <cstdint>

#include "sim/collectives/execution/chunking.h"
#include "sim/collectives/execution/collective_library.h"
#include "sim/collectives/execution/executor.h"

namespace netsim {

// Remembers the chunk sizes of the communication last asked about, so that asking for one member after the
// other costs little.
class MessageBatches {
 public:
  explicit MessageBatches(CollectiveLibrary& library) : library_(library), lookup_(library) {}
  Bytes scale_out_bytes(std::uint32_t gpu, const CommunicationRequest& request);
  void for_each(std::uint32_t gpu, const CommunicationRequest& request, const Executor::BatchVisitor& visit);

 private:
  void for_each_on(std::uint32_t gpu, const CommunicationRequest& request,
                   const CollectiveConfig& collective_config, const ChannelOrders::Channels& channels,
                   const Executor::BatchVisitor& visit);

  CollectiveLibrary& library_;
  LibraryLookup lookup_;
  ChunkSizes sizes_;
};

}  // namespace netsim
