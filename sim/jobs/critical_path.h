// CriticalPath: what the end of each iteration of a job waited for: a chain of steps, each of which began
// when the one before it ended, from the end of the iteration before (the arrival of the job, for the first).
// Together they take exactly as long as the iteration.
//
// It is found while the job is played, from the statistics' records, which come in order of time. Each task
// that is under way holds the chain that released it: that of the task whose end made it ready; for circuits,
// that of the member that asked last. Each release of a member of a communication (transfer_record.h) makes a
// chain: that by which the message's sender sent it, and the message; the member ends with its last one.
// Chains share their beginnings. Releases are kept until the last member ends, because a message may name
// them until then, and what nothing holds any more is forgotten: so memory follows what is under way and not
// the length of the job.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/core/arena.h"
#include "sim/core/index.h"
#include "sim/jobs/path_step.h"
#include "sim/transport/message_delays.h"
#include "sim/workload/task.h"

namespace netsim {

struct JobRecord;       // job_statistics.h
struct TransferRecord;  // execution/transfer_record.h

class CriticalPath {
 public:
  // `gpus`: by rank.
  explicit CriticalPath(const std::vector<std::uint32_t>& gpus);

  // The job arrives; nothing may be told before.
  void open(Time begin);
  // Records in the order in which the statistics apply them.
  void begins(const JobRecord& record);
  // `end`: of the task; a message's sender is told later than that, when it is acknowledged.
  void ends(const JobRecord& record, Time end);
  // Of the operations of this job; before the record of a task that ended with it. `ports`: as of
  // TransferTrace.
  void released(const TransferRecord& record, std::span<const PortDelay> ports);
  // All members of a communication, or of circuits that were asked for, have ended.
  void is_over(std::uint64_t communication);
  // The iteration is over: visits its path, in order of time, cut where it reaches beyond [begin, end]. What
  // was before `begin` is forgotten. Iterations are closed in order, each once.
  using Visitor = std::function<void(const PathStep&)>;
  PathSummary close_iteration(std::uint32_t iteration, Time begin, Time end, const Visitor& visit);
  std::size_t steps_held() const { return steps_.used(); }

 private:
  // What the steps of one task have in common.
  struct TaskCell {
    std::uint64_t id = 0;
    std::uint32_t rank = 0, task = 0, name = 0;
    std::uint32_t holders = 0;
    Stream stream = Stream::compute;
    CollectiveKind collective = CollectiveKind::point_to_point;
  };
  // A step of a chain, which is its last step; each holds the one before. There are as many as what is under
  // way has come by since the iteration began, so they are small. The time since the one before is a step of
  // its own that is not kept: see gap_of().
  struct alignas(64) Link {
    Time begin = 0, end = 0;
    Time propagation = 0, transmission = 0;                   // of a transfer, and
    PortId slowest = kNoId;                                   // where it was transmitted,
    std::uint32_t waits = kNoIndex;                           // and the last port at which it waited
    std::uint32_t source = kNoIndex, destination = kNoIndex;  // of a transfer, an acknowledgement
    std::uint32_t before = kNoIndex;
    std::uint32_t task = kNoIndex;
    std::uint32_t holders = 0;
    PathStep::Kind kind = PathStep::Kind::held;
  };
  static_assert(sizeof(Link) == 64);
  // All of them, by number.
  class Links {
   public:
    std::uint32_t add_task(const TaskCell& task);
    const TaskCell& task(std::uint32_t task) const { return tasks_[task]; }
    void release_task(std::uint32_t task) {
      if (--tasks_[task].holders == 0) tasks_.release(task);
    }

    // `ports`: where a transfer waited, in order, with the slowest first.
    std::uint32_t add(std::uint32_t before, const Link& step, std::span<const PortDelay> ports);
    const Link& operator[](std::uint32_t link) const { return links_[link]; }
    void hold(std::uint32_t link) {
      if (link != kNoIndex) ++links_[link].holders;
    }
    // It will be held or released soon.
    void prefetch(std::uint32_t link) const {
      if (link != kNoIndex) links_.prefetch(link);
    }
    void release(std::uint32_t link) {
      if (link != kNoIndex && --links_[link].holders == 0) forget(link);
    }
    // Chains begin with the step in which `time` is, or behind which it is.
    void forget_before(Time time);
    // Overwrites `ports` with those of the transfer, transmission included.
    void ports_of(std::uint32_t link, std::vector<PortDelay>& ports) const;
    std::size_t used() const { return used_; }

   private:
    struct Wait {
      Time queueing, paused;
      PortId port;
      std::uint32_t before;
    };
    void forget(std::uint32_t link);

    PagedArena<Link> links_;
    PagedArena<Wait> waits_;
    PagedArena<TaskCell> tasks_;
    std::size_t used_ = 0;
  };
  // A task from its begin, and a member of a communication until that is over.
  struct Running {
    std::uint64_t communication = 0;
    std::uint32_t task = 0;                // cell; of a task that has not ended
    std::uint32_t released_by = kNoIndex;  // chain
    Time begin = 0;
    PathStep::Kind kind = PathStep::Kind::compute;
    bool ended = false;
    std::vector<std::uint32_t> releases;  // their chains
    // After a release; 0: after its begin.
    std::uint32_t chain(std::uint32_t release) const {
      return release == 0 ? released_by : releases[release - 1];
    }
  };
  // Or circuits that were asked for; until it is over.
  struct Communication {
    std::vector<std::uint32_t> ranks;  // that have begun
    std::uint32_t asked = kNoIndex;    // for circuits: chain of the member that asked last
  };
  struct Rank {
    std::vector<Running> running;   // in any order
    std::uint32_t last = kNoIndex;  // chain of the task that ended last
  };

  Time end_of(std::uint32_t chain) const { return chain != kNoIndex ? steps_[chain].end : begin_; }
  // The chain with a step more. Nothing is added where no time has passed since.
  std::uint32_t extend(std::uint32_t chain, const Link& step, std::span<const PortDelay> ports = {});
  PathStep step_of(std::uint32_t link) const;
  // What fills the time between the step before and this one.
  PathStep gap_of(std::uint32_t link) const;
  void replace(std::uint32_t& place, std::uint32_t chain);
  void light(Running& member);
  Running& running(const JobRecord& record);
  Running& member(std::uint32_t rank, std::uint64_t communication);
  void forget(std::uint32_t rank, Running& over);
  void note_tip(std::size_t iteration, std::uint32_t chain, Time end);

  Links steps_;
  std::vector<std::uint32_t> rank_of_gpu_;  // kNoIndex: of none
  std::vector<Rank> ranks_;
  std::unordered_map<std::uint64_t, Communication> communications_;  // by id; looked up only
  struct Tip {
    std::uint32_t chain = kNoIndex;
    Time end = 0;
  };
  std::vector<Tip> tips_;  // by iteration: the task that ended last
  Time begin_ = 0;
};

}  // namespace netsim
