#include "sim/collectives/programs/one_peer_blocks.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// A connection from a thread block to another.
struct Connection {
  std::uint32_t rank, block, to_rank, to_block;
  auto operator<=>(const Connection&) const = default;
};

struct BlockOf {
  std::uint32_t rank, block;
  auto operator<=>(const BlockOf&) const = default;
};

template <class Use>
void each_block(const Plan& plan, Use use) {
  for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    for (std::uint32_t block = 0; block < plan.blocks(rank); ++block) use(rank, block);
  }
}
template <class Use>
void each_step(const Plan& plan, std::uint32_t rank, std::uint32_t block, Use use) {
  for (std::uint32_t index = 0; index < plan.steps(rank, block); ++index) use(plan.step(rank, block, index));
}

// Connections: the connections of a plan by number. Each thread block has its own in the order of their first
// use.
class Connections {
 public:
  explicit Connections(const Plan& plan) {
    each_block(plan, [&](std::uint32_t rank, std::uint32_t block) {
      Ends& ends = ends_[{rank, block}];
      each_step(plan, rank, block, [&](const Step& step) {
        if (receives(step.kind)) enter(ends.in, incoming(rank, block, step));
        if (sends(step.kind)) enter(ends.out, outgoing(rank, block, step));
      });
    });
  }

  struct Ends {
    std::vector<std::uint32_t> in, out;
  };
  const Ends& of(std::uint32_t rank, std::uint32_t block) const { return ends_.at({rank, block}); }
  std::uint32_t count() const { return static_cast<std::uint32_t>(all_.size()); }
  const Connection& operator[](std::uint32_t number) const { return all_[number]; }
  std::uint32_t incoming(std::uint32_t rank, std::uint32_t block, const Step& step) {
    return number_of({step.from.rank, step.from.block, rank, block});
  }
  std::uint32_t outgoing(std::uint32_t rank, std::uint32_t block, const Step& step) {
    return number_of({rank, block, step.to.rank, step.to.block});
  }

 private:
  std::uint32_t number_of(const Connection& connection) {
    const auto [entry, fresh] = numbers_.try_emplace(connection, count());
    if (fresh) all_.push_back(connection);
    return entry->second;
  }
  static void enter(std::vector<std::uint32_t>& list, std::uint32_t number) {
    if (std::find(list.begin(), list.end(), number) == list.end()) list.push_back(number);
  }

  std::vector<Connection> all_;
  std::map<Connection, std::uint32_t> numbers_;
  std::map<BlockOf, Ends> ends_;
};

// ChannelGroups: groups of connections that share a channel because they share a thread block. Two
// connections of the same ranks must never be in one group.
class ChannelGroups {
 public:
  explicit ChannelGroups(const Connections& connections) {
    for (std::uint32_t i = 0; i < connections.count(); ++i) {
      parent_.push_back(i);
      ranks_.push_back({{connections[i].rank, connections[i].to_rank}});
    }
  }

  std::uint32_t group(std::uint32_t connection) {
    while (parent_[connection] != connection) connection = parent_[connection] = parent_[parent_[connection]];
    return connection;
  }
  // Joins the groups of two connections. Returns false where they cannot be joined.
  bool join(std::uint32_t a, std::uint32_t b) {
    a = group(a);
    b = group(b);
    if (a == b) return true;
    if (ranks_[a].size() < ranks_[b].size()) std::swap(a, b);
    const auto taken = [&](const Ranks& ranks) { return ranks_[a].count(ranks) != 0; };
    if (std::any_of(ranks_[b].begin(), ranks_[b].end(), taken)) return false;
    ranks_[a].merge(ranks_[b]);
    parent_[b] = a;
    return true;
  }

