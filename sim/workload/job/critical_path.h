// CriticalPath: what the end of each iteration of a job waited for: a chain of steps, each of which began
// when the one before it ended, from the end of the iteration before (the arrival of the job, for the first).
// Together they take exactly as long as the iteration.
//
// It is found while the job is played, from the books' records, which come in order of time. Each task that
// is under way holds the chain that released it: that of the task whose end made it ready; for a collective,
// that of the member that came last before this one's end (for circuits: that asked last); for a receiver,
// that of the sender, if it was waiting. Chains share their beginnings, and what no task holds any more is
// forgotten, so memory follows what is under way and not the length of the job.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/core/arena.h"
#include "sim/core/index.h"
#include "sim/transport/message_delays.h"
#include "sim/workload/job/path_step.h"
#include "sim/workload/task.h"

namespace netsim {

struct JobRecord;       // job_books.h
struct TransferRecord;  // execution/transfer_record.h

class CriticalPath {
 public:
  // `gpus`: by rank.
  explicit CriticalPath(const std::vector<std::uint32_t>& gpus);

  // The job arrives; nothing may be told before.
  void open(Time begin);
  // Records in the order in which the books apply them.
  void begins(const JobRecord& record);
  // `end`: of the task; a message's sender is told later than that, when it is acknowledged.
  void ends(const JobRecord& record, Time end);
  // Of the messages of operations of this job; before the record of a task that ended with them.
  void moved(const TransferRecord& record);
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
  // What messages of one size from one GPU to another have in common.
  struct Way {
    std::uint32_t source = kNoIndex, destination = kNoIndex;
    Time propagation = 0, transmission = 0;
    PortId slowest = kNoId;  // that of the transmission
    bool operator==(const Way&) const = default;
  };
  // A step of a chain, which is its last step; each holds the one before. There are as many as what is under
  // way has come by since the iteration began, so they are small. The time since the one before is a step of
  // its own that is not kept: see gap_of().
  struct Link {
    Time begin = 0, end = 0;
    std::uint32_t before = kNoIndex;
    std::uint32_t holders = 0;
    std::uint32_t task = kNoIndex;
    std::uint32_t way = kNoIndex;    // of a transfer or an acknowledgement
    std::uint32_t waits = kNoIndex;  // of a transfer: the last one
    PathStep::Kind kind = PathStep::Kind::held;
  };
  static_assert(sizeof(Link) == 40);
  // All of them, by number.
  class Links {
   public:
    std::uint32_t add_task(const TaskCell& task);
    const TaskCell& task(std::uint32_t task) const { return tasks_[task]; }
    void release_task(std::uint32_t task) {
      if (--tasks_[task].holders == 0) tasks_.release(task);
    }
    const Way& way(std::uint32_t way) const { return ways_[way].way; }

    // `way`: of a transfer, an acknowledgement. `ports`: where a transfer waited, in order.
    std::uint32_t add(const Link& link, const Way& way, std::span<const PortDelay> ports);
    const Link& operator[](std::uint32_t link) const { return links_[link]; }
    void hold(std::uint32_t link) {
      if (link != kNoIndex) ++links_[link].holders;
    }
    void release(std::uint32_t link) {
      if (link != kNoIndex && --links_[link].holders == 0) forget(link);
    }
    // The chain of the step begins with it.
    void cut_before(std::uint32_t link) { release(std::exchange(links_[link].before, kNoIndex)); }
    // Overwrites `ports` with those of the transfer, transmission included.
    void ports_of(std::uint32_t link, std::vector<PortDelay>& ports) const;
    std::size_t used() const { return used_; }

