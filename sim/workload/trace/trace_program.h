// TraceProgram: makes a program of a recorded trace, one rank after the other. Readers of traces in the
// notations of other tools use it.
//
// A trace lists the tasks of each rank and which of them wait for which others. Nothing else orders them, so
// a reader adds the order of a stream as dependencies. Ranks with equal tasks share one role.
//
// Ranks whose tasks are known to be equal are added together, so that a table that all ranks run takes the
// memory of one rank. Their groups are regular, and the peers of their messages are relative.
//
// A collective is matched with those of the other members by its number among those of its group. A message
// is matched by its number among those with its sender, receiver and tag. These numbers follow the order in
// which tasks can run, and TraceTask::order among those that may come next.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/collectives/collective_kind.h"
#include "sim/compute/kernel.h"
#include "sim/core/ids.h"
#include "sim/core/stream.h"
#include "sim/core/units.h"
#include "sim/transport/transfer_traits.h"
#include "sim/workload/program/program.h"
#include "sim/workload/task_source.h"
#include "sim/workload/trace/trace_blocks.h"

namespace netsim {

struct TraceTask {
  TaskKind kind = TaskKind::compute;  // all kinds but circuits
  std::uint32_t name = 0;             // TraceProgram::name()
  std::uint32_t work = 0;             // of kinds that compute: TraceProgram::work(), fixed_work()
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::uint32_t group = 0;  // of a collective: TraceProgram::group()
  std::uint32_t root = 0;   // of a collective: index in the group
  RankId peer = 0;          // of a message: the rank at the other end, if `distance` is 0
  // Ranks from this rank to the peer of a message, in the ring of all ranks. Ranks that are added together
  // have it instead of a peer.
  std::int32_t distance = 0;
  std::uint32_t tag = 0;  // of a message: equal at both ends
  bool raw = false;       // of a message: one flow on a queue pair, without the collective library
  // The bytes of a communication, as workload.proto counts them. In a collective with counts they are those
  // that this rank sends.
  Bytes bytes = 0;
  // The blocks of a collective with counts. Null: not known, so all members get equal parts of the mean.
  std::shared_ptr<const TraceBlocks> blocks = {};
  Stream stream = Stream::compute;
  Time not_before = 0;         // earliest start, from the begin of the job
  TransferTraits traits = {};  // of a communication: class, priority, deadline; of a raw message: channel
  std::uint64_t order = 0;     // of tasks that may come next, the one with the smallest order does
  std::vector<std::uint32_t> after;  // tasks of its rank that it waits for, by index in the rank's list
  // The stream queue in which it follows the earlier tasks of the rank, by order; nothing: in none. It may be
  // one call with the task before it there.
  std::optional<std::uint32_t> queue = {};
  bool joins = false;
  std::string label = {};  // how the file names it in messages: "node 17"; "" for its name
};

// Returns the group of a rank whose `count` members are `stride` ranks apart.
std::vector<RankId> regular_group(RankId rank, std::int64_t stride, std::int64_t count);
// Returns the stream under which a collective is reported, by the words of its group's name: "TP Group 1".
Stream named_stream(std::string_view group, CollectiveKind kind);
// Returns the stream with this name, which netsim gives to the groups of its own traces; nothing for other
// names.
std::optional<Stream> stream_called(std::string_view name);

class TraceProgram {
 public:
  // `file` stands for the trace in messages.
  TraceProgram(const std::string& job, std::uint32_t ranks, std::string file);

  std::uint32_t ranks() const { return ranks_; }
  std::uint32_t name(const std::string& text) { return builder_.name(text); }
  std::uint32_t work(const Work& work) { return builder_.work(work); }
  // Returns a work of one kernel that takes `duration` on an idle device.
  std::uint32_t fixed_work(const std::string& name, Time duration);
  // Returns a work with as many operations: a product of matrices with equal sides, of which `bytes` are
  // loaded and stored. The compute model tells how long it takes.
  std::uint32_t product_work(const std::string& name, std::int64_t operations, std::int64_t bytes);
  // Returns the group with these members. Groups with equal members and communicators are one. Throws
  // InputError for a rank that the trace does not have, and for one that is in it twice.
  std::uint32_t group(const std::vector<RankId>& members, std::uint32_t communicator = 0);
  // Returns the groups of all ranks, each of `count` members that are `stride` ranks apart. The group of a
  // rank is the one with the rank. The ranks of the trace must be a multiple of stride * count.
  std::uint32_t regular_groups(std::int64_t stride, std::int64_t count);
  std::size_t group_size(std::uint32_t group) const { return groups_[group].size; }