  // Returns a channel for each connection. `wanted` returns the preferred one, which it gets if possible.
  template <class Wanted>
  std::vector<std::uint32_t> channels(Wanted wanted) {
    std::vector<std::uint32_t> of_group(parent_.size(), kNoIndex), result;
    std::set<std::pair<Ranks, std::uint32_t>> taken;
    for (std::uint32_t i = 0; i < parent_.size(); ++i) {
      const std::uint32_t g = group(i);
      if (of_group[g] == kNoIndex) {
        const auto is_free = [&](std::uint32_t channel) {
          return std::none_of(ranks_[g].begin(), ranks_[g].end(), [&](const Ranks& ranks) {
            return taken.count({ranks, channel}) != 0;
          });
        };
        std::uint32_t channel = wanted(i);
        if (!is_free(channel)) channel = 0;
        while (!is_free(channel)) ++channel;
        of_group[g] = channel;
        for (const Ranks& ranks : ranks_[g]) taken.insert({ranks, channel});
      }
      result.push_back(of_group[g]);
    }
    return result;
  }

 private:
  using Ranks = std::pair<std::uint32_t, std::uint32_t>;
  std::vector<std::uint32_t> parent_;
  std::vector<std::set<Ranks>> ranks_;  // by group, at the connection that represents it
};

CollectiveProgram head_of(const Plan& plan) {
  CollectiveProgram program;
  program.name = plan.algorithm();
  program.kind = plan.kind();
  program.root = plan.root();
  program.chunks = plan.chunks();
  program.channels = plan.channels();
  program.in_place = plan.in_place();
  program.ranks.resize(plan.ranks());
  for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank)
    program.ranks[rank].scratch_chunks = plan.scratch_chunks(rank);
  return program;
}

// Returns whether each thread block has one partner in each direction, and its channel and their ranks
// identify the connection.
bool has_one_peer_blocks(const Plan& plan, const Connections& connections) {
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> known;
  for (std::uint32_t i = 0; i < connections.count(); ++i) {
    const Connection& c = connections[i];
    const std::uint32_t channel = plan.channel(c.rank, c.block);
    if (channel != plan.channel(c.to_rank, c.to_block)) return false;
    if (!known.insert({c.rank, c.to_rank, channel}).second) return false;
  }
  bool all = true;
  each_block(plan, [&](std::uint32_t rank, std::uint32_t block) {
    const Connections::Ends& ends = connections.of(rank, block);
    all = all && ends.in.size() <= 1 && ends.out.size() <= 1;
  });
  return all;
}

CollectiveProgram copy_of(const Plan& plan, const Connections& connections) {
  CollectiveProgram program = head_of(plan);
  each_block(plan, [&](std::uint32_t rank, std::uint32_t block) {
    CollectiveProgramBlock& copy = program.ranks[rank].blocks.emplace_back();
    const Connections::Ends& ends = connections.of(rank, block);
    copy.channel = plan.channel(rank, block);
    if (!ends.in.empty()) copy.receive_peer = connections[ends.in.front()].rank;
    if (!ends.out.empty()) copy.send_peer = connections[ends.out.front()].to_rank;
    each_step(plan, rank, block, [&](const Step& step) { copy.steps.push_back(step); });
  });
  return program;
}

class Splitter {
 public:
  Splitter(const Plan& plan, Connections connections)
      : plan_(plan), connections_(std::move(connections)), groups_(connections_) {}

  CollectiveProgram split() {
    out_of_.assign(connections_.count(), kNoIndex);
    in_of_.assign(connections_.count(), kNoIndex);
    each_block(plan_, [this](std::uint32_t rank, std::uint32_t block) { pair_fused(rank, block); });
    each_block(plan_, [this](std::uint32_t rank, std::uint32_t block) { pair_others(rank, block); });
    program_ = head_of(plan_);
    add_blocks();
    for (std::uint32_t rank = 0; rank < plan_.ranks(); ++rank) add_steps(rank);
    return std::move(program_);
  }

 private:
  // ---- Connections of a rank that share a thread block

