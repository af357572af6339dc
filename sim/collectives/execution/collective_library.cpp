#include "sim/collectives/execution/collective_library.h"

#include <algorithm>

#include "sim/collectives/execution/nccl_tuning.h"
#include "sim/core/config.h"

namespace netsim {
namespace {

// Point-to-point messages up to this go by LL (NCCL_P2P_LL_THRESHOLD).
constexpr Bytes kPointToPointLl = 16 * kKibibyte;

// Whether NCCL's cost model knows the kind; what it does not, its users make of sends and receives.
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

void check_generations(const ConfigNode& section, const CollectivesParameters& parameters,
                       const Endpoint& network) {
  if (parameters.protocol || parameters.gpu_generation) return;
  for (std::uint32_t gpu = 0; gpu < network.gpu_count(); ++gpu) {
    const GpuSite site = network.site(gpu);
    if (generation_of(site.gpu_model)) continue;
    section.fail("protocol: auto reads NCCL's tables by the generation of the GPUs, which host " +
                 std::to_string(site.host) +
                 " does not say; gpu_generation does (allowed: volta, ampere, "
                 "hopper, blackwell)");
  }
}

}  // namespace

CollectiveLibrary::CollectiveLibrary(const ConfigNode& section, const Endpoint& network)
    : parameters(parse_collectives(section)),
      algorithms(parameters),
      latency(parameters, network),
      layouts(network),
      plans(algorithms),
      fans(network),
      endpoint(network) {
  check_generations(section, parameters, network);
}

// `layout`: of a collective's group.
Protocol CollectiveLibrary::protocol(const CommunicationRequest& request,
                                     const CommunicatorLayout* layout) const {
  if (layout != nullptr) {
    if (const auto own = algorithms.of(request.kind).protocol()) return *own;
  }
  if (parameters.protocol) return *parameters.protocol;
  const auto ranks = static_cast<std::uint32_t>(request.members->size());
  if (layout == nullptr || !is_modelled(request.kind)) {
    const Bytes message = layout == nullptr ? request.bytes : request.bytes / ranks;
    return message <= kPointToPointLl ? Protocol::ll : Protocol::simple;
  }
  TuningCase one{request.kind, algorithms.of(request.kind).cost_family(), request.bytes, ranks};
  one.nodes = layout->domains;
  one.nvlink = layout->nearest == Reach::scale_up;
  one.bandwidth = model_bandwidth(*layout);
  one.generation = parameters.gpu_generation ? *parameters.gpu_generation
                                             : generation_of(layout->gpu_model).value();  // checked
  one.channels = static_cast<std::uint32_t>(parameters.scale_up_channels);
  if (one.nodes > 1)
    one.channels = channels_over_hosts(parameters, std::max<std::size_t>(1, layout->rings.size()));
  return chosen_protocol(one, parameters);
}

Course CollectiveLibrary::course(const CommunicationRequest& request, LayoutLookup& known) const {
  const std::vector<std::uint32_t>& members = *request.members;
  if (!is_collective(request.kind)) {
    const Reach reach = endpoint.reach(members[0], members[1]);
    return {reach, chunking_of(request, parameters, protocol(request, nullptr), reach, 1), {}, {}};
  }
  const CommunicatorLayout& layout = known.get(members);
  Course course;
  course.farthest = layout.farthest;
  if (algorithms.of(request.kind).runs_in_rings()) course.rings = layout.rings;
  course.chunking = chunking_of(request, parameters, protocol(request, &layout), layout.farthest,
                                std::max<std::size_t>(1, course.rings.size()));
  course.kernels =
      algorithms.of(request.kind).own_kernels(request.bytes, static_cast<std::uint32_t>(members.size()));
  if (course.kernels && layout.farthest != Reach::ideal) {
    course.chunking.slice = course.kernels->slice * course.kernels->channels;
    course.chunking.slices = 1;
    course.chunking.slots = course.kernels->slots;
  }
  return course;
}

}  // namespace netsim
