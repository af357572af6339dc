#include "sim/collectives/execution/message_steps.h"

#include <algorithm>
#include <string>

#include "sim/collectives/execution/chunk_sizes.h"
#include "sim/collectives/library/collective_config.h"
#include "sim/core/errors.h"

namespace netsim {
namespace {

// MessageLister: lists one channel after the other, and each round by round.
class MessageLister {
 public:
  MessageLister(const CollectiveConfig& config, const CommunicationRequest& request)
      : plan_(*config.plan), config_(config), request_(request) {}

  std::vector<MessageStep> list() {
    for (channel_ = 0; channel_ < config_.chunking.channels; ++channel_) {
      order_ = config_.orders.of(channel_);
      rank_ = rank_at(order_, request_.index);
      blocks_ = plan_.blocks(rank_);
      const Bytes bytes = share(request_.bytes, config_.chunking.channels, channel_);
      const std::uint64_t rounds = rounds_of_channel(bytes);
      for (round_ = 0; round_ < rounds; ++round_) {
        round_bytes_ = share(bytes, rounds, round_);
        add_round();
      }
    }
    return std::move(steps_);
  }

 private:
  // With counts, the rounds of the largest block.
  std::uint64_t rounds_of_channel(Bytes bytes) const {
    if (request_.counts == nullptr) return rounds_of(plan_, config_.chunking, bytes);
    std::uint64_t rounds = 0;
    for (std::uint32_t block = 0; block < blocks_; ++block) {
      for (std::uint32_t index = 0; index < plan_.steps(rank_, block); ++index) {
        const Step step = plan_.step(rank_, block, index);
        if (sends(step.kind) || receives(step.kind)) rounds = std::max(rounds, counted(step).rounds);
      }
    }
    return rounds;
  }
  CountedShare counted(const Step& step) const {
    return share_of_counted(plan_, config_.chunking, *request_.counts, rank_, step, channel_);
  }

  // A step may wait for one of a later thread block, so the thread blocks advance in turns.
  void add_round() {
    last_.assign(blocks_, {});
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t block = 0; block < blocks_; ++block) moved = advance(block) || moved;
    }
  }
  bool advance(std::uint32_t block) {
    std::vector<std::uint32_t>& last = last_[block];
    const std::size_t before = last.size();
    while (last.size() < plan_.steps(rank_, block)) {
      const Step step = plan_.step(rank_, block, static_cast<std::uint32_t>(last.size()));
      std::uint32_t after = kNoIndex;
      if (step.after_block != kNoIndex) {
        if (step.after_step >= last_[step.after_block].size()) break;
        after = last_[step.after_block][step.after_step];
      }
      add(step, block, after);
      last.push_back(static_cast<std::uint32_t>(steps_.size()) - 1);
    }
    return last.size() > before;
  }

  void add(const Step& step, std::uint32_t block, std::uint32_t after) {
    const bool moves = sends(step.kind) || receives(step.kind);
    const Bytes bytes = moves ? bytes_of_step(step) : 0;
    const std::uint32_t slices = slices_of_step(step, moves, bytes);
    MessageStep one;
    one.block = channel_ * blocks_ + block;
    one.after = after;
    for (std::uint32_t slice = 0; slice < slices; ++slice) {
      const Bytes size = slice_bytes(config_.chunking.protocol, bytes, slices, slice);
      if (receives(step.kind)) one.from = {member(step.from.rank), size, connection(step.from.block, block)};
      if (sends(step.kind)) one.to = {member(step.to.rank), size, connection(block, step.to.block)};
      steps_.push_back(one);
      one.after = kNoIndex;
    }
    if (slices == 0) steps_.push_back(one);
  }
  std::uint32_t slices_of_step(const Step& step, bool moves, Bytes bytes) const {
    if (!moves) return 0;
    return request_.counts != nullptr ? slices_of_counted(config_.chunking, bytes)
                                      : slices_of(plan_, config_.chunking, round_bytes_, step.count);
  }
  // A step that passes on what it receives has one size.
  Bytes bytes_of_step(const Step& step) const {
    if (request_.counts != nullptr)
      return counted_in_round(config_.chunking, counted(step), request_.counts->tokens().token, round_);
    if (sends(step.kind)) return bytes_sent(plan_, rank_, step, round_bytes_);
    return bytes_of(plan_, rank_, reads_source(step.kind) ? step.source : step.destination, step.count,
                    round_bytes_);
  }
  std::uint32_t member(std::uint32_t rank) const { return place_of(order_, rank); }
  // Connections of different channels are different, and so are those of different thread blocks.
  std::uint64_t connection(std::uint32_t from, std::uint32_t to) const {
    constexpr unsigned kBlockBits = 24;
    return (std::uint64_t{channel_} << kBlockBits | from) << kBlockBits | to;
  }

  const Plan& plan_;
  const CollectiveConfig& config_;
  const CommunicationRequest& request_;
  std::uint32_t channel_ = 0, rank_ = 0, blocks_ = 0;
  std::span<const std::uint32_t> order_;
  std::uint64_t round_ = 0;
  Bytes round_bytes_ = 0;
  std::vector<MessageStep> steps_;
  std::vector<std::vector<std::uint32_t>> last_;  // by thread block and step of the round: its last message
};

}  // namespace

std::vector<MessageStep> message_steps(const CollectiveConfig& config, const CommunicationRequest& request) {
  if (config.plan->aggregations() > 0)
    throw InputError(std::string(to_string(request.kind)) + ": '" + config.plan->algorithm() +
                     "' adds up in switches, so messages between ranks cannot stand for it");
  return MessageLister(config, request).list();
}

std::vector<MessageStep> message_steps(const Plan& plan, const CommunicationRequest& request) {
  CollectiveConfig config;
  config.plan = &plan;
  return message_steps(config, request);
}

}  // namespace netsim