   private:
    struct Wait {
      Time queueing, paused;
      PortId port;
      std::uint32_t before;
    };
    struct WayHash {
      std::size_t operator()(const Way& way) const;
    };
    PagedArena<Link> links_;
    PagedArena<Wait> waits_;
    struct WayCell {
      Way way;
      std::uint32_t holders;
    };
    void forget(std::uint32_t link);
    std::uint32_t hold_way(const Way& way);
    void release_way(std::uint32_t way);
    PagedArena<TaskCell> tasks_;
    PagedArena<WayCell> ways_;
    std::unordered_map<Way, std::uint32_t, WayHash> way_numbers_;  // looked up only
    std::vector<std::uint32_t> last_way_;  // by source: the one that was last looked up; may be over
    std::size_t used_ = 0;
  };
  struct Running {
    std::uint32_t task = 0;                // cell
    std::uint32_t released_by = kNoIndex;  // chain
    Time begin = 0;
    PathStep::Kind kind = PathStep::Kind::compute;
    // By thread block that has gone on since: its chain.
    std::vector<std::uint32_t> blocks;
    std::uint32_t went_on = kNoIndex;  // the block that last did
  };
  // A message that has not been delivered, or whose acknowledgement its sender waits for.
  struct Sent {
    std::uint32_t chain = kNoIndex;
    bool delivered = true, acknowledged = true;  // the latter: or nobody waits for it
    Time posted = 0, launch = 0;
    bool over() const { return delivered && acknowledged; }
  };
  // Messages of a rank's GPU, from the oldest that is not over to the newest; those of other jobs count as
  // over.
  class Outgoing {
   public:
    Sent& add(std::uint64_t message);
    Sent& operator[](std::uint64_t message);
    void forget_over();
    template <class Visit>
    void for_each(Visit visit) const {
      for (std::uint64_t message = first_; message < end_; ++message) visit(place(message));
    }

   private:
    Sent& place(std::uint64_t message) { return sent_[message & (sent_.size() - 1)]; }
    const Sent& place(std::uint64_t message) const { return sent_[message & (sent_.size() - 1)]; }
    Sent& next();
    void grow();
    std::vector<Sent> sent_;  // a ring; its size is a power of two
    std::uint64_t first_ = 0, end_ = 0;
  };
  // Circuits that members wait for.
  struct Asked {
    std::uint32_t last = kNoIndex;  // chain of the member that asked last
    std::uint32_t members = 0;      // that have asked and not ended
  };
  struct Rank {
    std::vector<Running> running;
    std::uint32_t last = kNoIndex;  // chain of the task that ended last
    Outgoing outgoing;
  };

  Time end_of(std::uint32_t chain) const { return chain != kNoIndex ? steps_[chain].end : begin_; }
  // The chain with a step more. Nothing is added where no time has passed since.
  std::uint32_t extend(std::uint32_t chain, Link step, const Way& way, std::span<const PortDelay> ports);
  std::uint32_t extend(std::uint32_t chain, const Link& step) { return extend(chain, step, {}, {}); }
  PathStep step_of(std::uint32_t link) const;
  // What fills the time between the step before and this one.
  PathStep gap_of(std::uint32_t link) const;
  void replace(std::uint32_t& place, std::uint32_t chain);
  void ask(std::uint64_t circuits, std::uint32_t chain);
  void light(Running& member, std::uint64_t circuits);
  Running take_running(const JobRecord& record);
  Rank& rank_of(std::uint32_t gpu) { return ranks_[rank_of_gpu_[gpu]]; }
  Running* member(std::uint32_t gpu, std::uint64_t communication);
  static std::uint32_t chain_of(const Running* member, std::uint32_t block);
  void go_on(Running& member, std::uint32_t block, std::uint32_t chain);
  void post(const TransferRecord& record);
  void arrive(const TransferRecord& record);
  std::uint32_t carried(const Sent& sent, const TransferRecord& record, const Running& here);
  void note_tip(std::size_t iteration, std::uint32_t chain, Time end);
  void forget_before(Time time);

  Links steps_;
  std::vector<std::uint32_t> rank_of_gpu_;  // kNoIndex: of none
  std::vector<Rank> ranks_;
  std::map<std::uint64_t, Asked> asked_;  // by communication
  std::vector<PortDelay> waits_;          // of the message that is delivered next
  struct Tip {
    std::uint32_t chain = kNoIndex;
    Time end = 0;
  };
  std::vector<Tip> tips_;  // by iteration: the task that ended last
  Time begin_ = 0;
};

}  // namespace netsim
