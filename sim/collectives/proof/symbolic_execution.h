// SymbolicExecution: all ranks of a plan at once, one round; thread blocks in turns, a few steps each.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "sim/collectives/plan.h"
#include "sim/collectives/proof/access_order.h"
#include "sim/collectives/proof/blocks.h"
#include "sim/collectives/proof/cells.h"
#include "sim/collectives/proof/connection_ends.h"
#include "sim/collectives/proof/connections.h"
#include "sim/collectives/proof/goal.h"
#include "sim/collectives/proof/step_listener.h"
#include "sim/core/index.h"

namespace netsim::proof {

class SymbolicExecution {
 public:
  // Of a plan whose steps are valid (check_steps), from what `cells` hold at the beginning to what they hold
  // at the end. `order` may be null: nobody looks whether accesses are ordered. All of it outlives the
  // execution.
  SymbolicExecution(const Plan& plan, std::uint32_t slots, const Blocks& blocks, const Goal& goal,
                    RankSets& sets, Cells& cells, AccessOrder* order);
  // To be called before run(); null: nobody. It outlives the execution.
  void set_listener(StepListener* listener) { listener_ = listener; }
  // Empty, or the first thing that is wrong: a step that does something that cannot be right, thread blocks
  // that wait forever, a message that nobody receives.
  std::string run();

  // To be asked for before run(): which step was the last to write this cell.
  void watch(std::uint32_t rank, Cell cell) {
    watched_rank_ = rank;
    watched_ = cell;
  }
  // After run(): "step", or empty if none did.
  const std::string& last_write() const { return last_write_; }

 private:
  static constexpr std::uint32_t kFewBlocks = 1 << 16;
  // Steps that a thread block does before others come: so few that what they send is taken soon, so many that
  // what it touches is near.
  static constexpr std::uint32_t kStepsAtOnce = 32;
  enum class Waits : std::uint8_t { no, for_message, for_slot, for_step };
  struct State {
    std::uint32_t finished = 0;             // steps
    std::uint32_t first_waiter = kNoIndex;  // thread blocks that wait for a step of this one, as a list
    std::uint32_t awaited = 0;              // the first step that one of them waits for
    std::uint32_t next_waiter = kNoIndex;   // the next one in the list of the one that this one waits for
    Waits waits = Waits::no;
    bool waited = false;  // its next step is in next_
  };

  void advance(BlockAt at);
  bool can_begin();
  bool perform();
  bool receive();
  bool receive_sum(std::uint32_t from, std::uint32_t to, bool first);
  bool read();
  bool read_chunk(std::uint32_t i);
  bool write();
  void send();
  bool add(const Value& there, Value& comes);
  bool touch(ChunkAt at, Cell cell, bool writes);
  bool wait(Waits what);
  void wake(BlockAt at);
  void wake_waiters(std::uint32_t id);
  bool fail(const std::string& message);

  std::string stuck() const;
  std::string unreceived() const;
  bool has_finished(std::uint32_t id) const;
  std::uint32_t waits_for(std::uint32_t id) const;
  std::uint32_t without_message(std::uint32_t id, BlockAt at, Partner from) const;
  std::uint32_t without_slot(std::uint32_t id, BlockAt at, Partner to) const;
  Step next_step(std::uint32_t id) const;
  std::string text_of_wait(std::uint32_t id) const;

  const Plan& plan_;
  const std::uint32_t slots_;
  const Blocks& blocks_;
  const ConnectionEnds ends_;
  const Goal& goal_;
  RankSets& sets_;
  Cells& cells_;
  AccessOrder* order_;
  StepListener* listener_ = nullptr;
  Connections connections_;
  std::vector<State> states_;  // by thread block
  std::vector<Step> next_;     // that each one waits to begin, so that it is not asked for twice; of few only
  std::deque<BlockAt> ready_;
  std::string error_;

  // The step that is executed, of thread block `at_`, and the values that it moves.
  BlockAt at_;
  std::uint32_t id_ = 0, index_ = 0;
  bool shares_cells_ = false;  // the rank has several thread blocks
  Step step_;
  std::vector<Value> values_;          // at least one, and step_.count
  std::vector<Value> more_values_{1};  // that are added to those

  std::uint32_t watched_rank_ = kNoIndex;
  Cell watched_;
  std::string last_write_;
};

}  // namespace netsim::proof
