#include "sim/training/memory/memory_ledger.h"

#include <algorithm>

namespace netsim {

MemoryLedger::MemoryLedger(const MemoryPlan& plan, std::uint32_t ranks)
    : plan_(plan), ranks_(ranks), first_of_role_(ranks, false) {
  for (RankId rank = 0; rank < ranks; ++rank) {
    ranks_[rank].now = ranks_[rank].peak = plan.resident(rank);
    ranks_[rank].host_peak = ranks_[rank].now[MemoryKind::host];
  }
  for (const MemoryPeak& role : plan.planned()) first_of_role_[role.rank] = true;
}

void MemoryLedger::open(Time begin) {
  for (Rank& rank : ranks_) rank.peak_time = begin;
}

bool MemoryLedger::apply(RankId number, const Task& task, bool begins, Time now) {
  Rank& rank = ranks_[number];
  if (!plan_.change(number, task, begins, rank.now)) return false;
  rank.host_peak = std::max(rank.host_peak, rank.now[MemoryKind::host]);
  if (rank.now.total() > rank.peak.total()) {
    rank.peak = rank.now;
    rank.peak_time = now;
  }
  return true;
}

std::uint32_t MemoryLedger::fullest() const {
  const auto most = std::max_element(ranks_.begin(), ranks_.end(), [](const Rank& a, const Rank& b) {
    return a.peak.total() < b.peak.total();
  });
  return static_cast<std::uint32_t>(most - ranks_.begin());
}

}  // namespace netsim
