#include "sim/collectives/programs/chakra_et.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/collectives/programs/chakra_trace.h"
#include "sim/collectives/programs/program_file.h"
#include "sim/core/errors.h"

namespace netsim {
namespace {

using Node = ChakraNode;

// Names are compared by their letters only: "allreduce", "reduce_scatter".
constexpr std::pair<const char*, CollectiveKind> kChakraNames[] = {
    {"allreduce", CollectiveKind::all_reduce},         {"allgather", CollectiveKind::all_gather},
    {"reducescatter", CollectiveKind::reduce_scatter}, {"alltoall", CollectiveKind::all_to_all},
    {"broadcast", CollectiveKind::broadcast},          {"reduce", CollectiveKind::reduce}};

struct NodeAt {
  std::uint32_t rank = 0, position = 0;
};

struct Message {
  NodeAt send, receive;
  std::uint32_t channel = 0;
};

// Chunks: the chunks that the messages of a trace carry, as a plan of one collective.
struct Chunks {
  struct Carried {
    ChunkAt source, destination;
    std::uint32_t count = 1;
  };
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t root = 0, chunks = 0;
  std::vector<Carried> carried;        // by message
  std::vector<std::uint32_t> scratch;  // by rank
};

bool can_reduce(CollectiveKind kind) { return info_of(kind).goal.contributors == ChunkRanks::all; }
bool in_place(CollectiveKind kind) { return kind != CollectiveKind::all_to_all; }
// Returns the buffer in which a rank has all chunks of an in-place collective.
Buffer whole(CollectiveKind kind) { return can_reduce(kind) ? Buffer::input : Buffer::output; }

// Messages: a trace with its matched sends and receives.
class Messages {
 public:
  explicit Messages(const ChakraTrace& trace) : trace_(trace), of_(trace.ranks.size()) {
    using Connection = std::tuple<std::uint32_t, std::uint32_t, std::int64_t>;  // from, to, tag
    std::map<Connection, std::pair<std::vector<NodeAt>, std::vector<NodeAt>>> connections;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
      of_[rank].resize(trace.ranks[rank].nodes.size(), kNoIndex);
      for (const std::uint32_t position : trace.ranks[rank].in_order) {
        const Node& node = at({rank, position});
        if (node.kind == Node::Kind::send)
          connections[{rank, node.peer, node.tag}].first.push_back({rank, position});
        if (node.kind == Node::Kind::receive)
          connections[{node.peer, rank, node.tag}].second.push_back({rank, position});
        any_marked_ = any_marked_ || node.marked;
      }
    }
    std::pair<std::uint32_t, std::uint32_t> last{kNoIndex, kNoIndex};
    std::uint32_t channel = 0;
    for (const auto& [connection, ends] : connections) {
      const std::pair ranks_of{std::get<0>(connection), std::get<1>(connection)};
      channel = ranks_of == last ? channel + 1 : 0;
      last = ranks_of;
      channels_ = std::max(channels_, channel + 1);
      match(ends.first, ends.second, channel);
    }
    if (all_.empty())
      throw InputError(Place{trace.ranks[0].path, 0, 0, ""}, "has no message; allowed: sends and receives");
  }

  const ChakraTrace& trace() const { return trace_; }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(trace_.ranks.size()); }
  std::uint32_t channels() const { return channels_; }
  const std::vector<Message>& all() const { return all_; }
  const Node& at(NodeAt where) const { return trace_.ranks[where.rank].nodes[where.position]; }
  std::uint32_t of(NodeAt where) const { return of_[where.rank][where.position]; }
  [[noreturn]] void fail(NodeAt where, const std::string& message) const {
    fail_at(trace_, where.rank, at(where), message);
  }

