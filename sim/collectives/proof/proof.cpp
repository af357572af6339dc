// The proof executes all ranks of a schedule symbolically, one round, and follows what every chunk holds: the
// set of ranks whose contribution is in it (all-to-all: block (source, destination) holds {source}).
//
// One execution is enough. A message is matched to a receive by (source, destination, thread) in order, a
// receive cannot see whether other messages are there, and sends never block: a Kahn network, whose results
// do not depend on the speeds of its processes. The only way out would be two threads of one rank that touch
// the same chunk in either order; so every such pair (unless both only read) must be ordered by waits of that
// rank, which vector clocks check (Lamport 1978; order that comes only from messages through other ranks is
// not accepted). Further rounds are further pieces of the buffer and follow each other within each thread,
// and FIFO order keeps them apart.
//
// Exact for any number of ranks: sets are exact (rank_sets.h), nothing is sampled. Memory: at most
// kCellsPerPass (rank, chunk) cells of 8 bytes at a time; larger schedules are executed once for each range
// of chunks that fits, which is sound because an instruction touches one chunk and messages keep their chunk.
// All-to-all blocks are bits.
#include "sim/collectives/proof/proof.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/proof/rank_sets.h"
#include "sim/collectives/schedule.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

using Op = Instruction::Op;
using Set = RankSets::Set;

constexpr std::uint64_t kCellsPerPass = std::uint64_t{1} << 23;

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string place(std::uint32_t rank, std::uint32_t thread, std::uint32_t index) {
  return "rank " + number(rank) + " thread " + number(thread) + " instruction " + number(index);
}

std::string text(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::send:
      return "send chunk " + number(instruction.chunk) + " to rank " + number(instruction.peer);
    case Op::receive:
      return "receive chunk " + number(instruction.chunk) + " from rank " + number(instruction.peer);
    case Op::reduce:
      return "reduce chunk " + number(instruction.chunk) + " from rank " + number(instruction.peer);
    case Op::wait:
      break;
  }
  return "wait for " + number(instruction.chunk) + " instructions of thread " + number(instruction.peer);
}

// What every rank must hold at the beginning and at the end, for every kind but all-to-all.
class Goal {
 public:
  explicit Goal(const Schedule& schedule, const RankSets& sets)
      : kind_(schedule.kind()), root_(schedule.root()), sets_(sets) {
    per_rank_ = std::max(1U, schedule.chunks() / schedule.ranks());
  }
  Set initial(std::uint32_t rank, std::uint32_t chunk) const {
    switch (kind_) {
      case CollectiveKind::all_gather:
        return chunk / per_rank_ == rank ? sets_.single(rank) : Set{};
      case CollectiveKind::broadcast:
        return rank == root_ ? sets_.single(rank) : Set{};
      case CollectiveKind::point_to_point:
        return rank == 0 ? sets_.single(0) : Set{};
      default:
        return sets_.single(rank);
    }
  }
  // False if it does not matter what `rank` holds of `chunk`.
  bool matters(std::uint32_t rank, std::uint32_t chunk) const {
    return kind_ != CollectiveKind::reduce_scatter || chunk / per_rank_ == rank;
  }
  Set wanted(std::uint32_t chunk) const {
    switch (kind_) {
      case CollectiveKind::all_gather:
        return sets_.single(chunk / per_rank_);
      case CollectiveKind::broadcast:
        return sets_.single(root_);
      case CollectiveKind::point_to_point:
        return sets_.single(0);
      default:
        return sets_.all();
    }
  }

 private:
  CollectiveKind kind_;
  std::uint32_t root_;
  std::uint32_t per_rank_;
  const RankSets& sets_;
};

// The (rank, chunk) cells of one pass.
class Cells {
 public:
  virtual ~Cells() = default;
  virtual bool follows(std::uint32_t chunk) const = 0;
  virtual Set get(std::uint32_t rank, std::uint32_t chunk) const = 0;
  virtual void put(std::uint32_t rank, std::uint32_t chunk, Set set) = 0;
  // Empty, or what is wrong at the end.
  virtual std::string verdict() const = 0;
};

