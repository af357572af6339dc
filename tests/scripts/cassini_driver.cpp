// Plays CASSINI's rule on instances of a text, for cassini_test.py, which replays it in Python.
//
// The standard input has numbers. The most combinations and the number of candidates come first. A candidate
// is its number of links and the links; a link is its capacity, its number of demands and the demands. A
// demand is job, iteration time, number of arcs, and begin, end and rate of each arc. The output is one JSON
// document.
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <vector>

#include "sim/scheduling/job/rules/cassini.h"

namespace {

using namespace netsim;

template <class Number>
Number read() {
  long long number = 0;
  std::cin >> number;
  return static_cast<Number>(number);
}

PeriodicDemand read_demand() {
  PeriodicDemand demand;
  demand.job = JobId{read<std::uint32_t>()};
  demand.iteration = read<Time>();
  for (auto arcs = read<int>(); arcs > 0; --arcs) {
    DemandArc& arc = demand.arcs.emplace_back();
    arc.begin = read<Time>();
    arc.end = read<Time>();
    arc.rate = read<BitRate>();
  }
  return demand;
}

std::vector<SharedLink> read_links() {
  std::vector<SharedLink> links(read<std::size_t>());
  for (SharedLink& link : links) {
    link.capacity = read<BitRate>();
    for (auto demands = read<int>(); demands > 0; --demands) link.demands.push_back(read_demand());
  }
  return links;
}

void print_link(const SharedLink& link, const CassiniSettings& settings, const char* before) {
  const LinkRotations found = best_rotations(link, settings);
  std::printf(
      R"(%s{"perimeter": %lld, "unshifted": %.17g, "score": %.17g, "again": %.17g, "all": %s, "shifts": [)",
      before, static_cast<long long>(found.perimeter), found.unshifted, found.score,
      compatibility_score(link, found.shifts, settings), found.exhaustive ? "true" : "false");
  for (std::size_t i = 0; i < found.shifts.size(); ++i)
    std::printf("%s%lld", i > 0 ? ", " : "", static_cast<long long>(found.shifts[i]));
  std::printf("]}");
}

void print_ranked(const RankedPlacement& placement, const char* before) {
  std::printf(R"(%s{"candidate": %u, "score": %.17g, "shifts": [)", before, placement.candidate,
              placement.score);
  const char* comma = "";
  for (const auto& [job, shift] : placement.shifts) {
    std::printf("%s[%u, %lld]", comma, static_cast<std::uint32_t>(job), static_cast<long long>(shift));
    comma = ", ";
  }
  std::printf("]}");
}

}  // namespace

int main() {
  CassiniSettings settings;
  settings.most_combinations = read<std::uint32_t>();
  std::vector<std::vector<SharedLink>> candidates(read<std::size_t>());
  for (auto& links : candidates) links = read_links();
  std::printf(R"({"links": [)");
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    std::printf(i > 0 ? ",\n[" : "[");
    for (std::size_t l = 0; l < candidates[i].size(); ++l)
      print_link(candidates[i][l], settings, l > 0 ? ", " : "");
    std::printf("]");
  }
  std::printf("],\n\"ranked\": [");
  const char* comma = "";
  for (const RankedPlacement& placement : rank_placements(candidates, settings)) {
    print_ranked(placement, comma);
    comma = ",\n";
  }
  std::printf("]}\n");
}