  void pair(std::uint32_t in, std::uint32_t out) {
    if (out_of_[in] != kNoIndex || in_of_[out] != kNoIndex || !groups_.join(in, out)) return;
    out_of_[in] = out;
    in_of_[out] = in;
  }
  void pair_fused(std::uint32_t rank, std::uint32_t block) {
    each_step(plan_, rank, block, [&](const Step& step) {
      if (receives(step.kind) && sends(step.kind))
        pair(connections_.incoming(rank, block, step), connections_.outgoing(rank, block, step));
    });
  }
  // Pairs the remaining connections in order, so that there are no more thread blocks than necessary.
  void pair_others(std::uint32_t rank, std::uint32_t block) {
    const Connections::Ends& ends = connections_.of(rank, block);
    auto out = ends.out.begin();
    for (const std::uint32_t in : ends.in) {
      if (out_of_[in] != kNoIndex) continue;
      out = std::find_if(out, ends.out.end(), [this](std::uint32_t o) { return in_of_[o] == kNoIndex; });
      if (out == ends.out.end()) return;
      pair(in, *out++);
    }
  }

  void add_blocks() {
    const std::vector<std::uint32_t> channels = groups_.channels(
        [this](std::uint32_t i) { return plan_.channel(connections_[i].rank, connections_[i].block); });
    receiver_.assign(connections_.count(), kNoIndex);
    sender_.assign(connections_.count(), kNoIndex);
    each_block(plan_, [&](std::uint32_t rank, std::uint32_t block) {
      const Connections::Ends& ends = connections_.of(rank, block);
      first_block_[{rank, block}] = static_cast<std::uint32_t>(program_.ranks[rank].blocks.size());
      for (const std::uint32_t in : ends.in) receiver_[in] = add_block(rank, in, out_of_[in], channels[in]);
      for (const std::uint32_t out : ends.out) {
        const std::uint32_t in = in_of_[out];
        sender_[out] = in != kNoIndex ? receiver_[in] : add_block(rank, kNoIndex, out, channels[out]);
      }
      if (ends.in.empty() && ends.out.empty())
        add_block(rank, kNoIndex, kNoIndex, plan_.channel(rank, block));
    });
  }
  std::uint32_t add_block(std::uint32_t rank, std::uint32_t in, std::uint32_t out, std::uint32_t channel) {
    std::vector<CollectiveProgramBlock>& blocks = program_.ranks[rank].blocks;
    CollectiveProgramBlock& block = blocks.emplace_back();
    block.channel = channel;
    if (in != kNoIndex) block.receive_peer = connections_[in].rank;
    if (out != kNoIndex) block.send_peer = connections_[out].to_rank;
    program_.channels = std::max(program_.channels, channel + 1);
    return static_cast<std::uint32_t>(blocks.size() - 1);
  }

  // ---- Steps

  struct At {
    std::uint32_t block = kNoIndex, step = 0;
  };

  void add_steps(std::uint32_t rank) {
    waits_.clear();
    // For each thread block and step of the plan: the last new step that it became.
    std::vector<std::vector<At>> became(plan_.blocks(rank));
    for (std::uint32_t block = 0; block < plan_.blocks(rank); ++block) {
      last_ = At{};
      current_ = first_block_[{rank, block}];
      each_step(plan_, rank, block, [&](const Step& step) {
        add_step(rank, block, step);
        became[block].push_back(last_);
      });
    }
    for (const auto& [waiting, awaited] : waits_) {
      const At after = became[awaited.block][awaited.step];
      Step& step = step_at(rank, waiting);
      step.after_block = after.block;
      step.after_step = after.step;
    }
  }

  void add_step(std::uint32_t rank, std::uint32_t block, const Step& step) {
    const bool in = receives(step.kind), out = sends(step.kind);
    const std::uint32_t receiver = in ? receiver_[connections_.incoming(rank, block, step)] : current_;
    const std::uint32_t sender = out ? sender_[connections_.outgoing(rank, block, step)] : receiver;
    if (!in) {
      emit(rank, sender, step);
    } else if (receiver == sender) {
      emit(rank, receiver, step);
    } else {
      emit_apart(rank, receiver, sender, step);
    }
  }

