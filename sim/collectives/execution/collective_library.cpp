#include "sim/collectives/execution/collective_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "sim/collectives/algorithms/nvls_kernels.h"
#include "sim/collectives/execution/link_jumps.h"
#include "sim/collectives/execution/nccl_tuning.h"
#include "sim/collectives/execution/peer_channels.h"
#include "sim/collectives/link_algorithm.h"
#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/topology/linked_gpus.h"

namespace netsim {
namespace {

// Point-to-point messages of up to this size use LL (NCCL_P2P_LL_THRESHOLD).
constexpr Bytes kPointToPointLl = 16 * kKibibyte;

// Returns whether NCCL's cost model includes the kind. Users of NCCL build other kinds from sends and
// receives.
bool is_modelled(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return true;
    default:
      return false;
  }
}

// Returns whether NCCL's cost model has anything to choose.
bool has_a_choice(const CollectivesParameters& parameters, const AlgorithmChoice& algorithms) {
  return !parameters.protocol || algorithms.has_candidates();
}

void check_generations(const ConfigNode& section, const CollectiveLibrary& library) {
  if (library.parameters.gpu_generation || !has_a_choice(library.parameters, library.algorithms)) return;
  for (std::uint32_t gpu = 0; gpu < library.endpoint.gpu_count(); ++gpu) {
    const GpuSite site = library.endpoint.site(gpu);
    if (generation_of(site.gpu_model, site.compute_capability)) continue;
    section.fail(
        "NCCL's choice (protocol: auto, or the algorithm nccl) reads its tables by the generation of "
        "the GPUs, which host " +
        std::to_string(site.host) +
        " does not say; gpu_generation does (allowed: volta, ampere, "
        "hopper, blackwell)");
  }
}

// Checks that the GPUs of a graph exist in a host, or in several hosts that NVLink joins.
void check_graph(const CollectiveLibrary& library) {
  if (!library.parameters.nccl_graph) return;
  const NcclGraph::Graph& graph = library.parameters.nccl_graph->graphs.front();
  std::map<std::uint32_t, std::uint32_t> gpus;  // by host
  for (std::uint32_t gpu = 0; gpu < library.endpoint.gpu_count(); ++gpu)
    ++gpus[library.endpoint.site(gpu).host];
  std::uint32_t most = 0;
  for (const auto& [host, count] : gpus) most = std::max(most, count);
  for (const NcclGraph::Channel& channel : graph.channels) {
    for (const NcclGraph::Device& gpu : channel.gpus) {
      if (gpu.number < most) continue;
      throw InputError(channel.place, fmt::format("GPU {:#x}, and the hosts have {} GPUs at most (from 0 on)",
                                                  gpu.number, most));
    }
  }
}

// Returns the configured generation, or else that of the layout's GPUs.
std::optional<GpuGeneration> generation_in(const CollectivesParameters& parameters,
                                           const CommunicatorLayout& layout) {
  return parameters.gpu_generation ? parameters.gpu_generation
                                   : generation_of(layout.gpu_model, layout.compute_capability);
}

PeerChannels peer_channels_of(const CollectivesParameters& parameters, const CommunicatorLayout& layout,
                              std::uint32_t ranks) {
  return peer_channels(layout, ranks, static_cast<std::uint32_t>(parameters.scale_up_channels),
                       generation_in(parameters, layout));
}

// Choice: how a collective runs.
struct Choice {
  const CollectiveAlgorithm* algorithm = nullptr;
  Protocol protocol = Protocol::simple;
  std::uint32_t of_channels = 1;  // channels of the group with the algorithm
  std::uint32_t channels = 1;     // number of channels used
  std::uint32_t first = 0;        // first channel used
  ConfigReason reason;
};

// Named: the algorithm for a request before NCCL's choice, and where it is named; a null place means the
// default.
struct Named {
  const CollectiveAlgorithm* algorithm = nullptr;
  const AlgorithmRule* entry = nullptr;
  const Place* place = nullptr;
};

Named named_for(const CollectiveLibrary& library, const CommunicationRequest& request,
                const CommunicatorLayout& layout) {
  if (const OwnAlgorithm* own = request.algorithm) return {own->algorithm.get(), nullptr, &own->place};
  const AlgorithmRule* entry =
      library.algorithms.rule(request.kind, request.bytes, request.members->size(), layout.domains);
  if (entry != nullptr) return {entry->algorithm.get(), entry, &entry->place};
  const ConfigNode& node = library.parameters.*CollectivesParameters::member(request.kind);
  return {&library.algorithms.of(request.kind), nullptr, node.is_null() ? nullptr : &node.place()};
}

// Chooser: chooses how a collective of a group runs. `layout` is the group's. `asked` is the kind in the
// configuration, where the request has another kind that implements it.
class Chooser {
 public:
  Chooser(const CollectiveLibrary& library, const CommunicationRequest& request, CollectiveKind asked,
          const CommunicatorLayout& layout, const Named& named)
      : library_(library),
        request_(request),
        asked_(asked),
        layout_(layout),
        entry_(named.entry),
        configured_(*named.algorithm) {}

