// NetworkReader: fills the fields of NetworkView from the packet network, and keeps those that are seen
// later.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/scheduling/network_view.h"
#include "sim/scheduling/view_history.h"
#include "sim/scheduling/view_keeper.h"
#include "sim/topology/graph.h"
#include "sim/transport/packet_network.h"

namespace netsim {

class NetworkReader {
 public:
  // Sources: what the fields are read from. The references must outlive the reader. `packets` is null for
  // `network: ideal`, which has no ports, and the functions may be empty.
  struct Sources {
    const Graph& graph;
    const PacketNetwork* packets = nullptr;
    std::function<std::vector<std::uint8_t>()> failed_hosts;  // NetworkView::failed
    std::function<std::vector<Stall>()> stalls;
  };
  // Lets the keeper ask for the values, and gives it the views. The keeper must outlive the reader.
  NetworkReader(ViewKeeper& keeper, Sources sources);
  NetworkReader(const NetworkReader&) = delete;
  NetworkReader& operator=(const NetworkReader&) = delete;

 private:
  // Transmission time of a port, as PortCounters has it.
  struct Transmissions {
    Time busy = 0, last_end = 0;
  };
  struct Failures {
    std::vector<std::uint8_t> ports, hosts;
  };
  // Values of one field: the present ones in `now`, or those that are kept.
  template <class Values>
  struct Field {
    explicit Field(const ViewClock& clock) : history(clock) {}
    Values now;
    ViewHistory<Values> history;
  };

  template <class Values>
  void keep(ViewField field, Field<Values>& values, Values (NetworkReader::*read)() const);
  template <class Values>
  const Values& seen(Time now, ViewField field, Field<Values>& values, Values (NetworkReader::*read)() const);
  NetworkView view(Time now, ViewFields wanted);
  void find_loads(Time now);

  // Returns a value for each port; none for the ideal network.
  template <class Read>
  auto by_port(Read read) const;
  std::vector<Transmissions> read_transmissions() const;
  std::vector<Bytes> read_queues() const;
  std::vector<SendRate> read_rates() const;
  Failures read_failures() const;
  std::vector<CircuitState> read_circuits() const;
  std::vector<Stall> read_stalls() const;

  ViewKeeper& keeper_;
  Sources sources_;
  std::vector<bool> is_circuit_;  // by port
  ViewHistory<std::vector<Transmissions>> transmissions_;
  std::vector<double> loads_;  // of the present call
  Field<std::vector<Bytes>> queues_;
  Field<std::vector<SendRate>> rates_;
  Field<Failures> failures_;
  Field<std::vector<CircuitState>> circuits_;
  Field<std::vector<Stall>> stalls_;
};

}  // namespace netsim
