// ChakraTrace: a collective's algorithm in Chakra execution traces, one file per rank (NAME.0.et, NAME.1.et,
// ...). ASTRA-sim runs them as a custom collective. This header reads the files, as far as netsim uses them;
// chakra_et.cpp interprets them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace netsim {

struct ChakraNode {
  enum class Kind : std::uint8_t { other, compute, send, receive };
  Kind kind = Kind::other;
  std::uint64_t id = 0;
  bool copies = false;                        // a compute node whose name shows that it is no reduction
  std::vector<std::uint32_t> data, control;   // positions of the nodes of its rank that it waits for
  std::uint32_t peer = 0;                     // the other rank, for a send or a receive
  std::int64_t tag = 0;                       // tag of a send or a receive; 0 where it has none
  std::optional<std::uint64_t> bytes;         // comm_size
  std::optional<std::uint32_t> index, count;  // msg_chunk_idx or chunk_offset, msg_chunk_cnt
  std::optional<std::uint32_t> total;         // total_chunk_cnt
  bool marked = false;                        // is_rrc: the message is received and reduced
};

struct ChakraRank {
  std::string path;
  std::vector<ChakraNode> nodes;  // in the order of the file
  // Positions in an order in which each node follows those it waits for; otherwise the order is by id.
  std::vector<std::uint32_t> in_order;
};

struct ChakraTrace {
  std::string name;        // NAME without its folders
  std::string collective;  // "allreduce"; "" where no record names it
  std::vector<ChakraRank> ranks;
};

// Reads all files of a trace. `text` is the content of the file `path`, whose name is NAME.R.et; the others
// are in the same folder. Throws InputError for a missing file or one that is no such trace, and for unknown
// nodes. Nodes must not wait for missing nodes or for each other, and sends must match receives.
ChakraTrace read_chakra_trace(const std::string& text, const std::string& path);

// Throws InputError about a node: "NAME.2.et: rank 2, node 7: ...".
[[noreturn]] void fail_at(const ChakraTrace& trace, std::uint32_t rank, const ChakraNode& node,
                          const std::string& message);

}  // namespace netsim
