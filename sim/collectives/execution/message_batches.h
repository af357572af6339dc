// MessageBatches: finds which messages an operation will send without running it, from the same plan and
// chunking. Progress, --dry-run and prediction use it.
#pragma once

#include <cstdint>

#include "sim/collectives/execution/aggregation_cache.h"
#include "sim/collectives/execution/chunk_sizes.h"
#include "sim/collectives/execution/executor.h"
#include "sim/collectives/library/library_context.h"

namespace netsim {

// The chunk sizes of the last communication are kept, so that queries for one member after the other are
// cheap.
class MessageBatches {
 public:
  MessageBatches(LibraryState& library, AggregationCache& aggregations, const Endpoint& endpoint)
      : library_(library), aggregations_(aggregations), endpoint_(endpoint) {}
  Bytes scale_out_bytes(GpuId gpu, const CommunicationRequest& request);
  void for_each(GpuId gpu, const CommunicationRequest& request, const Executor::BatchVisitor& visit);

 private:
  void for_each_on(GpuId gpu, const CommunicationRequest& request, const CollectiveConfig& config,
                   const ChannelOrders::Channels& channels, const Executor::BatchVisitor& visit);

  LibraryContext library_;
  AggregationCache& aggregations_;
  const Endpoint& endpoint_;
  ChunkSizes sizes_;
};

}  // namespace netsim
