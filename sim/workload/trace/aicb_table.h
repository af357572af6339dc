// AicbTable: the rows of a workload of AICB, as the file has them (reader_aicb.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/collective_kind.h"
#include "sim/core/ids.h"
#include "sim/core/input_set.h"
#include "sim/core/units.h"

namespace netsim {

enum class AicbGroup : std::uint8_t { tp, pp, dp, ep, ep_dp, ep_tp, all };
inline constexpr std::size_t kAicbGroups = static_cast<std::size_t>(AicbGroup::all) + 1;

struct AicbRow {
  enum class Kind : std::uint8_t { computation, collective, message, epoch_end };
  Kind kind = Kind::collective;
  int line = 0;
  std::string stage;
  AicbGroup group = AicbGroup::all;
  CollectiveKind collective = CollectiveKind::all_reduce;
  Bytes bytes = 0;
  std::int64_t root = 0;             // rank that src names
  Time time = 0;                     // of a computation; 0: not measured
  std::int64_t m = 0, n = 0, k = 0;  // of a computation: its shapes
  bool sends = false;                // of a message: isend
  bool next = false;                 // of a message: the other end is the next stage, not the one before
  // Returns whether a message has activations, which go to the next stage.
  bool is_forward() const { return sends == next; }
};

struct AicbTable {
  // The rows of one line of ranks, or of the whole file.
  struct Section {
    int line = 1;
    std::vector<RankId> ranks;  // ranks that run the rows; empty: the file does not tell
    bool of_stage = false;      // whether the line of ranks names a stage of a pipeline
    std::vector<AicbRow> rows;
  };
  static constexpr std::int64_t kMostRanks = 1 << 20;

  std::vector<Section> sections;                        // at least one, each with rows
  std::array<std::int64_t, kAicbGroups> group_sizes{};  // 0: no row tells
  std::string unused_columns;
};

// Reads a file. Throws InputError with the place of what is wrong.
AicbTable read_aicb_table(const InputSet::File& file);

}  // namespace netsim
