// PortCounters: what a port has transmitted and lost, for tables, laws and reports. port_counters() describes
// each of them once: the tables, samples, sums and the fingerprint follow from it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <variant>

#include "sim/core/units.h"

namespace netsim {

// CounterField: the member of a struct that holds a counter.
template <class Counters>
using CounterField = std::variant<std::uint64_t Counters::*, std::int64_t Counters::*>;

// CounterSum: how the counters of several ports, or of several parts of a run, become one.
enum class CounterSum : std::uint8_t { total, largest };

template <class Counters>
std::int64_t value_of(const Counters& counters, const CounterField<Counters>& field) {
  return std::visit([&](auto member) { return static_cast<std::int64_t>(counters.*member); }, field);
}

// Adds `value` to a counter of a sum.
template <class Counters>
void add_counter(Counters& sum, const CounterField<Counters>& field, CounterSum how, std::int64_t value) {
  std::visit(
      [&](auto member) {
        auto& counter = sum.*member;
        using Value = std::decay_t<decltype(counter)>;
        const auto added = static_cast<Value>(value);
        counter = how == CounterSum::total ? counter + added : std::max(counter, added);
      },
      field);
}

// Adds all counters that `infos` describes to those of `sum`.
template <class Info, class Counters>
void add_counters(std::span<const Info> infos, Counters& sum, const Counters& counters) {
  for (const Info& info : infos) add_counter(sum, info.field, info.sum, value_of(counters, info.field));
}

struct PortCounters {
  Bytes wire_bytes = 0;            // bytes transmitted in all packets, with preamble and gap
  std::uint64_t data_packets = 0;  // transmitted data packets
  Time busy = 0;                   // total time of transmission, up to last_end
  Time last_end = 0;               // end of the last transmission
  std::uint64_t ecn_marks = 0;
  std::uint64_t drops = 0;  // packets dropped because a switch had no buffer space
  // Packets without a route because links were down, counted at the switch's end of the link they arrived by.
  std::uint64_t no_route = 0;
  std::uint64_t cnps = 0;           // congestion notifications that this NIC's port sent, alone or in ACKs
  std::uint64_t pauses = 0;         // PFC pauses that this port received
  Time paused = 0;                  // total time that PFC paused its data classes
  std::uint64_t credit_stalls = 0;  // how often a class of this port ran out of credits
  Time credit_stalled = 0;          // total time that its classes waited for credits
  // Longest queue: the most bytes that waited at the port at once, of all its classes together, control
  // frames included. A packet waits until its transmission begins, as for PacketNetwork::queued().
  Bytes max_queue = 0;
  // PFC headroom or credit buffer of this link at its far end, and the largest use of it in one class.
  Bytes headroom = 0, max_headroom_used = 0;
  std::uint64_t lost = 0;  // packets lost on the link, by its loss rate or while it was down
  // Packets of aggregation trees that the link had lost and sent again. They count as transmitted each time.
  std::uint64_t link_repeats = 0;

  // Returns the time of transmission up to `time`. No transmission may have begun since.
  Time busy_until(Time time) const { return busy - std::max<Time>(last_end - time, 0); }
};

// Number of places of PortCounterInfo::hashed.
inline constexpr std::size_t kHashedCounters = 7;

// PortCounterInfo: the description of one counter.
struct PortCounterInfo {
  const char* column;  // of links.csv, with the unit where it is not a count
  const char* meaning;
  CounterField<PortCounters> field;
  CounterSum sum = CounterSum::total;
  // Place among the columns of link_samples.csv, from 1; 0: it is not sampled.
  std::uint8_t sampled = 0;
  // The `results` fingerprint hashes the counter at this place, from 1, together with those of the same
  // place; 0: not at a place.
  std::uint8_t hashed = 0;
  // Start of a hash of its own, which a port has only where the counter is above 0; null: none.
  const char* hashed_if_set = nullptr;
};

// Returns the description of all counters, in the order of the columns of links.csv.
std::span<const PortCounterInfo> port_counters();
// Returns those that are sampled, in the order of PortCounterInfo::sampled.
std::span<const PortCounterInfo* const> sampled_counters();

}  // namespace netsim
