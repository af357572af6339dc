// Schedule: a collective algorithm as plain data. It knows nothing of the network, so it can be printed,
// proved, cached, and later imported and exported.
//
// Each rank of the group runs a few threads (as NCCL's channels run thread blocks); a thread is a list of
// instructions, executed in order. A send is posted and does not wait for its delivery; a receive or reduce
// waits until the next message from that peer's thread of the same number is there; a wait waits for another
// thread of the same rank. The buffer of one round is `divisions()` equal pieces; an instruction names one
// piece ("chunk"). Large buffers run the same instructions for several rounds, back to back within each
// thread.
//
// instruction() is arithmetic for regular algorithms: nothing of size ranks x ranks is ever stored.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/core/units.h"

namespace netsim {

enum class CollectiveKind : std::uint8_t {
  all_reduce,      // bytes: the buffer each rank holds and gets back reduced
  all_gather,      // bytes: the gathered buffer; each rank contributes bytes / ranks
  reduce_scatter,  // bytes: the buffer each rank contributes; it keeps bytes / ranks
  all_to_all,      // bytes: the whole send buffer of one rank; block i (bytes / ranks) goes to rank i
  broadcast,       // bytes: the root's buffer
  point_to_point   // two ranks, 0 sends bytes to 1
};
const char* to_string(CollectiveKind kind);

struct Instruction {
  enum class Op : std::uint8_t {
    send,     // chunk goes to `peer`'s thread of the same number
    receive,  // chunk is overwritten by what `peer` sent
    reduce,   // what `peer` sent is added to chunk
    wait      // until thread `peer` of this rank has finished its first `chunk` instructions of this round
  };
  Op op = Op::send;
  std::uint32_t peer = 0;   // index in the group (wait: thread number)
  std::uint32_t chunk = 0;  // 0 .. chunks()-1 (wait: number of instructions)
};

class Schedule {
 public:
  virtual ~Schedule() = default;
  virtual CollectiveKind kind() const = 0;
  virtual const char* algorithm() const = 0;  // "ring", "double_binary_tree", ...
  virtual std::uint32_t ranks() const = 0;
  virtual std::uint32_t root() const { return 0; }
  virtual std::uint32_t threads() const = 0;
  // The buffer is cut into this many equal pieces...
  virtual std::uint32_t divisions() const = 0;
  // ... and chunk c is piece c % divisions(). Only all-to-all names more chunks than divisions: block
  // (source, destination) is chunk source * ranks + destination.
  virtual std::uint32_t chunks() const { return divisions(); }
  virtual std::uint32_t instructions(std::uint32_t rank, std::uint32_t thread) const = 0;
  virtual Instruction instruction(std::uint32_t rank, std::uint32_t thread, std::uint32_t index) const = 0;
};

// Piece `index` of `total` cut into `parts` as evenly as integers allow; the pieces add up to total exactly.
constexpr Bytes share(Bytes total, std::uint64_t parts, std::uint64_t index) {
  __extension__ using Wide = __int128;
  const Wide n = total;
  return static_cast<Bytes>(n * (static_cast<Wide>(index) + 1) / static_cast<Wide>(parts) -
                            n * static_cast<Wide>(index) / static_cast<Wide>(parts));
}

// Proof that the schedule does what its kind says, whatever the relative speeds of the ranks: every rank ends
// with the right contributions of the right chunks (each rank's exactly once), every message sent is
// received, no deadlock. Empty string if proved; else the first thing that is wrong, with rank, thread and
// instruction.
std::string prove(const Schedule& schedule);

// Bytes that `rank` sends when the buffer is `bytes` (one round, one channel): for predictions and lower
// bounds.
Bytes bytes_sent(const Schedule& schedule, std::uint32_t rank, Bytes bytes);

}  // namespace netsim
