#include "sim/collectives/programs/program_plan.h"

#include <algorithm>
#include <map>

#include "sim/core/text.h"

namespace netsim {
namespace {

const char* buffer_name(Buffer buffer) {
  static constexpr const char* kNames[] = {"input", "output", "scratch"};
  return kNames[static_cast<std::size_t>(buffer)];
}

// Ends: a rank's thread blocks, by the rank at the other end and the channel.
using Ends = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>;

class Connector {
 public:
  explicit Connector(CollectiveProgram& program) : program_(program), plan_(program) {}

  std::optional<ProgramFault> run() {
    if (auto message = wrong_shape(); !message.empty()) return ProgramFault{.message = std::move(message)};
    senders_.resize(ranks());
    receivers_.resize(ranks());
    each_block(&Connector::check_block);
    if (!fault_) each_block(&Connector::check_steps);
    if (!fault_) each_block(&Connector::join_sender);
    if (!fault_) each_block(&Connector::join_receiver);
    return std::move(fault_);
  }

 private:
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(program_.ranks.size()); }
  CollectiveProgramBlock& block_of(std::uint32_t rank, std::uint32_t block) {
    return program_.ranks[rank].blocks[block];
  }

  std::string wrong_shape() const {
    const auto beyond = [](const char* what, std::uint64_t given, std::uint64_t least, std::uint64_t most) {
      return given >= least && given <= most
                 ? std::string()
                 : std::to_string(given) + " " + what + "; allowed: " + std::to_string(least) + " to " +
                       std::to_string(most);
    };
    for (const std::string& wrong : {beyond("ranks", program_.ranks.size(), 2, kMostProgramRanks),
                                     beyond("chunks", program_.chunks, 1, kMostProgramChunks),
                                     beyond("channels", program_.channels, 1, kMostProgramChannels),
                                     beyond("as root", program_.root, 0, program_.ranks.size() - 1)}) {
      if (!wrong.empty()) return wrong;
    }
    if (has_parts(program_.kind) && program_.chunks % ranks() != 0) {
      return std::to_string(program_.chunks) + " chunks; " + to_string(program_.kind) +
             " needs a multiple of its " + std::to_string(ranks()) + " ranks";
    }
    return "";
  }

  // Calls `what` for each thread block, until a fault is found.
  void each_block(void (Connector::*what)(std::uint32_t rank, std::uint32_t block)) {
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
      if (program_.ranks[rank].scratch_chunks > kMostProgramChunks)
        return fail(rank, kNoIndex, kNoIndex,
                    "more than " + std::to_string(kMostProgramChunks) + " scratch chunks");
      for (std::uint32_t block = 0; block < program_.ranks[rank].blocks.size(); ++block) {
        (this->*what)(rank, block);
        if (fault_) return;
      }
    }
  }
  void fail(std::uint32_t rank, std::uint32_t block, std::uint32_t step, std::string message) {
    fault_ = ProgramFault{rank, block, step, std::move(message)};
  }

  // ---- Thread blocks by their peers

  void check_block(std::uint32_t rank, std::uint32_t block) {
    const CollectiveProgramBlock& given = block_of(rank, block);
    if (given.channel >= program_.channels) {
      return fail(rank, block, kNoIndex,
                  "channel " + std::to_string(given.channel) + " of " + std::to_string(program_.channels));
    }
    enter(senders_[rank], rank, block, given.send_peer, "sends to");
    enter(receivers_[rank], rank, block, given.receive_peer, "receives from");
  }

  void enter(Ends& ends, std::uint32_t rank, std::uint32_t block, std::uint32_t peer, const char* what) {
    if (peer == kNoIndex || fault_) return;
    const std::string whom = std::string(what) + " rank " + std::to_string(peer);
    const std::uint32_t channel = block_of(rank, block).channel;
    if (peer >= ranks()) return fail(rank, block, kNoIndex, whom + " of " + std::to_string(ranks()));
    if (peer == rank) return fail(rank, block, kNoIndex, whom + ", which is its own");
    const auto [entry, fresh] = ends.try_emplace({peer, channel}, block);
    if (!fresh) {
      fail(rank, block, kNoIndex,
           whom + " on channel " + std::to_string(channel) + ", as thread block " +
               std::to_string(entry->second) + " does; one may");
    }
  }

  // ---- Steps by themselves

  void check_steps(std::uint32_t rank, std::uint32_t block) {
    const CollectiveProgramBlock& given = block_of(rank, block);
    for (std::uint32_t index = 0; index < given.steps.size(); ++index) {
      const std::string wrong = wrong_step(rank, block, index);
      if (!wrong.empty()) return fail(rank, block, index, wrong);
      if (sends(given.steps[index].kind))
        program_.largest_count = std::max(program_.largest_count, given.steps[index].count);
    }
  }