  // Splits a step that receives on a connection of one new thread block and sends on a connection of another.
  void emit_apart(std::uint32_t rank, std::uint32_t receiver, std::uint32_t sender, const Step& step) {
    using Kind = Step::Kind;
    Step first = step;
    first.kind = step.kind == Kind::receive_copy_send ? Kind::receive : Kind::receive_reduce_copy;
    if (step.kind == Kind::receive_reduce_send) first.destination = new_scratch(rank, step);
    Step second;
    second.kind = Kind::send;
    second.source = first.destination;
    second.count = step.count;
    emit(rank, receiver, first);
    emit(rank, sender, second);
  }

  // Returns scratch chunks with the sizes of the sent ones.
  ChunkAt new_scratch(std::uint32_t rank, const Step& step) {
    std::uint32_t& chunks = program_.ranks[rank].scratch_chunks;
    const std::uint32_t piece = piece_of(plan_, rank, step.source), pieces = plan_.chunks();
    chunks += (piece + pieces - chunks % pieces) % pieces;
    const std::uint32_t first = chunks;
    chunks += step.count;
    return {Buffer::scratch, first};
  }

  // Adds a step after the last step of the same thread block of the plan.
  void emit(std::uint32_t rank, std::uint32_t block, Step step) {
    const At before = last_;
    const bool elsewhere = before.block != kNoIndex && before.block != block;
    const At given{step.after_block, step.after_step};
    step.after_block = kNoIndex;
    if (given.block != kNoIndex && elsewhere) {
      waits_.emplace_back(append(rank, block, Step{}), given);
    } else if (given.block != kNoIndex) {
      waits_.emplace_back(append(rank, block, step), given);
      return;
    }
    if (elsewhere) {
      step.after_block = before.block;
      step.after_step = before.step;
    }
    append(rank, block, step);
  }
  At append(std::uint32_t rank, std::uint32_t block, const Step& step) {
    std::vector<Step>& steps = program_.ranks[rank].blocks[block].steps;
    steps.push_back(step);
    last_ = {block, static_cast<std::uint32_t>(steps.size() - 1)};
    current_ = block;
    return last_;
  }
  Step& step_at(std::uint32_t rank, At at) { return program_.ranks[rank].blocks[at.block].steps[at.step]; }

  const Plan& plan_;
  Connections connections_;
  ChannelGroups groups_;
  // For each connection: the one that shares its thread block at its receiver, and at its sender.
  std::vector<std::uint32_t> out_of_, in_of_;
  std::vector<std::uint32_t> receiver_, sender_;  // new thread blocks of a connection
  std::map<BlockOf, std::uint32_t> first_block_;
  CollectiveProgram program_;
  std::vector<std::pair<At, At>> waits_;  // a new step, and the plan's step that it waits for
  At last_;                               // last step that was added for this thread block of the plan
  std::uint32_t current_ = 0;             // new thread block for steps without a partner
};

[[noreturn]] void refuse(const Plan& plan, const char* why) {
  throw InputError(std::string(to_string(plan.kind())) + " '" + plan.algorithm() + "' " + why);
}

}  // namespace

CollectiveProgram program_of(const Plan& plan) {
  if (plan.aggregations() > 0)
    refuse(plan, "uses switches that copy and add up, for which programs of MSCCL have no steps");
  if (!has_bytes(plan.kind())) refuse(plan, "is of a kind that programs of MSCCL do not know");
  if (plan.workers() < plan.ranks())
    refuse(plan, "has ranks that only serve, and all ranks of a program of MSCCL contribute");
  Connections connections(plan);
  CollectiveProgram program = has_one_peer_blocks(plan, connections)
                                  ? copy_of(plan, connections)
                                  : Splitter(plan, std::move(connections)).split();
  if (const auto fault = connect(program)) {
    throw InputError(std::string(plan.algorithm()) + " of " + std::to_string(plan.ranks()) +
                     " ranks is no program: " + to_string(*fault));
  }
  return program;
}

}  // namespace netsim
