// FlowSource: a TaskSource of messages with start times, for flow lists and traffic patterns. It holds up to
// millions of them, 40 bytes each. It takes 8 more where flows wait for others or have deadlines, and 4 each
// where they share channels or have path hints. Tasks are made when they are asked for.
//
// A rank gets its tasks one start time ahead, so that neither the job nor the executor holds a million flows
// of the far future. A flow may wait for other messages instead of a time. Its own sender has to send or
// receive these, because nothing happens at two hosts at once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/ids.h"
#include "sim/workload/task_source.h"

namespace netsim {

// The channel of a flow on a queue pair of its own, as in ns-3 and htsim. Its channel is then its index among
// the flows of its (source, destination). Each channel of raw messages is a queue pair
// (TransferTraits::own_queue_pair).
inline constexpr std::uint32_t kOwnChannel = UINT32_MAX;

struct Flow {
  std::uint32_t from = 0, to = 0;  // different ranks
  Bytes bytes = 0;                 // 1 to 2^48 - 1
  Time start = 0;                  // flows are added in any order of start
  std::uint32_t channel = kOwnChannel;
  std::uint32_t name = 0;
  std::uint32_t needs = 0;  // it starts with this many events of add_dependency(); 0: at `start`
  std::uint8_t traffic_class = 0;
  std::uint8_t priority = 0;              // TransferTraits::priority
  std::uint32_t path_hint = kNoPathHint;  // TransferTraits::path_hint
  Time deadline = 0;                      // TransferTraits::deadline
  bool only_message = false;              // on its channel; the source determines it
};

class FlowSource : public TaskSource {
 public:
  // Largest number of flows. Both ends of a flow are tasks, whose numbers have 32 bits.
  static constexpr std::uint32_t kMostFlows = 1U << 30;

  // `ranks` is the number of ranks of this job, at most that of the cluster's GPUs.
  FlowSource(std::string job_name, std::uint32_t ranks);

  // Returns the index of a name. The same text gets the same index.
  std::uint32_t add_name(const std::string& name);
  // Returns the index of the name "KIND NUMBER", for flows that have numbers in their file. It costs no
  // memory. All numbered names of a source have one `kind`.
  std::uint32_t numbered_name(const std::string& kind, std::uint32_t number);
  // Reserves memory for so many flows. The reserve that is not used is not touched.
  void reserve(std::size_t flows) { flows_.reserve(flows); }
  // Adds a flow, at most kMostFlows. Returns its number: 0, 1, ...
  std::uint32_t add(const Flow& flow);
  enum class End : std::uint8_t { sent, received };
  // Makes an end of `flow` an event for `after`. `sent` means acknowledged, at the sender. `after` must start
  // at that rank and have `needs` > 0.
  void add_dependency(std::uint32_t flow, End end, std::uint32_t after);
  // Sets the needs of a flow that was added with `needs` > 0. Must be called before its dependencies are
  // added.
  void set_needs(std::uint32_t flow, std::uint32_t needs) { needs_[flow] = needs; }
  // Sends `flow` behind `first` on the queue pair of the latter. Both must have the same ends, and `first` a
  // channel of its own.
  void follow(std::uint32_t flow, std::uint32_t first) { followers_.emplace_back(flow, first); }
  // Adds a note for notes().
  void add_note(std::string note) { notes_.push_back(std::move(note)); }
  // Must be called once, after all of these and before everything below.
  void seal();