  std::string wrong_step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) {
    const CollectiveProgramBlock& given = block_of(rank, block);
    const Step& step = given.steps[index];
    if (sends(step.kind) && given.send_peer == kNoIndex)
      return "sends, but its thread block has no rank to send to";
    if (receives(step.kind) && given.receive_peer == kNoIndex)
      return "receives, but its thread block has no rank to receive from";
    if (step.kind != Step::Kind::nothing && step.count == 0) return "moves 0 chunks; allowed: at least 1";
    for (const auto& [used, at] : {std::pair(reads_source(step.kind), step.source),
                                   std::pair(writes_destination(step.kind), step.destination)}) {
      if (std::string wrong = used ? wrong_chunks(rank, at, step.count) : ""; !wrong.empty()) return wrong;
    }
    return wrong_dependency(rank, block, index);
  }

  std::string wrong_chunks(std::uint32_t rank, ChunkAt at, std::uint32_t count) const {
    const std::uint32_t there = chunks_of(plan_, rank, at.buffer);
    if (std::uint64_t{at.chunk} + count <= there) return "";
    return "chunks " + std::to_string(at.chunk) + " to " +
           std::to_string(std::uint64_t{at.chunk} + count - 1) + " of the " + buffer_name(at.buffer) +
           ", which has " + std::to_string(there);
  }

  std::string wrong_dependency(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const {
    const ProgramRank& here = program_.ranks[rank];
    const Step& step = here.blocks[block].steps[index];
    if (step.after_block == kNoIndex) return "";
    const std::string whom = "waits for step " + std::to_string(step.after_step) + " of thread block " +
                             std::to_string(step.after_block);
    if (step.after_block >= here.blocks.size())
      return whom + "; the rank has " + std::to_string(here.blocks.size()) + " thread blocks";
    const std::size_t there = here.blocks[step.after_block].steps.size();
    if (step.after_step >= there) return whom + ", which has " + std::to_string(there) + " steps";
    if (step.after_block == block) return whom + ", which is its own";
    return "";
  }

  // ---- Messages: the n-th one sent is the n-th one received

  void join_sender(std::uint32_t rank, std::uint32_t block) {
    CollectiveProgramBlock& sender = block_of(rank, block);
    std::uint32_t there = 0, receiver = kNoIndex;
    for (std::uint32_t index = 0; index < sender.steps.size(); ++index) {
      Step& step = sender.steps[index];
      if (!sends(step.kind)) continue;
      if (receiver == kNoIndex) receiver = partner(receivers_[sender.send_peer], rank, sender.channel);
      if (receiver == kNoIndex) return fail(rank, block, index, no_partner(rank, sender, "sends to"));
      const std::vector<Step>& steps = block_of(sender.send_peer, receiver).steps;
      while (there < steps.size() && !receives(steps[there].kind)) ++there;
      const std::string whom =
          "rank " + std::to_string(sender.send_peer) + ", thread block " + std::to_string(receiver);
      if (there == steps.size())
        return fail(rank, block, index, "sends a message more than " + whom + " receives");
      if (steps[there].count != step.count) {
        return fail(rank, block, index,
                    "sends " + std::to_string(step.count) + " chunks where " + whom + ", step " +
                        std::to_string(there) + " receives " + std::to_string(steps[there].count));
      }
      step.to = {sender.send_peer, receiver};
      ++there;
    }
  }

  // Comes after join_sender(): each message that is sent has a receiver, so only receives without a sender
  // are left.
  void join_receiver(std::uint32_t rank, std::uint32_t block) {
    CollectiveProgramBlock& receiver = block_of(rank, block);
    std::uint64_t left = 0;
    std::uint32_t sender = kNoIndex;
    for (std::uint32_t index = 0; index < receiver.steps.size(); ++index) {
      Step& step = receiver.steps[index];
      if (!receives(step.kind)) continue;
      if (sender == kNoIndex) {
        sender = partner(senders_[receiver.receive_peer], rank, receiver.channel);
        if (sender == kNoIndex) return fail(rank, block, index, no_partner(rank, receiver, "receives from"));
        left = messages_sent(block_of(receiver.receive_peer, sender));
      }
      if (left == 0) {
        return fail(rank, block, index,
                    "receives a message more than rank " + std::to_string(receiver.receive_peer) +
                        ", thread block " + std::to_string(sender) + " sends");
      }
      step.from = {receiver.receive_peer, sender};
      --left;
    }
  }

  static std::uint32_t partner(const Ends& ends, std::uint32_t rank, std::uint32_t channel) {
    const auto found = ends.find({rank, channel});
    return found == ends.end() ? kNoIndex : found->second;
  }
  static std::string no_partner(std::uint32_t rank, const CollectiveProgramBlock& block, const char* what) {
    const bool sending = what[0] == 's';
    return std::string(what) + " rank " + std::to_string(sending ? block.send_peer : block.receive_peer) +
           " on channel " + std::to_string(block.channel) + ", where no thread block " +
           (sending ? "receives from" : "sends to") + " rank " + std::to_string(rank);
  }
  static std::uint64_t messages_sent(const CollectiveProgramBlock& block) {
    return static_cast<std::uint64_t>(std::count_if(block.steps.begin(), block.steps.end(),
                                                    [](const Step& step) { return sends(step.kind); }));
  }

  CollectiveProgram& program_;
  ProgramPlan plan_;
  std::vector<Ends> senders_, receivers_;  // by rank
  std::optional<ProgramFault> fault_;
};

}  // namespace

std::string to_string(const ProgramFault& fault) {
  std::string text;
  const auto add = [&text](const char* what, std::uint32_t index) {
    if (index != kNoIndex) append_item(text, std::string(what) + " " + std::to_string(index));
  };
  add("rank", fault.rank);
  add("thread block", fault.block);
  add("step", fault.step);
  return text + (text.empty() ? "" : ": ") + fault.message;
}

std::optional<ProgramFault> connect(CollectiveProgram& program) { return Connector(program).run(); }

}  // namespace netsim