  Choice choose() const {
    const auto candidates = configured_.candidates(request_.kind);
    Choice choice = candidates.empty() ? only_one() : of_several(candidates);
    choice.reason.own = request_.algorithm;
    choice.reason.entry = entry_;
    choice.reason.configured = library_.algorithms.is_configured(asked_);
    if (request_.grouped.all > 0) deal_channels(choice);
    return choice;
  }

 private:
  // Returns the configured number of channels: all channels of a group in one host, else those of a ring.
  std::size_t configured_channels() const {
    if (inside()) return static_cast<std::size_t>(library_.parameters.scale_up_channels);
    if (has_channels_of_search()) {
      const std::uint32_t given = layout_.given_rings.channels;
      return of_search().library / std::max<std::size_t>(1, given > 0 ? given : layout_.rings.size());
    }
    if (const std::uint32_t own = configured_.scale_out_channels(); own != 0) return own;
    if (configured_.sends_and_receives())
      return peer_channels_of(library_.parameters, layout_, ranks()).per_peer;
    return static_cast<std::size_t>(library_.parameters.scale_out_channels);
  }
  bool has_channels_of_search() const {
    return !inside() && configured_.scale_out_channels() == CollectiveAlgorithm::kChannelsOfSearch;
  }
  bool inside() const { return layout_.farthest != Reach::scale_out; }
  SearchChannels of_search() const {
    return search_channels(layout_, generation_in(library_.parameters, layout_));
  }

  std::uint32_t channels_of(const CollectiveAlgorithm& algorithm) const {
    const bool group = layout_.order(algorithm.order(), has_root(request_.kind)) == RankOrder::group;
    const std::uint32_t given = layout_.given(algorithm.order()).channels;
    if (given > 0 && inside()) return std::min<std::uint32_t>(2 * kMaxRings, 2 * given);
    const std::size_t of_search = given > 0 ? given : layout_.rings.size();
    const std::size_t orders = group ? 1 : std::max<std::size_t>(1, of_search);
    const std::size_t channels = configured_channels();
    if (orders == 1) return static_cast<std::uint32_t>(channels);
    const std::size_t each = inside() ? channels / orders : std::min(kMaxRings / orders, channels);
    return static_cast<std::uint32_t>(orders * std::max<std::size_t>(1, each));
  }

  // Returns the protocols that may be chosen, from the lowest latency to the highest bandwidth.
  std::vector<Protocol> protocols() const {
    if (library_.parameters.protocol) return {*library_.parameters.protocol};
    std::vector<Protocol> allowed;
    for (const Protocol protocol : kProtocols) {
      if (library_.parameters.rules.allows(request_.kind, protocol)) allowed.push_back(protocol);
    }
    return allowed;
  }