  // Returns which messages are received and added to the present data, if the collective adds up.
  std::vector<bool> reduced(CollectiveKind kind) const {
    std::vector<bool> result(all_.size(), false);
    if (!can_reduce(kind)) return result;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
      for (const Node& node : trace_.ranks[rank].nodes) {
        if (node.kind != Node::Kind::compute || node.copies) continue;
        for (const std::uint32_t before : node.data) {
          const NodeAt where{rank, before};
          if (at(where).kind == Node::Kind::receive && (!any_marked_ || at(where).marked))
            result[of(where)] = true;
        }
      }
    }
    return result;
  }

 private:
  void match(const std::vector<NodeAt>& sends, const std::vector<NodeAt>& receives, std::uint32_t channel) {
    const std::size_t both = std::min(sends.size(), receives.size());
    if (sends.size() > both) {
      fail(sends[both], "sends to rank " + std::to_string(at(sends[both]).peer) + " with tag " +
                            std::to_string(at(sends[both]).tag) + " message " + std::to_string(both + 1) +
                            ", which no node there receives; allowed: a receive for each send");
    }
    if (receives.size() > both) {
      fail(receives[both], "receives from rank " + std::to_string(at(receives[both]).peer) + " with tag " +
                               std::to_string(at(receives[both]).tag) + " message " +
                               std::to_string(both + 1) +
                               ", which no node there sends; allowed: a send for each receive");
    }
    for (std::size_t i = 0; i < both; ++i) {
      const Node& send = at(sends[i]);
      const Node& receive = at(receives[i]);
      if (send.bytes && receive.bytes && *send.bytes != *receive.bytes)
        fail(sends[i], "comm_size is " + std::to_string(*send.bytes) + ", and " +
                           std::to_string(*receive.bytes) + " where it is received, by node " +
                           std::to_string(receive.id) + " of rank " + std::to_string(receives[i].rank) +
                           "; allowed: the same");
      if (send.count && receive.count && *send.count != *receive.count)
        fail(sends[i], "msg_chunk_cnt is " + std::to_string(*send.count) + ", and " +
                           std::to_string(*receive.count) + " where it is received, by node " +
                           std::to_string(receive.id) + " of rank " + std::to_string(receives[i].rank) +
                           "; allowed: the same");
      of_[sends[i].rank][sends[i].position] = static_cast<std::uint32_t>(all_.size());
      of_[receives[i].rank][receives[i].position] = static_cast<std::uint32_t>(all_.size());
      all_.push_back({sends[i], receives[i], channel});
    }
  }

  const ChakraTrace& trace_;
  std::vector<Message> all_;
  std::vector<std::vector<std::uint32_t>> of_;  // message of a node, by rank and position
  std::uint32_t channels_ = 1;
  bool any_marked_ = false;
};

// Returns the rank that receives nothing (broadcast) or sends nothing (reduce), if there is exactly one.
std::optional<std::uint32_t> root_of_messages(const Messages& messages, CollectiveKind kind) {
  if (!has_root(kind)) return 0;
  std::vector<bool> busy(messages.ranks(), false);
  for (const Message& message : messages.all())
    busy[kind == CollectiveKind::reduce ? message.send.rank : message.receive.rank] = true;
  if (std::count(busy.begin(), busy.end(), false) != 1) return std::nullopt;
  return static_cast<std::uint32_t>(std::find(busy.begin(), busy.end(), false) - busy.begin());
}

// ---- Chunks given by the trace

bool says_chunks(const Messages& messages) {
  const auto says = [](const Node& node) { return node.index && node.count && node.total; };
  return std::all_of(messages.all().begin(), messages.all().end(), [&](const Message& message) {
    return says(messages.at(message.send)) && says(messages.at(message.receive));
  });
}

std::optional<Chunks> said_chunks(const Messages& messages, CollectiveKind kind) {
  const auto root = root_of_messages(messages, kind);
  if (!root) return std::nullopt;
  Chunks result{kind, *root, *messages.at(messages.all()[0].send).total, {}, {}};
  result.scratch.resize(messages.ranks(), 0);
  const auto check = [&](NodeAt where) {
    const Node& node = messages.at(where);
    if (*node.total != result.chunks)
      messages.fail(where, "total_chunk_cnt is " + std::to_string(*node.total) + ", and " +
                               std::to_string(result.chunks) +
                               " elsewhere; allowed: one number for all nodes");
    if (*node.count == 0 || std::uint64_t{*node.index} + *node.count > *node.total)
      messages.fail(where, std::to_string(*node.count) + " chunks from chunk " + std::to_string(*node.index) +
                               " on; allowed: at least one of the " + std::to_string(*node.total) +
                               " that total_chunk_cnt says");
    return *node.index;
  };
  for (const Message& message : messages.all()) {
    const std::uint32_t source = check(message.send), destination = check(message.receive);
    result.carried.push_back({{in_place(kind) ? whole(kind) : Buffer::input, source},
                              {in_place(kind) ? whole(kind) : Buffer::output, destination},
                              *messages.at(message.send).count});
  }
  return result;
}

