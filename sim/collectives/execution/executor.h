// Executor: runs plans on an Endpoint, rank by rank. A rank's operation is done when its own steps are done,
// as in NCCL. A point-to-point sender is done when its data is acknowledged. No rank waits for global state.
//
// A collective library (library/collective_library.h) decides how each communication runs: its plan, channels
// and latencies, and how its buffer is cut. The executor plays that. chunk_sizes.h has the messages, and
// latency_model.h has the delay of each.
//
// One ExecutorShard (executor_shard.h) per logical process holds the operations of its GPUs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/collectives/execution/communication.h"
#include "sim/collectives/execution/library_choice.h"
#include "sim/collectives/execution/message_steps.h"
#include "sim/collectives/execution/transfer_record.h"
#include "sim/core/config.h"
#include "sim/core/event_loop.h"
#include "sim/core/ids.h"
#include "sim/core/parameters.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// MessageBatch: messages of one size from one GPU to another or to an aggregation group. It covers all rounds
// of one step on the channels of one ring.
struct MessageBatch {
  GpuId destination;  // for an aggregation group another GPU of it
  // Aggregation group that the messages go through (Message::aggregation); null: none.
  const SwitchAggregation* aggregation = nullptr;
  AggregationUse aggregation_use = AggregationUse::none;
  Reach reach = Reach::self;
  // The messages have TransferTraits::channel first_channel, first_channel + channel_step, ...
  std::uint32_t channels = 1;
  std::uint32_t first_channel = 0;
  std::uint32_t channel_step = 1;
  bool credit = false;  // Message::credit
  Bytes bytes = 0;      // bytes of each message, > 0
  std::uint64_t count = 0;
};

// start() and the calls of the endpoint are local to a rank. For GPUs of different logical processes they may
// come from different threads at the same time.
class Executor : public MessageListener {
 public:
  // Makes an executor whose GPU g runs in loops[set_of_gpu[g]]; now() of that loop is the GPU's time.
  // `section` is `collectives` of the configuration and may be null. The executor handles EventKind::executor
  // of the loops and uses the origins first_origin + gpu.
  //
  // It registers itself as the endpoint's listener. Throws ConfigError for a wrong parameter, an unknown
  // algorithm, or one that does not support the kind that it is chosen for.
  static std::unique_ptr<Executor> create(const std::vector<EventLoop*>& loops,
                                          const std::vector<std::uint32_t>& set_of_gpu, Endpoint& endpoint,
                                          const ConfigNode& section, std::uint32_t first_origin);
  // Makes an executor with all GPUs in one logical process.
  static std::unique_ptr<Executor> create(EventLoop& loop, Endpoint& endpoint, const ConfigNode& section,
                                          std::uint32_t first_origin);
  static const ParameterTable& parameter_table();

  virtual void set_listener(CommunicationListener* listener) = 0;
  // Sets the trace that receives all messages of all operations. Must be called before the first start(). A
  // trace adds a few percent to a run's time.
  virtual void set_trace(TransferTrace trace) = 0;
  // Lets a rank enter the communication now. A receiver may enter before or after the data arrives. A group
  // of one rank is done at once. The listener is not called before start() returns.
  //
  // Returns the number of channels of the communication on the GPU, each a thread block of its kernel there,
  // even where they are simulated together. 0: none runs. Throws InputError where the algorithm has a limit
  // on ranks.
  virtual std::uint32_t start(GpuId gpu, const CommunicationRequest& request) = 0;
  // Called when a job has ended, between events, if ends_matter(). It may be called several times.
  virtual void end_job(JobId /*job*/) {}
  // Returns whether communicators of a job hold what others wait for (NvlsGroups).
  virtual bool ends_matter() const { return false; }
  // Returns what each unfinished operation waits for, one line each, at most `limit` lines. Stall reports
  // call it while no logical process runs.
  virtual std::vector<std::string> waiting(std::size_t limit) const = 0;
  // Returns the bytes that this rank's operation will send over the scale-out fabric, exactly as start()
  // would. It is used for progress and --dry-run and costs one pass over the rank's steps. One thread at a
  // time may call it.
  virtual Bytes scale_out_bytes(GpuId gpu, const CommunicationRequest& request) = 0;
  // Returns the choice for a group of two or more members; `index` of the request is ignored. One thread at a
  // time may call it.
  virtual LibraryChoice choice(const CommunicationRequest& request) = 0;
  // Returns the rings and trees of a group of two or more members, in NCCL's file format (nccl_graph.h). They
  // are those of the first host, or of the first hosts that NVLink joins. One thread at a time may call it.
  virtual std::string nccl_graph(const std::vector<GpuId>& members) = 0;
  // Returns the steps of member `request.index` of a group of two or more members (message_steps.h). One
  // thread at a time may call it. An executor without plans has none.
  virtual std::vector<MessageStep> steps(const CommunicationRequest& /*request*/) { return {}; }
  // Visits all messages that this rank's operation will send, size by size, exactly as start() would. It
  // costs as much as scale_out_bytes(). One thread at a time may call it.
  using BatchVisitor = std::function<void(const MessageBatch&)>;
  virtual void for_each_batch(GpuId gpu, const CommunicationRequest& request, const BatchVisitor& visit) = 0;
};

}  // namespace netsim
