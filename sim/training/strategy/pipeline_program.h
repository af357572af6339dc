// PipelineProgram: makes role programs from the computation of the stages, their transfers and a pipeline
// plan.
//
// With PipelineTransfers::overlap, as with Megatron-LM's --overlap-p2p-communication, a send waits for its
// result only. A receive is posted as soon as the receive before it in its direction is done. Only the
// computation that needs it waits for it.
//
// Without it, the stage waits for its sends, as Megatron-LM's p2p_communication.py waits for its batched
// isend and irecv. A step computes when the messages of the step before are delivered. Receives are posted as
// with overlap. Megatron batches them with the sends of the step before, because two stages that send to each
// other first would wait forever.
//
// With PipelineTransfers::ordered, all messages of a stage are on one stream, as calls of one NCCL
// communicator. The sends of a computation and the next receives are one grouped call, as in Megatron-LM's
// batch_isend_irecv. Each call waits for the one before it, so that an earlier receive delays a later send.
//
// The plan may have steps for messages. Such a message is sent, or its receive posted, when the stage reaches
// the step. By then the step before is computed, and everything that earlier steps wait for is done. The plan
// then says for which of them the stage waits. Reductions of gradients that are steps begin in the same way.
//
// With tensor parallelism each rank may send 1/t of the boundary tensor and the receivers gather it
// (scatter/gather, Narayanan et al., section 4.1).
//
// Forward messages have tag 0 and backward messages tag 1 if all messages of a direction between two stages
// are used in sending order. Otherwise each chunk of the receiver has two tags of its own.
//
// Between stages with different meshes, a StageReshardings says what each rank does. Ranks that do the same
// form a class with a program of its own. A rank sends one message after the other there, and receives one
// after the other, in the order of the plan. Gathers run beside the next receive. Messages of different
// stages and chunks do not wait for each other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/training/strategy/scheduled_pipeline.h"
#include "sim/training/strategy/stage_reshardings.h"
#include "sim/workload/program/program.h"

namespace netsim {

// StageStep: the properties of a stage's step on which its computation depends.
struct StageStep {
  PipelineStepKind kind = PipelineStepKind::forward;
  std::uint32_t stage = 0, chunk = 0;
  std::uint32_t backward_chunk = 0;  // overlapped only
  // No later step adds to the gradients of the backward's chunk, and this step computes gradients of its
  // weights.
  bool completes_gradients = false;
  // No earlier step computes with the weights of the chunk.
  bool needs_parameters = false;
  // Returns the chunk whose backward the step computes, if it computes one.
  std::uint32_t chunk_of_backward() const {
    return kind == PipelineStepKind::overlapped ? backward_chunk : chunk;
  }
  auto operator<=>(const StageStep&) const = default;
};

// OperationsAside: the last operation of each queue whose operations run beside the steps of a stage.
class OperationsAside {
 public:
  using Position = BlockBuilder::Position;
  // Adds an operation, which replaces the last one of its queue.
  void add(Stream stream, std::uint32_t queue, Position position);
  // Adds the operations of a block that begins at `begin`. Their positions are relative to the block.
  void add(const OperationsAside& in_block, Position begin);
  bool empty() const { return last_.empty(); }
  void append_to(std::vector<Position>& positions) const;

 private:
  struct Last {
    Stream stream;
    std::uint32_t queue;
    Position position;
  };
  std::vector<Last> last_;
};

// UpdatePlaces: where a stage's optimizer is cut, its steps, and the operations that wait for them in the
// next iteration.
struct UpdatePlaces {
  struct Place {
    std::uint32_t update = 0;  // number of the step
    BlockBuilder::Position position = 0;
  };
  std::vector<Place> run, awaited;
  // Adds the places of a block that begins at `begin`. Their positions are relative to the block.
  void add(const UpdatePlaces& in_block, BlockBuilder::Position begin);
};

// StageComputation: the computation of the stages, without the transfers between them.
class StageComputation {
 public:
  using Position = BlockBuilder::Position;
  // The positions that the first operation of a step waits for, besides its stream. `forward` and `backward`
  // are those of the two passes, `before` is the end of the step before.
  struct Inputs {
    std::vector<Position> forward, backward;
    std::vector<Position> before{BlockBuilder::kBefore};
  };
  // The operations that complete a step: both for an overlapped step, else the one of its kind. `aside` holds
  // the operations that run beside the following steps (reductions of gradients). `layers` says which
  // operations work for which layer of a model.
  struct Results {
    Position forward = 0, backward = 0;
    OperationsAside aside = {};
    UpdatePlaces updates = {};
    std::vector<LayerOperations> layers = {};
  };
  virtual ~StageComputation() = default;
  // Appends the work of one step.
  virtual Results append(BlockBuilder& block, const StageStep& step, const Inputs& inputs) const = 0;
  // Appends the reduction of a chunk's gradients at a step of its own, after `after`. Returns the last
  // operation of each of its queues, or none where there is nothing to reduce.
  virtual OperationsAside reduce(BlockBuilder& block, std::uint32_t stage, std::uint32_t chunk,
                                 const std::vector<Position>& after) const = 0;
  // Appends the reduction of a chunk's gradients and the update of its weights, in the same way.
  virtual OperationsAside update(BlockBuilder& block, std::uint32_t stage, std::uint32_t chunk,
                                 const std::vector<Position>& after) const = 0;
};

struct PipelineTransfers {
  std::uint32_t axis = 0;  // axis of the pipeline
  Bytes message = 0;       // bytes that one rank sends per message
  // Bytes by part of the model that precedes the boundary, where they differ; else empty.
  std::vector<Bytes> messages = {};
  Bytes gathered = 0;                                   // bytes of the gathered tensor; 0: no gather
  std::uint32_t forward_group = 0, backward_group = 0;  // groups that gather the tensor
  bool overlap = true;                                  // the stage does not wait for its sends
  // All messages of a stage are on one stream, in the order of receives_in_order(). A call is launched when
  // the one before it has ended. All stages must have one mesh then.
  bool ordered = false;
  // Transfers between stages with meshes of their own, whose ranks are numbered along the job's one axis.
  // Null where all have one mesh. It must outlive the making of the program.
  const StageReshardings* reshardings = nullptr;
};

class PipelineProgram {
 public:
  // All arguments must outlive this. The plan must be proved.
  PipelineProgram(ProgramBuilder& builder, const ScheduledPipeline& plan, PipelineTransfers transfers,
                  const StageComputation& computation);

