// Rates at which a thread block of NCCL's kernels copies what has arrived within a host, by generation.
#pragma once

#include "sim/collectives/gpu_generation.h"
#include "sim/core/units.h"

namespace netsim {

// Returns the rate at which a thread block copies received data from the library's buffer to the user's.
// 0: not known.
//
// It is measured at all-to-alls of two GPUs, where each of 16 thread blocks has up to one chunk. There a byte
// is sent and then copied out. 16 MiB take 60.1 us more than 4 MiB on A100, 33.8 on H100 and 27.6 on B200.
// The time by simple_rate_inside() (nccl_tuning.h) is subtracted. Source: nccl-tests with NCCL 2.27.3
// and 2.29.2, in AIConfigurator's tables.
BitRate copy_rate(GpuGeneration generation);

// Returns the same for rings by Simple, whose warps all copy. It differs on A100 alone. There all-reduces of
// two GPUs take 2,389.6 us more for 512 MiB than for 64. The time of the links is subtracted, and other
// channels hide a part of the copies (exposed_copies() in nccl_library.cpp). Reduce-scatters give 19.9 GB/s.
BitRate ring_copy_rate(GpuGeneration generation);

// Returns the same for what has arrived by LL, in bytes of data. Threads check a flag for every four bytes
// (prims_ll.h). 0: not known.
//
// It is measured at gathers and reduce-scatters of two GPUs, which send and copy each byte once. On A100 1
// MiB takes 4.3 us more than 512 KiB, in 22 blocks. On H100 2 MiB take 5.2 us more than 1 MiB, on B200 4 MiB
// 10.5 us more than 1 MiB. Sending takes the time of the links, which is subtracted.
BitRate ll_copy_rate(GpuGeneration generation);

}  // namespace netsim
