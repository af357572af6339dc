// Executor: runs schedules on an Endpoint, rank by rank. A rank's part of a collective is done when its own
// instructions are done, as in NCCL (a point-to-point sender's, when its data is acknowledged); nothing
// global is needed to go on (section 3 of the design).
//
// What NCCL costs is in parameters (`collectives` section of the configuration; defaults: NCCL 2.30 tuning
// constants, src/graph/tuning.cc, Simple protocol):
// - a base latency, from a rank's start of a collective to its first instruction (none for point-to-point);
// - a hop latency, from each send instruction to the Endpoint, by kind of link and cost family. It stands for
//   everything a step costs besides bytes (flags, fences, proxy, the reduction), so that a collective of s
//   steps takes base + s * (hop + wire latency) + bytes / bandwidth, as in NCCL's cost model;
// - channels. A group that spans hosts runs `scale_out_channels` chains of messages, one per channel, each on
//   queue pair (channel mod queue pairs). Within a host NCCL's 24 channels (A100 with NVSwitch) move in
//   lockstep, each with 1/24 of the port; they are timed together, as one message per chunk of up to 24
//   slices, which gives the same times;
// - the slice: a channel's bytes are cut into the fewest rounds whose chunks are at most a slice;
// - the window: sends in flight (not acknowledged) per thread and peer; a send beyond it waits.
// On an ideal network (Reach::ideal) there are no latencies, no window, one channel and one round. A raw
// point-to-point operation is one message with nothing added.
//
// Sizes: channel c carries share(bytes, channels, c), round r of R carries share(that, R, r), chunk k of it
// is share(that, divisions, k mod divisions). A chunk of 0 bytes is neither sent nor awaited.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/schedule.h"
#include "sim/core/config.h"
#include "sim/core/event_loop.h"
#include "sim/core/parameters.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// One rank's call of a collective or of one side of a point-to-point operation. All members must give the
// same kind, members, root, bytes and raw: whoever builds requests from user input checks that, though maybe
// only after the members have met here.
struct CommunicationRequest {
  CollectiveKind kind = CollectiveKind::all_reduce;
  const std::vector<std::uint32_t>* members = nullptr;  // GPUs in group order; until communication_done()
  std::uint32_t index = 0;                              // this rank's place in the group
  std::uint32_t root = 0;
  Bytes bytes = 0;                  // as CollectiveKind says; > 0
  std::uint64_t communication = 0;  // the same at all members, unique until the last acknowledgement
  std::uint32_t handle = 0;         // the caller's own: CommunicationListener is given it back
  std::uint32_t name = 0;           // SendRequest::name
  // Point-to-point only: one message on one queue pair, no library in between (an RDMA write).
  bool raw = false;
  // Of its messages. What is not raw has channels of the library's choice.
  TransferTraits traits;
};

// Messages of one size from one GPU to another, of all channels and rounds of one instruction.
struct MessageBatch {
  std::uint32_t destination = 0;  // GPU
  Reach reach = Reach::self;
  std::uint32_t channels = 1;  // the operation's
  Bytes bytes = 0;             // of each message, > 0
  std::uint64_t count = 0;
};

class CommunicationListener {
 public:
  virtual ~CommunicationListener() = default;
  // The part of GPU `gpu` in a communication is done (at now() of the GPU's loop). `request`: what it was
  // started with, valid during the call. `started`: for the receiver of a point-to-point operation the
  // instant its sender started it; otherwise the rank's own start. Called from events of the GPU's set, never
  // from inside Executor::start(); it may itself start operations.
  virtual void communication_done(std::uint32_t gpu, const CommunicationRequest& request, Time started) = 0;
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
  // A rank enters the operation now. A receiver may enter before or after the data arrives. A group of one
  // rank is done at once. InputError where the algorithm has a limit on ranks.
  virtual void start(std::uint32_t gpu, const CommunicationRequest& request) = 0;
  // What each unfinished operation waits for, one line each, at most `limit` lines: for stall reports, while
  // no set runs.
  virtual std::vector<std::string> waiting(std::size_t limit) const = 0;
  // Bytes that this rank's part will send over the scale-out fabric, for progress and --dry-run: exactly what
  // start() would send. Costs one pass over the rank's instructions.
  virtual Bytes scale_out_bytes(std::uint32_t gpu, const CommunicationRequest& request) = 0;
  // The messages that this rank's part will send, to wherever, size by size: exactly those of start(). As
  // dear.
  using BatchVisitor = std::function<void(const MessageBatch&)>;
  virtual void for_each_batch(std::uint32_t gpu, const CommunicationRequest& request,
                              const BatchVisitor& visit) = 0;
};

}  // namespace netsim
