// PhaseRecorder: the Endpoint of a run whose job scheduler asks for phases (JobNeeds::phases). It stands
// between the executor and the packet network, and notes when each job sends from one GPU to another.
//
// Notes of a source are touched by events of its set, or between events. They depend on simulated times only,
// so at a scheduling interval they are the same for any number of sets and threads. Messages within a host
// and through aggregation groups are not noted. Nothing in a run cancels messages.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/ids.h"
#include "sim/core/units.h"
#include "sim/scheduling/flow/flow_ports.h"
#include "sim/transport/forwarding_endpoint.h"

namespace netsim {

// JobActivity: what a job sent from one GPU to another without a pause.
struct JobActivity {
  Message first;                  // of the two GPUs; its path is that of the others
  std::span<const PortId> ports;  // that its packets pass; valid until forget()
  Time begin = 0, end = 0;        // from send() to the acknowledgement of the last message
  Bytes bytes = 0;                // payload
};

class PhaseRecorder final : public ForwardingEndpoint, private MessageListener {
 public:
  struct Setup {
    Time resolution = 0;                     // shorter pauses do not end an activity
    std::vector<std::uint32_t> queue_pairs;  // by fabric: queue pairs between two GPUs
    std::vector<std::uint32_t> set_of_gpu;
  };
  // All references must outlive this.
  PhaseRecorder(std::unique_ptr<Endpoint> network, Engine& engine, const Cluster& cluster, Setup setup);

  // These are called between events.

  // Returns the activities of the job from `begin` to `end`, by source, destination, queue pair and time. An
  // activity that is longer is cut, and its part has its share of the bytes.
  std::vector<JobActivity> activities(JobId job, Time begin, Time end);
  // Returns the jobs that have activities, in ascending order.
  std::vector<JobId> jobs() const;
  // Forgets all activities that ended before `time`.
  void forget(Time time);
  // Returns the ports that the message would pass. Where switches choose for each packet, these are the ports
  // of the fabric that all packets pass. Returns none within a host.
  std::vector<PortId> ports_of(const Message& message);
  // Returns the rate of each port's link, by PortId.
  std::span<const BitRate> port_rates() const { return ports_.rates(); }
  Time resolution() const { return setup_.resolution; }

  void set_listener(MessageListener* listener) override;
  MessageHandle send(const SendRequest& request) override;

 private:
  struct Pair {
    JobId job;
    GpuId source, destination;
    std::uint32_t lane = 0;
    auto operator<=>(const Pair&) const = default;
  };
  struct Span {
    Time begin = 0, end = 0;
    Bytes bytes = 0;
  };
  struct PairNotes {
    Message first;
    std::uint32_t in_flight = 0;  // messages that are not over; the last span has no end while there are any
    std::vector<Span> spans;
    std::vector<PortId> ports;  // empty: not yet found, or there are none
  };
  using Notes = std::map<Pair, PairNotes>;

  void message_delivered(const Delivery& delivery) override { listener_->message_delivered(delivery); }
  void message_sent(const SendCompletion& completion) override;
  void message_left(const SendRequest& request) override { listener_->message_left(request); }
  Pair pair_of(const Message& message) const;
  Notes& notes_of(GpuId source) { return notes_[setup_.set_of_gpu[source]]; }
  Time now_of(GpuId source) const { return engine_.set(setup_.set_of_gpu[source]).loop().now(); }

  Engine& engine_;
  Setup setup_;
  FlowPorts ports_;
  MessageListener* listener_ = nullptr;
  std::vector<Notes> notes_;  // by set
};

}  // namespace netsim
