// TaskScheduler: decides which communication a rank launches next, whole or in parts. It is a component kind;
// `scheduling.tasks` of the configuration names one. Without one, the communications of a stream are launched
// in program order, one after the other, as on a CUDA stream.
//
// With a scheduler, a communication whose dependencies have ended is a candidate, whatever its stream.
// Several may be in flight. Computations keep the order of the program, and receives are posted as soon as
// they are ready.
//
// A collective needs one order at all its members. With `scheduling.order: agreed` the first rank of its
// group decides about it and tells the others, `scheduling.latency` later. The other ranks launch the
// collectives of the group in that order, each as soon as it is ready there. A message is decided by its
// sender. Collectives that a scheduler never holds need no agreement (TaskScheduler::is_agreed()). With
// `scheduling.order: local` every rank decides about everything, and a run whose ranks choose
// different orders may stall.
//
// A scheduler object holds parameters only. What changes during the run lies beside the rank
// (TaskNeeds::rank_state), because ranks of different sets call from different threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/ids.h"
#include "sim/core/index.h"
#include "sim/core/units.h"
#include "sim/scheduling/task/launch_plan.h"
#include "sim/scheduling/views.h"

namespace netsim {

struct JobProfile;

// Communication facts that are the same at all ranks that take part.
struct CommunicationFacts {
  std::string_view kind;    // "all_reduce", "all_to_all", ...; "message" between two ranks
  std::string_view stream;  // stream of the task: "dp", "ep", ...
  Bytes bytes = 0;          // of the whole communication, or of a whole bucket that is fused
};

// Candidate: a communication of the rank whose dependencies have ended, and of which bytes are left to
// launch.
struct Candidate : CommunicationFacts {
  TaskId task = 0;
  std::uint32_t iteration = 0;
  // Place in the order of need: the least is needed first. It comes from TaskScheduler::plan(), or is the
  // order of the program where the plan has none.
  std::uint64_t order = 0;
  GroupId group = kNoIndex;  // group of a collective; none for a message
  Bytes left = 0;            // bytes that were not launched yet
  Bytes next = 0;            // bytes of the part that is launched next
  Bytes last = 0;  // bytes of the last part if it is shorter and may be launched instead; 0: it may not
  Time ready = 0;  // when its dependencies had ended
  // Whether this rank decides about it. If not, it cannot be launched here. It is listed so that a rule can
  // see what else is waiting.
  bool decided_here = true;
  std::uint8_t links = 0;  // number of the links that it takes (LaunchPlan::links)
};

// InFlight: a part that the rank has launched and that has not ended there. Receives are not listed: they are
// posted early and delay nothing.
struct InFlight : CommunicationFacts {
  TaskId task = 0;
  GroupId group = kNoIndex;
  Bytes part = 0;          // bytes of the part
  std::uint8_t links = 0;  // number of the links that it takes (LaunchPlan::links)
};

// RankView: what a scheduler sees of its rank. The spans are valid during the call.
struct RankView {
  RankId rank = 0;
  Time now = 0;
  std::span<const InFlight> in_flight;
  std::span<std::byte> state;  // TaskNeeds::rank_state bytes, zero at first, which only this rank uses

  // Returns the bytes in flight.
  Bytes bytes_in_flight() const {
    Bytes sum = 0;
    for (const InFlight& part : in_flight) sum += part.part;
    return sum;
  }
  // Returns the number of parts in flight.
  std::size_t parts_in_flight() const { return in_flight.size(); }
};

// Launch: the answer of a scheduler: the next part of a candidate, or nothing.
struct Launch {
  static constexpr std::size_t kNothing = SIZE_MAX;
  std::size_t candidate = kNothing;  // index in the list of candidates
  std::uint8_t priority = 0;       // TransferTraits::priority of its messages, if it is higher than the job's
  std::uint8_t traffic_class = 0;  // TransferTraits::traffic_class of its messages, if it is not 0
  // Where nothing is launched: call again at this time, even if nothing has happened at the rank.
  Time call_again = kNever;
  bool last_part = false;  // launch the last part (Candidate::last) instead of the next one
};

// TaskNeeds: what a scheduler needs of the job.
struct TaskNeeds {
  bool profile = false;        // plan() is called; a workload that cannot give a profile is refused
  std::size_t rank_state = 0;  // bytes of state beside each rank
  // Fields of views that it uses. No shipped one uses any: a plan is made of the job's own profile before the
  // job begins, and a rank sees only itself.
  ViewFields views = {};
};

class TaskScheduler {
 public:
  static constexpr const char* kComponentKind = "task_scheduler";
  virtual ~TaskScheduler() = default;
  virtual TaskNeeds needs() const { return {}; }
  // Returns the kinds and streams of communications that the parameters name. One that no communication can
  // have, which is misspelt, is refused at its place.
  virtual std::vector<ConfigNode> named_communications() const { return {}; }
  // Returns the size of the parts into which a communication is cut; the last part may be smaller. 0: it is
  // launched whole. Collectives with counts or of grouped calls, and copies to hosts, are never cut. The
  // messages of a grouped call are launched with all their parts at once. All ranks that take part must get
  // the same answer, so it may depend on nothing else.
  virtual Bytes part_bytes(const CommunicationFacts&) const { return 0; }
  // Returns whether the members of a collective agree on its launches where scheduling.order is `agreed`. If
  // not, each member decides for itself, and next() must launch the collective whenever it is a candidate.
  // Then no rank holds what another one waits for. The answer may depend on the kind and stream only.
  virtual bool is_agreed(const CommunicationFacts&) const { return true; }
  // Returns the order of need of the job's communications, and which of them are fused. It is called once,
  // before the job begins, where needs().profile is set.
  virtual LaunchPlan plan(const JobProfile&) const { return {}; }
  // Returns what the rank launches now. It is called when something has happened at the rank: a candidate
  // came, or a part ended. After a launch it is called again, until it returns nothing. `candidates` is in
  // program order and not empty. Only candidates with `decided_here` may be launched.
  virtual Launch next(const RankView& rank, std::span<const Candidate> candidates) const = 0;
};

}  // namespace netsim
