// Plan: a collective algorithm as plain data, in the terms in which NCCL's kernels and MSCCL's programs run
// (Cowan et al., MSCCLang, ASPLOS 2023, section 4). It knows nothing of the network, so it can be printed,
// proved, cached, imported and exported.
//
// Each rank of the group runs thread blocks, as a GPU runs NCCL's; a thread block executes a list of steps in
// order. A step moves some chunks between the rank's buffers and the thread blocks of other ranks. From one
// thread block to another messages arrive in the order in which they were sent, and a few fit into the slots
// of their connection: a step that sends waits for a free slot, one that receives waits for its message.
// A step may also wait for a step of another thread block of its rank.
//
// Switches that copy and add up (NVSwitch, NVLink SHARP: Klenk et al., ISCA 2020; SHARP: Graham et al., 2016)
// are fans: what the head of a fan sends goes to all its members, and what all members send comes to the head
// as one sum, which no GPU has calculated. Which switches do it is the network's business. Where the sum is
// to go to all members without a way over the head, as in SHARP's aggregation trees, the head's thread block
// is the switch's own (in_switch()).
//
// The buffer that a communication is about (CollectiveKindInfo::bytes) is chunks() equal pieces. Large
// buffers run the same steps for several rounds, back to back within each thread block, each over a part of
// the buffer; and each channel runs all of it on its share of the buffer.
//
// step() is arithmetic for regular algorithms: nothing of size ranks x ranks is ever stored.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/collectives/collective_kind.h"
#include "sim/core/index.h"
#include "sim/core/units.h"

namespace netsim {

// Where a rank holds chunks. Input is what it calls the collective with, output is where the result belongs;
// scratch is the library's own. See chunks_of() for how many of each there are.
enum class Buffer : std::uint8_t { input, output, scratch };

struct ChunkAt {
  Buffer buffer = Buffer::input;
  std::uint32_t chunk = 0;
};

// The other end of a connection: a thread block of another rank of the group, or a fan that the thread block
// is the head or a member of.
struct Partner {
  std::uint32_t rank = kNoIndex;  // kNoIndex: none, or a fan
  std::uint32_t block = 0;
  std::uint32_t fan = kNoIndex;  // number of the fan; kNoIndex: none

  static Partner of_fan(std::uint32_t number) { return {kNoIndex, 0, number}; }
};

// A connection through switches between one thread block, the head, and one of each member. The head sends
// to all members (a multicast: PTX's multimem.st), or receives one sum of what each of them sent (a
// reduction: multimem.ld_reduce); what members send is of one size. The head's rank may be a member, with
// another thread block. A reduction is the head's to begin: of each member it takes one message at a time.
struct Fan {
  std::uint32_t head = 0, head_block = 0;
  // Ranks first, first + stride, ...
  std::uint32_t first = 0, members = 0, stride = 1;
  std::uint32_t block = 0;  // of each member; all of them have as many thread blocks