// ---- Chunks found from the dependencies of messages

class Guess {
 public:
  // Throws InputError where a send waits for several receives, so that the message that it passes on is not
  // determined.
  Guess(const Messages& messages, CollectiveKind kind)
      : messages_(messages),
        kind_(kind),
        reduced_(messages.reduced(kind)),
        parent_(messages.all().size()),
        fresh_(messages.all().size(), false) {
    check_sizes();
    std::iota(parent_.begin(), parent_.end(), 0U);
    for (std::uint32_t rank = 0; rank < messages.ranks(); ++rank) follow(rank);
  }

  // Returns the first interpretation of the trace, the second, ...; nullopt where an interpretation does not
  // fit.
  static constexpr int kWays = 2;
  std::optional<Chunks> chunks(int way) {
    const auto root = root_of_messages(messages_, kind_);
    if (!root) return std::nullopt;
    result_ = Chunks{kind_, *root, 0, {}, {}};
    result_.carried.resize(messages_.all().size());
    result_.scratch.resize(messages_.ranks(), 0);
    switch (kind_) {
      case CollectiveKind::all_reduce:
      case CollectiveKind::reduce:
        return way == 0 ? by_class() : one_chunk();
      case CollectiveKind::reduce_scatter:
        return by_owner(way == 1);
      case CollectiveKind::all_gather:
      case CollectiveKind::broadcast:
        return way == 0 ? by_origin() : std::nullopt;
      default:
        return way == 0 ? by_pair() : std::nullopt;
    }
  }

