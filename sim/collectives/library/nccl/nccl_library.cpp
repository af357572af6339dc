// nccl: the library that decides as NCCL 2.30 does. It chooses algorithm, protocol and channels by NCCL's
// cost model (nccl_choice.h, nccl_tuning.h) and by what its users say (nccl_settings.h). Its sends and
// receives have NCCL's channels and PXN (peer_channels.h). Rings and trees may come from an NCCL graph file
// (graph_orders.h).
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/collectives/library/graph_writer.h"
#include "sim/collectives/library/nccl/copy_rates.h"
#include "sim/collectives/library/nccl/graph_orders.h"
#include "sim/collectives/library/nccl/host_latencies.h"
#include "sim/collectives/library/nccl/nccl_choice.h"
#include "sim/collectives/library/nccl/nccl_settings.h"
#include "sim/collectives/library/nccl/nccl_tuning.h"
#include "sim/collectives/library/nccl/peer_channels.h"
#include "sim/collectives/library/nccl/tree_chunks.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class NcclLibrary final : public CollectiveLibrary, public GraphWriter {
 public:
  void prepare(const LibrarySetup& setup) override;
  CollectiveConfig configure(const LibraryRequest& request) const override {
    return is_collective(request.communication.kind) ? collective(request) : point_to_point(request);
  }
  void adjust(const std::vector<GpuId>& members, CommunicatorLayout& layout) const override {
    if (settings_.graph) take_orders(*settings_.graph, members, *network_, layout);
  }
  // A proxy sends on what has arrived, as in a step between hosts.
  Time forwarding_latency(Protocol protocol) const override {
    return parameters_->of(protocol).hop_latency_net_ring;
  }
  std::string nccl_graph(const std::vector<GpuId>& members, LibraryContext& context) const override;

 private:
  CollectiveConfig collective(const LibraryRequest& request) const;
  CollectiveConfig point_to_point(const LibraryRequest& request) const;

  const CollectivesParameters* parameters_ = nullptr;
  const Endpoint* network_ = nullptr;
  NcclSettings settings_;
};

// Checks that all hosts say of which generation their GPUs are, where NCCL's cost model has anything to
// choose.
void check_generations(const LibrarySetup& setup) {
  const bool chooses = !setup.parameters.protocol || setup.algorithms.has_candidates();
  if (setup.parameters.gpu_generation || !chooses) return;
  for (std::uint32_t gpu = 0; gpu < setup.network.gpu_count(); ++gpu) {
    const GpuSite site = setup.network.site(gpu);
    if (generation_of(site.gpu_model, site.compute_capability)) continue;
    setup.section.fail(
        "NCCL's choice (protocol: auto, or the algorithm nccl) reads its tables by the generation of "
        "the GPUs, which host " +
        std::to_string(site.host) +
        " does not give; set gpu_generation (allowed: volta, ampere, "
        "hopper, blackwell)");
  }
}

// Sets the rates of a chunking. Channels that are simulated together share the rates of their sum; rings in a
// host share its links.
void set_rates(Chunking& chunking, CostFamily family, std::optional<GpuGeneration> generation,
               const CommunicatorLayout& layout, std::uint32_t channels) {
  if (!generation || layout.farthest == Reach::ideal || by_switches(family)) return;
  const BitRate each = thread_block_rate(family, chunking.protocol, *generation);
  constexpr Bytes kLine = 120;  // bytes of data that fill whole lines of any protocol
  const BitRate on_wire = each / kLine * bytes_on_wire(chunking.protocol, kLine);
  chunking.block_rate = on_wire * (channels / chunking.channels);
  chunking.store_rate =
      store_rate(layout.local_rate, family, chunking.protocol, *generation) / chunking.channels;
  chunking.local_rate =
      layout.farthest == Reach::scale_out ? layout.local_rate : layout.local_rate / chunking.channels;
  chunking.nic_rate = layout.rate_of_nic;
}

// Returns the part of the time of copies that is not hidden, where the channels of rings are simulated
// together. While half of the thread blocks copy, the other half send at their own rate instead of their
// share of the links.
double exposed_copies(BitRate block_rate, BitRate share) {
  return std::clamp(2 - static_cast<double>(block_rate) / static_cast<double>(share), 0.0, 1.0);
}

// Sets the rate of a message to one of several ranks, which share what the thread blocks store.
void share_links(Chunking& chunking) {
  const auto to_several = static_cast<BitRate>(static_cast<double>(chunking.local_rate) * kShareToSeveral);
  const BitRate all = chunking.store_rate == 0 ? to_several : std::min(chunking.store_rate, to_several);
  chunking.store_rate = all / chunking.sends_at_once;
}

