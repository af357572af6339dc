#include "sim/jobs/rank_ledger.h"

#include <bit>
#include <string>

#include "sim/core/errors.h"

namespace netsim {
namespace {

constexpr std::size_t index(Stream stream) { return static_cast<std::size_t>(stream); }

// Splits `total` into equal parts for the kinds of the set. The remainder goes to the first kinds in Stream
// order, 1 ps each.
void split(Time total, std::size_t set, std::array<Time, kStreams>& parts) {
  const Time kinds = std::popcount(set);
  Time remainder = total % kinds;
  for (std::size_t kind = 0; kind < parts.size(); ++kind) {
    if ((set >> kind & 1) == 0) continue;
    parts[kind] += total / kinds + (remainder > 0 ? 1 : 0);
    if (remainder > 0) --remainder;
  }
}

}  // namespace

void RankLedger::halt(Time now) {
  advance(now);
  computing_ = 0;
  in_flight_kinds_ = 0;
  in_flight_.fill(0);
  halted_ = true;
}

void RankLedger::compute_begins(Time now) {
  if (halted_) return;
  advance(now);
  ++computing_;
}

void RankLedger::compute_ends(Time now) {
  if (halted_) return;
  advance(now);
  NETSIM_CHECK(computing_ > 0, "a computation ends that did not begin");
  --computing_;
}

void RankLedger::communication_begins(Stream kind, Time now) {
  if (halted_) return;
  advance(now);
  if (in_flight_[index(kind)]++ == 0) in_flight_kinds_ |= 1U << index(kind);
}

void RankLedger::communication_ends(Stream kind, Time now) {
  if (halted_) return;
  advance(now);
  NETSIM_CHECK(in_flight_[index(kind)] > 0, "a communication ends that did not begin");
  if (--in_flight_[index(kind)] == 0) in_flight_kinds_ &= ~(1U << index(kind));
}

void RankLedger::advance(Time now) {
  NETSIM_CHECK(now >= last_, "the ledger advances to " + std::to_string(now) + " ps, before its time of " +
                                 std::to_string(last_) + " ps");
  add(sums_, now - last_);
  last_ = now;
}

void RankLedger::add(Sums& sums, Time duration) const {
  if (in_flight_kinds_ != 0) sums.communication += duration;
  if (computing_ > 0) {
    sums.compute += duration;
    if ((in_flight_kinds_ & cut_streams_) != 0) sums.hidden_of_cuts += duration;
  } else if (in_flight_kinds_ != 0) {
    sums.exposed[in_flight_kinds_] += duration;
  }
}

RankTimes RankLedger::times(Time until) const {
  NETSIM_CHECK(until >= last_, "times are asked for until " + std::to_string(until) +
                                   " ps, before the ledger's time of " + std::to_string(last_) + " ps");
  Sums sums = sums_;
  add(sums, until - last_);
  RankTimes times;
  times.compute = sums.compute;
  times.communication = sums.communication;
  times.hidden_of_cuts = sums.hidden_of_cuts;
  for (std::size_t set = 1; set < kSets; ++set) {
    times.exposed += sums.exposed[set];
    split(sums.exposed[set], set, times.exposed_by);
  }
  times.idle = until - begin_ - times.compute - times.exposed;
  return times;
}

}  // namespace netsim