  // Appends all steps of a rank of a stage. `rank_class` matters where stages have meshes of their own. End
  // holds the last computation, the operations beside the steps, and what steps behind that computation wait
  // for. It also holds the places of updates, and which operations belong to which step.
  struct End {
    BlockBuilder::Position computed = 0;
    OperationsAside aside = {};
    std::vector<BlockBuilder::Position> waits = {};
    UpdatePlaces updates = {};
    std::vector<MarkedOperations> marks = {};  // the operations of each step
  };
  End append(BlockBuilder& main, std::uint32_t stage, std::uint32_t rank_class = 0) const;

  // Appends the exchange and the sum of gradients of the parameters that the stage shares with a stage of
  // another mesh. They wait for `after`. `memory` states whether to declare the memory that they need.
  // Returns the last operation.
  BlockBuilder::Position append_shared(BlockBuilder& main, std::uint32_t stage, std::uint32_t rank_class,
                                       std::uint32_t other, const std::vector<BlockBuilder::Position>& after,
                                       bool memory) const;

 private:
  using Position = BlockBuilder::Position;
  struct Step {
    std::uint32_t block = 0;
    // Results of StageComputation::append(), relative to the block, as are `aside` and `updates`.
    Position forward = 0, backward = 0;
    OperationsAside aside = {};
    UpdatePlaces updates = {};
    std::uint32_t sends = 0;            // number of sends, which are the last operations of the block
    std::uint32_t layers_plus_one = 0;  // index + 1 in Program::layers
  };
  // Meeting: how a step's block depends on communication before and after it. An operation before the block
  // is given by its distance: the number of operations between it and the block.
  struct Meeting {
    std::optional<std::uint32_t> forward_received, backward_received;  // receives that are steps of the plan
    // The step's block sends the result itself; false where the plan has a step for it.
    bool sends_forward = true, sends_backward = true;
    std::vector<std::uint32_t> waits;  // operations that the stage waits for
    // The end of the step before; empty: the last operation before the block.
    std::vector<std::uint32_t> before;
    auto operator<=>(const Meeting&) const = default;
  };
  class StageProgress;  // state of a stage on its way through its list of steps
  // One transfer of a step, as this end sees it.
  struct Transfer {
    bool forward = true;
    std::uint32_t stage = 0, chunk = 0;  // stage and chunk of the other end
    std::uint32_t part = 0;              // part of the model that precedes the boundary
    Bytes bytes = 0;
  };
  // The rank for which a program is made.
  struct Rank {
    std::uint32_t stage = 0, rank_class = 0;
  };
  Step make_step(const StageStep& step, Rank rank, const Meeting& meeting) const;
  std::vector<Position> receive(BlockBuilder& block, const StageStep& step, Rank rank, bool forward,
                                std::optional<std::uint32_t> received) const;
  // Returns the number of operations that the send took; they are the last of the block. `joins`: the send is
  // in one call with the message before it, where messages are ordered.
  std::uint32_t send(BlockBuilder& block, const StageStep& step, Rank rank, bool forward,
                     const std::vector<Position>& after, bool joins = false) const;
  // Appends a receive that is a step of its own, or one of ordered messages.
  Position post(BlockBuilder& block, const StageStep& step, bool forward, const std::vector<Position>& after,
                bool joins = false) const;
  void order(ProgramOp& message, bool joins) const;
  bool reshards(const StageStep& step, const Transfer& transfer) const;
  std::vector<Position> reshard(BlockBuilder& block, Rank rank, const Transfer& transfer, bool out,
                                std::uint32_t line, const std::string& what,
                                const std::vector<Position>& after) const;
  bool has_neighbour(const StageStep& step, bool forward, bool source, Transfer& transfer) const;
  PeerExpression peer(std::uint32_t stage, const Transfer& to, std::int32_t preferred) const;
  std::uint32_t line(bool forward, std::uint32_t receiving_chunk) const;

  ProgramBuilder& builder_;
  const ScheduledPipeline& plan_;
  PipelineTransfers transfers_;
  const StageComputation& computation_;
  bool one_order_;
};

}  // namespace netsim