// Sets what thread blocks of rings, and of sends and receives, do besides, where NVLink joins all members.
// They copy what they have received into the user's buffer. By Simple their rate includes fences. `sends` is
// the number of ranks to which a rank sends at once, where different warps send and copy; 0 in rings. Lines
// of LL128 have the rate that NCCL's tables give such thread blocks with their copies.
void set_copies(Chunking& chunking, GpuGeneration generation, std::uint32_t channels, std::uint32_t sends) {
  const std::uint32_t together = channels / chunking.channels;
  if (copy_rate(generation) == 0 || chunking.protocol == Protocol::ll128) return;
  const BitRate copies = sends > 0 ? copy_rate(generation) : ring_copy_rate(generation);
  chunking.first_copy_rate = chunking.copy_rate = copies * together;
  chunking.sends_at_once = std::max(1U, sends);
  if (sends > 1) share_links(chunking);
  if (chunking.protocol == Protocol::ll)
    chunking.first_copy_rate = chunking.copy_rate =
        bytes_on_wire(Protocol::ll, ll_copy_rate(generation)) * together;
  if (chunking.protocol != Protocol::simple) return;
  chunking.rate_with_fences = true;
  // Ampere's receivers read from the sender's memory (ncclTopoCheckP2p), so links and not copies limit them.
  chunking.own_block_exposed = generation == GpuGeneration::ampere;
  chunking.sums_take_longer = !chunking.own_block_exposed;
  chunking.block_rate = simple_rate_inside(generation) * together;
  // A message of a channel that is simulated alone has all links while others copy.
  if (sends == 0 && together == 1) chunking.local_rate *= chunking.channels;
  if (sends > 0 || together == 1) return;
  const double exposed = exposed_copies(chunking.block_rate, chunking.local_rate);
  chunking.copy_rate =
      exposed > 0 ? static_cast<BitRate>(static_cast<double>(chunking.copy_rate) / exposed) : 0;
}

// Returns whether a rank's first step also stores its own block, where input and output are two buffers
// (directCopySend in all_gather.h, copySend in broadcast.h). That holds for rings and chains by Simple. By LL
// gathers take as long as reduce-scatters.
bool stores_own_block(const ChosenAlgorithm& chosen) {
  if (chosen.protocol != Protocol::simple) return false;
  const bool copies = chosen.kind == CollectiveKind::all_gather || chosen.kind == CollectiveKind::broadcast;
  return copies && chosen.algorithm->traits().order == RankOrder::rings;
}

// Returns the facts that plans depend on, with NCCL's channels for sends and receives.
GroupShape nccl_shape(const LibraryRequest& request, const ChosenAlgorithm& chosen,
                      const NcclTraits& traits) {
  GroupShape shape = shape_of(request, chosen.algorithm->traits());
  if (!traits.sends_and_receives) return shape;
  const CommunicatorLayout& layout = request.context.layout(*request.communication.members);
  const PeerChannels peers = peer_channels_of(shape.ranks, request.context.parameters(), layout);
  shape.peers_channels = peers.all;
  shape.channels_per_peer = layout.farthest == Reach::scale_out ? peers.per_peer : 2;
  return shape;
}

void NcclLibrary::prepare(const LibrarySetup& setup) {
  parameters_ = &setup.parameters;
  network_ = &setup.network;
  settings_ = read_nccl_settings(setup.parameters);
  check_generations(setup);
  if (settings_.graph) check_gpus(*settings_.graph, setup.network);
  for (const ConfigNode* rules : {&setup.parameters.nccl_algo, &setup.parameters.tuner}) {
    if (!rules->is_null() && !setup.algorithms.has_candidates())
      rules->fail("no collective is left to NCCL's choice: set the algorithm of at least one to 'nccl'");
  }
}

CollectiveConfig NcclLibrary::point_to_point(const LibraryRequest& request) const {
  const CommunicationRequest& communication = request.communication;
  const std::vector<GpuId>& members = *communication.members;
  const NamedAlgorithm named = named_algorithm(request);
  const NcclTraits traits = nccl_traits_of(*named.algorithm);
  const Protocol protocol = parameters_->protocol.value_or(
      communication.bytes <= kPointToPointLl ? Protocol::ll : Protocol::simple);
  std::uint32_t channels = point_to_point_channels(request);
  std::uint32_t forwarding = kNoIndex;
  if (traits.sends_and_receives && !communication.raw) {
    const bool between = network_->reach(members[0], members[1]) == Reach::scale_out;
    const std::uint32_t own = between ? traits.scale_out_channels : 0;
    channels = own != 0 ? own : peer_channels_of(2, *parameters_, request.context.layout(members)).per_peer;
    if (traits.pxn) forwarding = pxn_gpu(*network_, members[0], members[1]);
  }
  CollectiveConfig config = point_to_point_config(request, *named.algorithm, protocol, channels);
  config.forwarding_gpu = forwarding;
  if (request.explain) config.why = reason_of(named);
  return config;
}

