#include "sim/workload/trace/trace_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>

#include "sim/core/errors.h"
#include "sim/core/text.h"
#include "sim/workload/program/role_program_source.h"
#include "sim/workload/trace/task_successors.h"

namespace netsim {

std::vector<RankId> regular_group(RankId rank, std::int64_t stride, std::int64_t count) {
  const std::int64_t first = rank - rank / stride % count * stride;
  std::vector<RankId> ranks;
  ranks.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) ranks.emplace_back(static_cast<std::uint32_t>(first + i * stride));
  return ranks;
}

std::optional<Stream> stream_called(std::string_view name) {
  for (int stream = 0; stream < kStreams; ++stream) {
    if (name == to_string(static_cast<Stream>(stream))) return static_cast<Stream>(stream);
  }
  return std::nullopt;
}

Stream named_stream(std::string_view group, CollectiveKind kind) {
  if (const auto stream = stream_called(group)) return *stream;
  std::string text = "_" + lower_case(group) + "_";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == ' ' || c == '-' || c == '.'; }, '_');
  const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  if (has("_tp_") || has("_tensor_")) return Stream::tp;
  if (has("_ep_") || has("_expert_")) return Stream::ep;
  if (has("_cp_") || has("_context_")) return Stream::cp;
  const bool to_experts = kind == CollectiveKind::all_to_all || has_counts(kind);
  return to_experts ? Stream::ep : Stream::dp;
}

TraceProgram::TraceProgram(const std::string& job, std::uint32_t ranks, std::string file)
    : file_(std::move(file)), ranks_(ranks), builder_(job), axis_(builder_.axis("rank", ranks)) {
  works_.assign(ranks, false);
}

std::uint32_t TraceProgram::fixed_work(const std::string& name, Time duration) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::fixed;
  kernel.name = name;
  kernel.duration = duration;
  return builder_.work({name, {kernel}});
}

std::uint32_t TraceProgram::product_work(const std::string& name, std::int64_t operations,
                                         std::int64_t bytes) {
  std::int64_t side = 1;
  const std::int64_t half = std::min<std::int64_t>(operations / 2, 1'000'000'000'000'000'000);
  for (std::int64_t step = std::int64_t{1} << 19; step > 0; step /= 2) {
    const std::int64_t next = side + step;
    if (next <= 1'000'000 && next * next * next <= half) side = next;
  }
  Kernel kernel;
  kernel.kind = Kernel::Kind::gemm;
  kernel.name = name;
  kernel.m = kernel.n = kernel.k = side;
  kernel.bytes = std::max<std::int64_t>(bytes, 0);
  return builder_.work({name, {kernel}});
}

std::uint32_t TraceProgram::group(const std::vector<RankId>& members, std::uint32_t communicator) {
  const auto [known, is_new] =
      group_index_.try_emplace({members, communicator}, static_cast<std::uint32_t>(groups_.size()));
  if (!is_new) return known->second;
  std::vector<RankId> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    fail_file(file_, fmt::format("rank {} is in a group twice", *twice + 0U));
  if (sorted.empty()) fail_file(file_, "a group has no ranks");
  if (sorted.back() >= ranks_)
    fail_file(file_,
              fmt::format("rank {} is in a group, and the trace has {} ranks", sorted.back() + 0U, ranks_));
  GroupExpression expression;
  expression.ranks = members;
  expression.communicator = communicator;
  return add_group(expression, {members, members.size(), std::move(sorted)});
}

std::uint32_t TraceProgram::regular_groups(std::int64_t stride, std::int64_t count) {
  NETSIM_CHECK(ranks_ % (stride * count) == 0, "regular groups do not divide the ranks of a trace");
  const auto [known, is_new] =
      regular_index_.try_emplace({stride, count}, static_cast<std::uint32_t>(groups_.size()));
  if (!is_new) return known->second;
  GroupExpression expression;
  for (RankId rank = 0; rank < ranks_; ++rank) {
    if (rank / stride % count == 0) expression.lists.push_back(regular_group(rank, stride, count));
  }
  return add_group(expression, {{}, static_cast<std::size_t>(count), {}});
}

std::uint32_t TraceProgram::add_group(const GroupExpression& expression, Group group) {
  groups_.push_back(std::move(group));
  calls_.emplace_back();
  const std::uint32_t index = builder_.group(expression);
  NETSIM_CHECK(index + 1 == groups_.size(), "groups of a trace and of its program have other numbers");
  return index;
}

