// FlowScheduler: decides how the flows of collectives and messages use the fabric. It is a component kind;
// `scheduling.flows` of the configuration names one. Without one, all flows are sent at once.
//
// A flow is all messages of one communication, or of one part of it, from one GPU to another over the packet
// fabric. In an in-network all-reduce it is all messages of the communication from one GPU into its trees.
// decide() sees the flows into one tree as a single flow, that of the first member which has bytes left. A
// decision about it acts on all of them, because the slowest member sets the pace.
// Credits and messages within a host are not scheduled.
//
// A scheduler decides in two places.
// - At the source's host, when a flow begins: admit(). It is called from events of the source's set, so it
//   may not change the scheduler.
// - For all flows, at scheduling intervals: decide(). It is called between events, by one thread. Decisions
//   act `scheduling.flow_delay` later.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/stream.h"
#include "sim/core/units.h"
#include "sim/scheduling/demand_view.h"
#include "sim/scheduling/job_facts.h"
#include "sim/scheduling/network_view.h"
#include "sim/scheduling/views.h"
#include "sim/topology/graph.h"
#include "sim/transport/port_passage.h"
#include "sim/transport/transfer_traits.h"

namespace netsim {

// The number of a flow, in the order in which decide() saw flows first. Flows that began in one interval are
// ordered by time, job, source, destination and communication.
using FlowId = Id<struct FlowOfRun>;

// FlowTreatment: how the messages of a flow are sent.
struct FlowTreatment {
  // Data class of the network. Only admit() can choose it, and not for flows into all-reduce trees, all of
  // whose members must send in one class.
  std::uint8_t traffic_class = 0;
  std::uint8_t priority = 0;         // among the messages of one queue pair, the highest first
  bool held = false;                 // nothing of it leaves until it is released
  BitRate rate = 0;                  // most that it may send, headers included, bit/s; 0: no limit
  std::uint32_t path = kNoPathHint;  // TransferTraits::path_hint

  bool operator==(const FlowTreatment&) const = default;
};

// FlowView: what a scheduler sees of a flow.
struct FlowView : FlowTreatment {
  FlowId id = FlowId::none();  // none in admit()
  JobId job = 0;
  GpuId source = 0;
  GpuId destination = 0;            // none: the flow goes into all-reduce trees of switches
  std::uint64_t communication = 0;  // equal for all flows of a collective; jobs may have equal numbers
  std::uint32_t name = 0;           // name of the communication in its job's workload
  Bytes bytes = 0;                  // of all its messages so far; payload
  Bytes left = 0;                   // of these, bytes that have not left the source; 0 in admit()
  Time released = 0;                // when its first message was sent
  Time deadline = kNever;           // as the workload gives it; kNever: it has none
  Stream stream = Stream::compute;  // stream of its task; to_string() returns the name, as "ep"
  // The ports that its packets pass, from the source on. Where switches choose for each packet, these are the
  // ports of the fabric that all of them pass. In an all-reduce tree these are all ports that its data
  // passes, once for each stream of data: one above a switch that adds up. Empty in admit().
  std::span<const PortId> ports;

