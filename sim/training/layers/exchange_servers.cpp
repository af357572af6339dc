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
#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "sim/core/registry.h"
#include "sim/training/layers/gradient_exchange.h"

namespace netsim {
namespace {

enum class ServerAssignment : std::uint8_t { round_robin, by_size };

struct ServersExchangeParameters {
  std::int64_t servers = 1;
  ServerAssignment assign = ServerAssignment::round_robin;
  BitRate sum = 0;
};

constexpr std::uint32_t kPushQueue = 0;

class ServersExchange final : public GradientExchange {
 public:
  explicit ServersExchange(const ServersExchangeParameters& p) : p_(p) {}

  std::uint32_t servers() const override { return static_cast<std::uint32_t>(p_.servers); }

  void write(LayerStep& step, const ExchangeSettings&) const override {
    step.forwards();
    step.backward();
    const std::vector<std::uint32_t> server_of = assign(step.layers());
    for (const std::uint32_t layer : step.ready()) {
      const std::string& name = step.layers()[layer].name;
      const PeerExpression peer = rank_of(step.workers() + server_of[layer]);
      ProgramOp push = message(step, TaskKind::send, "push " + name, layer, peer);
      push.queue = kPushQueue;
      step.add(std::move(push), {step.gradient(layer)});
      ProgramOp pull = message(step, TaskKind::receive, "pull " + name, layer, peer);
      pull.unordered = true;
      step.exchanged(layer, step.add(std::move(pull), {step.gradient(layer)}));
    }
    for (std::uint32_t server = 0; server < servers(); ++server) write_server(step, server, server_of);
  }

 private:
  static PeerExpression rank_of(RankId rank) {
    PeerExpression peer;
    peer.kind = PeerExpression::Kind::rank;
    peer.rank = rank;
    return peer;
  }
  // Returns a message of a layer. A push and its answer have the same tag, in opposite directions.
  static ProgramOp message(LayerStep& step, TaskKind kind, const std::string& name, std::uint32_t layer,
                           const PeerExpression& peer) {
    ProgramOp op;
    op.kind = kind;
    op.stream = Stream::dp;
    op.raw = true;
    op.name = step.builder().name(name);
    op.peer = peer;
    op.tag = layer;
    op.bytes = step.layers()[layer].bytes;
    return op;
  }

  // Returns the server of each layer, counted from 0.
  std::vector<std::uint32_t> assign(const std::vector<TimedLayer>& layers) const {
    std::vector<std::uint32_t> order(layers.size()), server_of(layers.size(), 0);
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order, [&](std::uint32_t layer) { return layers[layer].bytes == 0; });
    if (p_.assign == ServerAssignment::by_size) {
      std::stable_sort(order.begin(), order.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return layers[a].bytes > layers[b].bytes; });
    }
    std::vector<Bytes> load(servers(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto least = std::min_element(load.begin(), load.end()) - load.begin();
      const auto next = static_cast<std::uint32_t>(i % servers());
      const std::uint32_t server =
          p_.assign == ServerAssignment::by_size ? static_cast<std::uint32_t>(least) : next;
      server_of[order[i]] = server;
      load[server] += layers[order[i]].bytes;
    }
    return server_of;
  }

  void write_server(LayerStep& step, std::uint32_t server,
                    const std::vector<std::uint32_t>& server_of) const {
    BlockBuilder block(step.builder(), "server");
    for (const std::uint32_t layer : step.ready()) {
      if (server_of[layer] == server) serve(step, block, layer);
    }
    // A server without layers still needs a program.
    if (block.size() == 0) block.compute(fixed_time_work("idle", 0));
    const RankId rank = step.workers() + server;
    step.builder().role({"server_" + std::to_string(server), {{step.axis(), {rank}}}, block.finish()});
  }
  void serve(LayerStep& step, BlockBuilder& block, std::uint32_t layer) const {
    const TimedLayer& facts = step.layers()[layer];
    std::vector<BlockBuilder::Position> arrived;
    for (RankId worker = 0; worker < step.workers(); ++worker) {
      ProgramOp push = message(step, TaskKind::receive, "push " + facts.name, layer, rank_of(worker));
      push.unordered = true;
      // The receive waits for the one of the previous iteration alone, so that iterations may overlap.
      push.after_previous = {0};
      arrived.push_back(block.add(std::move(push), {}));
    }
    if (p_.sum > 0) arrived = {sum(step, block, facts, arrived)};
    for (RankId worker = 0; worker < step.workers(); ++worker) {
      ProgramOp pull = message(step, TaskKind::send, "pull " + facts.name, layer, rank_of(worker));
      pull.queue = worker;
      block.add(std::move(pull), arrived);
    }
  }
  // Appends the sum of the workers' gradients of a layer.
  BlockBuilder::Position sum(LayerStep& step, BlockBuilder& block, const TimedLayer& layer,
                             const std::vector<BlockBuilder::Position>& arrived) const {
    const Bytes added = layer.bytes * step.workers();
    ProgramOp op;
    op.kind = TaskKind::compute;
    op.unordered = true;
    op.name = step.builder().name("sum " + layer.name);
    op.work = step.builder().work(fixed_time_work("sum " + layer.name, transmission_time(added, p_.sum)));
    return block.add(std::move(op), arrived);
  }

  ServersExchangeParameters p_;
};

Parameters<ServersExchangeParameters> servers_exchange_parameters() {
  using P = ServersExchangeParameters;
  return Parameters<P>()
      .integer("servers", &P::servers, {1, 65'536}, "servers: the ranks behind the workers, one GPU each")
      .choice("assign", &P::assign,
              {{"round_robin", ServerAssignment::round_robin}, {"by_size", ServerAssignment::by_size}},
              "server of each layer. round_robin: in turn, in the order of the network; by_size: the largest "
              "layer first, each to the server that has the fewest bytes")
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
