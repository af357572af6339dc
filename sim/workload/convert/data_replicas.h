// DataReplicas: another number of data-parallel replicas of a trace. One data-parallel group says which axis
// of the ranks that is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/ids.h"

namespace netsim {

// The ranks of a trace are (inner, replica, outer), the first one fastest. A data-parallel group has the
// ranks that differ in `replica`.
class DataReplicas {
 public:
  // `group` is the data-parallel group of some rank, in which members are a constant number of ranks apart.
  // It becomes `replicas` ranks. `problem()` says why the group does not fit `ranks` ranks. `place` is that
  // of the group, for errors.
  DataReplicas(std::uint32_t ranks, const std::vector<RankId>& group, std::uint32_t replicas,
               Place place = {});

  const std::string& problem() const { return problem_; }
  std::uint32_t ranks() const { return ranks_ / before_ * after_; }
  // Returns the rank of the first replica whose tasks a rank has.
  RankId original(RankId rank) const { return at(rank, after_, 0, before_); }
  // Returns the rank of the trace, one of the first replica, as the replica of `rank` has it. Throws
  // InputError for a rank of another replica.
  RankId peer(RankId given, RankId rank) const;
  // Returns a group of the trace as the replica of `rank` has it: within a replica, or over all replicas.
  // Throws InputError for a group of some replicas only.
  std::vector<RankId> group(const std::vector<RankId>& given, RankId rank) const;

 private:
  std::uint32_t replica(RankId rank, std::uint32_t replicas) const { return rank / stride_ % replicas; }
  // Returns the rank with another replica, in a numbering with `to` instead of `from` replicas.
  RankId at(RankId rank, std::uint32_t from, std::uint32_t of_replica, std::uint32_t to) const {
    return RankId(rank % stride_ + of_replica * stride_ + rank / (stride_ * from) * stride_ * to);
  }

  Place place_;
  std::uint32_t ranks_, before_, after_;
  std::uint32_t stride_ = 1;
  std::string problem_;
};

}  // namespace netsim
