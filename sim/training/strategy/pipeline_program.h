// PipelineProgram: puts what stages compute, their transfers and a pipeline plan together into role programs.
//
// Transfers overlap, as with Megatron-LM's --overlap-p2p-communication: a send waits for its result only, a
// receive is posted as soon as the receive before it in its direction is done, and only the computation that
// needs it waits for it. Or the stage waits for its sends, as Megatron-LM does without it
// (p2p_communication.py waits for its batched isend and irecv): a step computes when what the step before it
// sent is delivered. Receives are posted as before: Megatron batches them with the sends of the step before,
// because two stages that send to each other, and receive only then, would wait forever.
//
// Or all messages of a stage take one stream, as calls of one NCCL communicator do. Behind a computation its
// sends and the next receives are one grouped call, as in Megatron-LM's batch_isend_irecv. Each call waits
// for the one before it, so that an earlier receive holds a later send.
//
// Messages that the plan has steps for are sent, and their receives posted, when the stage has come to these:
// when the step before is computed, and what steps before it wait for is done. Which of them the stage waits
// for is then the plan's to say. So are reductions of gradients begun that are steps. With tensor
// parallelism each rank may send 1/t of the boundary tensor and the receivers gather it (scatter/gather,
// Narayanan et al. section 4.1).
//
// Where all messages of a direction between two stages are used in the order in which they are sent, forward
// messages have tag 0 and backward messages tag 1; else each chunk of the receiver has tags of its own.
//
// Between stages with different meshes a StageReshardings says what each rank does; which ranks do the same
// is a class, with a program of its own. A rank sends one thing after the other there, and gets one after the
// other, in the order of the plan; gathers come beside what is received next. Messages of different stages
// and chunks do not wait for each other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/training/strategy/pipeline_plan.h"
#include "sim/training/strategy/stage_reshardings.h"
#include "sim/workload/program/program.h"

namespace netsim {

// A step of a stage, as far as it concerns what is computed.
struct StageStep {
  PipelineStepKind kind = PipelineStepKind::forward;
  std::uint32_t stage = 0, chunk = 0;
  std::uint32_t backward_chunk = 0;  // overlapped only
  // No later step adds to the gradients of the backward's chunk, whose weights are computed here.
  bool completes_gradients = false;
  // No earlier step computes with the weights of the chunk.
  bool needs_parameters = false;
  auto operator<=>(const StageStep&) const = default;
};

// The last operation of each queue whose operations go on beside the steps of a stage.
class OperationsAside {
 public:
  using Position = BlockBuilder::Position;
  // Replaces the operation that was the last of the queue.
  void add(Stream stream, std::uint32_t queue, Position position);
  // Adds the operations of a block that begins at `begin`, by their positions in the block.
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

// What the stages compute, without the transfers between them.
class StageComputation {
 public:
  using Position = BlockBuilder::Position;
  // What the first operation of a step waits for, besides its stream: of the forward, and of the backward.
  // And the end of the step before.
  struct Inputs {
    std::vector<Position> forward, backward;
    std::vector<Position> before{BlockBuilder::kBefore};
  };
  // The operations that complete what a step computes: of an overlapped step both, else the one of its kind.
  // And those that go on beside the steps that follow (reductions of gradients).
  struct Results {
    Position forward = 0, backward = 0;
    OperationsAside aside = {};
  };
  virtual ~StageComputation() = default;
  // Appends the work of one step.
  virtual Results append(BlockBuilder& block, const StageStep& step, const Inputs& inputs) const = 0;
  // Appends what reduces the gradients of a chunk at a step of its own, behind `after`. Returns its last
  // operation, of queue 0 of stream dp, or nothing where there is nothing to do.
  virtual std::optional<Position> reduce(BlockBuilder& block, std::uint32_t stage, std::uint32_t chunk,
                                         const std::vector<Position>& after) const = 0;
};

struct PipelineTransfers {
  std::uint32_t axis = 0;                               // the pipeline's
  Bytes message = 0;                                    // of one rank
  std::vector<Bytes> messages = {};                     // where they differ: behind each part of the model
  Bytes gathered = 0;                                   // size of the gathered tensor; 0 = no gather
  std::uint32_t forward_group = 0, backward_group = 0;  // where it is gathered
  bool overlap = true;                                  // the stage does not wait for its sends
  // All messages of a stage are in one stream, in the order of receives_in_order(). A call is launched when
  // the one before it has ended. All stages have one mesh then.
  bool ordered = false;
  // Of stages with meshes of their own, whose ranks are numbered along the job's one axis; null: all have one
  // mesh. Outlives the program's making.
  const StageReshardings* reshardings = nullptr;
};

class PipelineProgram {
 public:
  // All of them outlive this. The plan is proved.
  PipelineProgram(ProgramBuilder& builder, const PipelinePlan& plan, PipelineTransfers transfers,
                  const StageComputation& computation);

  // Appends all steps of a rank of a stage. `rank_class` counts where stages have meshes of their own.
  // Returns the last computation, the operations beside the steps, and what steps behind that computation
  // wait for.
  struct End {
    BlockBuilder::Position computed = 0;
    OperationsAside aside = {};
    std::vector<BlockBuilder::Position> waits = {};
  };
  End append(BlockBuilder& main, std::uint32_t stage, std::uint32_t rank_class = 0) const;

  // Appends the exchange of gradients of the parameters that the stage and one with another mesh share, which
  // waits for `after`, and their sum. `memory`: whether it says what memory it needs. Returns what completes
  // it.
  BlockBuilder::Position append_shared(BlockBuilder& main, std::uint32_t stage, std::uint32_t rank_class,
                                       std::uint32_t other, const std::vector<BlockBuilder::Position>& after,
                                       bool memory) const;

 private:
  using Position = BlockBuilder::Position;
  struct Step {
    std::uint32_t block = 0;
    Position forward = 0, backward = 0;  // of StageComputation::Results, within the block, as is the next
    OperationsAside aside = {};
    std::uint32_t sends = 0;  // the last operations of the block
  };
  // How a step meets the communication before and behind it. Operations are named by how many lie between
  // them and the step's block.
  struct Meeting {
    std::optional<std::uint32_t> forward_received, backward_received;  // of receives that are steps
    bool sends_forward = true, sends_backward = true;                  // itself: no step does
    std::vector<std::uint32_t> waits;                                  // for what the stage waits
    std::vector<std::uint32_t> before;  // the end of the step before; empty: the last operation
    auto operator<=>(const Meeting&) const = default;
  };
  class CollectiveConfig;  // of a stage through its list
  // One transfer of a step, as this end sees it.
  struct Transfer {
    bool forward = true;
    std::uint32_t stage = 0, chunk = 0;  // of the other end
    std::uint32_t part = 0;              // of the model: it is what lies behind it
    Bytes bytes = 0;
  };
  // The rank whose program is made.
  struct Rank {
    std::uint32_t stage = 0, rank_class = 0;
  };
  Step make_step(const StageStep& step, Rank rank, const Meeting& meeting) const;
  std::vector<Position> receive(BlockBuilder& block, const StageStep& step, Rank rank, bool forward,
                                std::optional<std::uint32_t> received) const;
  // How many operations it took, the last of the block. `joins`: in one call with the message before it,
  // where messages are ordered.
  std::uint32_t send(BlockBuilder& block, const StageStep& step, Rank rank, bool forward,
                     const std::vector<Position>& after, bool joins = false) const;
  // A receive that is a step of its own, or one of ordered messages.
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
  const PipelinePlan& plan_;
  PipelineTransfers transfers_;
  const StageComputation& computation_;
  bool one_order_;
};

}  // namespace netsim