 private:
  std::uint32_t class_of(std::uint32_t message) {
    while (parent_[message] != message) message = parent_[message] = parent_[parent_[message]];
    return message;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    a = class_of(a);
    b = class_of(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

  void check_sizes() const {
    const auto first = messages_.at(messages_.all()[0].send).bytes;
    for (const Message& message : messages_.all()) {
      for (const NodeAt where : {message.send, message.receive}) {
        const auto bytes = messages_.at(where).bytes;
        if (!bytes)
          messages_.fail(where,
                         "has neither comm_size nor all of msg_chunk_idx, msg_chunk_cnt and "
                         "total_chunk_cnt; allowed: one of both, at all sends and receives");
        if (*bytes != *first)
          messages_.fail(where, "comm_size is " + std::to_string(*bytes) + ", and " + std::to_string(*first) +
                                    " elsewhere; allowed: one size, because without msg_chunk_idx the chunks "
                                    "of a larger message are not known");
      }
    }
  }

  // Finds which messages the sends of a rank pass on.
  void follow(std::uint32_t rank) {
    const ChakraRank& file = messages_.trace().ranks[rank];
    // The received messages that each node depends on.
    std::vector<std::vector<std::uint32_t>> brought(file.nodes.size());
    for (const std::uint32_t position : file.in_order) {
      const Node& node = file.nodes[position];
      if (node.kind == Node::Kind::receive) continue;
      std::vector<std::uint32_t>& here = brought[position];
      for (const std::uint32_t before : node.data) {
        if (file.nodes[before].kind == Node::Kind::receive) {
          here.push_back(messages_.of({rank, before}));
        } else if (file.nodes[before].kind != Node::Kind::send) {
          here.insert(here.end(), brought[before].begin(), brought[before].end());
        }
      }
      std::sort(here.begin(), here.end());
      here.erase(std::unique(here.begin(), here.end()), here.end());
      if (node.kind == Node::Kind::send) pass_on({rank, position}, here);
    }
  }

  void pass_on(NodeAt send, const std::vector<std::uint32_t>& what) {
    const std::uint32_t message = messages_.of(send);
    const bool sum = std::all_of(what.begin(), what.end(), [&](std::uint32_t m) { return reduced_[m]; });
    if (what.size() > 1 && !sum) {
      messages_.fail(send,
                     "waits for " + std::to_string(what.size()) +
                         " receives, and it is not known which of them it passes on; allowed: data_deps on "
                         "one, or on several that are all reduced, or msg_chunk_idx at all nodes");
    }
    fresh_[message] = what.empty();
    for (const std::uint32_t before : what) join(message, before);
  }

  // ---- Interpretations

  void put_all(std::uint32_t message, std::uint32_t chunk) {
    const ChunkAt at{whole(kind_), chunk};
    result_.carried[message] = {at, at, 1};
  }

  std::optional<Chunks> by_class() {
    std::map<std::uint32_t, std::uint32_t> numbers;
    for (std::uint32_t message = 0; message < parent_.size(); ++message) {
      const auto next = static_cast<std::uint32_t>(numbers.size());
      put_all(message, numbers.try_emplace(class_of(message), next).first->second);
    }
    result_.chunks = static_cast<std::uint32_t>(numbers.size());
    return result_;
  }

  std::optional<Chunks> one_chunk() {
    for (std::uint32_t message = 0; message < parent_.size(); ++message) put_all(message, 0);
    result_.chunks = 1;
    return result_;
  }

  // Returns, for each class of messages, the one rank that receives it and does not send it on.
  std::map<std::uint32_t, std::uint32_t> last_ranks() {
    std::map<std::uint32_t, std::set<std::uint32_t>> receivers, senders;
    for (std::uint32_t message = 0; message < parent_.size(); ++message) {
      receivers[class_of(message)].insert(messages_.all()[message].receive.rank);
      senders[class_of(message)].insert(messages_.all()[message].send.rank);
    }
    std::map<std::uint32_t, std::uint32_t> result;
    for (const auto& [of, ranks] : receivers) {
      std::vector<std::uint32_t> ends;
      std::set_difference(ranks.begin(), ranks.end(), senders[of].begin(), senders[of].end(),
                          std::back_inserter(ends));
      if (ends.size() == 1) result[of] = ends[0];
    }
    return result;
  }

  std::optional<Chunks> by_owner(bool all_of_owner) {
    const auto owners = last_ranks();
    std::vector<std::uint32_t> owned(messages_.ranks(), 0);
    std::map<std::uint32_t, std::uint32_t> index;  // index of a class among those of its owner
    for (const auto& [of, owner] : owners) index[of] = all_of_owner ? 0 : owned[owner]++;
    const std::uint32_t each = all_of_owner ? 1 : owned[0];
    if (!all_of_owner && std::any_of(owned.begin(), owned.end(), [&](auto n) { return n != each; }))
      return std::nullopt;
    for (std::uint32_t message = 0; message < parent_.size(); ++message) {
      const auto owner = owners.find(class_of(message));
      if (owner == owners.end()) return std::nullopt;
      put_all(message, owner->second * each + index[owner->first]);
    }
    result_.chunks = each * messages_.ranks();
    return result_;
  }

  std::optional<Chunks> by_origin() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> sent;     // from, to
    std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> origins;  // by class: rank and index
    std::uint32_t each = 0;
    for (std::uint32_t message = 0; message < parent_.size(); ++message) {
      if (!fresh_[message]) continue;
      const Message& m = messages_.all()[message];
      const std::uint32_t index = sent[{m.send.rank, m.receive.rank}]++;
      if (kind_ == CollectiveKind::broadcast && m.send.rank != result_.root) return std::nullopt;
      origins[class_of(message)] = {m.send.rank, index};
      each = std::max(each, index + 1);
    }
    for (std::uint32_t message = 0; message < parent_.size(); ++message) {
      const auto origin = origins.find(class_of(message));
      if (origin == origins.end()) return std::nullopt;
      const auto [rank, index] = origin->second;
      put_all(message, kind_ == CollectiveKind::broadcast ? index : rank * each + index);
    }
    result_.chunks = kind_ == CollectiveKind::broadcast ? each : each * messages_.ranks();
    return result_;
  }

  // Interprets an all-to-all: the chunk of a class goes from its first rank to its last.
  std::optional<Chunks> by_pair() {
    const auto ends = last_ranks();
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> counts;
    std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> begins;  // by class: rank and index
    for (std::uint32_t message = 0; message < parent_.size(); ++message) {
      const auto end = ends.find(class_of(message));
      if (end == ends.end()) return std::nullopt;
      if (!fresh_[message]) continue;
      const std::uint32_t rank = messages_.all()[message].send.rank;
      begins[class_of(message)] = {rank, counts[{rank, end->second}]++};
    }
    if (begins.size() != ends.size() || counts.empty()) return std::nullopt;
    const std::uint32_t each = counts.begin()->second;
    const std::uint64_t pairs = std::uint64_t{messages_.ranks()} * (messages_.ranks() - 1);
    if (counts.size() != pairs || begins.size() != pairs * each ||
        std::any_of(counts.begin(), counts.end(), [&](const auto& of) { return of.second != each; }))
      return std::nullopt;
    result_.chunks = each * messages_.ranks();
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> scratch;  // rank, class -> chunk
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> used;     // rank, piece
    const auto place = [&](std::uint32_t rank, std::uint32_t of) {
      const auto [origin, index] = begins[of];
      const std::uint32_t end = ends.at(of), piece = end * each + index;
      if (rank == origin) return ChunkAt{Buffer::input, piece};
      if (rank == end) return ChunkAt{Buffer::output, origin * each + index};
      const auto [entry, added] = scratch.try_emplace({rank, of}, 0);
      if (added) entry->second = used[{rank, piece}]++ * result_.chunks + piece;
      result_.scratch[rank] = std::max(result_.scratch[rank], entry->second + 1);
      return ChunkAt{Buffer::scratch, entry->second};
    };
    for (std::uint32_t message = 0; message < parent_.size(); ++message) {
      const Message& m = messages_.all()[message];
      const std::uint32_t of = class_of(message);
      result_.carried[message] = {place(m.send.rank, of), place(m.receive.rank, of), 1};
    }
    return result_;
  }

  const Messages& messages_;
  CollectiveKind kind_;
  std::vector<bool> reduced_;          // by message
  std::vector<std::uint32_t> parent_;  // parent of each message in the forest of classes
  std::vector<bool> fresh_;            // by message: whether its sender had the data from the beginning
  Chunks result_;
};

// ---- The program

class Assembler {
 public:
  Assembler(const Messages& messages, const Chunks& chunks)
      : messages_(messages), chunks_(chunks), reduced_(messages.reduced(chunks.kind)) {}

