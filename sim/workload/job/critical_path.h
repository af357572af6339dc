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
#include <functional>
#include <unordered_map>
#include <vector>

#include "sim/workload/task.h"

namespace netsim {

struct JobRecord;  // job_books.h

struct PathStep {
  enum class Kind : std::uint8_t {
    compute,
    communication,  // of a collective: from the last member's arrival on; of a message: from its sender's
                    // start
    held            // nothing ran: an earliest start, a task scheduler
  };
  Kind kind = Kind::held;
  Stream stream = Stream::compute;
  CollectiveKind collective = CollectiveKind::point_to_point;  // of a communication
  std::uint32_t rank = 0;                                      // where it ended
  std::uint32_t task = 0;                                      // there
  std::uint32_t name = 0;                                      // TaskSource::name()
  std::uint64_t id = 0;                                        // of a communication
  Time begin = 0, end = 0;
};

const char* to_string(PathStep::Kind kind);

// The path of one iteration, added up. The times add up to its duration.
struct PathSummary {
  Time compute = 0, held = 0;
  std::array<Time, kStreams> communication{};  // by stream
  std::uint64_t steps = 0;
};

class CriticalPath {
 public:
  explicit CriticalPath(std::uint32_t ranks) : ranks_(ranks) {}

  // The job arrives; nothing may be told before.
  void open(Time begin);
  // Records in the order in which the books apply them.
  void begins(const JobRecord& record);
  // `end`: of the task; a message's sender is told later than that, when it is acknowledged.
  void ends(const JobRecord& record, Time end);
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
  };
  struct Rank {
    std::vector<Running> running;
    std::uint32_t last = kNone;  // chain of the task that ended last
  };
  // A communication that is under way: the chain of the member that decides.
  struct Meeting {
    std::uint32_t released_by = kNone;
    Time begin = 0;
  };

  // The chain with a step more, and one that fills the gap before it, if there is one.
  std::uint32_t extend(std::uint32_t chain, const PathStep& step);
  void replace(std::uint32_t& place, std::uint32_t chain);
  Running take_running(const JobRecord& record);
  void forget_before(Time time);

  Links steps_;
  std::vector<Rank> ranks_;
  std::unordered_map<std::uint64_t, Meeting> meetings_;  // looked up only, never iterated
  struct Tip {
    std::uint32_t chain = kNone;
    Time end = 0;
  };
  std::vector<Tip> tips_;  // by iteration: the task that ended last
  Time begin_ = 0;
};

}  // namespace netsim
