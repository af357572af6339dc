// CollectiveProgram: a plan as data, as synthesizers and people write it: rank by rank, thread block by
// thread block, step by step. As in MSCCL, a thread block sends to one rank and receives from one. Two thread
// blocks are joined by their ranks and their channel.
//
// The reader of a format fills in a CollectiveProgram. connect() joins its thread blocks and checks all that
// can be checked without executing it. The proof and the executor then use a ProgramPlan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/plan.h"
#include "sim/collectives/protocol.h"

namespace netsim {

struct CollectiveProgramBlock {
  std::uint32_t channel = 0;
  // The ranks that its messages go to and come from; kNoIndex: none.
  std::uint32_t send_peer = kNoIndex, receive_peer = kNoIndex;
  std::vector<Step> steps;  // connect() sets `to` and `from`
};

struct ProgramRank {
  std::uint32_t scratch_chunks = 0;
  std::vector<CollectiveProgramBlock> blocks;
};

struct CollectiveProgram {
  std::string name;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t root = 0;
  std::uint32_t chunks = 0, channels = 1;  // as in Plan
  std::uint32_t largest_count = 1;         // largest number of chunks in a message; set by connect()
  bool in_place = false;
  Protocol protocol = Protocol::simple;
  // The range of sizes in bytes that it is meant for, if given. Other sizes are not refused.
  std::optional<Bytes> least_bytes, most_bytes;
  std::vector<ProgramRank> ranks;
};

// Limits of a program. They keep a large number in a file from costing memory.
inline constexpr std::uint32_t kMostProgramRanks = 1 << 16, kMostProgramChunks = 1 << 22,
                               kMostProgramChannels = 1 << 16;

// ProgramFault: an error and its location; kNoIndex: no particular rank, thread block or step.
struct ProgramFault {
  std::uint32_t rank = kNoIndex, block = kNoIndex, step = kNoIndex;
  std::string message;
};
// Returns "rank 1, thread block 2, step 3: MESSAGE".
std::string to_string(const ProgramFault& fault);

// Sets each step's partner. Returns nullopt or the first fault. Faults are numbers out of range and chunks
// beyond their buffer. Two thread blocks of a rank must not have the same peer and channel in one direction.
// Further faults are a dependency on a missing step, and messages without a receiver or sender or with an
// unexpected number of chunks.
std::optional<ProgramFault> connect(CollectiveProgram& program);

// ProgramPlan: a program as a plan. For the opposite conversion see one_peer_blocks.h.
class ProgramPlan final : public Plan {
 public:
  // The program is connected and without a fault. Several plans may share it.
  explicit ProgramPlan(std::shared_ptr<const CollectiveProgram> program) : program_(std::move(program)) {}
  // Borrows the program, which must outlive the plan.
  explicit ProgramPlan(const CollectiveProgram& program)
      : program_(std::shared_ptr<const CollectiveProgram>(), &program) {}

  CollectiveKind kind() const override { return program_->kind; }
  const char* algorithm() const override { return program_->name.c_str(); }
  std::uint32_t ranks() const override { return static_cast<std::uint32_t>(program_->ranks.size()); }
  std::uint32_t root() const override { return program_->root; }
  std::uint32_t chunks() const override { return program_->chunks; }
  std::uint32_t scratch_chunks(std::uint32_t rank) const override {
    return program_->ranks[rank].scratch_chunks;
  }
  std::uint32_t largest_count() const override { return program_->largest_count; }
  bool in_place() const override { return program_->in_place; }
  std::uint32_t channels() const override { return program_->channels; }
  std::uint32_t blocks(std::uint32_t rank) const override {
    return static_cast<std::uint32_t>(program_->ranks[rank].blocks.size());
  }
  std::uint32_t channel(std::uint32_t rank, std::uint32_t block) const override {
    return program_->ranks[rank].blocks[block].channel;
  }
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override {
    return static_cast<std::uint32_t>(program_->ranks[rank].blocks[block].steps.size());
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    return program_->ranks[rank].blocks[block].steps[index];
  }
  const CollectiveProgram& program() const { return *program_; }

 private:
  std::shared_ptr<const CollectiveProgram> program_;
};

}  // namespace netsim
