// ChakraMessages: the matched sends and receives of a Chakra trace, from which chakra_et.cpp makes a program.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/collectives/plan.h"
#include "sim/collectives/programs/chakra_trace.h"
#include "sim/core/errors.h"

namespace netsim {

struct ChakraNodeAt {
  std::uint32_t rank = 0, position = 0;
};

struct ChakraMessage {
  ChakraNodeAt send, receive;
  std::uint32_t channel = 0;
};

// ChakraChunks: the chunks that the messages of a trace carry, as a plan of one collective.
struct ChakraChunks {
  struct Carried {
    ChunkAt source, destination;
    std::uint32_t count = 1;
  };
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t root = 0, chunks = 0;
  std::vector<Carried> carried;        // by message
  std::vector<std::uint32_t> scratch;  // by rank
};

inline bool can_reduce(CollectiveKind kind) { return info_of(kind).goal.contributors == ChunkRanks::all; }
inline bool is_in_place(CollectiveKind kind) { return kind != CollectiveKind::all_to_all; }
// Returns the buffer in which a rank has all chunks of an in-place collective.
inline Buffer whole_buffer(CollectiveKind kind) { return can_reduce(kind) ? Buffer::input : Buffer::output; }

// ChakraMessages: a trace with its matched sends and receives.
class ChakraMessages {
 public:
  explicit ChakraMessages(const ChakraTrace& trace) : trace_(trace), of_(trace.ranks.size()) {
    using Connection = std::tuple<std::uint32_t, std::uint32_t, std::int64_t>;  // from, to, tag
    std::map<Connection, std::pair<std::vector<ChakraNodeAt>, std::vector<ChakraNodeAt>>> connections;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
      of_[rank].resize(trace.ranks[rank].nodes.size(), kNoIndex);
      for (const std::uint32_t position : trace.ranks[rank].in_order) {
        const ChakraNode& node = at({rank, position});
        if (node.kind == ChakraNode::Kind::send)
          connections[{rank, node.peer, node.tag}].first.push_back({rank, position});
        if (node.kind == ChakraNode::Kind::receive)
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
  const std::vector<ChakraMessage>& all() const { return all_; }
  const ChakraNode& at(ChakraNodeAt where) const { return trace_.ranks[where.rank].nodes[where.position]; }
  std::uint32_t of(ChakraNodeAt where) const { return of_[where.rank][where.position]; }
  [[noreturn]] void fail(ChakraNodeAt where, const std::string& message) const {
    fail_at(trace_, where.rank, at(where), message);
  }

  // Returns which messages are received and added to the present data, if the collective adds up.
  std::vector<bool> reduced(CollectiveKind kind) const {
    std::vector<bool> result(all_.size(), false);
    if (!can_reduce(kind)) return result;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
      for (const ChakraNode& node : trace_.ranks[rank].nodes) {
        if (node.kind != ChakraNode::Kind::compute || node.copies) continue;
        for (const std::uint32_t before : node.data) {
          const ChakraNodeAt where{rank, before};
          if (at(where).kind == ChakraNode::Kind::receive && (!any_marked_ || at(where).marked))
            result[of(where)] = true;
        }
      }
    }
    return result;
  }

 private:
  void match(const std::vector<ChakraNodeAt>& sends, const std::vector<ChakraNodeAt>& receives,
             std::uint32_t channel) {
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
      const ChakraNode& send = at(sends[i]);
      const ChakraNode& receive = at(receives[i]);
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
  std::vector<ChakraMessage> all_;
  std::vector<std::vector<std::uint32_t>> of_;  // message of a node, by rank and position
  std::uint32_t channels_ = 1;
  bool any_marked_ = false;
};

}  // namespace netsim
