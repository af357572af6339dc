// The section about switches that add up: what each did, what fell back or waited, and why.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "sim/core/text.h"
#include "sim/report/page/page_sections.h"
#include "sim/report/screen/network_text.h"

namespace netsim {
namespace {

constexpr std::size_t kMostSwitches = 64;  // rows of the table: those that added up most

std::string aggregated_bytes(Bytes bytes) { return human_bytes(static_cast<double>(bytes)); }

// Returns the switches with the most bytes added up, equal ones in their order.
std::vector<const AggregationResult*> busiest_switches(const Results& results) {
  std::vector<const AggregationResult*> switches;
  switches.reserve(results.aggregation.size());
  for (const AggregationResult& one : results.aggregation) switches.push_back(&one);
  std::stable_sort(switches.begin(), switches.end(), [](const auto* a, const auto* b) {
    return a->use.counters.bytes > b->use.counters.bytes;
  });
  if (switches.size() > kMostSwitches) switches.resize(kMostSwitches);
  return switches;
}

std::vector<TableColumn> aggregation_table(const Results& results) {
  TableColumn name{"switch", 0, true, {}}, added{"added up", 0, false, {}}, sums{"sums", 0, false, {}},
      again{"packets that came again", 0, false, {}}, memory{"most memory", 0, false, {}},
      trees{"most trees", 0, false, {}}, waited{"messages that waited for memory", 0, false, {}};
  for (const AggregationResult* one : busiest_switches(results)) {
    const AggregatingSwitch& use = one->use;
    name.cells.push_back(one->name);
    added.cells.push_back(
        fmt::format("{} packets, {}", use.counters.packets, aggregated_bytes(use.counters.bytes)));
    sums.cells.push_back(fmt::format("{}", use.counters.sums));
    again.cells.push_back(fmt::format("{}", use.counters.repeated + use.counters.discarded));
    memory.cells.push_back(aggregated_bytes(use.memory));
    trees.cells.push_back(fmt::format("{}", use.trees));
    waited.cells.push_back(fmt::format("{}", use.waited));
  }
  return {name, added, sums, again, memory, trees, waited};
}

}  // namespace

void write_aggregation(JsonWriter& json, const PageInput& input) {
  const Results& results = input.results();
  if (results.aggregation.empty()) return;
  std::vector<std::string> text{screen::aggregation_text(results)};
  if (results.aggregation.size() > kMostSwitches)
    text.push_back(fmt::format("The table has the {} switches that added up most; aggregation.csv has all.",
                               kMostSwitches));
  json.object("aggregation", [&] {
    json.list("text", text);
    write_table(json, aggregation_table(results));
  });
}

}  // namespace netsim
