// The bodies of tasks, made in one line for tests.
#pragma once

#include <cstdint>

#include "sim/collectives/block_counts.h"
#include "sim/workload/task.h"

namespace netsim::test {

inline TaskBody message(TaskKind kind, RankId peer, Bytes bytes, std::uint32_t tag = 0, bool raw = false) {
  return message_body(kind, {{bytes, {}}, peer, tag, raw, false});
}
inline TaskBody collective(CollectiveKind kind, GroupId group, Bytes bytes) {
  CollectiveTask call;
  call.collective = kind;
  call.group = group;
  call.bytes = bytes;
  return call;
}

// Returns whether two tasks do the same, if works and groups have the same numbers. Counts are compared by
// their values, because each source has its own.
inline bool same_body(const Task& a, const Task& b) {
  if (a.kind() != b.kind() || a.bytes() != b.bytes()) return false;
  if (has_work(a.kind())) return a.work() == b.work();
  if (is_point_to_point(a)) return a.message().peer == b.message().peer && a.message().tag == b.message().tag;
  if (has_group(a) && a.group() != b.group()) return false;
  if (a.kind() != TaskKind::collective) return true;
  const CollectiveTask &one = a.collective(), &other = b.collective();
  if (one.collective != other.collective || one.root != other.root) return false;
  if ((one.counts == nullptr) != (other.counts == nullptr)) return false;
  return one.counts == nullptr || *one.counts == *other.counts;
}

}  // namespace netsim::test