  // Returns the choice where the configuration names the algorithm, or it is the default.
  Choice only_one() const {
    Choice choice;
    choice.algorithm = &configured_;
    choice.of_channels = choice.channels = channels_of(configured_);
    if (const auto own = configured_.protocol()) {
      choice.protocol = *own;
    } else if (library_.parameters.protocol) {
      choice.protocol = *library_.parameters.protocol;
    } else if (!is_modelled(request_.kind)) {
      choice.protocol = request_.bytes / ranks() <= kPointToPointLl ? Protocol::ll : Protocol::simple;
    } else {
      ask_model({&configured_}, choice);
    }
    return choice;
  }

  Choice of_several(const std::vector<const CollectiveAlgorithm*>& candidates) const {
    check_generation();
    Choice choice;
    if (!ask_tuner(candidates, choice)) {
      ask_model(candidates, choice);
      choice.of_channels = channels_of(*choice.algorithm);
      choice.channels = tuned_channels(as_tuned(*choice.algorithm), choice.protocol, choice.of_channels);
    }
    for (const CollectiveAlgorithm* algorithm : candidates) {
      if (algorithm->cost_family() == family_of_switches()) choice.reason.without_nvls = without_nvls();
      if (by_fabric(algorithm->cost_family()) && layout_.aggregates && layout_.domains > 1)
        choice.reason.without_collnet = without_collnet();
    }
    return choice;
  }

  // Deals out channels to the collectives of a grouped call. Each takes consecutive channels in proportion to
  // its traffic, at most one for each 32 KiB (scheduleCollTasksToPlan and MinTrafficPerChannel in
  // src/enqueue.cc). In NCCL two collectives may share a channel; here the larger one has it.
  void deal_channels(Choice& choice) const {
    constexpr Bytes kLeastTraffic = 32 * kKibibyte;
    const Bytes each =
        std::max(kLeastTraffic, (request_.grouped.all + choice.of_channels - 1) / choice.of_channels);
    const auto channel_at = [&](Bytes traffic) {
      const Bytes channel = (2 * traffic + each) / (2 * each);
      return static_cast<std::uint32_t>(std::min<Bytes>(channel, choice.of_channels));
    };
    choice.first = std::min(channel_at(request_.grouped.before), choice.of_channels - 1);
    const std::uint32_t end = channel_at(request_.grouped.before + traffic_of(request_.kind, request_.bytes));
    choice.channels = std::min(choice.channels, std::max(end, choice.first + 1) - choice.first);
  }

  bool allows(const CollectiveAlgorithm& algorithm) const {
    const CostFamily family = algorithm.cost_family();
    const bool right = by_fabric(family) || family == family_of_switches();
    if (by_switches(family) && (!right || without_nvls() != nullptr)) return false;
    if (by_fabric(family) && without_collnet() != nullptr) return false;
    return library_.parameters.rules.allows(request_.kind, nccl_algorithm(family));
  }

