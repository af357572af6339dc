// The proof executes all ranks of a schedule symbolically, one round, and follows what every chunk holds: the
// set of ranks whose contribution is in it (all-to-all: block (source, destination) holds {source}).
//
// One execution is enough. A message is matched to a receive by (source, destination, thread block) in order,
// a receive cannot see whether other messages are there, and sends never block: a Kahn network, whose results
// do not depend on the speeds of its processes. The only way out would be two thread blocks of one rank that
// touch the same chunk in either order; so every such pair (unless both only read) must be ordered by waits
// of that rank, which vector clocks check (Lamport 1978; order that comes only from messages through other
// ranks is not accepted). Further rounds are further pieces of the buffer and follow each other within each
// thread block, and FIFO order keeps them apart.
//
// Exact for any number of ranks: sets are exact (rank_sets.h), nothing is sampled. Memory (cells.h): at most
// kCellsPerPass (rank, chunk) cells of 8 bytes at a time; larger schedules are executed once for each range
// of chunks that fits, which is sound because an instruction touches one chunk and messages keep their chunk.
// All-to-all blocks are bits.
#include "sim/collectives/proof/proof.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "sim/collectives/proof/access_order.h"
#include "sim/collectives/proof/cells.h"
#include "sim/collectives/proof/mailboxes.h"
#include "sim/collectives/proof/rank_sets.h"
#include "sim/collectives/proof/wording.h"
#include "sim/collectives/schedule.h"

namespace netsim {
namespace {

using namespace proof;
using Op = Instruction::Op;

constexpr std::uint64_t kCellsPerPass = std::uint64_t{1} << 23;

// One execution of all ranks: every thread block goes on for as long as it can.
class Execution {
 public:
  Execution(const Schedule& schedule, RankSets& sets, Cells& cells)
      : schedule_(schedule),
        sets_(sets),
        cells_(cells),
        ranks_(schedule.ranks()),
        thread_blocks_(schedule.thread_blocks()),
        mail_(id(ranks_, 0)),
        order_(ranks_, thread_blocks_),
        finished_(std::size_t{ranks_} * thread_blocks_, 0),
        queued_(finished_.size(), true) {}

  std::string run() {
    for (std::uint32_t thread_block = 0; thread_block < finished_.size(); ++thread_block)
      ready_.push_back(thread_block);
    while (!ready_.empty() && error_.empty()) {
      const std::uint32_t next = ready_.front();
      ready_.pop_front();
      queued_[next] = false;
      advance(next / thread_blocks_, next % thread_blocks_);
    }
    if (error_.empty()) error_ = stuck();
    if (error_.empty()) error_ = unreceived();
    return error_.empty() ? cells_.verdict() : error_;
  }

 private:
  std::uint32_t& finished(std::uint32_t rank, std::uint32_t thread_block) {
    return finished_[id(rank, thread_block)];
  }
  std::size_t id(std::uint32_t rank, std::uint32_t thread_block) const {
    return std::size_t{rank} * thread_blocks_ + thread_block;
  }
  void wake(std::uint32_t rank, std::uint32_t thread_block) {
    const std::size_t woken = id(rank, thread_block);
    if (queued_[woken]) return;
    queued_[woken] = true;
    ready_.push_back(static_cast<std::uint32_t>(woken));
  }

  void advance(std::uint32_t rank, std::uint32_t thread_block) {
    const std::uint32_t count = schedule_.instructions(rank, thread_block);
    std::uint32_t& index = finished(rank, thread_block);
    const std::uint32_t before = index;
    while (index < count && execute(rank, thread_block, index)) ++index;
    if (index == before) return;
    for (std::uint32_t other = 0; other < thread_blocks_; ++other) {
      if (other != thread_block) wake(rank, other);
    }
  }

  // False if the instruction cannot be executed yet, or if it is wrong.
  bool execute(std::uint32_t rank, std::uint32_t thread_block, std::uint32_t index) {
    const Instruction instruction = schedule_.instruction(rank, thread_block, index);
    if (!valid(rank, thread_block, index, instruction)) return false;
    if (instruction.op == Op::wait) {
      if (finished(rank, instruction.peer) < instruction.chunk) return false;
      order_.waited(rank, thread_block, index, instruction.peer, instruction.chunk);
      return true;
    }
    return instruction.op == Op::send ? send(rank, thread_block, index, instruction)
                                      : receive(rank, thread_block, index, instruction);
  }

  bool fail(std::uint32_t rank, std::uint32_t thread_block, std::uint32_t index, const std::string& message) {
    error_ = place(rank, thread_block, index) + ": " + message;
    return false;
  }

  bool valid(std::uint32_t rank, std::uint32_t thread_block, std::uint32_t index,
             const Instruction& instruction) {
    const bool is_wait = instruction.op == Op::wait;
    if (instruction.peer >= (is_wait ? thread_blocks_ : ranks_) ||
        instruction.peer == (is_wait ? thread_block : rank)) {
      return fail(rank, thread_block, index, text(instruction) + ": no such peer");
    }
    const std::uint32_t limit =
        is_wait ? schedule_.instructions(rank, instruction.peer) + 1 : schedule_.chunks();
    if (instruction.chunk >= limit)
      return fail(rank, thread_block, index, text(instruction) + ": there are fewer");
    return true;
  }

  bool ordered(std::uint32_t rank, std::uint32_t thread_block, std::uint32_t index,
               const Instruction& instruction) {
    if (thread_blocks_ == 1 || !cells_.follows(instruction.chunk)) return true;
    error_ = order_.touched(rank, thread_block, index, instruction.chunk, instruction.op != Op::send);
    return error_.empty();
  }

