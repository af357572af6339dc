// Checkpoints: at intervals the ranks of a training job write their state to the drives of storage servers,
// over the network. A checkpointed job is its source with the drives as additional ranks behind its own, and
// with more tasks. Each rank's part travels in pieces, raw messages one after the other, which the drives
// write when they arrive. When all are written, the rank gets a message.
//
// Synchronous: a rank begins nothing of its next iteration before its part is written (torch.save).
//
// Asynchronous: a rank waits until its part is copied to the host's memory over PCIe, and trains on while the
// part travels. A next snapshot waits until the one before is written. These are the snapshot and persist
// phases of CheckFreq (Mohan et al., FAST '21); Gemini does the same (Wang et al., SOSP '23).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/core/parameters.h"
#include "sim/core/units.h"
#include "sim/workload/task_source.h"

namespace netsim {

struct CheckpointParameters {
  std::int64_t every = 0;  // iterations between checkpoints; 0: never
  bool asynchronous = false;
  // Each replica writes a part of the data that they all have (PyTorch's distributed checkpoint,
  // Megatron-Core's fully parallel save). Otherwise the first replica writes it.
  bool divided = true;
  std::int64_t servers = 0;  // number of the cluster's storage servers that are used, the first ones; 0: all
  Bytes piece = 64 * kMegabyte;
  // Rate at which the drives of a server write together: 8 drives of 4.1 GB/s in sequence (Samsung PM9A3 data
  // sheet).
  BitRate write_rate = 8 * 4'100 * 8 * kMbps;
  // Rate from a GPU to its host's memory: PCIe Gen4 x16 with pinned copies (NVIDIA's bandwidthTest, about 25
  // GB/s).
  BitRate snapshot_rate = 25 * 8 * kGbps;
};
const Parameters<CheckpointParameters>& checkpoint_parameters();

// RecoveryParameters: what happens to a job when one of its hosts fails.
struct RecoveryParameters {
  Time detection = 0;  // from the failure until the other ranks have noticed it and stop too
  Time restart = 0;    // from detection until the job begins again
  bool operator==(const RecoveryParameters&) const = default;
};
const Parameters<RecoveryParameters>& recovery_parameters();

// Resumable: a source whose job can continue from its last checkpoint.
class Resumable {
 public:
  virtual ~Resumable() = default;
  // Returns the recovery parameters, or null if the configuration has none; the job can then not continue.
  virtual const RecoveryParameters* recovery() const = 0;
  // Returns the iterations of the whole job, including those before this source.
  virtual std::uint32_t all_iterations() const = 0;
  // Returns the iterations that need not be done again, including those before this source. A checkpoint
  // counts as soon as the drives have written all parts of it. Ranks may not yet have the message, or may
  // have failed. Must not be called while a rank of the job is simulated.
  virtual std::uint32_t saved_iterations() const = 0;
  // Returns how many iterations of this source a rank has passed: it has trained them, and no checkpoint
  // keeps it from the next one. A synchronous checkpoint does so until the rank gets the message that its
  // part is written. An asynchronous one does so until the part is copied to the host's memory. The number
  // never falls.
  virtual std::uint32_t passed_iterations(RankId rank) const = 0;
  // Returns whether a rank of the job can do nothing before the storage servers have done their part. Such a
  // rank reads a checkpoint or writes a synchronous one. Or it has trained all that it may before an
  // asynchronous one is written.
  virtual bool waits_for_storage(RankId rank) const = 0;
  // Returns a source for the rest of the job. Its ranks read the checkpoint, if there is one, before they
  // begin.
  virtual std::unique_ptr<TaskSource> rest() const = 0;
};

struct CheckpointedJob {
  // Makes the job's own source for so many iterations. Each call gives an equal source.
  std::function<std::unique_ptr<TaskSource>(std::uint32_t iterations)> source;
  std::uint32_t iterations = 1;
  CheckpointParameters checkpoint;
  std::optional<RecoveryParameters> recovery;
  std::vector<Bytes> written;  // by rank: bytes of its part of a checkpoint, 0 for those that write nothing
  std::vector<Bytes> read;     // by rank: bytes that it reads to continue
  std::uint32_t servers = 1;
};
// Returns the job's source with checkpoints, which is Resumable.
std::unique_ptr<TaskSource> with_checkpoints(CheckpointedJob job);

}  // namespace netsim
