// Collectives on a cluster and its packet network from YAML text.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "sim/core/ids.h"
#include "tests/collectives/fake_endpoint.h"
#include "tests/support/packet_fixture.h"

namespace netsim::test {

class PacketCollectives {
 public:
  explicit PacketCollectives(const std::string& yaml, std::uint64_t seed = 1)
      : packets(yaml, seed), recorder(packets.loop.loop()) {
    const auto ports = static_cast<std::uint32_t>(packets.cluster.graph.port_count());
    executor = Executor::create(packets.loop.loop(), *packets.network, packets.section("collectives"), ports);
    executor->set_listener(&recorder);
  }
  // Runs a collective to its end, and returns the time when its last member was done.
  Time run(CommunicationRequest request) {
    recorder.done.clear();
    for (request.index = 0; request.index < request.members->size(); ++request.index) {
      executor->start((*request.members)[request.index], request);
    }
    packets.loop.run();
    EXPECT_EQ(recorder.done.size(), request.members->size());
    EXPECT_TRUE(executor->waiting(1).empty());
    return recorder.last();
  }

  // A NIC's port to the fabric.
  PortId fabric_port(const std::string& nic) const {
    const Graph& graph = packets.cluster.graph;
    for (PortId port = 0; port < graph.port_count(); ++port) {
      const PortSpec& spec = graph.port(port);
      if (graph.node(spec.node).name == nic && graph.node(spec.peer_node).kind == NodeKind::fabric_switch)
        return port;
    }
    throw std::out_of_range("no port of " + nic);
  }

  PacketFixture packets;
  Completions recorder;
  std::unique_ptr<Executor> executor;
};

inline CommunicationRequest request_of(CollectiveKind kind, const std::vector<GpuId>& members, Bytes bytes) {
  CommunicationRequest request;
  request.kind = kind;
  request.members = &members;
  request.bytes = bytes;
  request.communication = 5;
  return request;
}

inline std::vector<GpuId> every(std::uint32_t stride, std::uint32_t count) {
  std::vector<GpuId> members;
  for (std::uint32_t i = 0; i < count; ++i) members.push_back(i * stride);
  return members;
}

// Runs an all-reduce of ranks 0 to `ranks` - 1, and a second one of the same group when it has ended.
inline void run_twice(PacketCollectives& cluster, std::uint32_t ranks, Bytes bytes) {
  const auto members = every(1, ranks);
  CommunicationRequest request = request_of(CollectiveKind::all_reduce, members, bytes);
  cluster.run(request);
  ++request.communication;
  cluster.run(request);
}

}  // namespace netsim::test