// Returns the tasks in an order in which each is behind those that it waits for.
std::vector<std::uint32_t> TraceProgram::in_order(const std::vector<TraceTask>& tasks,
                                                  const std::string& file) const {
  std::vector<std::uint32_t> waits;
  waits.reserve(tasks.size());
  for (const TraceTask& task : tasks) waits.push_back(static_cast<std::uint32_t>(task.after.size()));
  const TaskSuccessors behind(tasks);
  using Ready = std::pair<std::uint64_t, std::uint32_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    if (waits[i] == 0) ready.emplace(tasks[i].order, i);
  }
  std::vector<std::uint32_t> order;
  order.reserve(tasks.size());
  while (!ready.empty()) {
    const std::uint32_t at = ready.top().second;
    ready.pop();
    order.push_back(at);
    behind.for_each(at, [&](std::uint32_t later) {
      if (--waits[later] == 0) ready.emplace(tasks[later].order, later);
    });
  }
  if (order.size() < tasks.size()) fail_circle(tasks, waits, file);
  return order;
}

// Refuses tasks that wait for each other, with the circle. `waits` has what each task still waits for.
void TraceProgram::fail_circle(const std::vector<TraceTask>& tasks, const std::vector<std::uint32_t>& waits,
                               const std::string& file) const {
  const auto is_stuck = [&](std::uint32_t task) { return waits[task] > 0; };
  std::vector<bool> seen(tasks.size(), false);
  std::uint32_t at = 0;
  while (!is_stuck(at)) ++at;
  const auto cause = [&](std::uint32_t task) {
    return *std::find_if(tasks[task].after.begin(), tasks[task].after.end(), is_stuck);
  };
  for (; !seen[at]; at = cause(at)) seen[at] = true;
  const std::uint32_t first = at;
  constexpr std::size_t kNamed = 8;
  std::string circle = label(tasks[first]) + " waits for ";
  std::size_t named = 0;
  for (at = cause(first); at != first; at = cause(at)) {
    if (++named <= kNamed) circle += label(tasks[at]) + ", which waits for ";
  }
  if (named > kNamed) circle += fmt::format("{} more, the last of which waits for ", named - kNamed);
  fail_file(file, circle + (named == 0 ? "itself" : "the first one") + "; allowed: no circle of waits");
}

void TraceProgram::add_ranks(const std::vector<RankId>& ranks, const std::vector<TraceTask>& tasks,
                             const std::string& file) {
  for (const RankId rank : ranks) {
    NETSIM_CHECK(rank < ranks_ && !works_[rank], "a rank of a trace is added twice");
    works_[rank] = !tasks.empty();
  }
  if (tasks.empty()) return;
  const std::vector<std::uint32_t> order = in_order(tasks, file);
  std::vector<BlockBuilder::Position> at(tasks.size(), 0);
  BlockBuilder block(builder_, "trace");
  for (const std::uint32_t index : order) {
    const TraceTask& task = tasks[index];
    std::vector<BlockBuilder::Position> after;
    after.reserve(task.after.size());
    for (const std::uint32_t before : task.after) after.push_back(at[before]);
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    at[index] = block.add(operation(ranks, task, file), after);
  }
  std::vector<RankId>& players = ranks_of_block_[block.finish()];
  players.insert(players.end(), ranks.begin(), ranks.end());
}

