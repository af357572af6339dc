// ListedTask: one entry of the workload `tasks` (task_list.cpp), read and checked by itself and against the
// tasks that it names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/collective_kind.h"
#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/core/stream.h"
#include "sim/core/units.h"
#include "sim/workload/routing/token_section.h"
#include "sim/workload/task_list/rank_list.h"

namespace netsim {

enum class ListedKind : std::uint8_t { compute, collective, message };

struct ListedTask {
  // ---- Parameters. An absent node is null.
  std::string name;
  ConfigNode on;
  Time compute = 0;
  CollectiveKind collective = CollectiveKind::all_reduce;
  ConfigNode from, to;
  Bytes bytes = 0;
  std::int64_t root = 0;
  ConfigNode counts;
  TokenSection tokens;
  bool raw = false;
  std::int64_t channel = 0;
  Stream stream = Stream::compute;
  std::int64_t queue = 0;
  bool ordered = true;
  std::int64_t traffic_class = 0;
  std::int64_t priority = 0;
  ConfigNode after, after_previous;
  Time earliest = 0;
  std::optional<Time> deadline;

  // ---- Found when the list was read
  ListedKind kind = ListedKind::compute;
  ConfigNode node;                     // the entry
  SharedRanks ranks;                   // ranks of a computation or collective
  SharedRanks senders, receivers;      // of a message: the i-th sender sends to the i-th receiver
  std::vector<std::uint32_t> waits;    // tasks of `after`, by index in the list
  std::vector<std::uint32_t> earlier;  // tasks of `after_previous`

  // Returns whether a rank has the task. Both ends of a message count.
  bool sends(RankId rank) const { return kind == ListedKind::message && senders->contains(rank); }
  bool receives(RankId rank) const { return kind == ListedKind::message && receivers->contains(rank); }
  bool is_on(RankId rank) const {
    if (kind == ListedKind::message) return sends(rank) || receives(rank);
    return ranks == nullptr || ranks->contains(rank);
  }
  // Returns whether the rank begins the task when what it waits for has ended: all its ranks do, except the
  // receivers of a message.
  bool begins_on(RankId rank) const { return kind == ListedKind::message ? sends(rank) : is_on(rank); }
};

// Returns the parameters of an entry, as --describe shows them.
ParameterTable listed_task_table();

// Reads the entries. Throws ConfigError at the place of what is wrong.
std::vector<ListedTask> read_listed_tasks(const ConfigNode& list, const RankGroups& groups);

}  // namespace netsim
