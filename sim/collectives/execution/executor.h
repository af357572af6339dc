// Executor: runs plans on an Endpoint, rank by rank. A rank's operation is done when its own steps are done,
// as in NCCL (a point-to-point sender's, when its data is acknowledged); nothing global is needed to go on.
//
// What the collective library adds to the network is said in the section `collectives` of the configuration
// (collectives_parameters.h) and modelled in three files: algorithm_choice.h (which algorithm does which
// kind), chunking.h (how a buffer becomes messages: channels, rounds, slices, slots) and
// latency_model.h (what starting a collective and handing over a message cost).
//
// Inside, one ExecutorShard (executor_shard.h) per set of atoms holds the operations of its GPUs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/collectives/execution/communication.h"
#include "sim/collectives/execution/library_choice.h"
#include "sim/collectives/execution/transfer_record.h"
#include "sim/core/config.h"
#include "sim/core/event_loop.h"
#include "sim/core/parameters.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// Messages of one size from one GPU to another, or through a fan, of all rounds of one step on the channels
// of one ring.
struct MessageBatch {
  std::uint32_t destination = 0;  // GPU; through a fan another GPU of it
  // The group of GPUs behind one switch that the messages go through (SendRequest::fan). Null for none.
  const SwitchFan* fan = nullptr;
  FanUse fan_use = FanUse::none;
  Reach reach = Reach::self;
  // TransferTraits::channel of those: first_channel, first_channel + channel_step, ...
  std::uint32_t channels = 1;
  std::uint32_t first_channel = 0;
  std::uint32_t channel_step = 1;
  bool credit = false;  // SendRequest::credit
  Bytes bytes = 0;      // of each message, > 0
  std::uint64_t count = 0;
};

// start() and the calls of the endpoint are rank-local: for GPUs of different sets they may come from
// different threads at the same time.
class Executor : public MessageListener {
 public:
  // GPU g runs in loops[set_of_gpu[g]], which is now() for all that concerns it. `section`: the
  // configuration's `collectives` (may be null). Handles EventKind::executor of the loops. Origins
  // first_origin + gpu are its own. Makes itself the endpoint's listener. ConfigError for a wrong parameter,
  // an unknown algorithm, or one that does not do the kind it is chosen for.
  static std::unique_ptr<Executor> create(const std::vector<EventLoop*>& loops,
                                          const std::vector<std::uint32_t>& set_of_gpu, Endpoint& endpoint,
                                          const ConfigNode& section, std::uint32_t first_origin);
  // All GPUs in one set.
  static std::unique_ptr<Executor> create(EventLoop& loop, Endpoint& endpoint, const ConfigNode& section,
                                          std::uint32_t first_origin);
  static const ParameterTable& parameter_table();

  virtual void set_listener(CommunicationListener* listener) = 0;
  // From now on the trace hears of all messages of all operations. Before the first start(); it costs a few
  // percent of a run's time.
  virtual void set_trace(TransferTrace trace) = 0;
  // A rank enters the communication now. A receiver may enter before or after the data arrives. A group of
  // one rank is done at once. The listener is told of nothing before it returns. InputError where the
  // algorithm has a limit on ranks. Returns how many channels the communication has on the GPU, each of them
  // a thread block of its kernel there, whether or not they are timed together; 0: none runs.
  virtual std::uint32_t start(std::uint32_t gpu, const CommunicationRequest& request) = 0;
  // What each unfinished operation waits for, one line each, at most `limit` lines: for stall reports, while
  // no set runs.
  virtual std::vector<std::string> waiting(std::size_t limit) const = 0;
  // Bytes that this rank's operation will send over the scale-out fabric, for progress and --dry-run: exactly
  // what start() would send. Costs one pass over the rank's steps. One thread at a time.
  virtual Bytes scale_out_bytes(std::uint32_t gpu, const CommunicationRequest& request) = 0;
  // Of a group of two and more; `index` of the request does not matter. One thread at a time.
  virtual LibraryChoice choice(const CommunicationRequest& request) = 0;
  // The rings and trees of a group of two and more, as NCCL writes what it has found (nccl_graph.h): those of
  // its first host, or hosts that NVLink joins. One thread at a time.
  virtual std::string nccl_graph(const std::vector<std::uint32_t>& members) = 0;
  // The messages that this rank's operation will send, to wherever, size by size: exactly those of start().
  // Costs as much as scale_out_bytes(). One thread at a time.
  using BatchVisitor = std::function<void(const MessageBatch&)>;
  virtual void for_each_batch(std::uint32_t gpu, const CommunicationRequest& request,
                              const BatchVisitor& visit) = 0;
};

}  // namespace netsim
