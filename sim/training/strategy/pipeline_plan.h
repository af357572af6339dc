// PipelinePlan: a schedule, a placement and a number of microbatches, as data; and the proof that it can run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {

struct PipelinePlan {
  PipelineShape shape;
  PipelinePlacement placement;
  std::vector<std::vector<PipelineStep>> steps;  // by stage
  bool trains = true;                            // has backwards
  bool receives_ahead = false;                   // PipelineSchedule::receives_ahead()

  // Of the model: what a microbatch passes through on its way.
  std::uint32_t parts() const { return placement.parts(); }
  // Whether some backward is split into input and weights.
  bool splits_backward() const;
  bool pairs() const;         // a forward and a backward in one overlapped step
  bool communicates() const;  // some step sends, receives or reduces
  // Whether some step reduces gradients; those of a chunk of a stage.
  bool reduces() const;
  bool reduces(std::uint32_t stage, std::uint32_t chunk) const;
};

// What is known of a plan before it runs.
struct PipelineProof {
  std::string refusal;                   // why it cannot run, in words for the user; "" if it can
  std::optional<std::uint32_t> refused;  // the stage whose list it is about, if it is about one
  // By stage: the most (chunk, microbatch) whose forward is done and whose backward, weights and all, is not.
  std::vector<std::uint32_t> in_flight;
  // Whether the messages of a direction between two stages are sent in the order in which they are used,
  // whatever their chunk.
  bool one_order = true;
  // Where a send ends only when the receiver has come to the step that uses it, and a stage waits for its
  // sends: the step that would then wait forever; "" if none would. Megatron-LM posts receives ahead of their
  // use, and netsim delivers messages that nobody has asked for yet, so that this refuses nothing. (What the
  // lists themselves say of receives and of waits is in `refusal`.)
  std::string rendezvous;
};

// Proves that every part is computed once for every microbatch, that no step waits forever (each stage takes
// its steps in order, a step waits for its input), and that messages between two chunks are used in the order
// in which they are sent. Of communication that the lists name: each message is sent once, behind the step
// that computes it, and received once, before the step that uses it; gradients of a chunk are reduced once,
// behind the last step that adds to them, by all stages that have copies of it or none; and a stage that
// waits for a send goes on, though a send whose receive is a step, too, ends only when the receiver has come
// to that (as NCCL's do), and reductions of a stage are done one after the other. Linear in the number of
// steps.
PipelineProof prove_pipeline(const PipelinePlan& plan);

// The plan of the schedule that a configuration names (null: interleaved for more than one chunk, else
// one_f_one_b), proved. ConfigError at `schedule`, or at `where` if it is null, for one that refuses the
// shape or that the proof refuses.
PipelinePlan make_pipeline_plan(const ConfigNode& schedule, const ConfigNode& where,
                                const PipelineShape& shape);

// Returns the receives of a stage that are no steps of its list, in the order of PipelineTransfers::ordered.
// Entry 0 is launched before the first step, and entry i + 1 behind step i. What a computation sends is in
// one call with the receives behind it.
std::vector<std::vector<PipelineStep>> receives_in_order(const PipelinePlan& plan, std::uint32_t stage);
// Returns why a plan cannot run with its messages in one stream, in words for the user, or "" if it can.
// Sends end only when their receives are launched, as NCCL's do. `waits` tells whether stages wait for their
// sends.
std::string refuse_order(const PipelinePlan& plan, bool waits);

// This note is for a job that orders the messages of a single stage.
inline constexpr const char* kNoMessages = "ordered_p2p changes nothing: a single stage has no messages";

// What the user should know of a plan whose stages wait for their sends.
std::vector<std::string> notes_on_blocking(const PipelinePlan& plan);

}  // namespace netsim
