// PipelineProgram: puts a stage's computation, its transfers and a pipeline schedule together into role
// programs.
//
// Transfers, as with Megatron-LM's batched isend/irecv, never hold each other or the computation up except
// through data: a send waits for its result only; a receive is posted as soon as the receive before it in its
// direction is done, and only the computation that needs it waits for it. With tensor parallelism each rank
// sends 1/t of the boundary tensor and the receivers gather it (scatter/gather, Narayanan et al.
// section 4.1).
//
// Forward messages have tag 0, backward messages tag 1: all stages compute the same sequence of (chunk,
// microbatch), so messages of one direction arrive in the order of their use.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/core/config.h"
#include "sim/workload/program/program.h"
#include "sim/workload/strategy/pipeline_schedule.h"

namespace netsim {

// What the stages compute, without the transfers between them.
class StageComputation {
 public:
  virtual ~StageComputation() = default;
  // Each appends the work of one microbatch on one chunk and returns the position of the operation that
  // completes it. `waits`: the first operation waits for the one right before it (the input). `final`: the
  // last microbatch.
  virtual BlockBuilder::Position forward(BlockBuilder& block, std::uint32_t stage, std::uint32_t chunk,
                                         bool waits) const = 0;
  virtual BlockBuilder::Position backward(BlockBuilder& block, std::uint32_t stage, std::uint32_t chunk,
                                          bool waits, bool final) const = 0;
};

struct PipelineTransfers {
  std::uint32_t axis = 0;                               // the pipeline's
  Bytes message = 0;                                    // of one rank
  Bytes gathered = 0;                                   // size of the gathered tensor; 0 = no gather
  std::uint32_t forward_group = 0, backward_group = 0;  // where it is gathered
};

class PipelineProgram {
 public:
  PipelineProgram(ProgramBuilder& builder, PipelineShape shape, PipelineTransfers transfers,
                  const StageComputation& computation)
      : builder_(builder), shape_(shape), transfers_(transfers), computation_(computation) {}

  // Appends all steps of a stage and returns the position of its last computation.
  BlockBuilder::Position append(BlockBuilder& main, std::uint32_t stage,
                                const PipelineSchedule& schedule) const;

 private:
  struct Step {
    std::uint32_t block = 0;
    BlockBuilder::Position result = 0;  // within the block
  };
  Step make_step(std::uint32_t stage, std::uint32_t chunk, bool forward, bool final) const;
  bool has_input(std::uint32_t stage, std::uint32_t chunk, bool forward) const;
  void receive(BlockBuilder& block, bool forward) const;
  void send(BlockBuilder& block, bool forward, BlockBuilder::Position result) const;

  ProgramBuilder& builder_;
  PipelineShape shape_;
  PipelineTransfers transfers_;
  const StageComputation& computation_;
};

// The schedule that a configuration names (null: interleaved for more than one chunk, else one_f_one_b).
// ConfigError at `schedule`, or at `where` if it is null, for a schedule that refuses the shape.
std::unique_ptr<PipelineSchedule> create_pipeline_schedule(const ConfigNode& schedule,
                                                           const ConfigNode& where,
                                                           const PipelineShape& shape);

}  // namespace netsim