  Flow flow(std::uint32_t number) const;
  std::size_t flow_count() const { return flows_.size(); }
  // Returns all flows, by number.
  std::vector<Flow> flows() const;
  const std::string& job_name() const override { return job_name_; }
  std::uint32_t ranks() const override { return static_cast<std::uint32_t>(begin_.size() - 1); }
  std::optional<std::uint32_t> iterations() const override { return 1; }
  const std::vector<Work>& works() const override { return works_; }
  const std::vector<std::string>& names() const override { return names_; }
  std::string name(std::uint32_t index) const override;
  const std::vector<RankId>& group(GroupId) const override { return no_group_; }
  std::optional<std::uint64_t> total_tasks() const override { return order_.size(); }
  bool for_each_task(RankId rank, const Visitor& visit) const override;
  // Returns nothing where a flow starts before all of its events have happened.
  std::optional<std::vector<TaskWait>> waits(RankId rank) const override;
  void start(RankId rank, std::vector<Task>& ready) override;
  void launched(RankId rank, TaskId task, std::vector<Task>& ready) override;
  void complete(RankId rank, TaskId task, std::vector<Task>& ready) override;
  std::uint32_t open_iteration(RankId rank) const override {
    return ended_[rank] < task_count(rank) ? 0 : kNoIteration;
  }
  std::vector<Task> held_back(RankId rank) const override;
  double model_flops() const override { return 0; }
  std::vector<std::string> reader_notes() const override { return notes_; }

 private:
  // Stored: the fields that every flow has.
  struct Stored {
    Time start;
    std::uint64_t bytes : 48, traffic_class : 7, priority : 8, only_message : 1;
    std::uint32_t from, to;
    std::uint32_t tag;  // index within its (source, destination)
    std::uint32_t name;
  };
  static_assert(sizeof(Stored) == 32);
  struct Dependency {
    std::uint32_t flow;
    End end;
    std::uint32_t after;
    auto operator<=>(const Dependency&) const = default;
  };

  void find_partial_waits();
  template <class Act>
  void for_each_dependency(RankId rank, std::uint32_t flow, const Act& act) const;
  std::uint32_t needs(std::uint32_t number) const { return number < needs_.size() ? needs_[number] : 0; }
  std::uint32_t channel(std::uint32_t number) const {
    return number < channels_.size() ? channels_[number] : kOwnChannel;
  }
  std::uint32_t task_count(RankId rank) const { return begin_[rank + 1] - begin_[rank]; }
  Task task(RankId rank, std::uint32_t id) const;
  void set_channel(std::uint32_t number, std::uint32_t channel);
  void number_messages();
  void share_channels();
  void find_only_messages(const std::uint32_t* by_pair);
  void order_tasks();
  void hand_out(RankId rank, std::uint32_t until, std::vector<Task>& ready);
  std::uint32_t same_start(RankId rank, std::uint32_t first) const;
  std::uint32_t number_at(RankId rank, std::uint32_t id) const { return order_[begin_[rank] + id]; }
  const Stored& flow_at(RankId rank, std::uint32_t id) const { return flows_[number_at(rank, id)]; }

  std::string job_name_;
  std::vector<Work> works_;
  std::vector<std::string> names_, notes_;
  std::map<std::string, std::uint32_t> name_index_;
  std::string numbered_;  // the kind of numbered names
  std::vector<RankId> no_group_;
  std::vector<Stored> flows_;
  // By flow, up to the last one that has any: the number of events that it waits for, which its sender counts
  // down. Also the channel of each flow; kOwnChannel for a channel of its own. The third holds path hints.
  std::vector<std::uint32_t> needs_, channels_, path_hints_;
  std::vector<Time> deadlines_;  // by flow, up to the last one that has any; 0: none
  std::vector<std::pair<std::uint32_t, std::uint32_t>> followers_;  // a flow and the first on its queue pair
  // By rank: the first of its tasks in order_.
  std::vector<std::uint32_t> begin_;
  std::vector<std::uint32_t> order_;           // tasks: flows, by rank, start and number
  std::vector<std::uint32_t> next_;            // by rank: the first task whose time has not come
  std::vector<std::uint32_t> ended_;           // by rank: number of ended tasks
  std::vector<Dependency> dependencies_;       // sorted
  bool partial_waits_ = false;                 // a flow starts with some of its events
  std::vector<std::uint32_t> task_at_sender_;  // by flow, where there are dependencies
};

}  // namespace netsim