CollectiveConfig NcclLibrary::collective(const LibraryRequest& request) const {
  const CommunicatorLayout& layout = request.context.layout(*request.communication.members);
  const NamedAlgorithm named = named_algorithm(request);
  NcclChoice choice = nccl_choice(settings_, request, *named.algorithm);
  ChosenAlgorithm& chosen = choice.chosen;
  const CostFamily family = choice.traits.family;
  chosen.algorithm = &along_links(*chosen.algorithm, request);
  chosen.place = named.place;
  chosen.latencies = latency_row(family);
  if (choice.traits.sends_and_receives && layout.farthest == Reach::scale_up) {
    const auto ranks = static_cast<std::uint32_t>(request.communication.members->size());
    const PeerChannels peers = peer_channels_of(ranks, *parameters_, layout);
    const Bytes bytes = request.communication.bytes / static_cast<Bytes>(ranks);
    if (choice.traits.ll_by_peer && !parameters_->protocol)
      chosen.protocol = bytes <= kPointToPointLl * peers.per_peer ? Protocol::ll : Protocol::simple;
    const bool small_parts = choice.traits.ll_by_peer && chosen.protocol == Protocol::ll;
    chosen.of_channels = chosen.channels =
        message_channels(peers, ranks, bytes, small_parts ? kPointToPointLlStep : kPointToPointChunk);
    if (chosen.protocol == Protocol::simple) chosen.chunk = kPointToPointChunk;
  }
  if (chosen.algorithm->traits().order == RankOrder::chains) {
    const auto ranks = static_cast<std::uint32_t>(request.communication.members->size());
    chosen.chunk = tree_chunk(parameters_->of(chosen.protocol), chosen.protocol,
                              request.communication.bytes / static_cast<Bytes>(chosen.channels),
                              {ranks, layout.domains});
  }
  CollectiveConfig config = config_of(request, chosen, nccl_shape(request, chosen, choice.traits));
  const std::optional<GpuGeneration> generation = generation_in(*parameters_, layout);
  set_rates(config.chunking, family, generation, layout, chosen.channels);
  if (layout.farthest == Reach::scale_up && generation && family == CostFamily::ring) {
    const auto peers = static_cast<std::uint32_t>(request.communication.members->size()) - 1;
    const std::uint32_t sends = choice.traits.sends_and_receives ? peers : 0;
    set_copies(config.chunking, *generation, chosen.channels, sends);
    config.chunking.stores_own_block = !parameters_->in_place && stores_own_block(chosen);
    set_host_latencies(config.costs, {chosen.protocol, *generation, chosen.channels, sends}, *parameters_);
  }
  if (use_kernels(config, request, chosen, generation) && by_switches(family) && generation)
    config.aggregation_share = nvls_share(layout, *generation);
  if (request.explain) config.why = text_of(choice.reason, reason_of(named));
  return config;
}

std::string NcclLibrary::nccl_graph(const std::vector<GpuId>& members, LibraryContext& context) const {
  const CollectivesParameters& parameters = context.parameters();
  CommunicatorLayout layout = context.layout(members);
  NcclGraph graph = graph_of(members, context.network(), layout,
                             parameters.scale_up_channels_of(generation_in(parameters, layout)));
  const std::uint32_t domains = layout.domains;
  for (NcclGraph::Graph& one : graph.graphs) {
    const bool tree = one.id == NcclGraph::kTree;
    const auto speed = [&](std::uint32_t nodes) {
      layout.domains = domains == 1 ? 1 : nodes;
      const auto generation = generation_in(parameters, layout);
      const CostFamily family = tree && generation ? CostFamily::tree : CostFamily::ring;
      return model_bandwidth(layout, family, generation.value_or(GpuGeneration::ampere)) /
             static_cast<double>(one.channels.size());
    };
    one.speed_intra = speed(2);
    one.speed_inter = speed(3);
  }
  return write_nccl_graph(graph);
}

const Registration<CollectiveLibrary> kNcclLibrary{
    "nccl",
    "decides as NCCL does: its cost model where an algorithm or protocol is left open, its channels, PXN, "
    "graph "
    "files",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<NcclLibrary>(); }};

}  // namespace
}  // namespace netsim
