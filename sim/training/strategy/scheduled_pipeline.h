// ScheduledPipeline: the steps that a schedule gives each stage of a pipeline, as data, with the proof that
// they can run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {

struct ScheduledPipeline {
  PipelineShape shape;
  PipelinePlacement placement;
  std::vector<std::vector<PipelineStep>> steps;  // by stage
  bool trains = true;                            // some stage has backwards
  bool receives_ahead = false;                   // PipelineSchedule::receives_ahead()

  // Returns the number of parts of the model that a microbatch passes through.
  std::uint32_t parts() const { return placement.parts(); }
  // Returns whether some backward is split into gradients of the input and of the weights.
  bool splits_backward() const;
  bool pairs() const;         // some step overlaps a forward and a backward
  bool communicates() const;  // some step sends, receives or reduces
  bool updates() const;       // some step updates weights, so that an iteration has several updates
  // Returns whether some step reduces gradients, updates included; with arguments, whether a step of its own
  // reduces those of this chunk of a stage.
  bool reduces() const;
  bool reduces(std::uint32_t stage, std::uint32_t chunk) const;
};

// PipelineProof: facts about a pipeline that are known before it runs.
struct PipelineProof {
  std::string refusal;                   // why it cannot run, in words for the user; "" if it can
  std::optional<std::uint32_t> refused;  // the stage to whose list the refusal refers, if it refers to one
  // By stage: the greatest number of (chunk, microbatch) pairs whose forward is done and whose whole backward
  // is not.
  std::vector<std::uint32_t> in_flight;
  // The messages of a direction between two stages are sent in the order in which they are used, whatever
  // their chunk.
  bool one_order = true;
  // The step that would wait forever under rendezvous semantics; "" if none would. There a send ends only
  // when the receiver has reached the step that uses it, and stages wait for their sends. This refuses
  // nothing: Megatron-LM posts receives ahead of their use, and netsim delivers messages that no receive
  // waits for yet. Receives and waits that the lists themselves contain are checked in `refusal`.
  std::string rendezvous;
};

// Proves that a pipeline can run, in time linear in the number of steps:
// - Every part is computed once for every microbatch.
// - No step waits forever. Each stage takes its steps in order, and a step waits for its input.
// - Messages between two chunks are used in the order in which they are sent.
//
// For communication that is in the lists it also proves four statements.
// - Each message is sent once, after the step that computes it, and received once, before the step that uses
//   it.
// - Gradients of a chunk are reduced once, after the last step that adds to them. Either all stages that have
//   copies of the chunk reduce them or none.
// - A stage that waits for a send does not wait forever. Where the receive is a step too, the send ends only
//   when the receiver has reached it, as NCCL's do.
// - Reductions of a stage run one after the other.
//
// An update comes after the steps that compute the gradients of its microbatches, and a stage waits for it
// only behind its begin. Chunks with copies are not updated so.
PipelineProof prove_pipeline(const ScheduledPipeline& plan);

// Returns the pipeline of the schedule that a configuration names, proved. A null `schedule` means
// interleaved for more than one chunk, else one_f_one_b. Throws ConfigError at `schedule`, or at `where` if
// it is null, if the schedule refuses the shape or the proof refuses the pipeline.
ScheduledPipeline schedule_pipeline(const ConfigNode& schedule, const ConfigNode& where,
                                    const PipelineShape& shape);

// Returns the receives of a stage that are no steps of its list, in the order of PipelineTransfers::ordered.
// Entry 0 is launched before the first step, and entry i + 1 after step i. The sends of a computation are in
// one call with the receives after it.
std::vector<std::vector<PipelineStep>> receives_in_order(const ScheduledPipeline& plan, std::uint32_t stage);
// Returns why a pipeline cannot run with its messages on one stream, in words for the user, or "" if it can.
// Sends end only when their receives are launched, as NCCL's do. `waits` tells whether stages wait for their
// sends.
std::string refuse_order(const ScheduledPipeline& plan, bool waits);

// Note for a job that orders the messages of a single stage.
inline constexpr const char* kNoMessages = "ordered_p2p changes nothing: a single stage has no messages";

// Returns the notes for the user about a pipeline whose stages wait for their sends.
std::vector<std::string> notes_on_blocking(const ScheduledPipeline& plan);

}  // namespace netsim
