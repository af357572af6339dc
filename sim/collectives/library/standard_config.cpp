#include "sim/collectives/library/standard_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/collectives/library/link_jumps.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/collectives/link_algorithm.h"
#include "sim/core/errors.h"

namespace netsim {
namespace {

std::uint32_t ranks_in(const LibraryRequest& request) {
  return static_cast<std::uint32_t>(request.communication.members->size());
}

const CommunicatorLayout& layout_in(const LibraryRequest& request) {
  return request.context.layout(*request.communication.members);
}

// Returns the number of the library's channels; one where the buffer is one message.
std::uint32_t thread_blocks_of(const Chunking& chunking, std::uint32_t channels) {
  return chunking.slice == 0 ? chunking.channels : channels;
}

const Plan& plan_of(const LibraryRequest& request, const ChosenAlgorithm& chosen, const GroupShape& shape) {
  try {
    return request.context.plan(*chosen.algorithm, chosen.kind, shape);
  } catch (const InputError& error) {
    if (chosen.place == nullptr) throw;
    throw InputError(*chosen.place, error.what());
  }
}

}  // namespace

namespace {

NamedAlgorithm asked_algorithm(const LibraryRequest& request) {
  const CommunicationRequest& communication = request.communication;
  if (const OwnAlgorithm* own = communication.algorithm)
    return {own->algorithm.get(), own, nullptr, &own->place};
  const AlgorithmChoice& algorithms = request.context.algorithms();
  if (is_collective(communication.kind)) {
    const AlgorithmRule* entry = algorithms.rule(communication.kind, communication.bytes, ranks_in(request),
                                                 layout_in(request).domains);
    if (entry != nullptr) return {entry->algorithm.get(), nullptr, entry, &entry->place};
  }
  const ConfigNode& node = request.context.parameters().*CollectivesParameters::member(communication.kind);
  return {&algorithms.of(communication.kind), nullptr, nullptr, node.is_null() ? nullptr : &node.place()};
}

// Returns why the switches that would add up for the algorithm do not; empty if they do.
std::string without_switches(const PlanTraits& traits, const LibraryRequest& request) {
  if (traits.nvswitches && !request.context.has_nvls_groups(request.communication)) return kNoNvlsGroups;
  const std::optional<NumberFormat> data = request.context.parameters().format;
  if (!data || traits.sums == PlanTraits::FabricSums::none) return "";
  const NumberFormat format = traits.sums == PlanTraits::FabricSums::as_int32 ? NumberFormat::int32 : *data;
  const std::string lacking = request.context.network().lacks_format(format);
  return lacking.empty() ? ""
                         : fmt::format("{} does not add {} (network.switch.aggregation_formats)", lacking,
                                       to_string(format));
}

// Returns the algorithm that hosts run where switches that would add up lack the format of the data or
// multicast groups.
NamedAlgorithm instead_of_switches(const NamedAlgorithm& named, const LibraryRequest& request) {
  const std::string why = without_switches(named.algorithm->traits(), request);
  if (why.empty()) return named;
  const CollectiveAlgorithm* const other =
      request.context.algorithms().default_of(request.communication.kind);
  if (other == nullptr) return named;
  NamedAlgorithm instead = named;
  instead.algorithm = other;
  instead.fallback = "fell back: " + why;
  return instead;
}

}  // namespace

NamedAlgorithm named_algorithm(const LibraryRequest& request) {
  return instead_of_switches(asked_algorithm(request), request);
}

std::string reason_of(const NamedAlgorithm& named) {
  if (!named.fallback.empty()) return named.fallback;
  if (named.own != nullptr) return "workload: " + named.own->name;
  if (named.entry != nullptr)
    return fmt::format("choices {}:{}", named.entry->place.file, named.entry->place.line);
  return named.place != nullptr ? "configured" : "default";
}

const CollectiveAlgorithm& along_links(const CollectiveAlgorithm& algorithm, const LibraryRequest& request) {
  const auto* links = dynamic_cast<const LinkAlgorithm*>(&algorithm);
  if (links == nullptr) return algorithm;
  return links->along(link_jumps(request.context.linked_gpus(), *request.communication.members));
}

GroupShape shape_of(const LibraryRequest& request, const PlanTraits& traits) {
  const CommunicationRequest& communication = request.communication;
  GroupShape shape{.ranks = ranks_in(request), .root = communication.root};
  if (traits.hosts) {
    const CommunicatorLayout& layout = layout_in(request);
    shape.sizes = layout.sizes;
    shape.pattern = layout.trees;
    if (layout.rate_of_nic > 0) shape.nics = static_cast<std::uint32_t>(layout.nic_rate / layout.rate_of_nic);
  }
  if (traits.sites) shape.sites = request.context.sites(*communication.members);
  if (traits.links) shape.links = rank_links(request.context.linked_gpus(), *communication.members);
  if (traits.tokens && communication.counts != nullptr)
    shape.token_host = communication.counts->tokens().host;
  return shape;
}

std::uint32_t channels_on_orders(const CommunicatorLayout& layout, RankOrder order, bool rooted,
                                 std::size_t configured) {
  const bool inside = layout.farthest != Reach::scale_out;
  const std::uint32_t given = layout.given(order).channels;
  if (given > 0 && inside) return std::min<std::uint32_t>(2 * kMaxRings, 2 * given);
  const std::size_t found = given > 0 ? given : layout.rings.size();
  const bool group = layout.order(order, rooted) == RankOrder::group;
  const std::size_t orders = group ? 1 : std::max<std::size_t>(1, found);
  if (orders == 1) return static_cast<std::uint32_t>(configured);
  const std::size_t each = inside ? configured / orders : std::min(kMaxRings / orders, configured);
  return static_cast<std::uint32_t>(orders * std::max<std::size_t>(1, each));
}

CollectiveConfig config_of(const LibraryRequest& request, const ChosenAlgorithm& chosen,
                           const GroupShape& shape) {
  const CommunicationRequest& communication = request.communication;
  const CollectivesParameters& parameters = request.context.parameters();
  const CommunicatorLayout& layout = layout_in(request);
  CollectiveConfig config;
  config.plan = &plan_of(request, chosen, shape);
  config.orders = ChannelOrders(layout, chosen.algorithm->traits().order, chosen.of_channels, chosen.first,
                                has_root(chosen.kind) ? communication.root : kNoIndex);
  config.chunking =
      chunking_of(communication, parameters,
                  {layout.farthest, chosen.protocol, chosen.channels, config.orders.count(), chosen.chunk});
  config.channels = thread_blocks_of(config.chunking, chosen.channels);
  if (layout.farthest != Reach::ideal)
    config.costs = step_costs(parameters, chosen.latencies, chosen.protocol, ranks_in(request), true);
  return config;
}

bool use_kernels(CollectiveConfig& config, const LibraryRequest& request, const ChosenAlgorithm& chosen,
                 std::optional<GpuGeneration> generation) {
  const CommunicatorLayout& layout = layout_in(request);
  if (layout.farthest == Reach::ideal) return false;
  const CommunicationRequest& communication = request.communication;
  const Bytes token = communication.counts != nullptr ? communication.counts->tokens().token : 0;
  config.kernels = kernel_model(*chosen.algorithm, {chosen.kind, communication.bytes, ranks_in(request),
                                                    layout.farthest == Reach::scale_out, layout.domains,
                                                    token, generation, layout.local_rate});
  if (!config.kernels) return false;
  KernelModel& kernels = *config.kernels;
  if (kernels.thread_blocks > 0) config.channels = kernels.thread_blocks;
  const std::uint32_t together = kernels.apart ? 1 : kernels.channels;
  kernels.block_rate *= together;
  kernels.net_rate *= together;
  kernels.copy_in_rate *= together;
  kernels.copy_out_rate *= together;
  Chunking& chunking = config.chunking;
  chunking.channels = kernels.channels / together;
  chunking.slices = kernels.messages;
  chunking.slice = kernels.chunk * together / kernels.messages;
  chunking.least_slice = 1;
  chunking.slots_of_chunks = kernels.messages > 1;
  chunking.slots = kernels.slots;
  config.costs.base = request.context.parameters().launch_latency + kernels.base_latency;
  // A message may stand for those of all channels, or be a part of a chunk.
  config.costs.posting = config.costs.posting * together / kernels.messages;
  return true;
}

std::uint32_t point_to_point_channels(const LibraryRequest& request) {
  const std::vector<GpuId>& members = *request.communication.members;
  const CollectivesParameters& parameters = request.context.parameters();
  const bool between = request.context.network().reach(members[0], members[1]) == Reach::scale_out;
  if (between) return static_cast<std::uint32_t>(parameters.scale_out_channels);
  return parameters.scale_up_channels_of(generation_in(parameters, request.context.layout(members)));
}

CollectiveConfig point_to_point_config(const LibraryRequest& request, const CollectiveAlgorithm& algorithm,
                                       Protocol protocol, std::uint32_t channels) {
  const CommunicationRequest& communication = request.communication;
  const CollectivesParameters& parameters = request.context.parameters();
  const std::vector<GpuId>& members = *communication.members;
  CollectiveConfig config;
  config.plan = &request.context.plan(algorithm, communication.kind, {});
  ChunkingInput input;
  input.farthest = request.context.network().reach(members[0], members[1]);
  input.protocol = protocol;
  input.channels = channels;
  config.chunking = chunking_of(communication, parameters, input);
  config.channels = thread_blocks_of(config.chunking, channels);
  if (!communication.raw)
    config.costs = step_costs(parameters, latency_row(nccl_traits_of(algorithm).family), protocol, 2, false);
  return config;
}

std::optional<GpuGeneration> generation_in(const CollectivesParameters& parameters,
                                           const CommunicatorLayout& layout) {
  return parameters.gpu_generation ? parameters.gpu_generation
                                   : generation_of(layout.gpu_model, layout.compute_capability);
}

CollectiveConfig configured(const LibraryRequest& request, const CollectiveAlgorithm& algorithm) {
  const CommunicationRequest& communication = request.communication;
  const CollectivesParameters& parameters = request.context.parameters();
  if (!is_collective(communication.kind)) {
    return point_to_point_config(request, algorithm, parameters.protocol.value_or(Protocol::simple),
                                 point_to_point_channels(request));
  }
  const CommunicatorLayout& layout = layout_in(request);
  ChosenAlgorithm chosen;
  chosen.algorithm = &along_links(algorithm, request);
  chosen.place = named_algorithm(request).place;
  chosen.kind = plan_kind_of(algorithm, communication.kind);
  const PlanTraits traits = algorithm.traits();
  chosen.protocol = traits.protocol.value_or(parameters.protocol.value_or(Protocol::simple));
  const bool inside = layout.farthest != Reach::scale_out;
  chosen.of_channels = chosen.channels =
      channels_on_orders(layout, traits.order, has_root(chosen.kind),
                         inside ? parameters.scale_up_channels_of(generation_in(parameters, layout))
                                : static_cast<std::size_t>(parameters.scale_out_channels));
  chosen.latencies = latency_row(nccl_traits_of(algorithm).family);
  CollectiveConfig config = config_of(request, chosen, shape_of(request, traits));
  use_kernels(config, request, chosen, generation_in(parameters, layout));
  return config;
}

}  // namespace netsim
