// The buckets of PyTorch's DistributedDataParallel (torch/csrc/distributed/c10d/reducer.{hpp,cpp}:
// compute_bucket_assignment_by_size(), rebuild_buckets(), kDefaultFirstBucketBytes, kDefaultBucketBytesCap).
// Buckets are launched in order: each waits for the one before.
#pragma once

#include <span>

#include "sim/core/units.h"
#include "sim/scheduling/task/fusion.h"

namespace netsim {

// DdpLimits: a bucket is full when its bytes are at least the limit.
struct DdpLimits {
  Bytes first = kMebibyte;       // of the bucket that is filled first
  Bytes other = 25 * kMebibyte;  // of all others: bucket_cap_mb
};

// Returns the buckets after the first training step, which DDP fills in the order in which gradients came.
FusionMap ddp_buckets(std::span<const FusionTensor> tensors, const DdpLimits& limits);
// Returns the buckets of the first training step with find_unused_parameters. DDP fills them in the order of
// the parameters, which is the reverse of `tensors`, and launches them in reverse. Without that option the
// first step has one bucket.
FusionMap ddp_first_buckets(std::span<const FusionTensor> tensors, const DdpLimits& limits);

}  // namespace netsim
