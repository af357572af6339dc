// Rendezvous: members of a group arrive, and when the last one has arrived, all of them continue. Pauses
// before collectives (CollectiveTask::pause) and requests for optical circuits use it.
//
// A rank announces its arrival for a later time. The arrival is then handled between events, when no set
// runs. Members may therefore be in different sets, and any number of threads gives the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "sim/core/event.h"
#include "sim/core/ids.h"
#include "sim/core/units.h"

namespace netsim {

// MemberArrival: a member that has arrived, with the slot of its waiting task. Plain data.
struct MemberArrival {
  JobId job = 0;
  RankId rank = 0;
  std::uint32_t slot = 0;
};

// Passes the arrival to JobSet::arrived() at `time`, between events, by LogicalProcess::ask_call() of the
// set.
using AnnounceArrival =
    std::function<void(std::uint32_t set, Time time, Origin& origin, const MemberArrival& arrival)>;

// Rendezvous: the arrivals of one job at communications whose groups are not complete.
class Rendezvous {
 public:
  // Adds an arrival at communication `id`. Returns all arrivals, in their order, when the last of `members`
  // members has arrived; otherwise nothing.
  std::vector<MemberArrival> add(std::uint64_t id, const MemberArrival& arrival, std::size_t members) {
    std::vector<MemberArrival>& arrived = arrived_[id];
    arrived.push_back(arrival);
    if (arrived.size() < members) return {};
    std::vector<MemberArrival> all = std::move(arrived);
    arrived_.erase(id);
    return all;
  }

 private:
  std::map<std::uint64_t, std::vector<MemberArrival>> arrived_;  // by communication id
};

}  // namespace netsim
