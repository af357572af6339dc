// MemoryPlan: the memory of the ranks' GPUs as far as a workload knows it. It has the memory in use
// throughout, and the memory that each task allocates when it begins and releases when it ends. It also
// covers the host's memory, if that is used. The use over time follows from the times of the simulation; in
// the order of the program it is known before anything runs.
//
// Tensors are counted, in bytes of their elements. Not counted are fragmentation by the allocator, workspaces
// of kernels, and the context of the driver and of libraries.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/units.h"

namespace netsim {

struct Task;

// MemoryKind: the use of memory. `host` is in the memory of the host, not of the GPU. `gathered` are
// parameters of other ranks, while a layer is computed (ZeRO-3, FSDP). `communication` are buffers of data
// that is gathered or passed on between ranks.
enum class MemoryKind : std::uint8_t {
  parameters,
  gradients,
  optimizer,
  activations,
  gathered,
  communication,
  host
};
inline constexpr std::size_t kMemoryKinds = 7;
const char* to_string(MemoryKind kind);

// Returns a size as "61.20 GiB", the unit in which GPU memory is counted.
std::string gibibytes(Bytes bytes);

// MemoryUse: bytes in use on one rank, by kind.
class MemoryUse {
 public:
  Bytes& operator[](MemoryKind kind) { return bytes_[static_cast<std::size_t>(kind)]; }
  Bytes operator[](MemoryKind kind) const { return bytes_[static_cast<std::size_t>(kind)]; }
  // Returns the bytes in the GPU's memory, without those in the host's.
  Bytes total() const;
  MemoryUse& operator+=(const MemoryUse& other);
  bool operator==(const MemoryUse&) const = default;
  // Returns "61.20 GiB: parameters 12.00 GiB, activations 49.20 GiB; host 100.00 GiB". Kinds without bytes
  // are left out.
  std::string text() const;

 private:
  std::array<Bytes, kMemoryKinds> bytes_{};
};

// MemoryChange: bytes that are allocated, or released if negative. `each` bytes are added for every row of
// the rank in a table of the program (copies of tokens for its experts).
struct MemoryChange {
  MemoryKind kind = MemoryKind::activations;
  Bytes bytes = 0;
  Bytes each = 0;
  std::uint32_t table_plus_one = 0;
  auto operator<=>(const MemoryChange&) const = default;
  MemoryChange reversed() const { return {kind, -bytes, -each, table_plus_one}; }
};

// TaskMemory: the changes of memory when a task begins and when it ends.
struct TaskMemory {
  std::vector<MemoryChange> begin, end;
  bool empty() const { return begin.empty() && end.empty(); }
  auto operator<=>(const TaskMemory&) const = default;
};

// MemoryPeak: the greatest use at one time of the ranks that have the same role.
struct MemoryPeak {
  RankId rank = 0;  // the first rank of the role
  MemoryUse use;
};

class MemoryPlan {
 public:
  virtual ~MemoryPlan() = default;
  // Returns the memory that a rank uses throughout.
  virtual const MemoryUse& resident(RankId rank) const = 0;
  // Adds the changes at the beginning or end of a task to `use`. Returns false where the task changes
  // nothing.
  virtual bool change(RankId rank, const Task& task, bool begins, MemoryUse& use) const = 0;
  // Returns the index in planned() that belongs to a rank.
  virtual std::uint32_t role(RankId rank) const = 0;
  // Returns the peaks by role, as known before any times are. Tasks are assumed to begin and end in the order
  // of the program. A communication lasts until the next one of its stream queue.
  virtual std::vector<MemoryPeak> planned() const = 0;
};

}  // namespace netsim
