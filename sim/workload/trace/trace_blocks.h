// TraceBlocks: the blocks of a collective with counts, as one of its members recorded them. GatheredBlocks
// joins those of all members.
//
// PyTorch records an uneven all-to-all as two lists, "In split size" and "Out split size" (record_param_comms
// in torch/csrc/distributed/c10d/ParamCommsUtils.hpp). They count rows of the member's input and output, or
// elements where its input is a list of tensors. The profiler cuts a list of more than 30 numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/collectives/block_counts.h"
#include "sim/collectives/collective_kind.h"
#include "sim/core/units.h"

namespace netsim {

struct TraceBlocks {
  // Bytes to each member, and from each member, by index in the group. Empty: the trace does not tell them.
  std::vector<Bytes> sends, receives;
  TokenBytes tokens;  // of a dispatch or a combine: the lists have this member's row only
};

// SplitSizes: the numbers of such a list. An empty list stands for equal parts. Nothing: the list is cut.
using SplitSizes = std::optional<std::vector<std::int64_t>>;
SplitSizes split_sizes_in(std::string_view text);
// Returns whether the list names parts, which may be equal.
inline bool names_parts(const SplitSizes& sizes) { return !sizes || !sizes->empty(); }
// Finds both lists in the text of the inputs of a record_param_comms. Returns whether it is an all-to-all.
bool find_split_sizes(std::string_view inputs, SplitSizes& in, SplitSizes& out);

// Returns the blocks of a member whose input has `in_bytes`. The output's bytes follow from its rows where
// `out_bytes` is not known. Lists that do not fit the members or the bytes are left out.
TraceBlocks blocks_of_splits(const SplitSizes& in, const SplitSizes& out, std::size_t members, Bytes in_bytes,
                             std::optional<Bytes> out_bytes);

// TraceTokens: what traces of netsim have of a dispatch or a combine beside its parts, in attributes that
// begin with `netsim_`.
struct TraceTokens {
  std::string collective;  // "dispatch" or "combine"; "" for none
  std::int64_t token = 0, host = 0;
  std::vector<std::int64_t> copies, to_hosts;

  // Adds the tokens to the blocks of a member, and returns the kind. Returns nothing if they do not fit its
  // parts.
  std::optional<CollectiveKind> add_to(TraceBlocks& blocks, std::size_t members) const;
};

// Returns the blocks of one member of a group, for a trace of it.
TraceBlocks blocks_of_member(const BlockCounts& counts, std::uint32_t member);

class GatheredBlocks {
 public:
  explicit GatheredBlocks(std::size_t members) : blocks_(members) {}

  // Adds a member by its index in the group. `bytes` are what it sends. Null: its blocks are not known.
  void add(std::size_t member, Bytes bytes, std::shared_ptr<const TraceBlocks> blocks);
  // Returns whether all members have told their sends.
  bool complete() const;
  // Returns whether all receives are those of the senders, as far as they are known.
  bool agrees() const;
  // Returns whether all members have tokens of one size and hosts of one size, or none has tokens.
  bool has_equal_tokens() const;
  // Returns the counts of all members: their sends, or equal parts of the mean if these are not complete.
  // Where nobody sends anything to another, the first member sends one byte to the second.
  BlockCounts counts() const;

 private:
  const TraceBlocks& of(std::size_t member) const { return *blocks_[member]; }

  std::vector<std::shared_ptr<const TraceBlocks>> blocks_;  // by member
  Bytes bytes_ = 0;                                         // that all members send
};

}  // namespace netsim
