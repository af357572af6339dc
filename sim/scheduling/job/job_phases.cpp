#include "sim/scheduling/job/job_phases.h"

#include <algorithm>
#include <map>

namespace netsim {
namespace {

// Adds `piece` to the last arc, with the mean rate of both.
void extend_arc(DemandArc& last, const DemandArc& piece) {
  const Time before = last.end - last.begin, more = piece.end - last.end;
  const Int128 bits = static_cast<Int128>(last.rate) * before + static_cast<Int128>(piece.rate) * more;
  last.rate = static_cast<BitRate>(bits / (before + more));
  last.end = piece.end;
}

}  // namespace

std::vector<DemandArc> joined_arcs(const std::vector<DemandArc>& arcs, Time resolution) {
  std::map<Time, BitRate> changes;
  for (const DemandArc& arc : arcs) {
    changes[arc.begin] += arc.rate;
    changes[arc.end] -= arc.rate;
  }
  std::vector<DemandArc> joined;
  BitRate rate = 0;
  for (auto change = changes.begin(); change != changes.end(); ++change) {
    rate += change->second;
    const auto next = std::next(change);
    if (next == changes.end()) break;
    const DemandArc piece{change->first, next->first, rate};
    const bool follows = !joined.empty() && joined.back().end == piece.begin;
    const auto is_short = [&](const DemandArc& arc) { return arc.end - arc.begin < resolution; };
    if (follows && (piece.rate == joined.back().rate || is_short(piece) ||
                    (piece.rate > 0 && is_short(joined.back())))) {
      extend_arc(joined.back(), piece);
    } else if (piece.rate > 0) {
      joined.push_back(piece);
    }
  }
  return joined;
}

Time time_alone(Time time, const std::vector<BusyTime>& busy) {
  Time saved = 0;
  for (const BusyTime& phase : busy) {
    const Time length = phase.end - phase.begin;
    if (time <= phase.begin || length == 0) continue;
    const Time passed = std::min(time, phase.end) - phase.begin;
    saved += static_cast<Time>(static_cast<Int128>(length - phase.alone) * passed / length);
  }
  return time - saved;
}

}  // namespace netsim
