// flow.txt of the HPCC family of ns-3 simulators (HPCC's third.cc and its derivatives). It has the number of
// flows, then `source destination priority_group port bytes start_s` for each. Hosts are node numbers of the
// topology file. Text after the last flow is ignored, as the tool does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/input_file.h"
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
// in the text.
std::uint64_t for_each_ns3_flow(std::string_view text, const std::string& path,
                                const std::function<void(const Ns3Flow&)>& visit);

struct Ns3FlowSummary {
  std::size_t flows = 0;
  std::uint64_t left_over = 0;        // result of for_each_ns3_flow()
  std::vector<std::uint32_t> groups;  // priority groups in use, ascending; the i-th travels in data class i
};
Ns3FlowSummary summarise_ns3_flows(std::string_view text, const std::string& path);

}  // namespace netsim
