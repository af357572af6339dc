#include "sim/workload/task_list/task_list_program.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/workload/task_list/task_order.h"
#include "sim/workload/traffic/counts.h"

namespace netsim {
namespace {

using Position = BlockBuilder::Position;

// TaskEnds: the operations of a task in the program of one role. A message between two ranks has one of its
// two ends at each. Where ranks send in a ring, a rank has both.
struct TaskEnds {
  std::optional<Position> begins;    // the computation, the collective or the send
  std::optional<Position> receives;  // the receive
};

// Checks a list of ranks against the number that the job has.
void check_in_job(const SharedRanks& list, const ConfigNode& node, std::uint32_t ranks) {
  if (list == nullptr || list->largest() < ranks) return;
  node.fail("rank " + std::to_string(list->largest()) + "; allowed: 0 to " + std::to_string(ranks - 1));
}

void check_ranks_in_job(const ListedTask& task, std::uint32_t ranks) {
  if (task.kind == ListedKind::message) {
    check_in_job(task.senders, task.from, ranks);
    check_in_job(task.receivers, task.to, ranks);
    return;
  }
  check_in_job(task.ranks, task.on, ranks);
  if (task.kind != ListedKind::collective || task.ranks != nullptr) return;
  if (ranks < 2) task.node.fail("a collective needs at least 2 ranks, and the job has one");
  if (task.root >= std::int64_t{ranks})
    task.node.find("root")->fail("root " + std::to_string(task.root) + "; allowed: 0 to " +
                                 std::to_string(ranks - 1));
}

// TaskListBuilder: makes the operations of all tasks once, and from these the program of each role.
class TaskListBuilder {
 public:
  TaskListBuilder(const TaskListJob& job, const std::vector<ListedTask>& tasks)
      : tasks_(tasks),
        ranks_(job.ranks),
        builder_(job.name),
        axis_(builder_.axis("rank", job.ranks)),
        roles_(equal_ranks(tasks, job.ranks)),
        order_(order_tasks(tasks, roles_)) {
    builder_.program().iterations = job.iterations;
    builder_.program().warm_up = job.warm_up;
    for (std::uint32_t task = 0; task < tasks.size(); ++task) add_operations(task);
    for (const EqualRanks& role : roles_) add_role(role);
  }
  Program finish() { return builder_.finish(); }

 private:
  // ---- Operations

  void add_operations(std::uint32_t index) {
    const ListedTask& task = tasks_[index];
    ProgramOp op;
    op.name = builder_.name(task.name);
    op.stream = task.stream;
    op.queue = static_cast<std::uint32_t>(task.queue);
    op.unordered = !task.ordered;
    op.not_before = task.earliest;
    op.traffic_class = static_cast<std::uint8_t>(task.traffic_class);
    op.priority = static_cast<std::uint8_t>(task.priority);
    op.deadline = task.deadline.value_or(0);
    if (task.kind == ListedKind::compute) op.work = work_of(task);
    if (task.kind == ListedKind::collective) make_collective(task, op);
    if (task.kind == ListedKind::message) make_message(task, index, op);
    begins_.push_back(op);
    receives_.push_back(task.kind == ListedKind::message ? receive_of(task, std::move(op)) : ProgramOp());
  }

  std::uint32_t work_of(const ListedTask& task) {
    Kernel kernel;
    kernel.kind = Kernel::Kind::fixed;
    kernel.name = task.name;
    kernel.duration = task.compute;
    return builder_.work({task.name, {kernel}});
  }

  void make_collective(const ListedTask& task, ProgramOp& op) {
    op.kind = TaskKind::collective;
    op.collective = task.collective;
    op.root = static_cast<std::uint32_t>(task.root);
    if (has_bytes(task.collective)) op.bytes = task.bytes;
    GroupExpression group;
    std::uint32_t members = ranks_;
    if (task.ranks == nullptr) {
      group.axes.push_back({axis_, {}});
    } else {
      group.ranks = task.ranks->ranks();
      members = static_cast<std::uint32_t>(group.ranks.size());
    }
    op.group = builder_.group(group);
    if (!has_counts(task.collective)) return;
    BlockCounts counts = has_tokens(task.collective)
                             ? count_tokens(task.tokens, members, tokens_node(task.node))
                             : read_counts(task.counts, members, task.bytes);
    op.counts_plus_one = builder_.counts(std::move(counts)) + 1;
  }

