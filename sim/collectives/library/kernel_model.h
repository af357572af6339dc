// WithKernels: algorithms whose kernels do not run by the parameters of their protocol, such as NVLS and
// DeepEP. They give a KernelModel for each operation, which replaces the protocol's latencies and the way in
// which it cuts the buffer.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/collective_kind.h"
#include "sim/collectives/gpu_generation.h"
#include "sim/core/units.h"

namespace netsim {

// Share of a GPU's links that its thread blocks reach where each GPU of a host stores to several others. It
// is measured with DeepEP's normal mode on eight H20 (deepep_kernels.h). The cause is not published. Rings,
// where each GPU has one sender, reach more.
inline constexpr double kShareToSeveral = 0.9;

// KernelModel: how an algorithm's kernels run where the library's parameters of the protocol do not apply.
struct KernelModel {
  Time base_latency = 0;     // from the start of the kernel to its first step
  Time hop_latency = 0;      // latency of each message of an aggregation group, or within a host
  Time hop_latency_net = 0;  // latency of each message between hosts
  std::uint32_t channels = 1;
  // True: each channel has its own messages. False: the channels are simulated together.
  bool apart = false;
  // The library's channels, each a thread block, where their number is known and greater than `channels`;
  // otherwise 0.
  std::uint32_t thread_blocks = 0;
  Bytes chunk = 0;  // largest chunk of a channel, in bytes
  // Number of messages that a chunk is sent as. A step forwards each message before all of the chunk has
  // arrived, as a loop over its lines does.
  std::uint32_t messages = 1;
  std::uint32_t slots = 0;  // receive slots of a connection, in chunks
  // Bytes that the receiver of a connection within a host or an NVLink domain can buffer. 0: `slots`
  // messages.
  Bytes local_buffer = 0;
  // Highest rate at which a thread block writes to another GPU of its host. 0: limited only by the links.
  BitRate block_rate = 0;
  // Highest rate at which all thread blocks of a GPU together write to the other GPUs of its host. 0: limited
  // only by the links and `block_rate`.
  BitRate store_rate = 0;
  // Highest rate at which a thread block prepares messages to another host. A message leaves when all of it
  // is prepared, and the block goes on with the next one. 0: preparing takes no time.
  BitRate net_rate = 0;
  // Highest rates at which a thread block copies, one message after the other, where switches add and copy.
  // `copy_in_rate` applies to a channel's data on the way into buffers that switches add up. `copy_out_rate`
  // applies to data on the way out of buffers that switches have filled. 0: copying takes no time.
  BitRate copy_in_rate = 0, copy_out_rate = 0;
  // From the last piece of a round that a thread block copies to the first one of the next round.
  Time copy_pause = 0;
  // Whether a proxy thread of the GPU's host posts the messages between hosts (StepCosts::posting). It is
  // false where the GPU rings the NIC's doorbell itself.
  bool proxied = false;
};

// KernelLoad: the size of an operation and the group that it runs on.
struct KernelLoad {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes = 0;  // CollectiveKindInfo::bytes
  std::uint32_t ranks = 2;
  bool several_hosts = false;
  std::uint32_t domains = 1;  // hosts, or racks whose GPUs NVLink joins
  Bytes token = 0;            // size of one token in bytes, for kinds that have tokens
  std::optional<GpuGeneration> generation = std::nullopt;  // generation of all GPUs; nullopt: not known
  BitRate local_rate = 0;  // rate of a GPU's links within its host; 0: not known
};

class WithKernels {
 public:
  virtual ~WithKernels() = default;
  // Any thread may call it.
  virtual KernelModel kernel_model(const KernelLoad& load) const = 0;
};

// Returns the kernels of an algorithm for a load; nullopt: they run by the parameters of their protocol.
inline std::optional<KernelModel> kernel_model(const CollectiveAlgorithm& algorithm, const KernelLoad& load) {
  const auto* own = dynamic_cast<const WithKernels*>(&algorithm);
  return own == nullptr ? std::nullopt : std::optional(own->kernel_model(load));
}

}  // namespace netsim
