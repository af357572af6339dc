// CollectiveProgram: a plan that is data, as synthesizers and people write them, rank by rank, thread block
// by thread block, step by step. As in MSCCL a thread block sends to one rank and receives from one, and two
// thread blocks are joined by their ranks and their channel.
//
// Whoever reads a format fills in a CollectiveProgram; connect() joins its thread blocks and checks
// everything that can be said without executing it; ProgramPlan is what the proof and the executor then see.
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
  // The ranks that its messages go to and come from; kNoIndex: none do.
  std::uint32_t send_peer = kNoIndex, receive_peer = kNoIndex;
  std::vector<Step> steps;  // `to` and `from` are connect()'s
};

struct ProgramRank {
  std::uint32_t scratch_chunks = 0;
  std::vector<CollectiveProgramBlock> blocks;
};

struct CollectiveProgram {
  std::string name;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t root = 0;
  std::uint32_t chunks = 0, channels = 1;  // as Plan has them
  std::uint32_t largest_count = 1;         // of a message; connect()'s
  bool in_place = false;
  Protocol protocol = Protocol::simple;
  // The sizes in bytes for which it is meant, where it says them. Nothing is refused for them.
  std::optional<Bytes> least_bytes, most_bytes;
  std::vector<ProgramRank> ranks;
};

// Limits of a program, so that what is no more than a number in a file costs no memory.
inline constexpr std::uint32_t kMostProgramRanks = 1 << 16, kMostProgramChunks = 1 << 22,
                               kMostProgramChannels = 1 << 16;

// What is wrong, and where; kNoIndex: no rank, thread block or step in particular.
struct ProgramFault {
  std::uint32_t rank = kNoIndex, block = kNoIndex, step = kNoIndex;
  std::string message;
};
// "rank 1, thread block 2, step 3: what is wrong".
std::string to_string(const ProgramFault& fault);

// Looks up each step's partner. Nothing, or the first fault: numbers out of range, chunks beyond their
// buffer, two thread blocks of a rank with the same peer and channel in one direction, a dependency on a step
// that does not exist, messages without a receiver or sender, or of another number of chunks than expected.
std::optional<ProgramFault> connect(CollectiveProgram& program);

// A program as a plan. Any plan can be made one: see one_peer_blocks.h.
class ProgramPlan final : public Plan {
 public:
  // Connected, without a fault. Plans of one program share it.
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
