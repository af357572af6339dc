// The computations of a pipeline's steps, and the messages between them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/training/strategy/scheduled_pipeline.h"

namespace netsim {

// Half: a computation of a chunk for a microbatch. An overlapped step and a whole backward consist of
// several.
enum class Half : std::uint8_t { forward, input, weights };

struct Computed {
  Half half;
  std::uint32_t chunk, microbatch;
};
// Returns the computations of a step; none for a step that communicates.
std::vector<Computed> halves_of(const PipelineStep& step);

// Return whether a step sends or receives a message, and whether it sends it.
bool is_message(PipelineStepKind kind);
bool sends_message(PipelineStepKind kind);
// Returns the computation on this side that produces the message, or uses it.
Computed end_of_message(const PipelineStep& step);
// Returns the kind of the message that a computation sends or needs.
PipelineStepKind message_of(Half half, bool sent);

// Returns the chunk that a computation's input comes from (`source`), or that its output goes to. Returns
// nothing at the ends of the model.
std::optional<PipelinePlacement::Spot> neighbour_of(const ScheduledPipeline& plan, std::uint32_t stage,
                                                    const Computed& what, bool source);

}  // namespace netsim
