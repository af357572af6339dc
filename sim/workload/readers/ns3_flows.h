// flow.txt of the HPCC family of ns-3 simulators (HPCC's third.cc and its derivatives). It has the number of
// flows, then `source destination priority_group port bytes start_s` for each. Hosts are node numbers of the
// topology file. Text after the last flow is ignored, as the tool does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/core/input_file.h"
#include "sim/core/input_set.h"
#include "sim/core/units.h"

namespace netsim {

struct Ns3Flow {
  std::uint32_t source = 0, destination = 0;  // node numbers
  std::uint32_t priority_group = 0;
  Bytes bytes = 0;
  Time start = 0;
  std::uint16_t port = 0;  // port of the destination
  Place source_place, destination_place, group_place;
};

// Calls visit(flow) for one flow after the other, so that a million of them need no memory. Returns the
// number of lines of six numbers after the flows that the file's header counts. Throws InputError for errors
// in the text, and for more than kMostNs3Flows flows.
inline constexpr std::int64_t kMostNs3Flows = 1 << 26;
std::uint64_t for_each_ns3_flow(const InputSet::File& file, const std::function<void(const Ns3Flow&)>& visit);

struct Ns3FlowSummary {
  std::size_t flows = 0;
  std::uint64_t left_over = 0;        // result of for_each_ns3_flow()
  std::vector<std::uint32_t> groups;  // priority groups in use, ascending; the i-th travels in data class i
};
Ns3FlowSummary summarise_ns3_flows(const InputSet::File& file);

// Ns3FlowList: an interface of the task sources that were read from a flow.txt. The sink of fct.txt asks a
// job's source for it.
class Ns3FlowList {
 public:
  virtual ~Ns3FlowList() = default;
  // Returns the destination port of each flow, in the order of the file.
  virtual const std::vector<std::uint16_t>& ports() const = 0;
};

}  // namespace netsim
