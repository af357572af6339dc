// NcclRules: users' rules for NCCL's choice of algorithm and protocol, in NCCL's own formats. These are the
// lists of NCCL_ALGO and NCCL_PROTO and the file of its example tuner plug-in (ext-tuner/example in NCCL's
// sources).
//
// A list has entries between semicolons. An entry is a list of names between commas; a ^ before them excludes
// these names. It begins with the name of a function and a colon. The first entry may omit it and then
// applies to all functions without their own entry:
//
//   ^tree                                    ring;allreduce:tree,nvls;broadcast:^ll128
//
// A tuner's file has a line for each rule. The first line that matches and can be done applies:
//
//   collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]
//   allreduce,0,65536,tree,ll,-1,1,-1
//
// Both sizes belong to the range. -1 matches any number; for channels it means NCCL's own number. Here an
// operation is one of its kind (numPipeOps 1), and buffers are not registered (regBuff 0). Where no line
// matches, NCCL's cost model chooses.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/collective_kind.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/collectives/protocol.h"
#include "sim/core/config.h"
#include "sim/core/errors.h"

namespace netsim {

// NcclAlgorithm: NCCL's algorithms. Rules may name those that netsim does not have, but they are never
// chosen.
enum class NcclAlgorithm : std::uint8_t { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat };
inline constexpr std::size_t kNcclAlgorithms = 7;
NcclAlgorithm nccl_algorithm(CostFamily family);
const char* to_string(NcclAlgorithm algorithm);

class NcclRules {
 public:
  // Line: a rule of a tuner.
  struct Line {
    CollectiveKind kind = CollectiveKind::all_reduce;
    Bytes least = 0, most = 0;
    NcclAlgorithm algorithm = NcclAlgorithm::ring;
    Protocol protocol = Protocol::simple;
    // nullopt: any number; for channels NCCL's own number.
    std::optional<std::uint32_t> channels, nodes, ranks, operations, registered;
    Place place;
    bool fits(CollectiveKind of, Bytes bytes, std::uint32_t of_nodes, std::uint32_t of_ranks) const;
  };

  // Makes rules that exclude nothing.
  NcclRules();
  // Throw ConfigError at the node for a malformed list.
  void set_algorithms(const ConfigNode& node);
  void set_protocols(const ConfigNode& node);
  // Reads the tuner's file that `node` names, relative to the node's own file. Throws IoError, or InputError
  // at the file's line.
  void read_tuner(const ConfigNode& node);

  bool allows(CollectiveKind kind, NcclAlgorithm algorithm) const {
    return algorithms_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(algorithm)];
  }
  bool allows(CollectiveKind kind, Protocol protocol) const {
    return protocols_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(protocol)];
  }
  // Return whether a list excludes an algorithm or protocol.
  bool lists_algorithms() const { return lists_algorithms_; }
  bool lists_protocols() const { return lists_protocols_; }
  const std::vector<Line>& tuner() const { return tuner_; }

 private:
  template <std::size_t size>
  using Allowed = std::array<std::array<bool, size>, kCollectiveKindCount>;
  Allowed<kNcclAlgorithms> algorithms_{};
  Allowed<3> protocols_{};
  bool lists_algorithms_ = false, lists_protocols_ = false;
  std::vector<Line> tuner_;
};

}  // namespace netsim