  // Takes the allowed algorithm and protocol with the lowest estimate; of equal ones the first.
  void ask_model(const std::vector<const CollectiveAlgorithm*>& candidates, Choice& choice) const {
    ConfigReason& reason = choice.reason;
    const bool one = candidates.size() == 1 && candidates.front() == &configured_;
    for (const CollectiveAlgorithm* algorithm : candidates) {
      if (!one && !allows(*algorithm)) continue;
      const TuningCase tuned = as_tuned(*algorithm);
      for (const Protocol protocol : protocols()) {
        const auto estimate = estimated_time(tuned, protocol, library_.parameters);
        if (!estimate) continue;
        const bool best = !reason.estimate || *estimate < *reason.estimate;
        if (best && reason.estimate)
          reason.next = {choice.algorithm->cost_family(), choice.protocol, *reason.estimate};
        if (!best && (!reason.next || *estimate < reason.next->estimate))
          reason.next = {algorithm->cost_family(), protocol, *estimate};
        if (!best) continue;
        reason.estimate = estimate;
        reason.family = algorithm->cost_family();
        choice.algorithm = algorithm;
        choice.protocol = protocol;
      }
    }
    if (reason.estimate) return;
    const NcclRules& rules = library_.parameters.rules;
    const bool lists = rules.lists_algorithms() || rules.lists_protocols();
    if (!lists || (one && rules.allows(request_.kind, Protocol::simple))) {  // NCCL would use none of them
      choice.algorithm = candidates.front();
      choice.protocol = library_.parameters.protocol.value_or(Protocol::simple);
      return;
    }
    std::string message = std::string(to_string(request_.kind)) + " of " + std::to_string(ranks()) +
                          " ranks: NCCL has no algorithm and protocol that the configuration leaves it";
    // A user who asks for PAT by name is informed of its limits.
    constexpr const char* kPat =
        "; PAT, which nccl_algo leaves, does all_gather and reduce_scatter by Simple, for groups with one "
        "GPU a "
        "host (collectives.all_gather: pat runs it for any group)";
    if (rules.allows(request_.kind, NcclAlgorithm::pat) && rules.lists_algorithms()) message += kPat;
    throw InputError(message);
  }

  // The configuration's choices were checked before the run; a workload's are only known now.
  void check_generation() const {
    if (generation_in(library_.parameters, layout_)) return;
    throw InputError(
        std::string(to_string(request_.kind)) +
        " by 'nccl': NCCL's choice reads its tables by the generation of the GPUs, which their hosts do not "
        "say; collectives.gpu_generation does (allowed: volta, ampere, hopper, blackwell)");
  }

  // Applies the first rule of the tuner that matches and can be done. Returns false if there is none.
  bool ask_tuner(const std::vector<const CollectiveAlgorithm*>& candidates, Choice& choice) const {
    for (const NcclRules::Line& rule : library_.parameters.rules.tuner()) {
      if (!rule.fits(request_.kind, request_.bytes, layout_.domains, ranks())) continue;
      const auto algorithm = std::find_if(candidates.begin(), candidates.end(), [&](const auto* candidate) {
        return nccl_algorithm(candidate->cost_family()) == rule.algorithm && allows(*candidate);
      });
      if (algorithm == candidates.end()) continue;
      const auto allowed = protocols();
      const TuningCase tuned = as_tuned(**algorithm);
      if (std::find(allowed.begin(), allowed.end(), rule.protocol) == allowed.end() ||
          !estimated_time(tuned, rule.protocol, library_.parameters))
        continue;
      choice.algorithm = *algorithm;
      choice.protocol = rule.protocol;
      choice.of_channels = channels_of(**algorithm);
      choice.channels = rule.channels ? std::min(*rule.channels, choice.of_channels)
                                      : tuned_channels(tuned, rule.protocol, choice.of_channels);
      choice.reason.rule = &rule;
      return true;
    }
    return false;
  }

  CostFamily family_of_switches() const {
    return layout_.domains == 1 ? CostFamily::nvls : CostFamily::nvls_tree;
  }
  // Returns why NVLS cannot be used, or null if it can. Switches support kinds other than all-reduce for a
  // limited number of GPUs (NCCL_MAX_NVLS_ARITY). Trees need the same number of heads in each host.
  const char* without_nvls() const {
    const bool several = layout_.domains > 1;
    if (!layout_.switches_reduce)
      return several ? "no switches that add up join the GPUs of each host"
                     : "no switch that adds up joins the group";
    if (several) return without_even_hosts();
    if (request_.kind == CollectiveKind::all_reduce || ranks() <= kMostNvlsHeads) return nullptr;
    return "more than 32 GPUs";
  }

