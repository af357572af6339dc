// The parts of a CollectiveConfig that are alike in all libraries. They are the algorithm that a user names,
// the shape of a group, and the configuration once algorithm, protocol and channels are chosen. A library may
// use all of it, some or none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "sim/collectives/library/algorithm_choice.h"
#include "sim/collectives/library/collective_config.h"
#include "sim/collectives/library/collective_library.h"
#include "sim/collectives/library/library_context.h"

namespace netsim {

// NamedAlgorithm: the algorithm that the workload or the configuration names for a communication, or the
// kind's default.
struct NamedAlgorithm {
  const CollectiveAlgorithm* algorithm = nullptr;
  const OwnAlgorithm* own = nullptr;     // set where the workload names it
  const AlgorithmRule* entry = nullptr;  // set where an entry of `choices` names it
  const Place* place = nullptr;          // where it is named; null: it is the default
  // Why it runs in place of the one named, in words; empty: it is the one named.
  std::string fallback = {};
};
// Throws InputError for a kind that has no default and for which none is named.
NamedAlgorithm named_algorithm(const LibraryRequest& request);
// Returns where the algorithm is named, in words: "workload: NAME", "choices FILE:LINE", "configured" or
// "default". A fallback is told first.
std::string reason_of(const NamedAlgorithm& named);

// Returns the configuration of a communication by `algorithm`, with protocol, channels and latencies
// of the section `collectives` and nothing chosen. The algorithm supports the kind of the communication. For
// a barrier it may support all_reduce instead (plan_kind_of()). It must not stand for several algorithms
// (candidates.h). Throws InputError, where it is named, for a group that the algorithm cannot serve.
CollectiveConfig configured(const LibraryRequest& request, const CollectiveAlgorithm& algorithm);

// ChosenAlgorithm: what a library has decided for a collective.
struct ChosenAlgorithm {
  const CollectiveAlgorithm* algorithm = nullptr;
  // Kind of the plan: that of the communication, or all_reduce for a barrier (plan_kind_of()).
  CollectiveKind kind = CollectiveKind::all_reduce;
  Protocol protocol = Protocol::simple;
  std::uint32_t of_channels = 1;  // channels of the group with this algorithm
  std::uint32_t channels = 1;     // number of channels used
  std::uint32_t first = 0;        // first channel used
  LatencyRow latencies = LatencyRow::ring;
  std::optional<Bytes> chunk = std::nullopt;  // ChunkingInput::chunk
  const Place* place = nullptr;               // where a user names the algorithm, for errors; may be null
};

// Returns the algorithm itself, or the same one along the links of the fabric that join the members
// (LinkAlgorithm).
const CollectiveAlgorithm& along_links(const CollectiveAlgorithm& algorithm, const LibraryRequest& request);
// Returns the facts that plans with these traits depend on, besides the channels of sends and receives.
GroupShape shape_of(const LibraryRequest& request, const PlanTraits& traits);
// Returns the number of channels of a group whose ranks have this order. A group in one host has all
// `configured` channels. A group on several hosts has so many on each ring or chain.
std::uint32_t channels_on_orders(const CommunicatorLayout& layout, RankOrder order, bool rooted,
                                 std::size_t configured);
// Returns the configuration of a collective without its kernels: plan, orders, chunking and costs.
CollectiveConfig config_of(const LibraryRequest& request, const ChosenAlgorithm& chosen,
                           const GroupShape& shape);
// Applies the algorithm's own kernels, if it has some. `generation` is that of all GPUs. Returns whether it
// has some and the network has costs. From then on channels that are simulated together count as one.
bool use_kernels(CollectiveConfig& config, const LibraryRequest& request, const ChosenAlgorithm& chosen,
                 std::optional<GpuGeneration> generation);

// Returns the configuration of a lone send and receive on `channels` channels.
CollectiveConfig point_to_point_config(const LibraryRequest& request, const CollectiveAlgorithm& algorithm,
                                       Protocol protocol, std::uint32_t channels);
// Returns the channels that the section gives a lone send and receive.
std::uint32_t point_to_point_channels(const LibraryRequest& request);

// Returns the configured generation, or else that of the layout's GPUs; nullopt: not known.
std::optional<GpuGeneration> generation_in(const CollectivesParameters& parameters,
                                           const CommunicatorLayout& layout);

}  // namespace netsim
