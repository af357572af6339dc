// ChakraTrace: a collective's algorithm as Chakra execution traces say it, one file a rank (NAME.0.et,
// NAME.1.et, ...), as far as netsim looks at them: what ASTRA-sim runs as a custom collective. This is the
// reading of the files alone; what they mean is chakra_et.cpp's.
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
  bool copies = false;                        // a compute node that is no reduction, by its name
  std::vector<std::uint32_t> data, control;   // the nodes of its rank that it waits for, by their position
  std::uint32_t peer = 0;                     // of a send and a receive: the other rank
  std::int64_t tag = 0;                       // the same; 0 where it has none
  std::optional<std::uint64_t> bytes;         // comm_size
  std::optional<std::uint32_t> index, count;  // msg_chunk_idx or chunk_offset, msg_chunk_cnt
  std::optional<std::uint32_t> total;         // total_chunk_cnt
  bool marked = false;                        // is_rrc: it is received and reduced
};

struct ChakraRank {
  std::string path;
  std::vector<ChakraNode> nodes;        // in the order of the file
  std::vector<std::uint32_t> in_order;  // positions: who waits behind whom it waits for, else by id
};

struct ChakraTrace {
  std::string name;        // NAME without its folders
  std::string collective;  // "allreduce"; "" where no record says it
  std::vector<ChakraRank> ranks;
};

// `text` is what the file `path` holds, which is called NAME.R.et; the others are looked for beside it.
// InputError for a file that is missing or is no such trace, nodes that are not known, that wait for ones
// that are not there or for each other, and sends and receives whose attributes do not fit.
ChakraTrace read_chakra_trace(const std::string& text, const std::string& path);

// An InputError about a node: "NAME.2.et: rank 2, node 7: ...".
[[noreturn]] void fail_at(const ChakraTrace& trace, std::uint32_t rank, const ChakraNode& node,
                          const std::string& message);

}  // namespace netsim
