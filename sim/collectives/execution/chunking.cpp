#include "sim/collectives/execution/chunking.h"

#include <algorithm>

#include "sim/collectives/execution/communicator_layout.h"

namespace netsim {
namespace {

std::uint64_t divide_up(Bytes bytes, Int128 by) { return static_cast<std::uint64_t>((bytes + by - 1) / by); }

}  // namespace

std::uint32_t channels_over_hosts(const CollectivesParameters& parameters, std::size_t rings) {
  const auto each = static_cast<std::size_t>(parameters.scale_out_channels);
  return static_cast<std::uint32_t>(rings == 1 ? each
                                               : rings * std::clamp<std::size_t>(kMaxRings / rings, 1, each));
}

Chunking chunking_of(const CommunicationRequest& request, const CollectivesParameters& parameters,
                     Protocol protocol, Reach farthest, std::size_t rings) {
  if (request.raw || farthest == Reach::self || farthest == Reach::ideal) return {};
  const bool together = farthest != Reach::scale_out;
  const Bytes lanes = together ? parameters.scale_up_channels : 1;
  Chunking chunking;
  chunking.channels = together ? 1 : channels_over_hosts(parameters, rings);
  const ProtocolParameters& cut = parameters.of(protocol);
  chunking.slice = cut.slice * lanes;
  chunking.slices = static_cast<std::uint32_t>(cut.slices_per_chunk);
  chunking.least_slice = cut.least_slice * lanes;
  chunking.slots = static_cast<std::uint32_t>(cut.slots);
  chunking.protocol = protocol;
  return chunking;
}

std::uint64_t rounds_of(const Plan& plan, const Chunking& chunking, Bytes channel_bytes) {
  if (channel_bytes == 0 || chunking.slice == 0) return channel_bytes == 0 ? 0 : 1;
  const Int128 step = static_cast<Int128>(chunking.slice) * chunking.slices;
  return divide_up(channel_bytes, std::max<Int128>(1, step * plan.chunks() / plan.largest_count()));
}

std::uint32_t slices_of(const Plan& plan, const Chunking& chunking, Bytes round_bytes, std::uint32_t count) {
  if (chunking.slices == 1) return 1;
  const auto bytes =
      static_cast<Bytes>(divide_up(round_bytes, plan.chunks()) * static_cast<std::uint64_t>(count));
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(divide_up(bytes, chunking.least_slice), 1, chunking.slices));
}

void ChunkSizes::open(const Plan& plan, const Chunking& chunking, Bytes bytes, std::uint32_t first_channel,
                      std::uint32_t channels) {
  if (plan_ == &plan && chunking_ == chunking && bytes_ == bytes && first_channel_ == first_channel &&
      channels_ == channels)
    return;
  plan_ = &plan;
  chunking_ = chunking;
  bytes_ = bytes;
  first_channel_ = first_channel;
  channels_ = channels;
  find_rounds();
  known_.assign(plan.chunks(), {});
}

const std::vector<ChunkSizes::Size>& ChunkSizes::of(std::uint32_t rank, const Step& step) {
  std::vector<Size>& sizes = step.count == 1 ? known_[piece_of(*plan_, rank, what_is_sent(step))] : several_;
  if (step.count > 1) sizes.clear();
  if (sizes.empty()) find(sizes, rank, step);
  return sizes;
}

void ChunkSizes::find(std::vector<Size>& sizes, std::uint32_t rank, const Step& step) const {
  for (const Size& round : rounds_) {
    const Bytes bytes = bytes_sent(*plan_, rank, step, round.bytes);
    const std::uint32_t slices = slices_of(*plan_, chunking_, round.bytes, step.count);
    for (std::uint32_t index = 0; index < slices; ++index)
      add(sizes, slice_bytes(chunking_.protocol, bytes, slices, index), round.count);
  }
}

std::uint64_t ChunkSizes::messages(std::uint32_t count) const {
  std::uint64_t sum = 0;
  for (const Size& round : rounds_) sum += round.count * slices_of(*plan_, chunking_, round.bytes, count);
  return sum;
}

void ChunkSizes::add(std::vector<Size>& sizes, Bytes bytes, std::uint64_t count) {
  if (count == 0) return;
  const auto same = std::find_if(sizes.begin(), sizes.end(), [&](const Size& s) { return s.bytes == bytes; });
  if (same != sizes.end()) {
    same->count += count;
  } else {
    sizes.push_back({bytes, count});
  }
}

void ChunkSizes::find_rounds() {
  rounds_.clear();
  for (std::uint32_t channel = first_channel_; channel < first_channel_ + channels_; ++channel) {
    const Bytes channel_bytes = share(bytes_, chunking_.channels, channel);
    const std::uint64_t rounds = rounds_of(*plan_, chunking_, channel_bytes);
    if (rounds == 0) continue;
    const Bytes small = channel_bytes / static_cast<Bytes>(rounds);
    const auto larger = static_cast<std::uint64_t>(channel_bytes % static_cast<Bytes>(rounds));
    add(rounds_, small, rounds - larger);
    add(rounds_, small + 1, larger);
  }
}

}  // namespace netsim