class DenseCells final : public Cells {
 public:
  DenseCells(const Schedule& schedule, RankSets& sets, std::uint32_t first, std::uint32_t count)
      : goal_(schedule, sets), sets_(sets), ranks_(schedule.ranks()), first_(first), count_(count) {
    cells_.reserve(std::size_t{ranks_} * count);
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      for (std::uint32_t chunk = first; chunk < first + count; ++chunk)
        cells_.push_back(goal_.initial(rank, chunk));
    }
  }
  bool follows(std::uint32_t chunk) const override { return chunk - first_ < count_; }
  Set get(std::uint32_t rank, std::uint32_t chunk) const override { return cells_[cell(rank, chunk)]; }
  void put(std::uint32_t rank, std::uint32_t chunk, Set set) override { cells_[cell(rank, chunk)] = set; }
  std::string verdict() const override {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      for (std::uint32_t chunk = first_; chunk < first_ + count_; ++chunk) {
        const Set held = get(rank, chunk), wanted = goal_.wanted(chunk);
        if (!goal_.matters(rank, chunk) || held == wanted) continue;
        return "rank " + number(rank) + " ends with contributions " + sets_.text(held) + " in chunk " +
               number(chunk) + ", not " + sets_.text(wanted);
      }
    }
    return "";
  }

 private:
  std::size_t cell(std::uint32_t rank, std::uint32_t chunk) const {
    return std::size_t{rank} * count_ + (chunk - first_);
  }
  Goal goal_;
  const RankSets& sets_;
  std::uint32_t ranks_, first_, count_;
  std::vector<Set> cells_;
};

// All-to-all: a rank begins with its own blocks, and collects those for it as bits; blocks that it only
// passes on are rare (none in a pairwise exchange).
class BlockCells final : public Cells {
 public:
  explicit BlockCells(const Schedule& schedule)
      : ranks_(schedule.ranks()), arrived_(std::size_t{ranks_} * ranks_, false) {}
  bool follows(std::uint32_t) const override { return true; }
  Set get(std::uint32_t rank, std::uint32_t chunk) const override {
    const std::uint32_t source = chunk / ranks_;
    return source == rank || holds(rank, chunk) ? Set{source, 1} : Set{};
  }
  void put(std::uint32_t rank, std::uint32_t chunk, Set) override {  // only {source} can arrive
    const std::uint32_t source = chunk / ranks_, destination = chunk % ranks_;
    if (destination == rank) {
      arrived_[bit(rank, source)] = true;
    } else if (source != rank) {
      passing_.insert(key(rank, chunk));
    }
  }
  std::string verdict() const override {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      for (std::uint32_t source = 0; source < ranks_; ++source) {
        if (source == rank || arrived_[bit(rank, source)]) continue;
        return "rank " + number(rank) + " ends without the block of rank " + number(source) + " (chunk " +
               number(source * ranks_ + rank) + ")";
      }
    }
    return "";
  }

 private:
  bool holds(std::uint32_t rank, std::uint32_t chunk) const {
    if (chunk % ranks_ == rank) return arrived_[bit(rank, chunk / ranks_)];
    return passing_.count(key(rank, chunk)) != 0;
  }
  std::size_t bit(std::uint32_t rank, std::uint32_t source) const {
    return std::size_t{rank} * ranks_ + source;
  }
  static std::uint64_t key(std::uint32_t rank, std::uint32_t chunk) {
    return static_cast<std::uint64_t>(rank) << 32 | chunk;
  }
  std::uint32_t ranks_;
  std::vector<bool> arrived_;
  std::unordered_set<std::uint64_t> passing_;  // looked up, never iterated
};

// Messages in flight, FIFO per (source, destination, thread): one list per thread that receives, in order of
// arrival. Lists are short, because ranks advance about evenly; finding a source in them is a search.
struct Message {
  std::uint32_t source = 0;
  std::uint32_t chunk = 0;
  Set set;
  std::uint32_t next = UINT32_MAX;
};

class Mailboxes {
 public:
  explicit Mailboxes(std::size_t threads) : lists_(threads) {}