  CollectiveProgram assemble() {
    program_.name = messages_.trace().name;
    program_.kind = chunks_.kind;
    program_.root = chunks_.root;
    program_.chunks = chunks_.chunks;
    program_.channels = messages_.channels();
    program_.in_place = in_place(chunks_.kind);
    program_.ranks.resize(messages_.ranks());
    for (std::uint32_t rank = 0; rank < messages_.ranks(); ++rank) {
      program_.ranks[rank].scratch_chunks = chunks_.scratch[rank];
      add_rank(rank);
    }
    if (!program_.in_place) add_copies();
    if (const auto fault = connect(program_))
      throw InputError(Place{messages_.trace().ranks[0].path, 0, 0, ""}, to_string(*fault));
    return std::move(program_);
  }

 private:
  // Steps that must be finished: the last step of each thread block of a rank.
  using Steps = std::map<std::uint32_t, std::uint32_t>;

  void add_rank(std::uint32_t rank) {
    const ChakraRank& file = messages_.trace().ranks[rank];
    std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, std::uint32_t> blocks;
    std::vector<Steps> done(file.nodes.size());
    for (const std::uint32_t position : file.in_order) {
      const Node& node = file.nodes[position];
      Steps before;
      for (const std::vector<std::uint32_t>* list : {&node.data, &node.control}) {
        for (const std::uint32_t other : *list) {
          for (const auto& [block, step] : done[other]) before[block] = std::max(before[block], step);
        }
      }
      const bool sending = node.kind == Node::Kind::send;
      if (!sending && node.kind != Node::Kind::receive) {
        done[position] = std::move(before);
        continue;
      }
      const std::uint32_t message = messages_.of({rank, position});
      const std::uint32_t channel = messages_.all()[message].channel;
      std::vector<CollectiveProgramBlock>& all = program_.ranks[rank].blocks;
      const auto [entry, fresh] =
          blocks.try_emplace({sending, node.peer, channel}, static_cast<std::uint32_t>(all.size()));
      if (fresh) {
        CollectiveProgramBlock& block = all.emplace_back();
        block.channel = channel;
        (sending ? block.send_peer : block.receive_peer) = node.peer;
      }
      add(all[entry->second].steps, step_of(message, sending), entry->second, before);
      done[position] = {{entry->second, static_cast<std::uint32_t>(all[entry->second].steps.size() - 1)}};
    }
  }

