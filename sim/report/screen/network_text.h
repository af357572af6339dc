// The parts of the screen about the network: links, flows, queues and counters.
#pragma once

#include <cstddef>
#include <string>

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
// Returns what the flow splitter did.
std::string splits_text(const SplitSummary& splits);

}  // namespace netsim::screen