  void put(std::size_t receiver, std::uint32_t source, std::uint32_t chunk, Set set) {
    const std::uint32_t slot = allocate();
    messages_[slot] = {source, chunk, set, kNone};
    List& list = lists_[receiver];
    (list.last == kNone ? list.first : messages_[list.last].next) = slot;
    list.last = slot;
  }
  // The oldest message from `source`; false if there is none.
  bool take(std::size_t receiver, std::uint32_t source, Message& message) {
    List& list = lists_[receiver];
    std::uint32_t before = kNone, slot = list.first;
    while (slot != kNone && messages_[slot].source != source) {
      before = slot;
      slot = messages_[slot].next;
    }
    if (slot == kNone) return false;
    message = messages_[slot];
    (before == kNone ? list.first : messages_[before].next) = message.next;
    if (list.last == slot) list.last = before;
    free_.push_back(slot);
    return true;
  }
  // The oldest message to `receiver`, or nullptr.
  const Message* first(std::size_t receiver) const {
    const std::uint32_t slot = lists_[receiver].first;
    return slot == kNone ? nullptr : &messages_[slot];
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct List {
    std::uint32_t first = kNone, last = kNone;
  };
  std::uint32_t allocate() {
    if (free_.empty()) {
      messages_.emplace_back();
      return static_cast<std::uint32_t>(messages_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  std::vector<List> lists_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_;
};

// Vector clocks of the threads of each rank, and who touched which chunk last.
class Order {
 public:
  Order(std::uint32_t ranks, std::uint32_t threads)
      : threads_(threads),
        clocks_(std::size_t{ranks} * threads * threads, 0),
        waits_(std::size_t{ranks} * threads) {}

  // Thread `thread` has waited, in its instruction `index`, until `other` has finished `count` instructions.
  void waited(std::uint32_t rank, std::uint32_t thread, std::uint32_t index, std::uint32_t other,
              std::uint32_t count) {
    std::uint32_t* mine = clock(rank, thread);
    for (const auto& [other_index, seen] : waits_[std::size_t{rank} * threads_ + other]) {
      if (other_index >= count) break;
      for (std::uint32_t t = 0; t < threads_; ++t) mine[t] = std::max(mine[t], seen[t]);
    }
    mine[other] = std::max(mine[other], count);
    waits_[std::size_t{rank} * threads_ + thread].emplace_back(
        index, std::vector<std::uint32_t>(mine, mine + threads_));
  }

  // Empty, or the conflict with another thread's access that is not ordered before this one.
  std::string touched(std::uint32_t rank, std::uint32_t thread, std::uint32_t index, std::uint32_t chunk,
                      bool writes) {
    const std::uint64_t key = static_cast<std::uint64_t>(rank) << 32 | chunk;
    const auto [entry, fresh] =
        rows_.try_emplace(key, static_cast<std::uint32_t>(accesses_.size() / threads_));
    if (fresh) accesses_.resize(accesses_.size() + threads_);
    Access* row = &accesses_[std::size_t{entry->second} * threads_];
    const std::uint32_t* seen = clock(rank, thread);
    for (std::uint32_t other = 0; other < threads_; ++other) {
      const std::uint32_t conflict =
          writes ? std::max(row[other].read, row[other].written) : row[other].written;
      if (other == thread || seen[other] >= conflict) continue;
      return place(rank, thread, index) + " and thread " + number(other) + " instruction " +
             number(conflict - 1) + " both touch chunk " + number(chunk) + ", and no wait orders them";
    }
    (writes ? row[thread].written : row[thread].read) = index + 1;
    return "";
  }

 private:
  struct Access {
    std::uint32_t read = 0, written = 0;  // number of instructions finished once that access is
  };
  std::uint32_t* clock(std::uint32_t rank, std::uint32_t thread) {
    return &clocks_[(std::size_t{rank} * threads_ + thread) * threads_];
  }
  std::uint32_t threads_;
  std::vector<std::uint32_t> clocks_;
  std::vector<std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>>> waits_;
  std::unordered_map<std::uint64_t, std::uint32_t> rows_;  // by (rank, chunk); looked up, never iterated
  std::vector<Access> accesses_;
};

class Execution {
 public:
  Execution(const Schedule& schedule, RankSets& sets, Cells& cells)
      : schedule_(schedule),
        sets_(sets),
        cells_(cells),
        ranks_(schedule.ranks()),
        threads_(schedule.threads()),
        mail_(id(ranks_, 0)),
        order_(ranks_, threads_),
        finished_(std::size_t{ranks_} * threads_, 0),
        queued_(finished_.size(), true) {}

  std::string run() {
    for (std::uint32_t thread = 0; thread < finished_.size(); ++thread) ready_.push_back(thread);
    while (!ready_.empty() && error_.empty()) {
      const std::uint32_t next = ready_.front();
      ready_.pop_front();
      queued_[next] = false;
      advance(next / threads_, next % threads_);
    }
    if (error_.empty()) error_ = stuck();
    if (error_.empty()) error_ = unreceived();
    return error_.empty() ? cells_.verdict() : error_;
  }

 private:
  std::uint32_t& finished(std::uint32_t rank, std::uint32_t thread) { return finished_[id(rank, thread)]; }
  std::size_t id(std::uint32_t rank, std::uint32_t thread) const {
    return std::size_t{rank} * threads_ + thread;
  }
  void wake(std::uint32_t rank, std::uint32_t thread) {
    const std::size_t woken = id(rank, thread);
    if (queued_[woken]) return;
    queued_[woken] = true;
    ready_.push_back(static_cast<std::uint32_t>(woken));
  }

  void advance(std::uint32_t rank, std::uint32_t thread) {
    const std::uint32_t count = schedule_.instructions(rank, thread);
    std::uint32_t& index = finished(rank, thread);
    const std::uint32_t before = index;
    while (index < count && execute(rank, thread, index)) ++index;
    if (index == before) return;
    for (std::uint32_t other = 0; other < threads_; ++other) {
      if (other != thread) wake(rank, other);
    }
  }

  // False if the instruction cannot be executed yet, or if it is wrong.
  bool execute(std::uint32_t rank, std::uint32_t thread, std::uint32_t index) {
    const Instruction instruction = schedule_.instruction(rank, thread, index);
    if (!valid(rank, thread, index, instruction)) return false;
    if (instruction.op == Op::wait) {
      if (finished(rank, instruction.peer) < instruction.chunk) return false;
      order_.waited(rank, thread, index, instruction.peer, instruction.chunk);
      return true;
    }
    return instruction.op == Op::send ? send(rank, thread, index, instruction)
                                      : receive(rank, thread, index, instruction);
  }

  bool fail(std::uint32_t rank, std::uint32_t thread, std::uint32_t index, const std::string& message) {
    error_ = place(rank, thread, index) + ": " + message;
    return false;
  }

  bool valid(std::uint32_t rank, std::uint32_t thread, std::uint32_t index, const Instruction& instruction) {
    const bool is_wait = instruction.op == Op::wait;
    if (instruction.peer >= (is_wait ? threads_ : ranks_) || instruction.peer == (is_wait ? thread : rank)) {
      return fail(rank, thread, index, text(instruction) + ": no such peer");
    }
    const std::uint32_t limit =
        is_wait ? schedule_.instructions(rank, instruction.peer) + 1 : schedule_.chunks();
    if (instruction.chunk >= limit) return fail(rank, thread, index, text(instruction) + ": there are fewer");
    return true;
  }

  bool ordered(std::uint32_t rank, std::uint32_t thread, std::uint32_t index,
               const Instruction& instruction) {
    if (threads_ == 1 || !cells_.follows(instruction.chunk)) return true;
    error_ = order_.touched(rank, thread, index, instruction.chunk, instruction.op != Op::send);
    return error_.empty();
  }

  bool send(std::uint32_t rank, std::uint32_t thread, std::uint32_t index, const Instruction& instruction) {
    if (!ordered(rank, thread, index, instruction)) return false;
    Set set;
    if (cells_.follows(instruction.chunk)) {
      set = cells_.get(rank, instruction.chunk);
      if (set.empty()) return fail(rank, thread, index, text(instruction) + ": the rank does not hold it");
    }
    mail_.put(id(instruction.peer, thread), rank, instruction.chunk, set);
    wake(instruction.peer, thread);
    return true;
  }

  bool receive(std::uint32_t rank, std::uint32_t thread, std::uint32_t index,
               const Instruction& instruction) {
    Message message;
    if (!mail_.take(id(rank, thread), instruction.peer, message)) return false;
    if (message.chunk != instruction.chunk) {
      return fail(rank, thread, index, text(instruction) + ": the message is chunk " + number(message.chunk));
    }
    if (!ordered(rank, thread, index, instruction)) return false;
    if (!cells_.follows(instruction.chunk)) return true;
    if (instruction.op == Op::reduce && !reduce(rank, thread, index, instruction, message.set)) return false;
    cells_.put(rank, instruction.chunk, message.set);
    return true;
  }

  bool reduce(std::uint32_t rank, std::uint32_t thread, std::uint32_t index, const Instruction& instruction,
              Set& set) {
    const Set held = cells_.get(rank, instruction.chunk);
    if (held.empty())
      return fail(rank, thread, index, text(instruction) + ": the rank holds nothing to add it to");
    const auto sum = sets_.join(held, set);
    if (!sum) {
      return fail(rank, thread, index,
                  text(instruction) + ": adds contributions " + sets_.text(set) + " to " + sets_.text(held) +
                      ", some of them twice");
    }
    set = *sum;
    return true;
  }

  std::string stuck() {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      for (std::uint32_t thread = 0; thread < threads_; ++thread) {
        const std::uint32_t index = finished(rank, thread);
        if (index >= schedule_.instructions(rank, thread)) continue;
        return "deadlock: " + place(rank, thread, index) + " never can " +
               text(schedule_.instruction(rank, thread, index));
      }
    }
    return "";
  }

  std::string unreceived() const {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      for (std::uint32_t thread = 0; thread < threads_; ++thread) {
        const Message* message = mail_.first(id(rank, thread));
        if (message == nullptr) continue;
        return "rank " + number(rank) + " thread " + number(thread) + " never receives chunk " +
               number(message->chunk) + " that rank " + number(message->source) + " sends to it";
      }
    }
    return "";
  }

  const Schedule& schedule_;
  RankSets& sets_;
  Cells& cells_;
  std::uint32_t ranks_, threads_;
  Mailboxes mail_;
  Order order_;
  std::vector<std::uint32_t> finished_;  // instructions, per (rank, thread)
  std::vector<bool> queued_;
  std::deque<std::uint32_t> ready_;
  std::string error_;
};

std::string check_shape(const Schedule& schedule) {
  const std::uint64_t ranks = schedule.ranks(), chunks = schedule.chunks(), divisions = schedule.divisions();
  if (ranks < 2) return "a schedule needs two ranks";
  if (schedule.threads() == 0 || divisions == 0) return "a schedule needs a thread and a division";
  if (ranks * schedule.threads() > UINT32_MAX) return "too many threads";
  if (schedule.root() >= ranks) return "root " + number(schedule.root()) + " is not a rank";
  if (schedule.kind() == CollectiveKind::point_to_point && ranks != 2) return "point_to_point has two ranks";
  if (schedule.kind() == CollectiveKind::all_to_all) {
    if (chunks != ranks * ranks || divisions != ranks)
      return "all_to_all has ranks^2 chunks in ranks divisions";
    return "";
  }
  if (chunks != divisions) return "only all_to_all has more chunks than divisions";
  const bool scattered =
      schedule.kind() == CollectiveKind::all_gather || schedule.kind() == CollectiveKind::reduce_scatter;
  if (scattered && chunks % ranks != 0) return "chunks cannot be shared out evenly among the ranks";
  return "";
}

}  // namespace

std::string prove(const Schedule& schedule) { return prove_within(schedule, kCellsPerPass); }

std::string prove_within(const Schedule& schedule, std::uint64_t cells) {
  if (std::string wrong = check_shape(schedule); !wrong.empty()) return wrong;
  RankSets sets(schedule.ranks());
  if (schedule.kind() == CollectiveKind::all_to_all) {
    BlockCells blocks(schedule);
    return Execution(schedule, sets, blocks).run();
  }
  const auto per_pass = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, cells / schedule.ranks()));
  for (std::uint32_t first = 0; first < schedule.chunks();) {
    const std::uint32_t count = std::min(per_pass, schedule.chunks() - first);
    DenseCells range(schedule, sets, first, count);
    if (std::string wrong = Execution(schedule, sets, range).run(); !wrong.empty()) return wrong;
    first += count;
  }
  return "";
}

