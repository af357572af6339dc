#include "sim/collectives/execution/chunk_sizes.h"

#include <algorithm>

namespace netsim {
namespace {

std::uint64_t divide_up(Bytes bytes, Int128 by) { return static_cast<std::uint64_t>((bytes + by - 1) / by); }

// Returns where share `index` of `parts` begins, cut as by share(). Tokens are not split; `token` 0 means
// that there are none.
Bytes first_of_share(Bytes bytes, Bytes token, std::uint64_t parts, std::uint64_t index) {
  const Int128 unit = std::max<Bytes>(token, 1);
  return static_cast<Bytes>(bytes / unit * static_cast<Int128>(index) / static_cast<Int128>(parts) * unit);
}

std::uint64_t rounds_of_counted(const Chunking& chunking, Bytes bytes) {
  if (bytes == 0 || chunking.slice == 0) return bytes == 0 ? 0 : 1;
  return divide_up(bytes, static_cast<Int128>(chunking.slice) * chunking.slices);
}

}  // namespace

std::uint64_t rounds_of(const Plan& plan, const Chunking& chunking, Bytes channel_bytes) {
  if (channel_bytes == 0 || chunking.slice == 0) return channel_bytes == 0 ? 0 : 1;
  const Int128 step = static_cast<Int128>(chunking.slice) * chunking.slices;
  return divide_up(channel_bytes, std::max<Int128>(1, step * plan.chunks() / plan.largest_count()));
}

CountedShare share_of_counted(const Plan& plan, const Chunking& chunking, const BlockCounts& counts,
                              std::uint32_t rank, const Step& step, std::uint32_t channel) {
  const Counted counted = plan.counted(rank, step);
  const Bytes token = counts.tokens().token;
  const auto to_host = [&] { return counts.to_host(counted.owner, counted.other / counts.tokens().host); };
  Bytes bytes = 0;
  switch (counted.what) {
    case Counted::What::block:
    case Counted::What::block_of_host:
      bytes = counts.of(counted.owner, counted.other);
      break;
    case Counted::What::copies:
      bytes = counts.copies(counted.owner, counted.other);
      break;
    case Counted::What::host:
      bytes = to_host();
      break;
  }
  CountedShare share;
  if (counted.what == Counted::What::block_of_host) {
    share.part = bytes;
    share.all = bytes = to_host();
    share.begin = first_of_share(bytes, token, chunking.channels, channel);
  }
  share.bytes = first_of_share(bytes, token, chunking.channels, channel + 1) -
                first_of_share(bytes, token, chunking.channels, channel);
  share.rounds = rounds_of_counted(chunking, share.bytes);
  return share;
}

Bytes counted_in_round(const Chunking& chunking, const CountedShare& share, Bytes token,
                       std::uint64_t round) {
  if (round >= share.rounds) return 0;
  const Int128 most = static_cast<Int128>(chunking.slice) * chunking.slices;
  const Int128 begin = chunking.slice == 0 ? 0 : static_cast<Int128>(round) * most;
  const Int128 end = chunking.slice == 0 ? share.bytes : std::min<Int128>(share.bytes, begin + most);
  if (share.all == 0) return static_cast<Bytes>(end - begin);
  const Int128 unit = std::max<Bytes>(token, 1);
  const auto part_before = [&](Int128 at) {
    return (share.begin + at) / unit * (share.part / unit) / (share.all / unit) * unit;
  };
  return static_cast<Bytes>(part_before(end) - part_before(begin));
}

std::uint32_t slices_of_counted(const Chunking& chunking, Bytes bytes) {
  if (bytes == 0 || chunking.slices == 1) return bytes == 0 ? 0 : 1;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(divide_up(bytes, chunking.least_slice), 1, chunking.slices));
}

std::uint32_t slices_of(const Plan& plan, const Chunking& chunking, Bytes round_bytes, std::uint32_t count) {
  if (chunking.slices == 1) return 1;
  const auto bytes =
      static_cast<Bytes>(divide_up(round_bytes, plan.chunks()) * static_cast<std::uint64_t>(count));
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(divide_up(bytes, chunking.least_slice), 1, chunking.slices));
}

void ChunkSizes::open(const Plan& plan, const Chunking& chunking, const CommunicationRequest& request,
                      const ChannelOrders::Channels& channels) {
  counts_ = request.counts;
  if (plan_ == &plan && chunking_ == chunking && bytes_ == request.bytes &&
      channels_.first == channels.first && channels_.step == channels.step &&
      channels_.count == channels.count)
    return;
  plan_ = &plan;
  chunking_ = chunking;
  bytes_ = request.bytes;
  channels_ = channels;
  find_rounds();
  known_.assign(plan.chunks(), {});
}

const std::vector<ChunkSizes::Size>& ChunkSizes::of(std::uint32_t rank, const Step& step) {
  if (counts_ != nullptr) {
    several_.clear();
    find_counted(several_, rank, step);
    return several_;
  }
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

std::uint64_t ChunkSizes::freed(std::uint32_t rank, const Step& step) {
  std::uint64_t sum = 0;
  if (counts_ != nullptr) {
    several_.clear();
    find_counted(several_, rank, step);
    for (const Size& size : several_) sum += size.count;
    return sum;
  }
  for (const Size& round : rounds_)
    sum +=
        round.count * (chunking_.slots_of_chunks ? 1 : slices_of(*plan_, chunking_, round.bytes, step.count));
  return sum;
}

Bytes ChunkSizes::share_of(Bytes bytes, std::uint32_t channel) const {
  return share(bytes, chunking_.channels, std::uint64_t{channels_.first} + channel * channels_.step);
}

void ChunkSizes::find_counted(std::vector<Size>& sizes, std::uint32_t rank, const Step& step) const {
  for (std::uint32_t i = 0; i < channels_.count; ++i) {
    const CountedShare all =
        share_of_counted(*plan_, chunking_, *counts_, rank, step, channels_.first + i * channels_.step);
    const auto add_round = [&](std::uint64_t round, std::uint64_t count) {
      const Bytes in_round = counted_in_round(chunking_, all, counts_->tokens().token, round);
      const std::uint32_t slices = slices_of_counted(chunking_, in_round);
      for (std::uint32_t index = 0; index < slices; ++index)
        add(sizes, slice_bytes(chunking_.protocol, in_round, slices, index), count);
    };
    if (all.all != 0) {
      for (std::uint64_t round = 0; round < all.rounds; ++round) add_round(round, 1);
      continue;
    }
    if (all.rounds > 1) add_round(0, all.rounds - 1);  // full rounds
    if (all.rounds > 0) add_round(all.rounds - 1, 1);
  }
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
  for (std::uint32_t i = 0; i < channels_.count; ++i) {
    const Bytes channel_bytes = share_of(bytes_, i);
    const std::uint64_t rounds = rounds_of(*plan_, chunking_, channel_bytes);
    if (rounds == 0) continue;
    const Bytes small = channel_bytes / static_cast<Bytes>(rounds);
    const auto larger = static_cast<std::uint64_t>(channel_bytes % static_cast<Bytes>(rounds));
    add(rounds_, small, rounds - larger);
    add(rounds_, small + 1, larger);
  }
}

}  // namespace netsim
