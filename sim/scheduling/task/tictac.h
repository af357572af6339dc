// TicTac has two rules for the order of receives. They are those of its published code (xldrx/tictac,
// tictac/common.py, tac.py and tic.py at 3cf0299). Source: Hashemi et al., "TicTac", SysML 2019.
//
// For each outstanding receive r: M is its time. P is the time of the computations that wait for r alone. M+
// is the least sum of the times M of outstanding receives over the computations that wait for r and others.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "sim/core/units.h"
#include "sim/scheduling/task/job_profile.h"

namespace netsim {

// ReceiveDemand: the receives of one rank and the computations that wait for them.
struct ReceiveDemand {
  // Waiting: computations that wait for exactly these receives, directly or not.
  struct Waiting {
    std::vector<std::uint32_t> receives;  // ascending
    Time time = 0;                        // of all these computations together
    auto operator<=>(const Waiting&) const = default;
  };
  std::vector<Time> time;  // by receive, in program order
  std::vector<Waiting> computations;
  auto operator<=>(const ReceiveDemand&) const = default;
};

// The rule picks again after each pick, so its time grows with the cube of the number of receives.
inline constexpr std::uint32_t kMostTacReceives = 4096;

// Returns the place of each receive in the order of TAC. A comes before B if min(P_B, M_A) < min(P_A, M_B);
// ties go to the smaller M+, then to program order. All three are computed anew after each pick.
std::vector<std::uint32_t> tac_order(const ReceiveDemand& demand);
// Returns the place of each receive in the order of TIC: by M+, where every receive takes 1. Receives with
// equal M+ have the same number. It needs no times.
std::vector<std::uint32_t> tic_order(const ReceiveDemand& demand);

// Returns what a rank's computations of this iteration and the next one wait for. These are the collectives
// and receives of this iteration in program order; `communications` gets their indexes. Edges between tasks
// of the rank must lead forward in program order.
ReceiveDemand receive_demand(const JobProfile& profile, RankId rank,
                             std::vector<std::uint32_t>& communications);

// These return, by communication, its place in the order. The lowest rank of a collective orders it among its
// own, and a message is ordered by its receiver. Both throw InputError for a rank with more than
// kMostTacReceives communications.
std::vector<std::uint32_t> tac_order(const JobProfile& profile);
std::vector<std::uint32_t> tic_order(const JobProfile& profile);

}  // namespace netsim