  // Returns null if all hosts have the same number of consecutive GPUs of the group; otherwise the reason.
  const char* without_even_hosts() const {
    if (layout_.sizes.size() > 1) return "not as many GPUs of each host";
    return layout_.by_domain ? nullptr : "the GPUs of a host do not follow each other";
  }

  // Returns why CollNet cannot be used, or null if it can. A host may have as many GPUs as there may be heads
  // (NCCL_MAX_DIRECT_ARITY + 1).
  const char* without_collnet() const {
    constexpr std::uint32_t kMostMembers = 8;
    if (!layout_.aggregates) return "no switches of a fabric add up";
    if (layout_.domains == 1) return "a single host";
    if (const char* why = without_even_hosts()) return why;
    if (!layout_.trees_join) return "no switches that add up join the hosts";
    return layout_.sizes.front() > kMostMembers ? "more than 8 GPUs of a host" : nullptr;
  }

  TuningCase as_tuned(const CollectiveAlgorithm& algorithm) const {
    TuningCase one{request_.kind, algorithm.cost_family(), request_.bytes, ranks()};
    one.nodes = layout_.domains;
    one.nvlink = layout_.nearest == Reach::scale_up;
    // check_generation() has checked that it is known.
    one.generation = generation_in(library_.parameters, layout_).value();
    one.grace = layout_.gpu_model.rfind("gb", 0) == 0;
    one.bandwidth = model_bandwidth(layout_, one.family, one.generation);
    one.channels = by_switches(one.family)    ? nvls_heads(layout_)
                   : has_channels_of_search() ? of_search().search
                                              : std::max(1U, channels_of(algorithm) / 2);
    if (one.family == CostFamily::nvls_tree || one.family == CostFamily::nvls_collnet)
      one.bandwidth_between = nvls_tree_bandwidth_between(layout_, one.generation);
    const bool direct = one.family == CostFamily::collnet_direct;
    if (!direct && one.family != CostFamily::nvls_collnet) return one;
    const CollnetGraph graph = collnet_direct_graph(layout_, one.generation);
    one.heads = graph.heads;
    if (direct) {
      one.channels = graph.channels;
      one.nvswitches = layout_.nvswitches;
      one.bandwidth = graph.channels * graph.inside;
      one.bandwidth_between = graph.channels * graph.between;
    }
    return one;
  }

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(request_.members->size()); }

  const CollectiveLibrary& library_;
  const CommunicationRequest& request_;
  CollectiveKind asked_;
  const CommunicatorLayout& layout_;
  const AlgorithmRule* const entry_;
  const CollectiveAlgorithm& configured_;
};

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

// Returns the number of NCCL's channels; one where the buffer is one message.
std::uint32_t thread_blocks_of(const Chunking& chunking, const ChunkingInput& cutting) {
  return chunking.slice == 0 ? chunking.channels : cutting.channels;
}

// Applies an algorithm's own kernels. From here on channels that are simulated together count as one.
void use(KernelModel& kernels, Chunking& chunking) {
  const std::uint32_t together = kernels.apart ? 1 : kernels.channels;
  kernels.block_rate *= together;
  kernels.copy_in_rate *= together;
  kernels.copy_out_rate *= together;
  chunking.channels = kernels.channels / together;
  chunking.slices = kernels.messages;
  chunking.slice = kernels.chunk * together / kernels.messages;
  chunking.least_slice = 1;
  chunking.slots_of_chunks = kernels.messages > 1;
  chunking.slots = kernels.slots;
}

// Checks that plan and counts have the same number of members in a host.
void check_host(const Plan& plan, const CommunicationRequest& request) {
  const std::uint32_t host = plan.counted_host();
  if (host == 0 || host == request.counts->tokens().host) return;
  throw InputError(
      fmt::format("{}: '{}' sends each token once to {} ranks, the workload counts it once for {}",
                  to_string(request.kind), plan.algorithm(), host, request.counts->tokens().host));
}

}  // namespace

