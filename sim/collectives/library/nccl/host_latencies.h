// Latencies of NCCL's kernels within a host, by generation of the GPUs. NCCL's cost model has one figure for
// all generations: 0.6 us a hop by LL, 3.4 us by Simple (tuning.cc, hwLatencies). It chooses by them. What
// runs takes the latencies below.
//
// Source: nccl-tests of 2, 4 and 8 GPUs with NCCL 2.27.3 and 2.29.2, in AIConfigurator's tables
// (docs/evidence/one_host.md, which is no independent test of them).
#pragma once

#include <optional>

#include "sim/collectives/gpu_generation.h"
#include "sim/collectives/library/collectives_parameters.h"
#include "sim/collectives/library/step_costs.h"
#include "sim/collectives/protocol.h"
#include "sim/core/units.h"

namespace netsim {

struct HostLatencies {
  // Start of a ring by LL or LL128, or of sends and receives, beyond NCCL's base latency. On H100 the launch
  // constants of 2, 4 and 8 GPUs would all be -1.9 to -2.0 us. Another eight H100 take 16.0 us for an
  // all-reduce of 512 B (docs/evidence/data/nvls.csv); here it is 15.5 without a launch. Rings by Simple show
  // nothing of it.
  Time start = 0;
  // A step by LL. An all-reduce of 512 B of n GPUs has n - 1 more of them than a gather. For 2, 4 and 8 GPUs
  // that gives 1.0 to 1.1 us on A100, 0.74 to 0.81 on H100 and 1.2 to 1.4 on B200. Another eight B200 gave
  // 1.16 us between all-reduces of two and eight (openfabric-systems/simllm, pull request 242).
  Time ll_hop = 0;
  // Further start of operations by LL on more than one thread block. It is the median, over rings of 2, 4 and
  // 8 GPUs, of what netsim's times lack beyond what they lack on one block. The blocks of a kernel do not
  // start at once, and the last one counts.
  Time several_blocks = 0;
  // A step by LL128; 0: NCCL's. Rings of four and eight A100 of three machines give -0.4 to 2.5 us,
  // median 1.5. NCCL's start of 14 us and the time of the bytes are subtracted. The times grow by 7.4 us for
  // each MiB.
  Time ll128_hop = 0;
  // A step by Simple, from the last byte of a slice to the first of the next step. Rings of small slices take
  // it for each step. They wait for a fence that covers all stores of a block (prims_simple.h, postPeer). On
  // A100 and H100 it has the least squares of ln(netsim / measured) over the rings by Simple, rounded. So has
  // A100's `slice`.
  Time simple_hop = 0;
  // Time of a thread block for each slice by Simple besides its bytes. It waits for flags and meets at two
  // barriers, in the last step, which only receives, too (prims_simple.h, genericOp). A warp of its own waits
  // for the fence (enqueue.cc, "Extra warp for sync"), so the others go on. Rings take it in their first
  // round.
  Time slice = 0;
  // The same of sends, whose warps are divided into those that send and those that receive. Each chunk takes
  // it, because thread blocks limit sends and links do not. From 256 to 512 MiB all-to-alls of two take 5.0,
  // 2.2 and 0 us more for a chunk than its bytes do.
  Time chunk = 0;
  // Further time for a slice that the block also stores in its GPU's own buffer, as in steps of a gather. The
  // fence covers these stores as well, so it delays the slice too. Gathers take it beyond reduce-scatters.
  Time kept = 0;
  // Start of a group of sends and receives beyond that of a ring. Its kernel always has 640 threads a block
  // (scheduleP2pTasksToPlan), reads a batch of works and divides its warps among them (sendrecv.h).
  Time group = 0;
  // Further start of sends and receives for each other rank, whose messages have a channel of their own.
  Time peer = 0;
};
// Returns nullopt where NCCL's table is all that is known.
std::optional<HostLatencies> host_latencies(GpuGeneration generation);

// HostKernel: what the host latencies of a ring, or of sends and receives, depend on.
struct HostKernel {
  Protocol protocol = Protocol::simple;
  GpuGeneration generation = GpuGeneration::ampere;
  std::uint32_t channels = 1;  // thread blocks
  std::uint32_t peers = 0;     // ranks to which a rank sends; 0: a ring
};
// Sets the costs of a kernel where NVLink joins all members. Latencies of the section that are not NCCL's
// remain.
void set_host_latencies(StepCosts& costs, const HostKernel& kernel, const CollectivesParameters& parameters);

// Returns the latency of a hop through NVSwitches by NVLS, for one that was found on Hopper.
Time nvls_hop(Time on_hopper, std::optional<GpuGeneration> generation);

}  // namespace netsim
