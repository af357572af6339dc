// Checkpoints: at intervals the ranks of a training job write what it needs to go on from there to the drives
// of storage servers, over the network. A checkpointed job is its source with more ranks behind its own, the
// drives, and with more tasks: each rank's part travels in pieces, raw messages one after the other, each of
// which the drives write when it has come; when all are written the rank is told.
//
// Synchronous: a rank begins nothing of its next iteration before its part is written (torch.save).
// Asynchronous: it waits until its part is copied to the host's memory over PCIe, and trains on while that
// travels (CheckFreq: Mohan et al., FAST '21, whose snapshot and persist these are; Gemini: Wang et al., SOSP
// '23); a next snapshot waits until the one before is written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/core/parameters.h"
#include "sim/core/units.h"
#include "sim/workload/task.h"

namespace netsim {

struct CheckpointParameters {
  std::int64_t every = 0;  // iterations; 0: never
  bool asynchronous = false;
  // Replicas write a part each of what they all have (PyTorch's distributed checkpoint, Megatron-Core's fully
  // parallel save); else the first of them writes it.
  bool divided = true;
  std::int64_t servers = 0;  // of the cluster's storage servers, the first so many; 0: all
  Bytes piece = 64 * kMegabyte;
  // What the drives of a server write together: 8 of 4.1 GB/s in sequence (Samsung PM9A3 data sheet).
  BitRate write_rate = 8 * 4'100 * 8 * kMbps;
  // From a GPU to its host's memory: PCIe Gen4 x16 at what pinned copies reach (NVIDIA's bandwidthTest, about
  // 25 GB/s).
  BitRate snapshot_rate = 25 * 8 * kGbps;
};
const Parameters<CheckpointParameters>& checkpoint_parameters();

// What becomes of a job when one of its hosts fails.
struct RecoveryParameters {
  Time detection = 0;  // until the others have noticed, and are stopped too
  Time restart = 0;    // from then until the job begins again
  bool operator==(const RecoveryParameters&) const = default;
};
const Parameters<RecoveryParameters>& recovery_parameters();

// A source whose job can go on where its last checkpoint was taken.
class Resumable {
 public:
  virtual ~Resumable() = default;
  // Null: it cannot, nobody said how long that takes.
  virtual const RecoveryParameters* recovery() const = 0;
  // Iterations of the whole job, those from before this source included.
  virtual std::uint32_t all_iterations() const = 0;
  // Iterations that need not be done again, those from before this source included. A checkpoint counts as
  // soon as the drives have written all parts of it, whether or not its ranks were told, or live. Call it
  // while no rank of the job is played.
  virtual std::uint32_t saved_iterations() const = 0;
  // Iterations of this source that a rank has passed: it has trained them, and no checkpoint keeps it from
  // the next one. A synchronous checkpoint does until the rank is told that its part is written. An
  // asynchronous one does until the part is copied to the host's memory. The number never falls.
  virtual std::uint32_t passed_iterations(std::uint32_t rank) const = 0;
  // Whether a rank of the job can do nothing before the storage servers have done their part. It reads a
  // checkpoint, or writes a synchronous one. Or it has trained all that it may before an asynchronous one is
  // written.
  virtual bool waits_for_storage(std::uint32_t rank) const = 0;
  // What is left of the job: the ranks read the checkpoint, if there is one, before they begin.
  virtual std::unique_ptr<TaskSource> rest() const = 0;
};

struct CheckpointedJob {
  // The job's own source, of so many iterations, again and again the same.
  std::function<std::unique_ptr<TaskSource>(std::uint32_t iterations)> source;
  std::uint32_t iterations = 1;
  CheckpointParameters checkpoint;
  std::optional<RecoveryParameters> recovery;
  std::vector<Bytes> written;  // by rank: its part of a checkpoint, 0 for those that write nothing
  std::vector<Bytes> read;     // by rank: what it needs to go on from there
  std::uint32_t servers = 1;
};
// The source that is made is Resumable.
std::unique_ptr<TaskSource> with_checkpoints(CheckpointedJob job);

}  // namespace netsim