  bool send(std::uint32_t rank, std::uint32_t thread_block, std::uint32_t index,
            const Instruction& instruction) {
    if (!ordered(rank, thread_block, index, instruction)) return false;
    Set set;
    if (cells_.follows(instruction.chunk)) {
      set = cells_.get(rank, instruction.chunk);
      if (set.empty())
        return fail(rank, thread_block, index, text(instruction) + ": the rank does not hold it");
    }
    mail_.put(id(instruction.peer, thread_block), rank, instruction.chunk, set);
    wake(instruction.peer, thread_block);
    return true;
  }

  bool receive(std::uint32_t rank, std::uint32_t thread_block, std::uint32_t index,
               const Instruction& instruction) {
    Message message;
    if (!mail_.take(id(rank, thread_block), instruction.peer, message)) return false;
    if (message.chunk != instruction.chunk) {
      return fail(rank, thread_block, index,
                  text(instruction) + ": the message is chunk " + number(message.chunk));
    }
    if (!ordered(rank, thread_block, index, instruction)) return false;
    if (!cells_.follows(instruction.chunk)) return true;
    if (instruction.op == Op::reduce && !reduce(rank, thread_block, index, instruction, message.set))
      return false;
    cells_.put(rank, instruction.chunk, message.set);
    return true;
  }

  bool reduce(std::uint32_t rank, std::uint32_t thread_block, std::uint32_t index,
              const Instruction& instruction, Set& set) {
    const Set held = cells_.get(rank, instruction.chunk);
    if (held.empty())
      return fail(rank, thread_block, index, text(instruction) + ": the rank holds nothing to add it to");
    const auto sum = sets_.join(held, set);
    if (!sum) {
      return fail(rank, thread_block, index,
                  text(instruction) + ": adds contributions " + sets_.text(set) + " to " + sets_.text(held) +
                      ", some of them twice");
    }
    set = *sum;
    return true;
  }

  std::string stuck() {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      for (std::uint32_t thread_block = 0; thread_block < thread_blocks_; ++thread_block) {
        const std::uint32_t index = finished(rank, thread_block);
        if (index >= schedule_.instructions(rank, thread_block)) continue;
        return "deadlock: " + place(rank, thread_block, index) + " never can " +
               text(schedule_.instruction(rank, thread_block, index));
      }
    }
    return "";
  }

  std::string unreceived() const {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      for (std::uint32_t thread_block = 0; thread_block < thread_blocks_; ++thread_block) {
        const Message* message = mail_.first(id(rank, thread_block));
        if (message == nullptr) continue;
        return "rank " + number(rank) + " thread block " + number(thread_block) + " never receives chunk " +
               number(message->chunk) + " that rank " + number(message->source) + " sends to it";
      }
    }
    return "";
  }

  const Schedule& schedule_;
  RankSets& sets_;
  Cells& cells_;
  std::uint32_t ranks_, thread_blocks_;
  Mailboxes mail_;
  AccessOrder order_;
  std::vector<std::uint32_t> finished_;  // instructions, per (rank, thread block)
  std::vector<bool> queued_;
  std::deque<std::uint32_t> ready_;
  std::string error_;
};

bool has_blocks(CollectiveKind kind) { return info_of(kind).goal.contributors == ChunkRanks::source; }

bool has_owners(CollectiveKind kind) {
  const CollectiveGoal& goal = info_of(kind).goal;
  return goal.contributors == ChunkRanks::owner || goal.holders == ChunkRanks::owner;
}

std::string check_shape(const Schedule& schedule) {
  const std::uint64_t ranks = schedule.ranks(), chunks = schedule.chunks(), divisions = schedule.divisions();
  if (ranks < 2) return "a schedule needs two ranks";
  if (schedule.thread_blocks() == 0 || divisions == 0)
    return "a schedule needs a thread block and a division";
  if (ranks * schedule.thread_blocks() > UINT32_MAX) return "too many thread blocks";
  if (schedule.root() >= ranks) return "root " + number(schedule.root()) + " is not a rank";
  if (!is_collective(schedule.kind()) && ranks != 2) return "point_to_point has two ranks";
  if (has_blocks(schedule.kind())) {
    if (chunks != ranks * ranks || divisions != ranks)
      return std::string(to_string(schedule.kind())) + " has ranks^2 chunks in ranks divisions";
    return "";
  }
  if (chunks != divisions) return "only blocks (source, destination) are more chunks than divisions";
  if (has_owners(schedule.kind()) && chunks % ranks != 0)
    return "chunks cannot be shared out evenly among the ranks";
  return "";
}

}  // namespace

std::string prove(const Schedule& schedule) { return prove_within(schedule, kCellsPerPass); }

std::string prove_within(const Schedule& schedule, std::uint64_t cells) {
  if (std::string wrong = check_shape(schedule); !wrong.empty()) return wrong;
  RankSets sets(schedule.ranks());
  if (has_blocks(schedule.kind())) return Execution(schedule, sets, *make_block_cells(schedule)).run();
  const auto per_pass = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, cells / schedule.ranks()));
  for (std::uint32_t first = 0; first < schedule.chunks();) {
    const std::uint32_t count = std::min(per_pass, schedule.chunks() - first);
    const auto range = make_dense_cells(schedule, sets, first, count);
    if (std::string wrong = Execution(schedule, sets, *range).run(); !wrong.empty()) return wrong;
    first += count;
  }
  return "";
}

}  // namespace netsim
