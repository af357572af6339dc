// Plan: a collective algorithm as plain data, in the terms of NCCL's kernels and MSCCL's programs (Cowan et
// al., MSCCLang, ASPLOS 2023, section 4). It does not depend on the network, so it can be printed, proved,
// cached, imported and exported.
//
// Each rank of the group runs thread blocks, as a GPU runs NCCL's. A thread block executes a list of steps in
// order. A step moves some chunks between the rank's buffers and the thread blocks of other ranks.
//
// Messages from one thread block to another arrive in the order in which they were sent. The connection has a
// few slots: a step that sends waits for a free slot, a step that receives waits for its message. A step may
// also wait for a step of another thread block of its rank.
//
// An AggregationGroup is a group of thread blocks whose messages switches add up or copy. Examples are NVLink
// SHARP in NVSwitches (Klenk et al., ISCA 2020) and SHARP (Graham et al., 2016). The head of the group sends
// to all members at once (multicast). The messages of all members reach the head as one sum, which no GPU has
// calculated (aggregation).
//
// The network decides which switches do this. In SHARP's aggregation trees the sum goes to all members
// without passing the head. The head's thread block then belongs to a switch (in_switch()).
//
// The buffer of a communication (CollectiveKindInfo::bytes) consists of chunks() equal pieces. A large buffer
// is sent in several rounds: each thread block runs the same steps for each part of it, back to back. Each
// channel runs all rounds on its own share of the buffer.
//
// step() is arithmetic for regular algorithms: nothing of size ranks x ranks is ever stored.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/collectives/collective_kind.h"
#include "sim/core/index.h"
#include "sim/core/units.h"
#include "sim/network/aggregation/aggregation_pool.h"

namespace netsim {

// Buffer: where a rank holds chunks. `input` is the buffer with which the rank calls the collective, and
// `output` receives the result. `scratch` belongs to the library. chunks_of() returns the number of chunks of
// each.
enum class Buffer : std::uint8_t { input, output, scratch };

struct ChunkAt {
  Buffer buffer = Buffer::input;
  std::uint32_t chunk = 0;
};

// Partner: the other end of a connection. It is a thread block of another rank of the group, or a
// AggregationGroup of which the thread block is the head or a member.
struct Partner {
  std::uint32_t rank = kNoIndex;  // kNoIndex: no partner, or an AggregationGroup
  std::uint32_t block = 0;
  std::uint32_t aggregation = kNoIndex;  // number of the AggregationGroup; kNoIndex: none

