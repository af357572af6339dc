// MemoryPlan: what a workload knows of the memory of its ranks' GPUs: what lies there all the time, and what
// each task allocates when it begins and releases when it ends; and of the host's memory, if it is used. So
// the memory over time follows the times of the simulation, and in the order of the program it can be told
// before anything is run.
//
// Counted are tensors, in bytes of their elements. Not counted: what an allocator loses to fragmentation,
// workspaces of kernels, the context of the driver and of libraries.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

struct Task;

// `host`: in the memory of the host, not of the GPU. `gathered`: parameters of other ranks, while a layer is
// computed (ZeRO-3, FSDP). `communication`: buffers of what is gathered or passed on between ranks.
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

// "61.20 GiB": how the memory of GPUs is counted.
std::string gibibytes(Bytes bytes);

// Bytes by kind, of one rank.
class MemoryUse {
 public:
  Bytes& operator[](MemoryKind kind) { return bytes_[static_cast<std::size_t>(kind)]; }
  Bytes operator[](MemoryKind kind) const { return bytes_[static_cast<std::size_t>(kind)]; }
  // Of the GPU: without what lies in its host's memory.
  Bytes total() const;
  MemoryUse& operator+=(const MemoryUse& other);
  bool operator==(const MemoryUse&) const = default;
  // "61.20 GiB: parameters 12.00 GiB, activations 49.20 GiB; host 100.00 GiB"; kinds without bytes are left
  // out.
  std::string text() const;

 private:
  std::array<Bytes, kMemoryKinds> bytes_{};
};

// Bytes that are allocated, or released where they are less than 0; `each` for every row of the rank in a
// table of the program (copies of tokens that its experts get).
struct MemoryChange {
  MemoryKind kind = MemoryKind::activations;
  Bytes bytes = 0;
  Bytes each = 0;
  std::uint32_t table_plus_one = 0;
  auto operator<=>(const MemoryChange&) const = default;
  MemoryChange reversed() const { return {kind, -bytes, -each, table_plus_one}; }
};

// Of one task.
struct TaskMemory {
  std::vector<MemoryChange> begin, end;
  bool empty() const { return begin.empty() && end.empty(); }
  auto operator<=>(const TaskMemory&) const = default;
};

// The most that ranks which play the same role need at once.
struct MemoryPeak {
  std::uint32_t rank = 0;  // the first of them
  MemoryUse use;
};

class MemoryPlan {
 public:
  virtual ~MemoryPlan() = default;
  // What a rank has all the time.
  virtual const MemoryUse& resident(std::uint32_t rank) const = 0;
  // Adds what the beginning, or the end, of a task changes to `use`. False where it changes nothing.
  virtual bool change(std::uint32_t rank, const Task& task, bool begins, MemoryUse& use) const = 0;
  // Which of planned() a rank's is.
  virtual std::uint32_t role(std::uint32_t rank) const = 0;
  // By role, where tasks begin and end in the order of the program, and communication lasts until the next
  // one of its stream queue: what is known before the times are.
  virtual std::vector<MemoryPeak> planned() const = 0;
};

}  // namespace netsim