ProgramOp TraceProgram::operation(const std::vector<RankId>& ranks, const TraceTask& task,
                                  const std::string& file) {
  ProgramOp op;
  op.kind = task.kind;
  op.name = task.name;
  op.stream = task.stream;
  op.unordered = !task.queue;
  op.queue = task.queue.value_or(0);
  op.joins = task.joins;
  op.not_before = task.not_before;
  if (has_work(task.kind)) {
    op.work = task.work;
    return op;
  }
  op.bytes = task.bytes;
  op.traffic_class = task.traits.traffic_class;
  op.priority = task.traits.priority;
  op.deadline = static_cast<Time>(task.traits.deadline);
  if (task.raw) op.channel = task.traits.channel;
  if (is_point_to_point(task.kind)) {
    op.tag = task.tag;
    op.raw = task.raw;
    set_peer(op, ranks, task, file);
  }
  if (task.kind != TaskKind::collective) return op;
  const Group& group = groups_[task.group];
  const bool regular = group.members.empty();
  NETSIM_CHECK(regular || ranks.size() == 1, "several ranks of a trace call a collective of one group");
  const RankId rank = ranks.front();
  if (!regular && !std::binary_search(group.sorted.begin(), group.sorted.end(), rank))
    fail_file(file, label(task) + fmt::format(": rank {} is no member of its group", rank + 0U));
  if (group.size == 1) {
    op.kind = TaskKind::host_thread;
    op.unordered = true;
    op.joins = false;
    op.bytes = 0;
    op.work = nothing();
    return op;
  }
  op.collective = task.collective;
  op.group = task.group;
  op.root = task.root;
  NETSIM_CHECK(!regular || !has_counts(task.collective), "a collective with counts has a regular group");
  if (regular) return op;
  const std::uint32_t number = called_[{task.group, rank}]++;
  check_call(rank, task, number, file);
  if (!has_counts(task.collective)) return op;
  op.bytes = 0;
  op.counts_plus_one = add_blocks(rank, task, number, file) + 1;
  return op;
}

// Keeps a member's blocks, and returns the index of the counts that fill_counts() makes of those of all
// members.
std::uint32_t TraceProgram::add_blocks(RankId rank, const TraceTask& task, std::uint32_t number,
                                       const std::string& file) {
  const std::vector<RankId>& members = groups_[task.group].members;
  if (members.size() > ProgramLimits::kCountsMembers)
    fail_file(file, label(task) + fmt::format(" has parts of {} members; allowed: up to {}", members.size(),
                                              ProgramLimits::kCountsMembers));
  std::vector<BlockCounts>& counts = builder_.program().counts;
  const auto [at, is_new] = parts_.try_emplace(
      {task.group, number}, Parts{GatheredBlocks(members.size()), static_cast<std::uint32_t>(counts.size()),
                                  task.name, task.collective});
  if (is_new) counts.emplace_back(0, std::vector<Bytes>());
  const auto member = std::find(members.begin(), members.end(), rank) - members.begin();
  at->second.blocks.add(static_cast<std::size_t>(member), task.bytes, task.blocks);
  return at->second.counts;
}

void TraceProgram::fill_counts(std::vector<std::string>& notes) {
  std::uint64_t equal = 0, other = 0;
  for (const auto& [call, parts] : parts_) {
    BlockCounts counts = parts.blocks.counts();
    const bool has_equal = counts.has_tokens() && parts.blocks.has_equal_tokens() && counts.busiest() > 0;
    if (has_tokens(parts.kind) && !has_equal)
      fail_file(file_, fmt::format("'{}' is a {} of tokens of other sizes at other members, or of none; "
                                   "allowed: the same size at all members",
                                   builder_.program().names[parts.name], to_string(parts.kind)));
    equal += parts.blocks.complete() ? 0 : 1;
    other += parts.blocks.agrees() ? 0 : 1;
    builder_.program().counts[parts.counts] = std::move(counts);
  }
  if (equal > 0)
    notes.push_back(fmt::format(
        "uneven all-to-alls without the parts of all members, replayed with equal parts: {}", equal));
  if (other > 0)
    notes.push_back(fmt::format(
        "uneven all-to-alls whose receivers list other parts than their senders, whose parts count: {}",
        other));
}

// Sets the rank at the other end of a message.
void TraceProgram::set_peer(ProgramOp& op, const std::vector<RankId>& ranks, const TraceTask& task,
                            const std::string& file) {
  if (task.distance != 0) {
    op.peer.kind = PeerExpression::Kind::offset;
    op.peer.axis = axis_;
    op.peer.offset = task.distance;
    op.peer.wrap = true;
    return;
  }
  NETSIM_CHECK(ranks.size() == 1, "several ranks of a trace have a message with one rank");
  op.peer.kind = PeerExpression::Kind::rank;
  op.peer.rank = task.peer;
  match(ranks.front(), task, file);
}

