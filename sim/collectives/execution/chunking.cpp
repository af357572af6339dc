#include "sim/collectives/execution/chunking.h"

#include <algorithm>

namespace netsim {

Reach farthest_reach(const std::vector<std::uint32_t>& members, const Endpoint& endpoint) {
  Reach farthest = Reach::scale_up;
  for (std::size_t i = 1; i < members.size(); ++i)
    farthest = std::max(farthest, endpoint.reach(members[0], members[i]));
  return farthest;
}

Chunking chunking_of(const CommunicationRequest& request, const CollectivesParameters& parameters,
                     const Endpoint& endpoint) {
  if (request.raw) return {};
  const auto window = static_cast<std::uint32_t>(parameters.send_window);
  switch (farthest_reach(*request.members, endpoint)) {
    case Reach::scale_up:
    case Reach::pcie:
      return {1, parameters.slice * parameters.scale_up_channels, window};
    case Reach::scale_out:
      return {static_cast<std::uint32_t>(parameters.scale_out_channels), parameters.slice, window};
    case Reach::self:
    case Reach::ideal:
      break;
  }
  return {};
}

std::uint64_t rounds_of(const Schedule& schedule, const Chunking& chunking, Bytes channel_bytes) {
  if (chunking.slice == 0) return 1;
  const Int128 round = static_cast<Int128>(schedule.divisions()) * chunking.slice;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>((channel_bytes + round - 1) / round));
}

void ChunkSizes::open(const Schedule& schedule, const Chunking& chunking, Bytes bytes) {
  if (schedule_ == &schedule && chunking_ == chunking && bytes_ == bytes) return;
  schedule_ = &schedule;
  chunking_ = chunking;
  bytes_ = bytes;
  find_rounds();
  known_.assign(schedule.divisions(), {});
}

const std::vector<ChunkSizes::Size>& ChunkSizes::of(std::uint32_t chunk) {
  const std::uint32_t division = chunk % schedule_->divisions();
  std::vector<Size>& sizes = known_[division];
  if (!sizes.empty()) return sizes;
  for (const Size& round : rounds_)
    add(sizes, share(round.bytes, schedule_->divisions(), division), round.count);
  return sizes;
}

Bytes ChunkSizes::total(std::uint32_t chunk) {
  Bytes sum = 0;
  for (const Size& size : of(chunk)) sum += size.bytes * static_cast<Bytes>(size.count);
  return sum;
}

void ChunkSizes::add(std::vector<Size>& sizes, Bytes bytes, std::uint64_t count) {
  if (bytes == 0 || count == 0) return;
  const auto same = std::find_if(sizes.begin(), sizes.end(), [&](const Size& s) { return s.bytes == bytes; });
  if (same != sizes.end()) {
    same->count += count;
  } else {
    sizes.push_back({bytes, count});
  }
}

void ChunkSizes::find_rounds() {
  rounds_.clear();
  for (std::uint32_t channel = 0; channel < chunking_.channels; ++channel) {
    const Bytes channel_bytes = share(bytes_, chunking_.channels, channel);
    const std::uint64_t rounds = rounds_of(*schedule_, chunking_, channel_bytes);
    const Bytes small = channel_bytes / static_cast<Bytes>(rounds);
    const auto larger = static_cast<std::uint64_t>(channel_bytes % static_cast<Bytes>(rounds));
    add(rounds_, small, rounds - larger);
    add(rounds_, small + 1, larger);
  }
}

}  // namespace netsim
