// MessageBatches: finds which messages an operation will send without running it, from the same plan and
// chunking. Progress, --dry-run and prediction use it.
#pragma once

#include <cstdint>

#include "sim/collectives/execution/chunking.h"
#include "sim/collectives/execution/collective_library.h"
#include "sim/collectives/execution/executor.h"

namespace netsim {

// The chunk sizes of the last communication are kept, so that queries for one member after the other are
// cheap.
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
