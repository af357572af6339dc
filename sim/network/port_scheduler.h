// PortScheduler: the decisions of a custom queue discipline at one switch port: which queue an arriving
// packet joins, and which queue sends next. QueueDiscipline::make_port() creates one for each port.
//
// It may keep any state of its port and is called by one thread at a time. It must be deterministic and must
// not allocate after its construction.
#pragma once

#include <cstdint>

#include "sim/core/random.h"
#include "sim/core/units.h"
#include "sim/network/packet_view.h"
#include "sim/network/port_queues.h"

namespace netsim {

// The properties of a port for which a scheduler or marker is created.
struct PortContext {
  BitRate rate = 0;           // of the port's link, bit/s
  std::uint32_t classes = 1;  // data classes
  RandomStream random;        // the object's own stream of random numbers
};

class PortScheduler {
 public:
  virtual ~PortScheduler() = default;
  // Returns the queue, from 0 to queues.queues_per_class() - 1, that a data packet or reply joins within its
  // class. Link control always goes first, as do congestion notifications without credits; neither comes
  // here.
  virtual std::uint32_t queue_of(const PacketView& packet, const PortQueues& queues, Time now) = 0;
  // Returns the queue whose first packet is sent now, of those for which queues.may_send() is true; at least
  // one is. Queues are numbered over all classes of the port, and their order among classes is up to this
  // function. It is called each time the port is free and a queue may send. It must choose one: a port is
  // never idle for a scheduler, and no timer calls it.
  virtual std::uint32_t select(const PortQueues& queues, Time now) = 0;
  // Called for a packet that found the port free and all queues empty or paused. It leaves at once without
  // joining a queue.
  virtual void sent_at_once(const PacketView& /*packet*/, Time /*now*/) {}
};

}  // namespace netsim
