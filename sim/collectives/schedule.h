// Schedule: a collective algorithm as plain data. It knows nothing of the network, so it can be printed,
// proved, cached, and later imported and exported.
//
// Each rank of the group runs a few thread blocks, as a GPU runs NCCL's; a thread block is a list of
// instructions, executed in order. A send is posted and does not wait for its delivery; a receive or reduce
// waits until the next message from that peer's thread block of the same number is there; a wait waits for
// another thread block of the same rank. The buffer of one round is `divisions()` equal pieces; an
// instruction names one of them, a chunk. Large buffers run the same instructions for several rounds, back to
// back within each thread block; and each channel runs all of it on its share of the buffer.
//
// instruction() is arithmetic for regular algorithms: nothing of size ranks x ranks is ever stored.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/collectives/collective_kind.h"
#include "sim/core/units.h"

namespace netsim {

struct Instruction {
  enum class Op : std::uint8_t {
    send,     // chunk goes to `peer`'s thread block of the same number
    receive,  // chunk is overwritten by what `peer` sent
    reduce,   // what `peer` sent is added to chunk
    wait  // until thread block `peer` of this rank has finished its first `chunk` instructions of this round
  };
  Op op = Op::send;
  std::uint32_t peer = 0;   // index in the group (wait: a thread block)
  std::uint32_t chunk = 0;  // 0 .. chunks()-1 (wait: number of instructions)
};

class Schedule {
 public:
  virtual ~Schedule() = default;
  virtual CollectiveKind kind() const = 0;
  virtual const char* algorithm() const = 0;  // "ring", "double_binary_tree", ...
  virtual std::uint32_t ranks() const = 0;
  virtual std::uint32_t root() const { return 0; }  // of kinds that have one
  virtual std::uint32_t thread_blocks() const = 0;
  // The buffer of a round is this many equal pieces...
  virtual std::uint32_t divisions() const = 0;
  // ... and chunk c is piece c % divisions(). Only all-to-all names more chunks than divisions: block
  // (source, destination) is chunk source * ranks + destination.
  virtual std::uint32_t chunks() const { return divisions(); }
  virtual std::uint32_t instructions(std::uint32_t rank, std::uint32_t thread_block) const = 0;
  virtual Instruction instruction(std::uint32_t rank, std::uint32_t thread_block,
                                  std::uint32_t index) const = 0;
};

// Piece `index` of `total` shared out to `parts` as evenly as integers allow; the pieces add up to total
// exactly.
constexpr Bytes share(Bytes total, std::uint64_t parts, std::uint64_t index) {
  const Int128 n = total;
  return static_cast<Bytes>(n * (static_cast<Int128>(index) + 1) / static_cast<Int128>(parts) -
                            n * static_cast<Int128>(index) / static_cast<Int128>(parts));
}

// Proof that the schedule does what its kind says, whatever the relative speeds of the ranks: every rank ends
// with the right contributions of the right chunks (each rank's exactly once), every message sent is
// received, no deadlock. Empty string if proved; else the first thing that is wrong, with rank, thread
// block and instruction.
std::string prove(const Schedule& schedule);

// Bytes that `rank` sends when the buffer is `bytes` (one round, one channel): for predictions and lower
// bounds.
Bytes bytes_sent(const Schedule& schedule, std::uint32_t rank, Bytes bytes);

}  // namespace netsim
