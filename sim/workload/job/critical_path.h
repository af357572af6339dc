// CriticalPath: what the end of each iteration of a job waited for: a chain of steps, each of which began
// when the one before it ended, from the end of the iteration before (the arrival of the job, for the first).
// Together they take exactly as long as the iteration.
//
// It is found while the job is played, from the books' records, which come in order of time. Each task that
// is under way holds the chain that released it: that of the task whose end made it ready; for a collective,
// that of the member that came last before this one's end; for a receiver, that of the sender, if it was
// waiting. Chains share their beginnings, and what no task holds any more is forgotten, so memory follows
// what is under way and not the length of the job.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/workload/task.h"

namespace netsim {

struct JobRecord;       // job_books.h
struct TransferRecord;  // execution/transfer_record.h

struct PathStep {
  enum class Kind : std::uint8_t {
    compute,
    launch,           // what the library costs before a message leaves: base latency, latency of a hop
    transfer,         // a message, from its sender's endpoint to its receiver
    acknowledgement,  // a message and its acknowledgement: the send window was full, or a sender's end
    communication,    // not known in parts: from the last member's arrival, or the sender's start, to the end
    held              // nothing ran: an earliest start, a task scheduler
  };
  static constexpr std::uint32_t kNoGpu = UINT32_MAX;

  Kind kind = Kind::held;
  Stream stream = Stream::compute;
  CollectiveKind collective = CollectiveKind::point_to_point;  // of a communication
  std::uint32_t rank = 0;                                      // where it ended
  std::uint32_t task = 0;                                      // there
  std::uint32_t name = 0;                                      // TaskSource::name()
  std::uint64_t id = 0;                                        // of a communication
  std::uint32_t source = kNoGpu, destination = kNoGpu;         // GPUs of a transfer or an acknowledgement
  Time begin = 0, end = 0;
};

const char* to_string(PathStep::Kind kind);

// The path of one iteration, added up. The times add up to its duration.
struct PathSummary {
  Time compute = 0, held = 0;
  std::array<Time, kStreams> communication{};  // by stream, launches included
  std::uint64_t steps = 0;
};

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
  // All members of a communication have ended.
  void over(std::uint64_t communication);
  // The iteration is over: visits its path, in order of time, cut where it reaches beyond [begin, end]. What
  // was before `begin` is forgotten. Iterations are closed in order, each once.
  using Visitor = std::function<void(const PathStep&)>;
  PathSummary close_iteration(std::uint32_t iteration, Time begin, Time end, const Visitor& visit);
  std::size_t steps_held() const { return steps_.used(); }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  // A chain is its last step; each step holds the one before.
  struct Link {
    PathStep step;
    std::uint32_t before = kNone;
    std::uint32_t holders = 0;
  };
  // Steps by number.
  class Links {
   public:
    std::uint32_t add(const PathStep& step, std::uint32_t before);
    Link& operator[](std::uint32_t link) { return links_[link]; }
    void hold(std::uint32_t link) {
      if (link != kNone) ++links_[link].holders;
    }
    void release(std::uint32_t link);
    std::size_t used() const { return links_.size() - free_.size(); }

   private:
    std::vector<Link> links_;
    std::vector<std::uint32_t> free_;
  };
  struct Running {
    std::uint32_t task;
    std::uint32_t released_by;  // chain
    Time begin;
    std::uint64_t communication;
    PathStep step;  // what all steps of the task have
  };
  struct Rank {
    std::vector<Running> running;
    std::uint32_t last = kNone;  // chain of the task that ended last
  };
  // A message on its way, or that its sender has not seen acknowledged.
  struct Sent {
    std::uint32_t chain;
    Time posted, launch;
  };
  // Messages of one thread block to one peer, oldest first, of which some are delivered or acknowledged.
  struct Lane {
    std::deque<Sent> sent;
    std::size_t delivered = 0, acknowledged = 0;  // counted from the front
  };
  // A communication that is under way.
  struct Meeting {
    std::uint32_t released_by = kNone;  // chain of the member that decides, where no messages are told of
    Time begin = 0;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> blocks;  // GPU, thread block: its chain
    std::map<std::uint32_t, std::uint32_t> went_on;                           // GPU: the block that last did
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Lane> lanes;  // from, to, thread block
  };

  // The chain with a step more, and one of kind `gap` that fills the time before it, if there is any. Nothing
  // is added for a step that takes no time.
  std::uint32_t extend(std::uint32_t chain, const PathStep& step, PathStep::Kind gap = PathStep::Kind::held);
  void replace(std::uint32_t& place, std::uint32_t chain);
  Running take_running(const JobRecord& record);
  const Running* member(std::uint32_t gpu, std::uint64_t communication) const;
  std::uint32_t chain_of(Meeting& meeting, std::uint32_t gpu, std::uint32_t block,
                         std::uint64_t communication);
  void go_on(Meeting& meeting, const TransferRecord& record, std::uint32_t chain);
  std::uint32_t carried(const Sent& sent, const TransferRecord& record, const PathStep& like,
                        PathStep::Kind kind, std::uint32_t source, std::uint32_t destination);
  void drop_front(Lane& lane);
  void note_tip(std::size_t iteration, std::uint32_t chain, Time end);
  void forget_before(Time time);

  Links steps_;
  std::vector<std::uint32_t> gpus_;                               // by rank
  std::unordered_map<std::uint32_t, std::uint32_t> rank_of_gpu_;  // looked up only
  std::vector<Rank> ranks_;
  std::unordered_map<std::uint64_t, Meeting> meetings_;  // by communication; iterated only to forget
  struct Tip {
    std::uint32_t chain = kNone;
    Time end = 0;
  };
  std::vector<Tip> tips_;  // by iteration: the task that ended last
  Time begin_ = 0;
};

}  // namespace netsim