const std::vector<std::vector<std::uint32_t>>& CollectiveLibrary::linked_gpus() {
  std::call_once(linked_found_, [this] {
    const auto* fabric = dynamic_cast<const KnowsLinkedGpus*>(&endpoint);
    if (fabric != nullptr) linked_ = fabric->linked_gpus();
  });
  return linked_;
}

CollectiveLibrary::CollectiveLibrary(const ConfigNode& section, const Endpoint& network)
    : parameters(parse_collectives(section)),
      algorithms(parameters),
      latency(parameters, network),
      layouts(network, parameters.nccl_graph ? &*parameters.nccl_graph : nullptr),
      aggregations(network, parameters),
      endpoint(network) {
  check_generations(section, *this);
  check_graph(*this);
  for (const ConfigNode* rules : {&parameters.nccl_algo, &parameters.tuner}) {
    if (!rules->is_null() && !algorithms.has_candidates())
      rules->fail("no collective is left to NCCL's choice: of one at least the algorithm has to be 'nccl'");
  }
}

std::string text_of(const ConfigReason& reason) {
  std::string text = reason.own != nullptr ? "workload: " + reason.own->name
                     : reason.entry != nullptr
                         ? fmt::format("choices {}:{}", reason.entry->place.file, reason.entry->place.line)
                     : reason.configured ? "configured"
                                         : "default";
  if (reason.rule != nullptr) {
    text = fmt::format("tuner {}:{}", reason.rule->place.file, reason.rule->place.line);
  } else if (reason.estimate) {
    // The algorithm's name does not tell which kind of CollNet it is.
    const char* name = by_fabric(reason.family) ? to_string(nccl_algorithm(reason.family)) : "";
    text +=
        fmt::format("; NCCL's cost model: {}{}{:.1f} us", name, *name == '\0' ? "" : " ", *reason.estimate);
    if (reason.next) {
      text += fmt::format("; next {} {} {:.1f} us", to_string(nccl_algorithm(reason.next->family)),
                          to_string(reason.next->protocol), reason.next->estimate);
    }
  }
  if (reason.graph) text += "; along the graph of the configuration";
  if (reason.without_nvls != nullptr) text += fmt::format("; no NVLS: {}", reason.without_nvls);
  if (reason.without_collnet != nullptr) text += fmt::format("; no CollNet: {}", reason.without_collnet);
  return text;
}

CollectiveConfig LibraryLookup::collective_config(const CommunicationRequest& request) {
  return is_collective(request.kind) ? collective(request) : point_to_point(request);
}

