// The parts of the screen about the network: links, flows, queues and counters.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/core/text.h"
#include "sim/report/link_groups.h"
#include "sim/report/results.h"
#include "sim/report/screen/screen_text.h"

namespace netsim::screen {

// Writes a table with a line for each tier of links: how busy they were, and where the longest queue was.
void links(Text out, const Results& results, std::size_t width);
// Writes the flows, slowdowns, queues and counters of a packet network, in a line each.
void network(Text out, const Results& results, std::size_t width);
// Writes a table with a line for each flow size bin, if at least two bins have flows.
void slowdowns_by_size(Text out, const Results& results, std::size_t width);

// Return what is beside a label: times of flows, lengths of queues, and counters of the network.
std::string completion_times(const FlowTimes& flows);
std::string queues_text(const Results& results);
std::string counters_text(const Results& results);
// Returns what the flow scheduler did.
std::string flow_scheduling_text(const FlowSchedulingSummary& scheduling);
// Returns what switches added up.
std::string aggregation_text(const Results& results);
// Returns what the flow splitter did.
std::string splits_text(const SplitSummary& splits);
// Returns how many flows are done, and the payload by time. Bytes count when their flow is complete.
std::string flows_done_text(const Results& results);
std::string throughput_text(const Results& results);
// Returns the columns of the table of flow size bins; without rows if no flow has a slowdown.
std::vector<TableColumn> slowdown_table(const Results& results);
// Returns the rates of a tier's links: "200 Gb/s", or "100 to 200 Gb/s" where they differ.
std::string rates_text(const TierOfLinks& tier);
// Returns the name of a link, without the second name of a host that has both ends: "host0/gpu0->nvswitch".
std::string short_link_name(const std::string& name);
std::string percent_text(double share);

}  // namespace netsim::screen
