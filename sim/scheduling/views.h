// Views: the information about other layers that schedulers get, one field for each kind of information.
//
// A scheduler names the fields that it uses in its needs(). The section `scheduling.views` of the
// configuration sets how old each field is, how often it is taken, and whether there is one at all. A
// scheduler says in its --describe what it does without each field that it uses.
//
// A field is taken at multiples of its `every`, and of `scheduling.interval` if that is 0 (view_keeper.h). A
// decision at the time t sees what was taken last, not later than t - age. So with `age: 0` and `every: 0` a
// scheduler sees the state of the present. Until the first values are old enough, it sees an empty field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "sim/core/parameters.h"
#include "sim/core/units.h"

namespace netsim {

enum class ViewField : std::uint8_t {
  // Fields about the network, for schedulers of flows, tasks and jobs:
  topology,  // the ports that a flow passes, its other paths, and the rates of links
  loads,     // the share of each link's rate that packets used
  queues,    // the bytes that wait at each port
  rates,     // the rate at which congestion control lets each flow send
  failures,  // links and hosts that are down
  circuits,  // circuits that are set up
  stalls,    // which communication waits for which peer, and for how long
  // Fields about what jobs send and compute, for schedulers of flows and tasks, and of jobs:
  sizes,      // the bytes of each flow: all, and those that are left
  coming,     // communications that will begin, with their expected times
  deadlines,  // the times by which communications and jobs should end
  slack,      // how much later a communication may end without a delay of its job
  phases,     // when in an iteration a job computes and sends
  jobs        // how much of each job is done, and how long an iteration takes
};
inline constexpr std::size_t kViewFields = 13;

// Returns the key of the field in `scheduling.views`.
std::string_view name_of(ViewField field);

// ViewFields: a set of fields.
class ViewFields {
 public:
  constexpr ViewFields() = default;
  constexpr ViewFields(std::initializer_list<ViewField> fields) {
    for (const ViewField field : fields) bits_ |= bit(field);
  }
  // Returns the set of all fields.
  static constexpr ViewFields all() { return ViewFields((1U << kViewFields) - 1U); }
  constexpr bool has(ViewField field) const { return (bits_ & bit(field)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr ViewFields operator|(ViewFields other) const { return ViewFields(bits_ | other.bits_); }
  constexpr ViewFields operator&(ViewFields other) const { return ViewFields(bits_ & other.bits_); }
  // Returns the fields of this set that the other one lacks.
  constexpr ViewFields operator-(ViewFields other) const { return ViewFields(bits_ & ~other.bits_); }
  bool operator==(const ViewFields&) const = default;

 private:
  constexpr explicit ViewFields(unsigned bits) : bits_(static_cast<std::uint16_t>(bits)) {}
  static constexpr std::uint16_t bit(ViewField field) {
    return static_cast<std::uint16_t>(1U << static_cast<unsigned>(field));
  }
  std::uint16_t bits_ = 0;
};

// Returns the fields of the set, in the order of ViewField.
std::vector<ViewField> fields_in(ViewFields set);

// ViewSettings: how schedulers see one field.
struct ViewSettings {
  bool on = true;
  Time age = 0;    // a decision sees values that are at least so old
  Time every = 0;  // values are taken at multiples of this time; 0: at each scheduling interval
};

// ViewTable: the settings of all fields, from `scheduling.views`.
struct ViewTable {
  ViewSettings topology, loads, queues, rates, failures, circuits, stalls;
  ViewSettings sizes, coming, deadlines, slack, phases, jobs;

  const ViewSettings& operator[](ViewField field) const;
  // Returns the fields of the set that are on.
  ViewFields on(ViewFields set) const;
};

// Returns the parameters of `scheduling.views`.
const Parameters<ViewTable>& view_parameters();

}  // namespace netsim