  Step step_of(std::uint32_t message, bool sending) const {
    const Chunks::Carried& carried = chunks_.carried[message];
    Step step;
    step.kind = sending             ? Step::Kind::send
                : reduced_[message] ? Step::Kind::receive_reduce_copy
                                    : Step::Kind::receive;
    step.source = sending ? carried.source : carried.destination;
    step.destination = carried.destination;
    step.count = carried.count;
    return step;
  }

  // Adds a step that waits for steps of other thread blocks. A step can wait for one only, so nops wait for
  // the others.
  static void add(std::vector<Step>& steps, const Step& step, std::uint32_t block, Steps before) {
    before.erase(block);  // steps of one thread block are executed in order
    std::size_t left = before.size();
    for (const auto& [after_block, after_step] : before) {
      Step waiting = --left == 0 ? step : Step{};
      waiting.after_block = after_block;
      waiting.after_step = after_step;
      steps.push_back(waiting);
    }
    if (before.empty()) steps.push_back(step);
  }

  // Adds copies of the blocks that a rank keeps in an all-to-all. Converters write compute nodes without
  // information for them.
  void add_copies() {
    const std::uint32_t each = chunks_.chunks / messages_.ranks();
    for (std::uint32_t rank = 0; rank < messages_.ranks() && each > 0; ++rank) {
      Step step;
      step.kind = Step::Kind::copy;
      step.source = {Buffer::input, rank * each};
      step.destination = {Buffer::output, rank * each};
      step.count = each;
      program_.ranks[rank].blocks.emplace_back().steps.push_back(step);
    }
  }

  const Messages& messages_;
  const Chunks& chunks_;
  std::vector<bool> reduced_;
  CollectiveProgram program_;
};

// Returns the kind that the trace names. Otherwise it returns all kinds that add up, or all others, according
// to the trace's nodes.
std::vector<CollectiveKind> kinds_of_messages(const Messages& messages) {
  const ChakraTrace& trace = messages.trace();
  const std::vector<bool> reduced = messages.reduced(CollectiveKind::all_reduce);
  const bool sums = std::find(reduced.begin(), reduced.end(), true) != reduced.end();
  std::string name, allowed;
  for (const char c : trace.collective) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  std::vector<CollectiveKind> all;
  for (const auto& [known, kind] : kChakraNames) {
    if (!trace.collective.empty() && name == known) return {kind};
    allowed += (allowed.empty() ? "" : ", ") + std::string(known);
    if (can_reduce(kind) == sums) all.push_back(kind);
  }
  if (trace.collective.empty()) return all;
  throw InputError(Place{trace.ranks[0].path, 0, 0, ""},
                   "is of the collective '" + trace.collective + "'; allowed: " + allowed);
}

}  // namespace

CollectiveProgram read_chakra_et(std::string text, const std::string& path) {
  const ChakraTrace trace = read_chakra_trace(text, path);
  const Messages messages(trace);
  const std::vector<CollectiveKind> kinds = kinds_of_messages(messages);
  const bool says = says_chunks(messages);
  std::optional<CollectiveProgram> first;
  for (const CollectiveKind kind : kinds) {
    std::optional<Guess> guess;
    if (!says) guess.emplace(messages, kind);
    for (int way = 0; way < (says ? 1 : Guess::kWays); ++way) {
      const auto chunks = says ? said_chunks(messages, kind) : guess->chunks(way);
      const bool parts = chunks && has_parts(kind) && chunks->chunks % trace.ranks.size() != 0;
      if (!chunks || (parts && kinds.size() > 1)) continue;
      CollectiveProgram program = Assembler(messages, *chunks).assemble();
      if (prove(program).empty()) return program;
      if (!first) first = std::move(program);
    }
  }
  if (first && kinds.size() == 1) return *std::move(first);
  throw InputError(
      Place{trace.ranks[0].path, 0, 0, ""},
      kinds.size() == 1
          ? "is of the collective '" + trace.collective +
                "', but its messages do not perform it; allowed: each chunk goes from a rank that has it to "
                "a rank that needs it, with one root for a broadcast or a reduce"
          : std::string("does not name its collective, and its messages perform none; allowed: `collective` "
                        "among the attributes of its first record, or a trace that performs one"));
}

}  // namespace netsim
