#include "sim/workload/convert/data_replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

// Returns the first ranks of a group for a message.
std::string ranks_text(const std::vector<RankId>& group) {
  constexpr std::size_t kRanks = 16;
  std::string text;
  for (std::size_t i = 0; i < std::min(group.size(), kRanks); ++i)
    append_item(text, std::to_string(group[i] + 0U));
  if (group.size() > kRanks) append_item(text, "...");
  return text;
}

}  // namespace

DataReplicas::DataReplicas(std::uint32_t ranks, const std::vector<RankId>& group, std::uint32_t replicas,
                           Place place)
    : place_(std::move(place)),
      ranks_(ranks),
      before_(std::max<std::uint32_t>(static_cast<std::uint32_t>(group.size()), 1)),
      after_(replicas) {
  if (group.size() < 2) {
    problem_ = fmt::format("a group of {} ranks; allowed: two ranks or more", group.size());
    return;
  }
  if (group[1] <= group[0] || *std::max_element(group.begin(), group.end()) >= ranks) {
    problem_ =
        fmt::format("its ranks are {}; allowed: ranks from 0 to {} that rise", ranks_text(group), ranks - 1);
    return;
  }
  stride_ = group[1] - group[0];
  for (std::size_t i = 1; i < group.size(); ++i) {
    if (group[i] != group[0] + i * stride_)
      problem_ = fmt::format("its ranks are {}; allowed: ranks a constant number apart", ranks_text(group));
  }
  if (problem_.empty() && (ranks % (stride_ * before_) != 0 || replica(group[0], before_) != 0))
    problem_ = fmt::format("{} ranks that are {} apart do not divide the {} ranks of the trace", before_,
                           stride_, ranks);
}

RankId DataReplicas::peer(RankId given, RankId rank) const {
  if (replica(given, before_) != 0)
    throw InputError(
        place_, fmt::format("rank {} exchanges messages with rank {} of another data-parallel replica, so "
                            "the number of replicas cannot change",
                            original(rank) + 0U, given + 0U));
  return at(given, before_, replica(rank, after_), after_);
}

std::vector<RankId> DataReplicas::group(const std::vector<RankId>& given, RankId rank) const {
  std::vector<RankId> members, of_first;
  for (const RankId member : given) {
    if (replica(member, before_) == 0) of_first.push_back(member);
  }
  if (of_first.size() == given.size()) {
    for (const RankId member : given) members.push_back(peer(member, rank));
    return members;
  }
  if (of_first.size() * before_ != given.size() || !std::is_sorted(given.begin(), given.end()))
    throw InputError(
        place_, fmt::format("a group of {} ranks of the trace has some data-parallel replicas only, so their "
                            "number cannot change",
                            given.size()));
  for (std::uint32_t number = 0; number < after_; ++number) {
    for (const RankId member : of_first) members.push_back(at(member, before_, number, after_));
  }
  std::sort(members.begin(), members.end());
  return members;
}

}  // namespace netsim
