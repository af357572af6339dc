// SymbolicExecution: executes one round of a plan at all ranks. Thread blocks take turns of a few steps each.
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
  // Executes a plan with valid steps (check_steps) on the initial values of `cells`, which then hold the
  // final ones. `order` may be null: the order of accesses is then not checked. All arguments must outlive
  // the execution.
  SymbolicExecution(const Plan& plan, std::uint32_t slots, const Blocks& blocks, const Goal& goal,
                    RankSets& sets, Cells& cells, AccessOrder* order);
  // Must be called before run(). The listener may be null and must outlive the execution.
  void set_listener(StepListener* listener) { listener_ = listener; }
  // Returns an empty string, or the first error: an invalid step, thread blocks that wait forever, or a
  // message that is not received.
  std::string run();

  // Must be called before run(). Remembers which step was the last to write this cell.
  void watch(std::uint32_t rank, Cell cell) {
    watched_rank_ = rank;
    watched_ = cell;
  }
  // After run(): the text of that step, or empty if none wrote the cell.
  const std::string& last_write() const { return last_write_; }

 private:
  static constexpr std::uint32_t kFewBlocks = 1 << 16;
  // Largest number of steps that a thread block executes before others do. Few steps let messages be taken
  // soon; many steps keep the data of a thread block in the cache.
  static constexpr std::uint32_t kStepsAtOnce = 32;
  enum class Waits : std::uint8_t { no, for_message, for_slot, for_step };
  struct State {
    std::uint32_t finished = 0;  // number of finished steps
    // First of a list of thread blocks that wait for a step of this one.
    std::uint32_t first_waiter = kNoIndex;
    std::uint32_t awaited = 0;             // first step that any of them waits for
    std::uint32_t next_waiter = kNoIndex;  // next thread block in the list that this one is in
    Waits waits = Waits::no;
    bool waited = false;  // whether its next step is in next_
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
  // The step that each waiting thread block begins next, so that the plan computes it once. Used for few
  // thread blocks only.
  std::vector<Step> next_;
  std::deque<BlockAt> ready_;
  std::string error_;

  // The step of thread block `at_` that is being executed, and the values that it moves.
  BlockAt at_;
  std::uint32_t id_ = 0, index_ = 0;
  bool shares_cells_ = false;  // whether the rank has several thread blocks
  Step step_;
  std::vector<Value> values_;          // size: at least 1 and step_.count
  std::vector<Value> more_values_{1};  // values that are added to these

  std::uint32_t watched_rank_ = kNoIndex;
  Cell watched_;
  std::string last_write_;
};

}  // namespace netsim::proof