std::string LibraryLookup::nccl_graph(const std::vector<std::uint32_t>& members) {
  const CollectivesParameters& parameters = library_.parameters;
  CommunicatorLayout layout = layouts_.get(members);
  NcclGraph graph =
      graph_of(members, library_.endpoint, layout, static_cast<std::uint32_t>(parameters.scale_up_channels));
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

CollectiveConfig LibraryLookup::point_to_point(const CommunicationRequest& request) {
  const std::vector<std::uint32_t>& members = *request.members;
  const CollectivesParameters& parameters = library_.parameters;
  const CollectiveAlgorithm& algorithm = library_.algorithms.of(request.kind);
  CollectiveConfig collective_config;
  collective_config.plan = &plans_.get(algorithm, request.kind, 2U, 0U, GroupShape());
  collective_config.family = algorithm.cost_family();
  collective_config.farthest = library_.endpoint.reach(members[0], members[1]);
  ChunkingInput cutting;
  cutting.farthest = collective_config.farthest;
  cutting.protocol =
      parameters.protocol.value_or(request.bytes <= kPointToPointLl ? Protocol::ll : Protocol::simple);
  cutting.channels = static_cast<std::uint32_t>(collective_config.farthest == Reach::scale_out
                                                    ? parameters.scale_out_channels
                                                    : parameters.scale_up_channels);
  if (algorithm.sends_and_receives() && !request.raw) {
    const std::uint32_t own =
        collective_config.farthest == Reach::scale_out ? algorithm.scale_out_channels() : 0;
    cutting.channels = own != 0 ? own : peer_channels_of(parameters, layouts_.get(members), 2).per_peer;
    if (algorithm.uses_pxn())
      collective_config.forwarding_gpu = pxn_gpu(library_.endpoint, members[0], members[1]);
  }
  collective_config.chunking = chunking_of(request, parameters, cutting);
  collective_config.channels = thread_blocks_of(collective_config.chunking, cutting);
  return collective_config;
}

CollectiveConfig LibraryLookup::collective(const CommunicationRequest& asked) {
  const CommunicatorLayout& layout = layouts_.get(*asked.members);
  const Named named = named_for(library_, asked, layout);
  CommunicationRequest request = asked;
  request.kind = plan_kind_of(*named.algorithm, asked.kind);
  Choice choice = Chooser(library_, request, asked.kind, layout, named).choose();
  if (const auto* links = dynamic_cast<const LinkAlgorithm*>(choice.algorithm); links != nullptr)
    choice.algorithm = &links->along(link_jumps(library_.linked_gpus(), *request.members));
  ChunkingInput cutting;
  cutting.ranks = static_cast<std::uint32_t>(request.members->size());
  cutting.domains = layout.domains;
  cutting.farthest = layout.farthest;
  cutting.protocol = choice.protocol;
  cutting.channels = choice.channels;
  cutting.as_tree = choice.algorithm->order() == RankOrder::chains;
  CollectiveConfig collective_config;
  GroupShape shape(layout.sizes, layout.trees);
  if (layout.rate_of_nic > 0) shape.nics = static_cast<std::uint32_t>(layout.nic_rate / layout.rate_of_nic);
  if (choice.algorithm->sends_and_receives()) {
    const PeerChannels peers = peer_channels_of(library_.parameters, layout, cutting.ranks);
    shape = GroupShape();
    shape.peers_channels = peers.all;
    shape.channels_per_peer = layout.farthest == Reach::scale_out ? peers.per_peer : 2;
  }
  try {
    collective_config.plan = &plans_.get(*choice.algorithm, request.kind, cutting.ranks, request.root, shape);
  } catch (const InputError& error) {
    if (named.place == nullptr) throw;
    throw InputError(*named.place, error.what());
  }
  collective_config.reason = choice.reason;
  collective_config.reason.graph = layout.given(choice.algorithm->order()).channels > 0;
  collective_config.family = choice.algorithm->cost_family();
  collective_config.farthest = layout.farthest;
  collective_config.orders = ChannelOrders(layout, choice.algorithm->order(), choice.of_channels,
                                           choice.first, has_root(request.kind) ? request.root : kNoIndex);
  cutting.rings = collective_config.orders.count();
  collective_config.chunking = chunking_of(request, library_.parameters, cutting);
  collective_config.channels = thread_blocks_of(collective_config.chunking, cutting);
  const std::optional<GpuGeneration> generation = generation_in(library_.parameters, layout);
  set_rates(collective_config.chunking, collective_config.family, generation, layout, cutting.channels);
  check_host(*collective_config.plan, request);
  const Bytes token = request.counts != nullptr ? request.counts->tokens().token : 0;
  collective_config.kernels = choice.algorithm->kernel_model(
      {request.kind, request.bytes, cutting.ranks, layout.farthest == Reach::scale_out, layout.domains, token,
       generation, layout.local_rate});
  if (!collective_config.kernels || layout.farthest == Reach::ideal) return collective_config;
  if (collective_config.kernels->thread_blocks > 0)
    collective_config.channels = collective_config.kernels->thread_blocks;
  use(*collective_config.kernels, collective_config.chunking);
  if (by_switches(collective_config.family) && generation)
    collective_config.aggregation_share = nvls_share(layout, *generation);
  return collective_config;
}

}  // namespace netsim