  static Partner of_aggregation(std::uint32_t number) { return {kNoIndex, 0, number}; }
};

// AggregationGroup: a connection through switches between one thread block, the head, and one thread block of
// each member. The head sends to all members (multicast: PTX's multimem.st), or receives one sum of their
// messages (reduction: multimem.ld_reduce). All members send messages of the same size.
//
// The head's rank may be a member too, with another thread block. The head begins each reduction; it takes
// one message of each member at a time.
struct AggregationGroup {
  std::uint32_t head = 0, head_block = 0;
  // The members are the ranks first, first + stride, ...
  std::uint32_t first = 0, members = 0, stride = 1;
  // Index of each member's thread block. All members have the same number of thread blocks.
  std::uint32_t block = 0;

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
    nothing,              // moves no data, but may wait for another step (`after_block`)
    send,                 // sends source to `to`
    receive,              // puts the message of `from` to destination
    copy,                 // copies source to destination
    reduce,               // adds source to destination
    receive_copy_send,    // puts the message of `from` to destination and sends it to `to`
    receive_reduce_send,  // sends the sum of source and the message of `from` to `to`; stores nothing
    receive_reduce_copy,  // puts the sum of source and the message of `from` to destination
    // ^Puts the sum of source and the message of `from` to destination and sends it to `to`.
    receive_reduce_copy_send,
  };
  Kind kind = Kind::nothing;
  ChunkAt source, destination;  // first of `count` consecutive chunks
  std::uint32_t count = 1;
  Partner to, from;
  // The step waits until this thread block of its rank has finished step `after_step` of the same round.
  std::uint32_t after_block = kNoIndex;  // kNoIndex: it does not wait
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
// Returns whether a step of this kind reads its source.
constexpr bool reads_source(Step::Kind kind) {
  return kind != Step::Kind::nothing && kind != Step::Kind::receive && kind != Step::Kind::receive_copy_send;
}
// Returns whether a step of this kind writes its destination.
constexpr bool writes_destination(Step::Kind kind) {
  return kind != Step::Kind::nothing && kind != Step::Kind::send && kind != Step::Kind::receive_reduce_send;
}
// Returns whether a step of this kind adds two contributions.
constexpr bool reduces(Step::Kind kind) {
  return kind == Step::Kind::reduce || kind == Step::Kind::receive_reduce_send ||
         kind == Step::Kind::receive_reduce_copy || kind == Step::Kind::receive_reduce_copy_send;
}
// Returns MSCCL's name of the kind: "nop", "s", "r", "cpy", "re", "rcs", "rrs", "rrc", "rrcs".
const char* to_string(Step::Kind kind);

// Counted: determines the size of a message in kinds with counts (block_counts.h). Both ends of a connection
// know it.
struct Counted {
  enum class What : std::uint8_t {
    block,   // block from `owner` to `other`; each token counts once
    copies,  // tokens from `owner` to `other`; each counts once for each of its experts
    host,    // bytes from `owner` to the host of `other`; each token counts once
    // ^The size of a `block`. It is sent in the rounds of all that `owner` has for the host of `other`. Each
    // round then carries the same fraction of both.
    block_of_host
  };
  What what = What::block;
  std::uint32_t owner = 0, other = 0;  // sending and receiving rank; in a combine those of its dispatch
  bool operator==(const Counted&) const = default;
};

class Plan {
 public:
  virtual ~Plan() = default;
  virtual CollectiveKind kind() const = 0;
  virtual const char* algorithm() const = 0;  // "ring", "double_binary_tree", ...
  virtual std::uint32_t ranks() const = 0;
  virtual std::uint32_t root() const { return 0; }  // 0 for kinds without a root
  // Returns the number of ranks that are workers. The ranks from there on are parameter servers: in an
  // all_reduce they contribute nothing and need not end with a result. Other kinds have no servers.
  virtual std::uint32_t workers() const { return ranks(); }
  // Returns the number of equal pieces that the buffer of a round is cut into. It is a multiple of ranks()
  // where each rank owns a part of the buffer (all_gather, reduce_scatter, all_to_all).
  virtual std::uint32_t chunks() const = 0;
  // Returns the number of scratch chunks of a rank. Scratch chunk i is as large as piece i mod chunks().
  virtual std::uint32_t scratch_chunks(std::uint32_t /*rank*/) const { return 0; }
  // Returns the largest Step::count of all steps that send.
  virtual std::uint32_t largest_count() const { return 1; }
  // Returns whether input and output are one buffer. The input of an all_gather's rank is then its part of
  // the output; the output of a reduce_scatter's rank is its part of the input.
  virtual bool in_place() const = 0;
  // Returns the count that gives the size of a step's message, in kinds with counts. The step must send or
  // receive; a step that does both moves the same data.
  virtual Counted counted(std::uint32_t rank, const Step& step) const;
  virtual std::uint32_t aggregations() const { return 0; }
  virtual AggregationGroup aggregation(std::uint32_t /*number*/) const { return {}; }
  // Connections between the same two ranks on different channels use different queue pairs.
  virtual std::uint32_t channels() const { return 1; }
  virtual std::uint32_t blocks(std::uint32_t rank) const = 0;
  virtual std::uint32_t channel(std::uint32_t /*rank*/, std::uint32_t /*block*/) const { return 0; }
  // Returns whether a proxy of the library, not a thread block of the GPU, executes its steps. Such a block
  // only forwards messages. It does not wait between slices as a GPU's thread block does.
  virtual bool is_proxy(std::uint32_t /*rank*/, std::uint32_t /*block*/) const { return false; }
  // Returns whether a switch, not the rank, executes the steps of the thread block. Each step then forwards
  // the sum of one AggregationGroup to another AggregationGroup; the thread block is the head of both. Both
  // have the same members, or one has a single member, which is also a member of the other.
  //
  // The sum thus returns within the network, and no other step waits for such a step. A sender has room for
  // one more sum than it has slots, and sends no further addend before the first sum was taken. Therefore no
  // message waits for buffer space in the network.
  virtual bool in_switch(std::uint32_t /*rank*/, std::uint32_t /*block*/) const { return false; }
  // Returns the pool of slots that the switches of in_switch() use; without slots their sums are in order and
  // no packet is sent again.
  virtual AggregationPool pool() const { return {}; }
  // Returns whether a rank sends to one rank at a time on each channel, as a process of MPI with blocking
  // sends does. A message to another rank takes the wire only when all messages before it have left.
  // Otherwise messages to several ranks share the wire.
  virtual bool serial_sends() const { return false; }
  // Returns whether steps may wait for steps of other thread blocks (Step::after_block), or switches execute
  // some steps.
  virtual bool waits_between_blocks() const { return true; }
  virtual std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const = 0;
  virtual Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const = 0;
};

// Returns the number of chunks in the given buffer of a rank.
std::uint32_t chunks_of(const Plan& plan, std::uint32_t rank, Buffer buffer);

// Returns which of the chunks() pieces of the buffer gives the size of a chunk. For an all_to_all this is the
// piece in its sender's input, so that both ends agree.
std::uint32_t piece_of(const Plan& plan, std::uint32_t rank, ChunkAt at);

// Returns the size of piece `index` of `total` bytes shared out to `parts` as evenly as integers allow. The
// pieces add up to total exactly.
constexpr Bytes share(Bytes total, std::uint64_t parts, std::uint64_t index) {
  const Int128 n = total;
  return static_cast<Bytes>(n * (static_cast<Int128>(index) + 1) / static_cast<Int128>(parts) -
                            n * static_cast<Int128>(index) / static_cast<Int128>(parts));
}

// Returns the bytes of the `count` chunks from `at` on, where the buffer of the round has `bytes`.
Bytes bytes_of(const Plan& plan, std::uint32_t rank, ChunkAt at, std::uint32_t count, Bytes bytes);

// Returns the chunks that have the size of a step's message; the step must send. A message that is received
// and passed on has the size of the destination, or of the source that it is added to.
inline ChunkAt what_is_sent(const Step& step) {
  return step.kind == Step::Kind::receive_copy_send ? step.destination : step.source;
}
inline Bytes bytes_sent(const Plan& plan, std::uint32_t rank, const Step& step, Bytes bytes) {
  return bytes_of(plan, rank, what_is_sent(step), step.count, bytes);
}

// Returns the bytes that `rank` sends for a buffer of `bytes` in one round on one channel. A message to a
// AggregationGroup counts once. Predictions and lower bounds use it.
Bytes bytes_sent(const Plan& plan, std::uint32_t rank, Bytes bytes);

// Least number of slots of a connection, in messages of a chunk. NCCL's rings with protocol Simple have
// NCCL_STEPS = 8 slots and chunks of 4.
inline constexpr std::uint32_t kSlots = 2;
// Least number of slots of the connection from a member of an AggregationGroup to its head.
inline constexpr std::uint32_t kReductionSlots = 1;

// Proves that the plan does what its kind requires, for any relative speeds of the ranks. Every rank ends
// with the right contributions of the right chunks, each rank's exactly once. Every message sent is received.
//
// No thread block waits forever, in any number of rounds, where each connection has `slots` slots for
// messages of a chunk. Returns an empty string if proved; otherwise the first error found, with rank, thread
// block and step.
std::string prove(const Plan& plan, std::uint32_t slots = kSlots);

}  // namespace netsim
