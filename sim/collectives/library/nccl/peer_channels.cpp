#include "sim/collectives/library/nccl/peer_channels.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "sim/collectives/library/domains.h"
#include "sim/collectives/library/nccl/nccl_tuning.h"
#include "sim/collectives/library/standard_config.h"

namespace netsim {
namespace {

// Returns NCCL's rate of an NVLink (src/graph/topo.h), which is given there in units of 100 Mb/s.
BitRate nvlink_rate(GpuGeneration generation) {
  switch (generation) {
    case GpuGeneration::volta:
    case GpuGeneration::ampere:
      return 160 * kGbps;
    case GpuGeneration::hopper:
      return 1648 * (kGbps / 10);
    case GpuGeneration::blackwell:
      break;
  }
  return 3208 * (kGbps / 10);
}

std::uint32_t inside_host(const CommunicatorLayout& layout, std::optional<GpuGeneration> generation) {
  if (layout.nearest != Reach::scale_up || layout.direct_links || !generation) return 2;
  return 2 * static_cast<std::uint32_t>(std::max<BitRate>(1, layout.local_rate / nvlink_rate(*generation)));
}

std::uint32_t between_hosts(const CommunicatorLayout& layout) {
  constexpr BitRate kPerChannel = 14 * 8 * kGbps;
  if (!layout.beside_cpu || layout.nics_near == 0) return 2;
  const BitRate rate = layout.rate_of_nic * layout.nics_near;
  return std::max(layout.nics_near, static_cast<std::uint32_t>((rate + kPerChannel - 1) / kPerChannel));
}

// Returns whether an NVLink or NVSwitches join two GPUs without another GPU between.
bool nvlink_joins(const Endpoint& endpoint, std::uint32_t a, std::uint32_t b, std::uint32_t first) {
  if (endpoint.reach(a, b) != Reach::scale_up) return false;
  if (endpoint.direct_rate(a, b) > 0) return true;
  const std::uint32_t host = endpoint.site(a).host;
  for (std::uint32_t gpu = first; gpu < endpoint.gpu_count() && endpoint.site(gpu).host == host; ++gpu) {
    if (gpu != a && endpoint.direct_rate(a, gpu) > 0) return false;
  }
  return true;
}

}  // namespace

PeerChannels peer_channels(const CommunicatorLayout& layout, std::uint32_t ranks, std::uint32_t inside,
                           std::optional<GpuGeneration> generation) {
  constexpr std::uint32_t kAtOnce = 8;  // NCCL_MAX_DEV_WORK_P2P_PER_BATCH
  const bool several = layout.farthest == Reach::scale_out;
  std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
  if (layout.domains < ranks) least = inside_host(layout, generation);
  if (several) least = std::min(least, between_hosts(layout));
  PeerChannels channels;
  channels.all = std::bit_ceil(several ? search_channels(layout, generation).library : std::max(1U, inside));
  channels.per_peer = std::bit_ceil(least);
  if (!several) {
    channels.per_peer = std::min(channels.all, channels.per_peer);
    return channels;
  }
  const std::uint32_t batches = (ranks + kAtOnce - 1) / kAtOnce;
  while (channels.per_peer > 1 && channels.per_peer * batches > channels.all) channels.per_peer /= 2;
  return channels;
}

PeerChannels peer_channels_of(std::size_t ranks, const CollectivesParameters& parameters,
                              const CommunicatorLayout& layout) {
  const std::optional<GpuGeneration> generation = generation_in(parameters, layout);
  return peer_channels(layout, static_cast<std::uint32_t>(ranks), parameters.scale_up_channels_of(generation),
                       generation);
}

std::uint32_t message_channels(const PeerChannels& peers, std::uint32_t ranks, Bytes bytes, Bytes step) {
  const Bytes least = step / 8, most = step * 32;
  std::uint32_t channels = peers.per_peer;
  while (channels > 1 && channels * ranks > peers.all) channels /= 2;
  while (bytes > most * channels && channels <= peers.per_peer / 2) channels *= 2;
  const Bytes parts = std::max<Bytes>(1, (bytes + least - 1) / least);
  return static_cast<std::uint32_t>(std::min<Bytes>(parts, channels));
}

std::uint32_t pxn_gpu(const Endpoint& endpoint, std::uint32_t source, std::uint32_t destination) {
  if (endpoint.reach(source, destination) != Reach::scale_out) return kNoIndex;
  const GpuSite site = endpoint.site(source);
  const std::uint32_t first = source - device_number(endpoint, source);
  const std::uint32_t by = first + device_number(endpoint, destination);
  if (by == source || by >= endpoint.gpu_count()) return kNoIndex;
  const GpuSite other = endpoint.site(by);
  if (other.host != site.host || other.nics.empty() || !nvlink_joins(endpoint, source, by, first))
    return kNoIndex;
  const bool near = std::any_of(other.nics.begin(), other.nics.end(), [&](std::uint32_t nic) {
    return std::find(site.nics.begin(), site.nics.end(), nic) != site.nics.end();
  });
  return near ? kNoIndex : by;
}

}  // namespace netsim
