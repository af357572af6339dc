// flow.txt of the HPCC family of ns-3 simulators (HPCC's third.cc and what was made of it): the number of
// flows, then `source destination priority_group port bytes start_s` each. Hosts are node numbers of the
// topology file. What follows the last flow is ignored, as the tool does.
#pragma once

#include <cstdint>
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
  std::uint16_t port = 0;  // the destination's
  Place source_place, destination_place, group_place;
};

struct Ns3FlowList {
  std::vector<Ns3Flow> flows;
  std::uint64_t left_over = 0;  // lines of six numbers behind the flows that the file's header counts
};

// InputError for what is wrong with the text.
Ns3FlowList parse_ns3_flows(std::string_view text, const std::string& path);

// The priority groups in use, ascending: group i of the list travels in data class i.
std::vector<std::uint32_t> priority_groups(const std::vector<Ns3Flow>& flows);

}  // namespace netsim