  // Adds all tasks of a rank; each rank is added once. A collective of one rank takes no time. Throws
  // InputError for tasks that wait for each other. `file` is the rank's.
  void add_rank(RankId rank, std::vector<TraceTask> tasks, const std::string& file) {
    add_ranks({rank}, tasks, file);
  }
  // Adds ranks with equal tasks. If there are several, their groups must be regular, and their messages
  // relative. Such groups and messages are checked by finish().
  void add_ranks(const std::vector<RankId>& ranks, const std::vector<TraceTask>& tasks,
                 const std::string& file);

  // Returns the source of the tasks. A rank that was not added does nothing. Throws InputError for messages
  // with one end, and for collectives about which their members disagree.
  std::unique_ptr<TaskSource> finish(std::vector<std::string> notes);

 private:
  // The first member that calls a collective, by which those of the other members are checked.
  struct Call {
    CollectiveKind kind = CollectiveKind::all_reduce;
    Bytes bytes = 0;
    std::uint32_t root = 0;
    RankId rank = 0;
    std::uint32_t name = 0;
  };
  struct Group {
    std::vector<RankId> members;  // empty: regular groups
    std::size_t size = 0;         // of the group, or of each of the regular ones
    std::vector<RankId> sorted;   // the members by number
  };
  // Parts: the blocks of a collective with counts, and where the program has their counts.
  struct Parts {
    GatheredBlocks blocks;
    std::uint32_t counts = 0;
    std::uint32_t name = 0;
    CollectiveKind kind = CollectiveKind::all_to_all_v;
  };
  // Messages with one sender, receiver and tag.
  using Channel = std::tuple<RankId, RankId, std::uint32_t>;
  struct Ends {
    std::vector<std::pair<Bytes, std::uint32_t>> sent, received;  // bytes and name of those without partner
  };

  std::vector<std::uint32_t> in_order(const std::vector<TraceTask>& tasks, const std::string& file) const;
  [[noreturn]] void fail_circle(const std::vector<TraceTask>& tasks, const std::vector<std::uint32_t>& waits,
                                const std::string& file) const;
  ProgramOp operation(const std::vector<RankId>& ranks, const TraceTask& task, const std::string& file);
  void set_peer(ProgramOp& op, const std::vector<RankId>& ranks, const TraceTask& task,
                const std::string& file);
  std::uint32_t add_group(const GroupExpression& expression, Group group);
  void check_call(RankId rank, const TraceTask& task, std::uint32_t number, const std::string& file);
  std::uint32_t add_blocks(RankId rank, const TraceTask& task, std::uint32_t number, const std::string& file);
  void fill_counts(std::vector<std::string>& notes);
  void match(RankId rank, const TraceTask& task, const std::string& file);
  void check_ends() const;
  void add_idle_rank(RankId rank);
  std::uint32_t nothing();
  std::string label(const TraceTask& task) const;

  std::string file_;
  std::uint32_t ranks_;
  ProgramBuilder builder_;
  std::uint32_t axis_;
  std::uint32_t nothing_ = UINT32_MAX;  // work that takes no time
  std::vector<Group> groups_;
  std::map<std::pair<std::vector<RankId>, std::uint32_t>, std::uint32_t> group_index_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> regular_index_;  // by stride and count
  std::vector<std::vector<Call>> calls_;                                          // by group
  std::map<std::pair<std::uint32_t, RankId>, std::uint32_t> called_;  // calls of a group by a member
  std::map<std::pair<std::uint32_t, std::uint32_t>, Parts> parts_;    // by group and number of the call
  std::map<Channel, Ends> ends_;
  std::map<std::uint32_t, std::vector<RankId>> ranks_of_block_;
  std::vector<bool> works_;  // whether a rank has tasks
};

}  // namespace netsim
