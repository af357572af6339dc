// servers: parameter servers. A worker pushes the gradient of each layer to the server that has the layer.
// The server adds the gradients of all workers and answers each of them with the new parameters when the last
// gradient has arrived. This is the setting of P3 (Jayarajan et al., MLSys 2019), TicTac (Hashemi et al.,
// MLSys 2019) and ByteScheduler (Peng et al., SOSP 2019).
//
// Pushes and pulls are raw messages, without the launches and chunks of the collective library. A worker and
// a server have one queue pair for each direction. That is how the transports of ps-lite send tensors. Pushes
// of a worker are in one queue, and answers of a server to a worker in another one. So each is a FIFO of
// whole layers, unless a task scheduler takes them in another order or in parts. Receives are posted early
// and are in no order.
//
// With `slice`, a layer is cut into slices. Each is pushed to a server of its own and answered by itself, as
// in P3, whose slices have 40,000 parameters. So a server sends the first slices of a layer while the worker
// still pushes the others. A task scheduler cannot cut a push in this way, because its answer waits for all
// of it.
#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "sim/core/registry.h"
#include "sim/training/layers/gradient_exchange.h"

namespace netsim {
namespace {

enum class ServerAssignment : std::uint8_t { round_robin, by_size };

struct ServersExchangeParameters {
  std::int64_t servers = 1;
  ServerAssignment assign = ServerAssignment::round_robin;
  Bytes slice = 0;
  BitRate sum = 0;
};

// GradientSlice: what is pushed and pulled as one: a layer, or a slice of it.
struct GradientSlice {
  std::uint32_t layer = 0;
  Bytes bytes = 0;
  std::string name;
  std::uint32_t server = 0;  // counted from 0
};

// LayerSlices: the slices of all layers. Those of layer l are numbers first[l] to first[l + 1] - 1.
struct LayerSlices {
  std::vector<GradientSlice> slices;
  std::vector<std::uint32_t> first{0};
};

constexpr std::uint32_t kPushQueue = 0;

class ServersExchange final : public GradientExchange {
 public:
  explicit ServersExchange(const ServersExchangeParameters& p) : p_(p) {}

  std::uint32_t servers() const override { return static_cast<std::uint32_t>(p_.servers); }

  void write(LayerStep& step, const ExchangeSettings&) const override {
    step.forwards();
    step.backward();
    const LayerSlices all = cut(step.layers());
    for_each_exchanged(step, all, [&](std::uint32_t number, const GradientSlice& slice) {
      const PeerExpression peer = rank_of(step.workers() + slice.server);
      ProgramOp push = message(step, TaskKind::send, "push " + slice.name, number, slice.bytes, peer);
      push.queue = kPushQueue;
      step.add(std::move(push), {step.gradient(slice.layer)});
      ProgramOp pull = message(step, TaskKind::receive, "pull " + slice.name, number, slice.bytes, peer);
      pull.unordered = true;
      step.exchanged(slice.layer, step.add(std::move(pull), {step.gradient(slice.layer)}));
    });
    for (std::uint32_t server = 0; server < servers(); ++server) write_server(step, server, all);
  }

 private:
  static PeerExpression rank_of(RankId rank) {
    PeerExpression peer;
    peer.kind = PeerExpression::Kind::rank;
    peer.rank = rank;
    return peer;
  }
  // Returns a message of a slice. A push and its answer have the same tag, in opposite directions.
  static ProgramOp message(LayerStep& step, TaskKind kind, const std::string& name, std::uint32_t number,
                           Bytes bytes, const PeerExpression& peer) {
    ProgramOp op;
    op.kind = kind;
    op.stream = Stream::dp;
    op.raw = true;
    op.name = step.builder().name(name);
    op.peer = peer;
    op.tag = number;
    op.bytes = bytes;
    return op;
  }

  // Calls visit(number, slice) for all slices, in the order in which their gradients are computed.
  template <class Visit>
  static void for_each_exchanged(const LayerStep& step, const LayerSlices& all, const Visit& visit) {
    for (const std::uint32_t layer : step.ready()) {
      for (std::uint32_t number = all.first[layer]; number < all.first[layer + 1]; ++number)
        visit(number, all.slices[number]);
    }
  }

  LayerSlices cut(const std::vector<TimedLayer>& layers) const {
    LayerSlices all;
    for (std::uint32_t layer = 0; layer < layers.size(); ++layer) {
      const Bytes bytes = layers[layer].bytes;
      const Bytes size = p_.slice > 0 ? std::min(p_.slice, bytes) : bytes;
      // Every layer has a number of its own, also one without a gradient.
      const Bytes count = size > 0 ? (bytes + size - 1) / size : 1;
      for (Bytes i = 0; i < count; ++i) {
        std::string name = layers[layer].name;
        if (count > 1) name += "." + std::to_string(i + 1);
        all.slices.push_back({layer, std::min(size, bytes - i * size), std::move(name), 0});
      }
      all.first.push_back(static_cast<std::uint32_t>(all.slices.size()));
    }
    assign(all.slices);
    return all;
  }

