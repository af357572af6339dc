// Executor: runs schedules on an Endpoint, rank by rank. A rank's part of a collective is done when its own
// instructions are done, as in NCCL; nothing global is needed to go on (section 3 of the design).
//
// What NCCL costs is in parameters (collectives section of the configuration; defaults: NCCL 2.30 tuning constants,
// src/graph/tuning.cc, Simple protocol): a base latency per collective, a latency per hop and kind of link added
// before each send, channels, slice size, and a window of sends in flight per channel and peer.
#pragma once

#include <cstdint>
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

// One rank's call of a collective or of one side of a point-to-point operation.
struct CommunicationRequest {
  CollectiveKind kind = CollectiveKind::all_reduce;
  const std::vector<std::uint32_t>* members = nullptr;  // GPUs in group order; must outlive the operation
  std::uint32_t index = 0;                              // this rank's place in the group
  std::uint32_t root = 0;
  Bytes bytes = 0;                                      // as CollectiveKind says; > 0
  std::uint64_t communication = 0;                      // the same at all members, unique while the operation lives
  std::uint32_t job = 0;
  bool raw = false;  // point-to-point only: one message on one queue pair, no library in between (an RDMA write)
};

class CommunicationListener {
 public:
  virtual ~CommunicationListener() = default;
  // The part of GPU `gpu` in `communication` is done (at loop.now()). `started`: for the receiver of a point-to-point
  // operation the instant its sender started it; otherwise the rank's own start.
  virtual void communication_done(std::uint32_t gpu, std::uint64_t communication, Time started) = 0;
};

class Executor : public MessageListener {
 public:
  // `section`: the configuration's `collectives` (may be null). Handles EventKind::executor of `loop`. Origins
  // first_origin + gpu are its own.
  static std::unique_ptr<Executor> create(EventLoop& loop, Endpoint& endpoint, const ConfigNode& section,
                                          std::uint32_t first_origin);
  static const ParameterTable& parameter_table();

  virtual void set_listener(CommunicationListener* listener) = 0;
  // A rank enters the operation at loop.now(). A receiver may enter before or after the data arrives.
  virtual void start(std::uint32_t gpu, const CommunicationRequest& request) = 0;
  // What each unfinished operation waits for, one line each, at most `limit` lines: for stall reports.
  virtual std::vector<std::string> waiting(std::size_t limit) const = 0;
  // Bytes that this rank's part will send over the scale-out fabric, for progress and --dry-run.
  virtual Bytes scale_out_bytes(std::uint32_t gpu, const CommunicationRequest& request) = 0;
};

}  // namespace netsim