// Compares a member's call of a collective with that of the first member.
void TraceProgram::check_call(RankId rank, const TraceTask& task, std::uint32_t number,
                              const std::string& file) {
  std::vector<Call>& calls = calls_[task.group];
  if (number == calls.size()) {
    calls.push_back({task.collective, task.bytes, task.root, rank, task.name});
    return;
  }
  const Call& first = calls[number];
  const bool same_bytes = first.bytes == task.bytes || has_counts(task.collective);
  if (first.kind == task.collective && same_bytes && first.root == task.root) return;
  const auto call = [](CollectiveKind kind, Bytes bytes, std::uint32_t root) {
    const std::string at = has_root(kind) ? fmt::format(" with root {}", root) : "";
    return fmt::format("{} of {} bytes{}", to_string(kind), bytes, at);
  };
  fail_file(file, fmt::format("{} is collective {} of its group: {} at rank {}, and {} at rank {} ('{}'); "
                              "allowed: the same at all members",
                              label(task), number + 1, call(task.collective, task.bytes, task.root),
                              rank + 0U, call(first.kind, first.bytes, first.root), first.rank + 0U,
                              builder_.program().names[first.name]));
}

// Pairs one end of a message with the other one, or keeps it until that comes.
void TraceProgram::match(RankId rank, const TraceTask& task, const std::string& file) {
  if (task.peer >= ranks_ || task.peer == rank) {
    fail_file(file,
              label(task) + fmt::format(": the rank at the other end is {}; allowed: another one, 0 to {}",
                                        task.peer + 0U, ranks_ - 1));
  }
  const bool sends = task.kind == TaskKind::send;
  const Channel channel = sends ? Channel{rank, task.peer, task.tag} : Channel{task.peer, rank, task.tag};
  Ends& ends = ends_[channel];
  auto& partners = sends ? ends.received : ends.sent;
  if (partners.empty()) {
    (sends ? ends.sent : ends.received).emplace_back(task.bytes, task.name);
    return;
  }
  if (partners.front().first != task.bytes) {
    fail_file(file, fmt::format("{}: the message has {} bytes here and {} at rank {}; allowed: the same",
                                label(task), task.bytes, partners.front().first, task.peer + 0U));
  }
  partners.erase(partners.begin());
  if (partners.empty()) ends_.erase(channel);
}

void TraceProgram::check_ends() const {
  for (const auto& [channel, ends] : ends_) {
    const auto& [from, to, tag] = channel;
    const bool sent = !ends.sent.empty();
    const std::uint32_t name = (sent ? ends.sent : ends.received).front().second;
    fail_file(
        file_,
        fmt::format("rank {} {} rank {} with tag {} ('{}'), and that rank has no {}; allowed: both "
                    "ends of each message",
                    (sent ? from : to) + 0U, sent ? "sends to" : "receives from", (sent ? to : from) + 0U,
                    tag, builder_.program().names[name], sent ? "receive for it" : "send for it"));
  }
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const RankId member : groups_[group].members) {
      const auto found = called_.find({static_cast<std::uint32_t>(group), member});
      const std::size_t calls = found == called_.end() ? 0 : found->second;
      if (calls == calls_[group].size()) continue;
      const Call& first = calls_[group][calls];
      fail_file(file_,
                fmt::format("rank {} calls {} collectives of a group of {} ranks, and rank {} more, the "
                            "next of which is '{}'; allowed: the same at all members",
                            member + 0U, calls, groups_[group].size, first.rank + 0U,
                            builder_.program().names[first.name]));
    }
  }
}

std::unique_ptr<TaskSource> TraceProgram::finish(std::vector<std::string> notes) {
  check_ends();
  fill_counts(notes);
  for (RankId rank = 0; rank < ranks_; ++rank) {
    if (!works_[rank]) add_idle_rank(rank);
  }
  for (auto& [block, ranks] : ranks_of_block_) {
    std::sort(ranks.begin(), ranks.end());
    ProgramRole role{fmt::format("rank_{}", ranks.front() + 0U), {}, block};
    if (ranks.size() < ranks_) role.where.push_back({axis_, {ranks.begin(), ranks.end()}});
    builder_.role(std::move(role));
  }
  return make_role_program_source(builder_.finish(), file_, {}, std::move(notes));
}

void TraceProgram::add_idle_rank(RankId rank) {
  BlockBuilder idle(builder_, "idle");
  ranks_of_block_[idle.finish()].push_back(rank);
}

// Returns a work that takes no time.
std::uint32_t TraceProgram::nothing() {
  if (nothing_ == UINT32_MAX) nothing_ = fixed_work("nothing", 0);
  return nothing_;
}

std::string TraceProgram::label(const TraceTask& task) const {
  const std::string& name = builder_.program().names[task.name];
  return task.label.empty() ? "'" + name + "'" : task.label + " ('" + name + "')";
}

}  // namespace netsim