  void assign(std::vector<GradientSlice>& slices) const {
    std::vector<std::uint32_t> order(slices.size());
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order, [&](std::uint32_t slice) { return slices[slice].bytes == 0; });
    if (p_.assign == ServerAssignment::by_size) {
      std::stable_sort(order.begin(), order.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return slices[a].bytes > slices[b].bytes; });
    }
    std::vector<Bytes> load(servers(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto least = std::min_element(load.begin(), load.end()) - load.begin();
      const auto next = static_cast<std::uint32_t>(i % servers());
      GradientSlice& slice = slices[order[i]];
      slice.server = p_.assign == ServerAssignment::by_size ? static_cast<std::uint32_t>(least) : next;
      load[slice.server] += slice.bytes;
    }
  }

  void write_server(LayerStep& step, std::uint32_t server, const LayerSlices& all) const {
    BlockBuilder block(step.builder(), "server");
    for_each_exchanged(step, all, [&](std::uint32_t number, const GradientSlice& slice) {
      if (slice.server == server) serve(step, block, number, slice);
    });
    // A server without layers still needs a program.
    if (block.size() == 0) block.compute(fixed_time_work("idle", 0));
    const RankId rank = step.workers() + server;
    step.builder().role({"server_" + std::to_string(server), {{step.axis(), {rank}}}, block.finish()});
  }
  void serve(LayerStep& step, BlockBuilder& block, std::uint32_t number, const GradientSlice& slice) const {
    std::vector<BlockBuilder::Position> arrived;
    for (RankId worker = 0; worker < step.workers(); ++worker) {
      ProgramOp push =
          message(step, TaskKind::receive, "push " + slice.name, number, slice.bytes, rank_of(worker));
      push.unordered = true;
      // The receive waits for the one of the previous iteration alone, so that iterations may overlap.
      push.after_previous = {0};
      arrived.push_back(block.add(std::move(push), {}));
    }
    if (p_.sum > 0) arrived = {sum(step, block, slice, arrived)};
    for (RankId worker = 0; worker < step.workers(); ++worker) {
      ProgramOp pull =
          message(step, TaskKind::send, "pull " + slice.name, number, slice.bytes, rank_of(worker));
      pull.queue = worker;
      block.add(std::move(pull), arrived);
    }
  }
  // Appends the sum of the workers' gradients of a slice.
  BlockBuilder::Position sum(LayerStep& step, BlockBuilder& block, const GradientSlice& slice,
                             const std::vector<BlockBuilder::Position>& arrived) const {
    const Bytes added = slice.bytes * step.workers();
    ProgramOp op;
    op.kind = TaskKind::compute;
    op.unordered = true;
    op.name = step.builder().name("sum " + slice.name);
    op.work = step.builder().work(fixed_time_work("sum " + slice.name, transmission_time(added, p_.sum)));
    return block.add(std::move(op), arrived);
  }

  ServersExchangeParameters p_;
};

Parameters<ServersExchangeParameters> servers_exchange_parameters() {
  using P = ServersExchangeParameters;
  return Parameters<P>()
      .integer("servers", &P::servers, {1, 65'536}, "servers: the ranks behind the workers, one GPU each")
      .choice(
          "assign", &P::assign,
          {{"round_robin", ServerAssignment::round_robin}, {"by_size", ServerAssignment::by_size}},
          "server of each layer or slice. round_robin: in turn, in the order of the network; by_size: the "
          "largest first, each to the server that has the fewest bytes")
      .bytes("slice", &P::slice, {0, 1000 * kGigabyte},
             "bytes of the slices into which layers are cut; each slice is pushed and answered by itself, "
             "and P3's have 160 KB; 0: layers are not cut")
      .rate("sum", &P::sum, {0, 1'000'000 * kGbps},
            "rate at which a server adds gradients that have arrived; 0: it takes no time");
}

const Registration<GradientExchange> kServersExchange{
    "servers",
    "parameter servers: workers push the gradient of each layer and pull the new parameters, which a server "
    "sends when the gradients of all workers have arrived",
    servers_exchange_parameters(), [](const ServersExchangeParameters& p, const ConfigNode&) {
      return std::make_unique<ServersExchange>(p);
    }};

}  // namespace
}  // namespace netsim
