#include "sim/collectives/programs/chakra_chunks.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// Returns the rank that receives nothing (broadcast) or sends nothing (reduce), if there is exactly one.
std::optional<std::uint32_t> root_of_messages(const ChakraMessages& messages, CollectiveKind kind) {
  if (!has_root(kind)) return 0;
  std::vector<bool> busy(messages.ranks(), false);
  for (const ChakraMessage& message : messages.all())
    busy[kind == CollectiveKind::reduce ? message.send.rank : message.receive.rank] = true;
  if (std::count(busy.begin(), busy.end(), false) != 1) return std::nullopt;
  return static_cast<std::uint32_t>(std::find(busy.begin(), busy.end(), false) - busy.begin());
}

}  // namespace

// ---- Chunks given by the trace

bool says_chunks(const ChakraMessages& messages) {
  const auto says = [](const ChakraNode& node) { return node.index && node.count && node.total; };
  return std::all_of(messages.all().begin(), messages.all().end(), [&](const ChakraMessage& message) {
    return says(messages.at(message.send)) && says(messages.at(message.receive));
  });
}

std::optional<ChakraChunks> said_chunks(const ChakraMessages& messages, CollectiveKind kind) {
  const auto root = root_of_messages(messages, kind);
  if (!root) return std::nullopt;
  ChakraChunks result{kind, *root, *messages.at(messages.all()[0].send).total, {}, {}};
  result.scratch.resize(messages.ranks(), 0);
  const auto check = [&](ChakraNodeAt where) {
    const ChakraNode& node = messages.at(where);
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
  for (const ChakraMessage& message : messages.all()) {
    const std::uint32_t source = check(message.send), destination = check(message.receive);
    result.carried.push_back({{is_in_place(kind) ? whole_buffer(kind) : Buffer::input, source},
                              {is_in_place(kind) ? whole_buffer(kind) : Buffer::output, destination},
                              *messages.at(message.send).count});
  }
  return result;
}

// ---- Chunks found from the dependencies of messages

class ChakraInterpretations::Guess {
 public:
  Guess(const ChakraMessages& messages, CollectiveKind kind)
      : messages_(messages),
        kind_(kind),
        reduced_(messages.reduced(kind)),
        parent_(messages.all().size()),
        fresh_(messages.all().size(), false) {
    check_sizes();
    std::iota(parent_.begin(), parent_.end(), 0U);
    for (std::uint32_t rank = 0; rank < messages.ranks(); ++rank) follow(rank);
  }

  std::optional<ChakraChunks> chunks(int way) {
    const auto root = root_of_messages(messages_, kind_);
    if (!root) return std::nullopt;
    result_ = ChakraChunks{kind_, *root, 0, {}, {}};
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
    for (const ChakraMessage& message : messages_.all()) {
      for (const ChakraNodeAt where : {message.send, message.receive}) {
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
      const ChakraNode& node = file.nodes[position];
      if (node.kind == ChakraNode::Kind::receive) continue;
      std::vector<std::uint32_t>& here = brought[position];
      for (const std::uint32_t before : node.data) {
        if (file.nodes[before].kind == ChakraNode::Kind::receive) {
          here.push_back(messages_.of({rank, before}));
        } else if (file.nodes[before].kind != ChakraNode::Kind::send) {
          here.insert(here.end(), brought[before].begin(), brought[before].end());
        }
      }
      std::sort(here.begin(), here.end());
      here.erase(std::unique(here.begin(), here.end()), here.end());
      if (node.kind == ChakraNode::Kind::send) pass_on({rank, position}, here);
    }
  }

  void pass_on(ChakraNodeAt send, const std::vector<std::uint32_t>& what) {
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
    const ChunkAt at{whole_buffer(kind_), chunk};
    result_.carried[message] = {at, at, 1};
  }

  std::optional<ChakraChunks> by_class() {
    std::map<std::uint32_t, std::uint32_t> numbers;
    for (std::uint32_t message = 0; message < parent_.size(); ++message) {
      const auto next = static_cast<std::uint32_t>(numbers.size());
      put_all(message, numbers.try_emplace(class_of(message), next).first->second);
    }
    result_.chunks = static_cast<std::uint32_t>(numbers.size());
    return result_;
  }

  std::optional<ChakraChunks> one_chunk() {
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

  std::optional<ChakraChunks> by_owner(bool all_of_owner) {
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

  std::optional<ChakraChunks> by_origin() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> sent;     // from, to
    std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> origins;  // by class: rank and index
    std::uint32_t each = 0;
    for (std::uint32_t message = 0; message < parent_.size(); ++message) {
      if (!fresh_[message]) continue;
      const ChakraMessage& m = messages_.all()[message];
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
  std::optional<ChakraChunks> by_pair() {
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
      const ChakraMessage& m = messages_.all()[message];
      const std::uint32_t of = class_of(message);
      result_.carried[message] = {place(m.send.rank, of), place(m.receive.rank, of), 1};
    }
    return result_;
  }

  const ChakraMessages& messages_;
  CollectiveKind kind_;
  std::vector<bool> reduced_;          // by message
  std::vector<std::uint32_t> parent_;  // parent of each message in the forest of classes
  std::vector<bool> fresh_;            // by message: whether its sender had the data from the beginning
  ChakraChunks result_;
};

ChakraInterpretations::ChakraInterpretations(const ChakraMessages& messages, CollectiveKind kind)
    : guess_(std::make_unique<Guess>(messages, kind)) {}
ChakraInterpretations::~ChakraInterpretations() = default;

std::optional<ChakraChunks> ChakraInterpretations::chunks(int way) { return guess_->chunks(way); }

}  // namespace netsim