  void make_message(const ListedTask& task, std::uint32_t index, ProgramOp& op) {
    op.kind = TaskKind::send;
    op.raw = task.raw;
    op.channel = static_cast<std::uint32_t>(task.channel);
    op.bytes = task.bytes;
    op.tag = index;
    op.peer = peers(task.senders->ranks(), task.receivers->ranks());
  }
  // A receive is posted at once: it waits for nothing but the message.
  ProgramOp receive_of(const ListedTask& task, ProgramOp op) {
    op.kind = TaskKind::receive;
    op.unordered = true;
    op.queue = 0;
    op.not_before = 0;
    op.peer = peers(task.receivers->ranks(), task.senders->ranks());
    return op;
  }
  // Returns the peer of each rank of a list, which is the rank at the same place of the other list.
  PeerExpression peers(const std::vector<RankId>& here, const std::vector<RankId>& there) {
    PeerExpression peer;
    if (here.size() == 1) {
      peer.kind = PeerExpression::Kind::rank;
      peer.rank = there[0];
      return peer;
    }
    std::vector<std::int64_t> table(ranks_, 0);
    for (std::size_t i = 0; i < here.size(); ++i) table[here[i]] = there[i];
    peer.kind = PeerExpression::Kind::table;
    peer.table = builder_.table(std::move(table));
    return peer;
  }

  // ---- Roles

  void add_role(const EqualRanks& players) {
    const RankId rank = players.front();
    const std::vector<TaskEnds> ends = ends_on(rank);
    bool across = false;  // the rank's iterations overlap
    for (std::uint32_t task = 0; task < tasks_.size() && !across; ++task)
      across = ends[task].begins && !positions_of(tasks_[task].earlier, ends).empty();
    BlockBuilder block(builder_, "tasks");
    for (const std::uint32_t task : order_) {
      if (ends[task].begins) {
        ProgramOp op = begins_[task];
        for (const Position earlier : positions_of(tasks_[task].earlier, ends))
          op.after_previous.push_back(distance(*ends[task].begins, earlier));
        block.add(std::move(op), positions_of(tasks_[task].waits, ends));
      }
      if (ends[task].receives) {
        ProgramOp op = receives_[task];
        // Otherwise it would be posted at the end of the rank's previous iteration.
        if (across) op.after_previous.push_back(0);
        block.add(std::move(op), {});
      }
    }
    ProgramRole role{"rank_" + std::to_string(rank), {}, block.finish()};
    if (players.size() < ranks_) role.where.push_back({axis_, {players.begin(), players.end()}});
    builder_.role(std::move(role));
  }

  // Returns the operations that the tasks have in the program of a rank, by task.
  std::vector<TaskEnds> ends_on(RankId rank) const {
    std::vector<TaskEnds> ends(tasks_.size());
    Position next = 0;
    for (const std::uint32_t task : order_) {
      if (tasks_[task].begins_on(rank)) ends[task].begins = next++;
      if (tasks_[task].receives(rank)) ends[task].receives = next++;
    }
    return ends;
  }

  static std::vector<Position> positions_of(const std::vector<std::uint32_t>& tasks,
                                            const std::vector<TaskEnds>& ends) {
    std::vector<Position> positions;
    for (const std::uint32_t task : tasks) {
      if (ends[task].begins) positions.push_back(*ends[task].begins);
      if (ends[task].receives) positions.push_back(*ends[task].receives);
    }
    return positions;
  }
  // Returns how far `earlier` lies before an operation in the program; it is negative behind it.
  static std::int32_t distance(Position operation, Position earlier) {
    return static_cast<std::int32_t>(std::int64_t{operation} - std::int64_t{earlier});
  }

  const std::vector<ListedTask>& tasks_;
  std::uint32_t ranks_;
  ProgramBuilder builder_;
  std::uint32_t axis_;
  std::vector<EqualRanks> roles_;
  std::vector<std::uint32_t> order_;
  std::vector<ProgramOp> begins_, receives_;  // by task, without dependencies
};

}  // namespace

Program make_task_list_program(const TaskListJob& job, const std::vector<ListedTask>& tasks) {
  for (const ListedTask& task : tasks) check_ranks_in_job(task, job.ranks);
  return TaskListBuilder(job, tasks).finish();
}

}  // namespace netsim