  Bytes attained() const { return bytes - left; }
};

// FlowFacts: what else decide() can ask about a flow. An answer costs more than a field.
class FlowFacts {
 public:
  virtual ~FlowFacts() = default;
  // Returns the number of path hints to choose from, 0 to path_count() - 1; 1: hints have no effect.
  virtual std::uint32_t path_count(const FlowView& flow) const = 0;
  // Returns the ports that the flow's packets would pass with this hint.
  virtual std::vector<PortId> ports_of_path(const FlowView& flow, std::uint32_t hint) const = 0;
  // Returns how a packet with `payload` bytes, at most transport.mtu, passes each of these ports when nothing
  // else is sent. It is empty where switches choose for each packet.
  virtual std::vector<PortPassage> passages(const FlowView& flow, std::uint32_t hint,
                                            Bytes payload) const = 0;
  // Returns the name of the flow's communication in its job's workload; "" if it has none.
  virtual std::string name(const FlowView& flow) const = 0;
  // These need FlowNeeds::jobs. job() returns what is known of a job. sent() returns the mean bytes that it
  // sends from one GPU to another in an iteration; 0 before an iteration has ended.
  virtual JobFacts job(JobId /*job*/) const { return {}; }
  virtual Bytes sent(JobId /*job*/, GpuId /*source*/, GpuId /*destination*/) const { return 0; }
};

// FlowsView: what decide() sees. Fields that the scheduler does not name in needs().views, or that are off,
// are hidden.
// - `sizes`: flows are those that had bytes left when sizes were taken, with the bytes of that time.
// Decisions
//   about flows that have ended since do nothing. Hidden: flows of the present, with the bytes that they have
//   sent as `bytes`, and 0 as `left`.
// - `topology`, hidden: `ports` and `port_rates` are empty, and each flow has one path.
struct FlowsView {
  Time now = 0;
  std::span<const FlowView> flows;      // those with bytes left, by rising id
  std::span<const BitRate> port_rates;  // rate of each port's link, by PortId, bit/s
  const FlowFacts* facts = nullptr;     // never null in decide()
  Time interval = 0;                    // scheduling.interval
  // Deadlines of flows that were released up to this time are known (`deadlines`); below 0: none.
  Time deadlines_known = kNever;
  NetworkView network = {};
  DemandView demand = {};
};

// FlowDecisions: what a scheduler wants to change. Each acts on the flow's messages under way and on those to
// come. A decision about a flow that is over when it should act does nothing.
class FlowDecisions {
 public:
  void hold(FlowId flow) { add(flow, Kind::hold, 0); }
  void release(FlowId flow) { add(flow, Kind::release, 0); }
  // Limits the flow's rate and releases it. A rate below 1 kbit/s holds it instead, and INT64_MAX is no
  // limit. The rate is shared equally by the queue pairs on which the flow has messages.
  void rate(FlowId flow, BitRate most) {
    if (most < kLeastRate) return hold(flow);
    add(flow, Kind::rate, most == INT64_MAX ? 0 : most);
  }
  // Releases the flow without a limit.
  void unlimited(FlowId flow) { add(flow, Kind::rate, 0); }
  void priority(FlowId flow, std::uint8_t level) { add(flow, Kind::priority, level); }
  void path(FlowId flow, std::uint32_t hint) { add(flow, Kind::path, hint); }
  // Lets decide() be called at the first interval that is not before `time`, even if no flow begins or ends.
  // It acts without delay; the earliest of several counts.
  void call_again(Time time) { again_ = time < again_ ? time : again_; }

  enum class Kind : std::uint8_t { hold, release, rate, priority, path };
  struct Decision {
    FlowId flow;
    Kind kind;
    std::int64_t value;
  };
  // Return what was decided, in that order, and the time of call_again(), or kNever.
  const std::vector<Decision>& list() const { return list_; }
  Time again() const { return again_; }

 private:
  static constexpr BitRate kLeastRate = 1000;
  void add(FlowId flow, Kind kind, std::int64_t value) { list_.push_back({flow, kind, value}); }

  std::vector<Decision> list_;
  Time again_ = kNever;
};

// FlowNeeds: what a scheduler needs of the run.
struct FlowNeeds {
  bool central = false;       // decide() is called when flows have begun or ended
  bool sizes = false;         // decide() is also called when messages have added bytes to flows
  bool empty = false;         // decide() is also called when no flow has bytes left, with an empty view
  bool jobs = false;          // it asks for FlowFacts::job() and sent()
  std::uint32_t classes = 1;  // data classes that the network must have (network.switch.classes)
  Time every = kNever;        // it decides so often; scheduling.interval must not be longer
  ViewFields views = {};      // fields of views that it uses, if they are on (scheduling.views)
  ViewFields required = {};   // of these, those without which it cannot decide: a run without them is refused
};

class FlowScheduler {
 public:
  static constexpr const char* kComponentKind = "flow_scheduler";
  virtual ~FlowScheduler() = default;
  virtual FlowNeeds needs() const { return {}; }
  // Sets which fields of needs().views are on. Called once, before the run.
  void set_views(ViewFields on) { on_ = on; }
  // Returns how a new flow is sent. `flow` has the treatment that its first message asks for, and the bytes
  // of that message, or 0 where the scheduler does not see `sizes`.
  virtual FlowTreatment admit(const FlowView& flow) const { return flow; }
  // Decides about all flows, where needs().central is set.
  virtual void decide(const FlowsView&, FlowDecisions&) {}
  // Returns notes for the user after the run: settings that had no effect, and facts that were missing.
  virtual std::vector<std::string> notes() const { return {}; }

  // Returns whether a field of needs().views is on.
  bool sees(ViewField field) const { return on_.has(field); }

 private:
  ViewFields on_ = ViewFields::all();
};

}  // namespace netsim
