// CriticalPath: finds what the end of each iteration of a job waited for. The path is a chain of steps, each
// of which began when the one before it ended. It starts at the end of the iteration before, or at the job's
// arrival. The steps together take exactly as long as the iteration.
//
// The path is found while the job runs, from the statistics' records, which come in order of time. Each
// running task holds the chain that released it. That is the chain of the task whose end made it ready; for
// circuits, the chain of the member that asked last.
//
// Each release of a member of a communication (transfer_record.h) makes a chain. It consists of the chain by
// which the sender sent the message, and the message. The member ends with its last release.
//
// Chains share their beginnings. Releases are kept until the last member ends, because a message may refer to
// them until then. A chain without holders is freed, so memory follows the work in progress and not the
// length of the job.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/core/arena.h"
#include "sim/core/ids.h"
#include "sim/core/index.h"
#include "sim/jobs/path_step.h"
#include "sim/transport/message_delays.h"
#include "sim/workload/task.h"

namespace netsim {

struct JobRecord;       // job_statistics.h
struct TransferRecord;  // execution/transfer_record.h

class CriticalPath {
 public:
  // `gpus` holds the GPU of each rank.
  explicit CriticalPath(const std::vector<GpuId>& gpus);

  // Replaces the GPU of each rank, while no task of the job runs.
  void move(const std::vector<GpuId>& gpus);
  // Sets the job's arrival. Must be called before any record.
  void open(Time begin);
  // Take the records in the order in which the statistics apply them.
  void begins(const JobRecord& record);
  // `end` is the task's end. The record of a message's sender comes later, when the message is acknowledged.
  void ends(const JobRecord& record, Time end);
  // Takes a release of an operation of this job, before the record of a task that ended with it. `ports` is
  // as in TransferTrace.
  void released(const TransferRecord& record, std::span<const PortDelay> ports);
  // Frees a communication, or a circuit request, when all its members have ended.
  void is_over(std::uint64_t communication);
  // Closes an iteration and visits the steps of its path in order of time, cut to [begin, end]. Chains before
  // `begin` are freed. Iterations must be closed in order, each once.
  using Visitor = std::function<void(const PathStep&)>;
  PathSummary close_iteration(std::uint32_t iteration, Time begin, Time end, const Visitor& visit);
  std::size_t steps_held() const { return steps_.used(); }

 private:
  // TaskCell: the fields that the steps of one task have in common.
  struct TaskCell {
    std::uint64_t id = 0;
    RankId rank = 0;
    TaskId task = 0;
    std::uint32_t name = 0;
    std::uint32_t holders = 0;
    Stream stream = Stream::compute;
    CollectiveKind collective = CollectiveKind::point_to_point;
  };
  // Link: the last step of a chain. Each link holds the link before it. Links are small, because all steps of
  // the iteration that led to running work are kept. The time between two links is a step that is not stored;
  // see gap_of().
  struct alignas(64) Link {
    Time begin = 0, end = 0;
    Time propagation = 0, transmission = 0;  // transfers only: propagation and transmission time
    // Transfers only: the port at which the message was transmitted, and the last port at which it waited.
    PortId slowest = kNoId;
    std::uint32_t waits = kNoIndex;
    std::uint32_t source = kNoIndex, destination = kNoIndex;  // GPUs of a transfer or an acknowledgement
    std::uint32_t before = kNoIndex;
    std::uint32_t task = kNoIndex;
    std::uint32_t holders = 0;
    PathStep::Kind kind = PathStep::Kind::held;
  };
  static_assert(sizeof(Link) == 64);
  // Links: all links, by number.
  class Links {
   public:
    std::uint32_t add_task(const TaskCell& task);
    const TaskCell& task(std::uint32_t task) const { return tasks_[task]; }
    void release_task(std::uint32_t task) {
      if (--tasks_[task].holders == 0) tasks_.release(task);
    }

    // Adds a link. `ports` lists the ports at which a transfer waited, in order, with the slowest first.
    std::uint32_t add(std::uint32_t before, const Link& step, std::span<const PortDelay> ports);
    const Link& operator[](std::uint32_t link) const { return links_[link]; }
    void hold(std::uint32_t link) {
      if (link != kNoIndex) ++links_[link].holders;
    }
    // Prefetches a link that will soon be held or released.
    void prefetch(std::uint32_t link) const {
      if (link != kNoIndex) links_.prefetch(link);
    }
    void release(std::uint32_t link) {
      if (link != kNoIndex && --links_[link].holders == 0) forget(link);
    }
    // Shortens all chains so that they begin with the step that contains `time` or is the first after it.
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
  // Running: a task from its begin to its end, or a member of a communication until the communication is
  // over.
  struct Running {
    std::uint64_t communication = 0;
    std::uint32_t task = 0;                // index of its TaskCell; valid until the task ends
    std::uint32_t released_by = kNoIndex;  // chain
    Time begin = 0;
    PathStep::Kind kind = PathStep::Kind::compute;
    bool ended = false;
    std::vector<std::uint32_t> releases;  // chains of the member's releases
    // Returns the chain after release number `release`, counted from 1; 0 gives the chain that began the
    // member.
    std::uint32_t chain(std::uint32_t release) const {
      return release == 0 ? released_by : releases[release - 1];
    }
  };
  // Communication: a communication or circuit request that is not over.
  struct Communication {
    std::vector<RankId> ranks;       // ranks that have begun
    std::uint32_t asked = kNoIndex;  // circuits only: chain of the member that asked last
  };
  struct Rank {
    std::vector<Running> running;   // in any order
    std::uint32_t last = kNoIndex;  // chain of the task that ended last
  };

  Time end_of(std::uint32_t chain) const { return chain != kNoIndex ? steps_[chain].end : begin_; }
  // Returns the chain with one more step. Returns the chain itself if no time has passed since its end.
  std::uint32_t extend(std::uint32_t chain, const Link& step, std::span<const PortDelay> ports = {});
  PathStep step_of(std::uint32_t link) const;
  // Returns the step that fills the time between the link's predecessor and the link.
  PathStep gap_of(std::uint32_t link) const;
  void replace(std::uint32_t& place, std::uint32_t chain);
  std::uint32_t cause_of(const JobRecord& record);
  void continue_from_last_request(Running& member);
  Running& running(const JobRecord& record);
  Running& member(RankId rank, std::uint64_t communication);
  void forget(RankId rank, Running& over);
  void note_tip(std::size_t iteration, std::uint32_t chain, Time end);

  Links steps_;
  std::vector<std::uint32_t> rank_of_gpu_;  // kNoIndex: no rank of the job
  std::vector<Rank> ranks_;
  std::unordered_map<std::uint64_t, Communication> communications_;  // by id; looked up only, never iterated
  struct Tip {
    std::uint32_t chain = kNoIndex;
    Time end = 0;
  };
  std::vector<Tip> tips_;  // by iteration: the task that ended last
  Time begin_ = 0;
};

}  // namespace netsim
