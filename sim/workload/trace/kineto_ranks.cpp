#include "sim/workload/trace/kineto_ranks.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include "sim/core/text.h"

namespace netsim {
namespace {

// NameNumber: a number in a file's name. `is_rank` tells that the word "rank" stands before it.
struct NameNumber {
  std::uint32_t number = 0;
  bool is_rank = false;
};

// Returns the number behind "rank" in a file's name, or else its last one: "rank-3.Jul_15.1074.json",
// "r3.json".
std::optional<NameNumber> number_in(const std::string& path) {
  constexpr std::string_view kDigits = "0123456789";
  const std::string name = lower_case(std::filesystem::path(path).filename().string());
  const std::size_t word = name.find("rank");
  std::size_t first = word == std::string::npos ? word : name.find_first_not_of("-_=. ", word + 4);
  const bool is_rank = first != std::string::npos && is_digit(name[first]);
  std::size_t last = name.find_last_of(kDigits);
  if (last == std::string::npos) return std::nullopt;
  if (is_rank) {
    last = std::min(name.find_first_not_of(kDigits, first), name.size()) - 1;
  } else {
    const std::size_t before = name.find_last_not_of(kDigits, last);
    first = before == std::string::npos ? 0 : before + 1;
  }
  NameNumber found{0, is_rank};
  const auto [end, error] = std::from_chars(name.data() + first, name.data() + last + 1, found.number);
  return error == std::errc() ? std::optional(found) : std::nullopt;
}

// Returns the rank at whose place in its groups the calls of a file were made, or -1 if they do not tell it.
std::int64_t rank_of_calls(const KinetoTrace& trace) {
  std::set<RankId> ranks;
  for (const KinetoCall& call : trace.calls) {
    const auto kind = kineto_collective(call.name);
    const auto size = static_cast<std::int64_t>(call.listed_ranks.size());
    // The place is another rank's for collectives with a root.
    if (!kind || has_root(*kind) || call.root < 0 || call.root >= size) continue;
    ranks.insert(call.listed_ranks[static_cast<std::size_t>(call.root)]);
  }
  return ranks.size() == 1 ? std::int64_t{*ranks.begin() + 0U} : -1;
}

}  // namespace

std::string kineto_call_name(std::string_view call) {
  std::string name = lower_case(call);
  std::erase(name, '_');
  return name;
}

std::optional<CollectiveKind> kineto_collective(std::string_view call) {
  const std::string name = kineto_call_name(call);
  using Kind = CollectiveKind;
  static const std::vector<std::pair<std::string_view, Kind>> kinds{{"allreduce", Kind::all_reduce},
                                                                    {"allgather", Kind::all_gather},
                                                                    {"reducescatter", Kind::reduce_scatter},
                                                                    {"alltoall", Kind::all_to_all},
                                                                    {"broadcast", Kind::broadcast},
                                                                    {"reduce", Kind::reduce},
                                                                    {"gather", Kind::gather},
                                                                    {"scatter", Kind::scatter},
                                                                    {"barrier", Kind::barrier}};
  for (const auto& [prefix, kind] : kinds) {
    if (name.starts_with(prefix)) return kind;
  }
  return std::nullopt;
}

std::uint64_t number_kineto_ranks(const std::vector<KinetoTrace*>& traces) {
  std::vector<KinetoTrace*> unknown;
  for (KinetoTrace* trace : traces) {
    if (trace->rank < 0) trace->rank = rank_of_calls(*trace);
    if (trace->rank < 0) unknown.push_back(trace);
  }
  // Numbers of names are ranks where each name says so, or where they are those of a job's ranks.
  std::set<std::uint32_t> numbers;
  bool all_ranks = true;
  for (const KinetoTrace* trace : unknown) {
    const auto number = number_in(trace->path);
    if (!number || !numbers.insert(number->number).second) all_ranks = false;
    if (number && !number->is_rank && (traces.size() == 1 || number->number >= kineto_world(traces)))
      all_ranks = false;
  }
  std::int64_t next = 0;
  for (KinetoTrace* trace : unknown) trace->rank = all_ranks ? number_in(trace->path)->number : next++;
  return unknown.size();
}

std::int64_t kineto_world(const std::vector<KinetoTrace*>& traces) {
  std::int64_t world = static_cast<std::int64_t>(traces.size());
  for (const KinetoTrace* trace : traces) {
    world = std::max(world, trace->world);
    if (trace->world >= 0) continue;
    world = std::max(world, trace->rank + 1);
    for (const KinetoCall& call : trace->calls) {
      world = std::max({world, call.group_size, call.source + 1, call.destination + 1});
      for (const RankId rank : call.listed_ranks) world = std::max(world, std::int64_t{rank + 0U} + 1);
    }
  }
  return world;
}

}  // namespace netsim