struct ScheduleCache::State {
  using Key = std::tuple<std::string, CollectiveKind, std::uint32_t, std::uint32_t>;
  std::map<std::string, std::unique_ptr<CollectiveAlgorithm>> algorithms;
  std::map<Key, std::unique_ptr<Schedule>> schedules;

  const CollectiveAlgorithm& algorithm(const std::string& name) {
    auto& entry = algorithms[name];
    if (!entry) entry = Registry<CollectiveAlgorithm>::instance().create(name);
    return *entry;
  }
};

ScheduleCache::ScheduleCache() : state_(std::make_unique<State>()) {}
ScheduleCache::~ScheduleCache() = default;

const Schedule& ScheduleCache::get(const std::string& algorithm, CollectiveKind kind, std::uint32_t ranks,
                                   std::uint32_t root) {
  if (kind != CollectiveKind::broadcast) root = 0;
  auto& entry = state_->schedules[{algorithm, kind, ranks, root}];
  if (!entry) {
    std::unique_ptr<Schedule> made = state_->algorithm(algorithm).schedule(kind, ranks, root);
    const std::string wrong = prove(*made);
    NETSIM_CHECK(wrong.empty(),
                 algorithm + " " + to_string(kind) + " of " + number(ranks) + " ranks: " + wrong);
    entry = std::move(made);
  }
  return *entry;
}

}  // namespace netsim