  std::uint32_t member(std::uint32_t index) const { return first + index * stride; }
  bool has_member(std::uint32_t rank) const {
    return rank >= first && (rank - first) % stride == 0 && (rank - first) / stride < members;
  }
  bool is_head(std::uint32_t rank, std::uint32_t of_block) const {
    return rank == head && of_block == head_block;
  }
};

struct Step {
  enum class Kind : std::uint8_t {
    nothing,                   // but to wait: see `after_block`
    send,                      // source goes to `to`
    receive,                   // what `from` sent is put to destination
    copy,                      // source is put to destination
    reduce,                    // source is added to destination
    receive_copy_send,         // what `from` sent is put to destination and sent on to `to`
    receive_reduce_send,       // the sum of source and what `from` sent goes to `to` and is stored nowhere
    receive_reduce_copy,       // the sum of source and what `from` sent is put to destination
    receive_reduce_copy_send,  // the same, and the sum goes to `to`
  };
  Kind kind = Kind::nothing;
  ChunkAt source, destination;  // the first of `count` chunks that follow each other
  std::uint32_t count = 1;
  Partner to, from;
  // The step waits until this thread block of its rank has finished its step `after_step` of the same round.
  std::uint32_t after_block = kNoIndex;  // kNoIndex: it waits for none
  std::uint32_t after_step = 0;
};

constexpr bool sends(Step::Kind kind) {
  return kind == Step::Kind::send || kind == Step::Kind::receive_copy_send ||
         kind == Step::Kind::receive_reduce_send || kind == Step::Kind::receive_reduce_copy_send;
}
constexpr bool receives(Step::Kind kind) {
  return kind != Step::Kind::nothing && kind != Step::Kind::send && kind != Step::Kind::copy &&
         kind != Step::Kind::reduce;
}
// Whether it reads its source...
constexpr bool reads_source(Step::Kind kind) {
  return kind != Step::Kind::nothing && kind != Step::Kind::receive && kind != Step::Kind::receive_copy_send;
}
// ... and puts something to its destination.
constexpr bool writes_destination(Step::Kind kind) {
  return kind != Step::Kind::nothing && kind != Step::Kind::send && kind != Step::Kind::receive_reduce_send;
}
// Whether it adds two contributions.
constexpr bool reduces(Step::Kind kind) {
  return kind == Step::Kind::reduce || kind == Step::Kind::receive_reduce_send ||
         kind == Step::Kind::receive_reduce_copy || kind == Step::Kind::receive_reduce_copy_send;
}
// MSCCL's name of it: "nop", "s", "r", "cpy", "re", "rcs", "rrs", "rrc", "rrcs".
const char* to_string(Step::Kind kind);

// Of a kind with counts (block_counts.h): how large what a step sends or receives is, so that both ends of a
// connection know it.
struct Counted {
  enum class What : std::uint8_t {
    block,   // what `owner` has for `other`; of tokens each once
    copies,  // of tokens each once for each expert
    host     // what `owner` has for the host of `other`, each token once
  };
  What what = What::block;
  std::uint32_t owner = 0, other = 0;  // ranks: who sends in a dispatch, or an all_to_all_v; and to whom
  // It goes in the rounds of what `owner` has for the host of `other`, in each as large a part of it as of
  // that.
  bool as_host = false;
  bool operator==(const Counted&) const = default;
};

class Plan {
 public:
  virtual ~Plan() = default;
  virtual CollectiveKind kind() const = 0;
  virtual const char* algorithm() const = 0;  // "ring", "double_binary_tree", ...
  virtual std::uint32_t ranks() const = 0;
  virtual std::uint32_t root() const { return 0; }  // of kinds that have one
  // Ranks from here on are servers of the others: of an all_reduce they contribute nothing, and need not end
  // with anything. Of other kinds there are none.
  virtual std::uint32_t workers() const { return ranks(); }
  // The buffer of a round is this many equal pieces; a multiple of ranks() where each rank has a part of the
  // buffer as its own (all_gather, reduce_scatter, all_to_all).
  virtual std::uint32_t chunks() const = 0;
  // Chunks of the library's own at a rank. Chunk i there is as large as piece i mod chunks().
  virtual std::uint32_t scratch_chunks(std::uint32_t /*rank*/) const { return 0; }
  // The largest Step::count of one that sends.
  virtual std::uint32_t largest_count() const { return 1; }
  // Input and output are one buffer. Of an all_gather, the rank's input is its part of the output; of a
  // reduce_scatter, its output is its part of the input.
  virtual bool in_place() const = 0;
  // Of a step that sends or receives of a kind with counts; one that does both moves one and the same.
  virtual Counted counted(std::uint32_t rank, const Step& step) const;
  // Members of a host, as TokenBytes has to have them; 0: it makes no difference.
  virtual std::uint32_t counted_host() const { return 0; }
  virtual std::uint32_t fans() const { return 0; }
  virtual Fan fan(std::uint32_t /*number*/) const { return {}; }
  // Connections of the same two ranks on different channels are different queue pairs.
  virtual std::uint32_t channels() const { return 1; }
  virtual std::uint32_t blocks(std::uint32_t rank) const = 0;
  virtual std::uint32_t channel(std::uint32_t /*rank*/, std::uint32_t /*block*/) const { return 0; }
  // Whether a proxy of the library does its steps, no thread block of the GPU: it has no slices to see
  // through one after the other. Such a one passes on what comes.
  virtual bool is_proxy(std::uint32_t /*rank*/, std::uint32_t /*block*/) const { return false; }
  // Whether a switch does its steps, not the rank: each passes on what comes from one fan that adds up to one
  // that copies, of both of which it is the head; they have the same members, or one a single member of the
  // other's. So the sum turns around in the network. No other step waits for one of these. Who sends has room
  // for as many sums as it has slots and one more, and sends no more before the first one was taken: so
  // nothing waits for room in the network.
  virtual bool in_switch(std::uint32_t /*rank*/, std::uint32_t /*block*/) const { return false; }
  // Returns whether a rank sends to one rank at a time on each channel, as a process of MPI with blocking
  // sends does. A message to another rank takes the wire only when all messages before it have left.
  // Otherwise messages to several ranks share the wire.
  virtual bool serial_sends() const { return false; }
  // Whether steps may wait for those of other thread blocks (Step::after_block), or switches do some; false:
  // none does.
  virtual bool waits_between_blocks() const { return true; }
  virtual std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const = 0;
  virtual Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const = 0;
};

// How many chunks the input or output of a rank is, or how many scratch it has.
std::uint32_t chunks_of(const Plan& plan, std::uint32_t rank, Buffer buffer);

// Which of the chunks() pieces of the buffer a chunk is as large as. Of an all_to_all that is the piece in
// its sender's input, so that both ends agree.
std::uint32_t piece_of(const Plan& plan, std::uint32_t rank, ChunkAt at);

// Piece `index` of `total` shared out to `parts` as evenly as integers allow; the pieces add up to total
// exactly.
constexpr Bytes share(Bytes total, std::uint64_t parts, std::uint64_t index) {
  const Int128 n = total;
  return static_cast<Bytes>(n * (static_cast<Int128>(index) + 1) / static_cast<Int128>(parts) -
                            n * static_cast<Int128>(index) / static_cast<Int128>(parts));
}

// Bytes of the `count` chunks from `at` on where the buffer of the round is `bytes`.
Bytes bytes_of(const Plan& plan, std::uint32_t rank, ChunkAt at, std::uint32_t count, Bytes bytes);

// What a step sends, of a kind that does, is as large as these chunks: what is received and passed on as
// those that it is put to, or added to.
inline ChunkAt what_is_sent(const Step& step) {
  return step.kind == Step::Kind::receive_copy_send ? step.destination : step.source;
}
inline Bytes bytes_sent(const Plan& plan, std::uint32_t rank, const Step& step, Bytes bytes) {
  return bytes_of(plan, rank, what_is_sent(step), step.count, bytes);
}

// Bytes that `rank` sends when the buffer is `bytes` (one round, one channel), to a fan once: for predictions
// and lower bounds.
Bytes bytes_sent(const Plan& plan, std::uint32_t rank, Bytes bytes);

// Messages of a chunk that a connection has room for at the least: NCCL's rings with the protocol Simple have
// NCCL_STEPS = 8 slots and chunks of 4.
inline constexpr std::uint32_t kSlots = 2;
// The same of a member of a fan towards its head, see Fan.
inline constexpr std::uint32_t kReductionSlots = 1;

// Proof that the plan does what its kind says, whatever the relative speeds of the ranks: every rank ends
// with the right contributions of the right chunks (each rank's exactly once), every message sent is
// received, and nobody waits forever where each connection has room for `slots` messages of a chunk, in any
// number of rounds. Empty string if proved; else the first thing that is wrong, with rank, thread block and
// step.
std::string prove(const Plan& plan, std::uint32_t slots = kSlots);

}  // namespace netsim
