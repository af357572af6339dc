// Measures packet throughput. P128 and P1024 are fat trees of single-NIC hosts with links of 100 Gb/s and 1
// us. Host i sends 10 MB to i + n/2 under ECMP, PFC, ECN and DCQCN `vendor`, with one ACK a packet. The
// counter is data packet-hops a second of process CPU time, set-up included. The benchmark queue_pairs has
// that many on one NIC; they share 400,000 packets to one other NIC.
#include <benchmark/benchmark.h>

#include <string>

#include "sim/core/config.h"
#include "sim/core/engine.h"
#include "sim/topology/topology.h"
#include "sim/transport/packet_network.h"

namespace {

using namespace netsim;

class Sink : public MessageListener {
 public:
  void message_delivered(const Delivery&) override { ++delivered; }
  void message_sent(const SendCompletion&) override {}
  std::uint64_t delivered = 0;
};

void permutation(benchmark::State& state, int k, Bytes bytes, const char* control) {
  double hops = 0;
  for (auto unused : state) {
    const ConfigNode root =
        parse_config("topology: {kind: fat_tree, k: " + std::to_string(k) +
                         ", rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: " + control + "}\n",
                     "bench");
    const Cluster cluster = build_cluster(root);
    Engine loop;
    Sink sink;
    const auto network =
        PacketNetwork::create(loop, cluster, Partition(), ConfigNode(), *root.find("transport"), 1, nullptr);
    network->set_listener(&sink);
    const auto hosts = static_cast<std::uint32_t>(cluster.gpus.size());
    for (std::uint32_t host = 0; host < hosts; ++host) {
      Message message;
      message.source = host;
      message.destination = (host + hosts / 2) % hosts;
      message.bytes = bytes;
      network->send({message});
    }
    loop.run();
    if (sink.delivered != hosts) state.SkipWithError("not every message was delivered");
    hops +=
        static_cast<double>(network->counters().packet_hops[static_cast<std::size_t>(LinkKind::ethernet)]);
  }
  state.counters["data_hops/s"] = benchmark::Counter(hops, benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(permutation, P128, 8, 10 * kMegabyte, "dcqcn")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(permutation, P128_line_rate, 8, 10 * kMegabyte, "none")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(permutation, P1024, 16, 10 * kMegabyte, "dcqcn")
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

void queue_pairs(benchmark::State& state) {
  constexpr Bytes kPackets = 400'000, kMtu = 4096;
  const auto pairs = static_cast<std::uint32_t>(state.range(0));
  for (auto unused : state) {
    const ConfigNode root = parse_config(
        "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\n"
        "transport: {congestion_control: none}\n",
        "bench");
    const Cluster cluster = build_cluster(root);
    Engine loop;
    Sink sink;
    const auto network =
        PacketNetwork::create(loop, cluster, Partition(), ConfigNode(), *root.find("transport"), 1, nullptr);
    network->set_listener(&sink);
    for (std::uint32_t pair = 0; pair < pairs; ++pair) {
      Message message;
      message.source = 0;
      message.destination = 1;
      message.bytes = kPackets / pairs * kMtu;
      message.traits.channel = pair;
      message.traits.own_queue_pair = true;
      network->send({message});
    }
    loop.run();
    if (sink.delivered != pairs) state.SkipWithError("not every message was delivered");
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kPackets);
}

BENCHMARK(queue_pairs)->Arg(10)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
