#include "sim/workload/trace/inspector_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "sim/core/errors.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

// Returns a key by which names with numbers are sorted: node2 is before node10.
std::string natural_key(const std::string& name) {
  std::string key;
  for (std::size_t i = 0; i < name.size();) {
    if (!is_digit(name[i])) {
      key += name[i++];
      continue;
    }
    std::size_t end = i;
    while (end < name.size() && is_digit(name[end])) ++end;
    key += std::string(20 - std::min<std::size_t>(end - i, 20), '0') + name.substr(i, end - i);
    i = end;
  }
  return key;
}

bool members_end_together(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
         kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all;
}

}  // namespace

InspectorJob::InspectorJob(const InputSet& input, std::uint32_t most_ranks)
    : log_(read_inspector(input, most_ranks)), most_ranks_(most_ranks) {
  find_actors();
  number_actors();
  find_members();
  match();
  align();
  sort();
}

void InspectorJob::find_actors() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> rank_in;  // by process and communicator
  std::set<std::uint32_t> shared;                                            // processes with several GPUs
  for (const InspectorRecord& record : log_.records) {
    const auto [at, is_new] = rank_in.try_emplace({record.process, record.communicator}, record.rank);
    if (!is_new && at->second != record.rank) shared.insert(record.process);
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
  actor_of_.reserve(log_.records.size());
  for (const InspectorRecord& record : log_.records) {
    const std::uint32_t part = shared.count(record.process) > 0 ? record.rank : 0;
    const auto [at, is_new] =
        known.try_emplace({record.process, part}, static_cast<std::uint32_t>(actors_.size()));
    if (is_new) {
      Actor actor;
      actor.process = record.process;
      actor.part = part;
      actors_.push_back(actor);
    }
    actor_of_.push_back(at->second);
  }
}

// The largest communicator to which all GPUs belong numbers them. Otherwise they are sorted by their hosts.
void InspectorJob::number_actors() {
  std::vector<std::map<std::uint32_t, std::uint32_t>> rank_of(log_.communicators.size());  // by actor
  for (std::uint32_t i = 0; i < log_.records.size(); ++i)
    rank_of[log_.records[i].communicator].emplace(actor_of_[i], log_.records[i].rank);
  std::optional<std::size_t> widest;
  for (std::size_t i = 0; i < rank_of.size(); ++i) {
    std::set<std::uint32_t> ranks;
    for (const auto& [actor, rank] : rank_of[i]) ranks.insert(rank);
    const bool has_all = ranks.size() == actors_.size();
    if (has_all && (!widest || log_.communicators[*widest].ranks < log_.communicators[i].ranks)) widest = i;
  }
  numbered_ = widest.has_value();
  if (widest) {
    world_ = log_.communicators[*widest].ranks;
    for (const auto& [actor, rank] : rank_of[*widest]) actors_[actor].rank = RankId(rank);
  } else {
    number_by_hosts();
  }
  is_recorded_.assign(world_, false);
  for (const Actor& actor : actors_) is_recorded_[actor.rank] = true;
}

void InspectorJob::number_by_hosts() {
  world_ = static_cast<std::uint32_t>(actors_.size());
  std::vector<std::tuple<std::string, std::int64_t, std::uint32_t, std::uint32_t>> order;
  for (std::uint32_t i = 0; i < actors_.size(); ++i) {
    const InspectorLog::Process& process = log_.processes[actors_[i].process];
    order.emplace_back(natural_key(process.first), process.second, actors_[i].part, i);
  }
  std::sort(order.begin(), order.end());
  for (std::uint32_t i = 0; i < order.size(); ++i) actors_[std::get<3>(order[i])].rank = RankId(i);
}

void InspectorJob::find_members() {
  std::vector<std::vector<std::optional<RankId>>> known(log_.communicators.size());
  for (std::size_t i = 0; i < known.size(); ++i) known[i].resize(log_.communicators[i].ranks);
  for (std::uint32_t i = 0; i < log_.records.size(); ++i) {
    const InspectorRecord& record = log_.records[i];
    const RankId rank = actors_[actor_of_[i]].rank;
    std::optional<RankId>& member = known[record.communicator][record.rank];
    if (member && *member != rank) {
      throw InputError(Place{log_.files[record.file], record.line, 1, ""},
                       fmt::format("two processes are rank {} of communicator {}", record.rank,
                                   log_.communicators[record.communicator].id));
    }
    member = rank;
  }
  members_.reserve(known.size());
  for (auto& members : known) fill(members);
}

// Gives ranks to the members that were not recorded. They are those at the distance of the recorded ones, or
// else the first ranks without records.
void InspectorJob::fill(std::vector<std::optional<RankId>>& members) {
  filled_ += static_cast<std::uint64_t>(std::count(members.begin(), members.end(), std::nullopt));
  if (!fill_regular(members)) {
    std::set<RankId> used;
    for (const auto& member : members) {
      if (member) used.insert(*member);
    }
    RankId next = 0;
    for (std::optional<RankId>& member : members) {
      if (member) continue;
      while (next < world_ && (is_recorded_[next] || used.count(next) > 0)) ++next;
      if (next == world_) {
        if (++world_ > most_ranks_)
          fail_file(log_.files.front(),
                    fmt::format("{} GPUs are needed, but the cluster has {}", world_, most_ranks_));
        is_recorded_.push_back(false);
      }
      member = next;
      ++next;
    }
  }
  members_.emplace_back();
  members_.back().reserve(members.size());
  for (const auto& member : members) members_.back().push_back(*member);
}

// Fills a communicator whose recorded members are equally far apart. Returns false for others.
bool InspectorJob::fill_regular(std::vector<std::optional<RankId>>& members) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> known;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i]) known.emplace_back(static_cast<std::int64_t>(i), *members[i] + std::int64_t{0});
  }
  if (known.size() == members.size()) return true;
  std::int64_t stride = 1;
  if (known.size() > 1) {
    const std::int64_t places = known[1].first - known[0].first, ranks = known[1].second - known[0].second;
    if (ranks <= 0 || ranks % places != 0) return false;
    stride = ranks / places;
  } else if (members.size() != world_) {
    return false;
  }
  const std::int64_t first = known[0].second - known[0].first * stride;
  const auto rank_at = [&](std::int64_t place) { return first + place * stride; };
  const bool regular = std::all_of(known.begin(), known.end(),
                                   [&](const auto& one) { return one.second == rank_at(one.first); });
  if (!regular || first < 0 || rank_at(static_cast<std::int64_t>(members.size()) - 1) >= world_) return false;
  for (std::size_t i = 0; i < members.size(); ++i)
    members[i] = RankId(static_cast<std::uint32_t>(rank_at(static_cast<std::int64_t>(i))));
  return true;
}

void InspectorJob::match() {
  using Pair = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  std::map<Pair, std::pair<Messages, Messages>> messages;  // sent and received
  for (std::uint32_t i = 0; i < log_.records.size(); ++i) {
    const InspectorRecord& record = log_.records[i];
    if (record.kind == InspectorRecord::Kind::collective) {
      add_collective(i);
    } else if (record.kind == InspectorRecord::Kind::send) {
      messages[{record.communicator, record.rank, record.peer}].first.push_back(i);
    } else {
      messages[{record.communicator, record.peer, record.rank}].second.push_back(i);
    }
  }
  for (const auto& [pair, ends] : messages)
    match_messages(std::get<0>(pair), std::get<1>(pair), std::get<2>(pair), ends.first, ends.second);
}

void InspectorJob::add_collective(std::uint32_t index) {
  const InspectorRecord& record = log_.records[index];
  const auto [at, is_new] = collectives_.try_emplace({record.communicator, record.collective, record.number},
                                                     static_cast<std::uint32_t>(instances_.size()));
  if (is_new) {
    Instance instance;
    instance.communicator = record.communicator;
    instance.collective = record.collective;
    instance.bytes = record.bytes;
    instances_.push_back(std::move(instance));
  }
  Instance& instance = instances_[at->second];
  // The records of a rank in a communicator follow each other.
  if (!instance.members.empty() && instance.members.back().first == record.rank) {
    ++repeated_;
    return;
  }
  if (instance.bytes != record.bytes) {
    throw InputError(
        Place{log_.files[record.file], record.line, 1, ""},
        fmt::format("call {} has {} B here and {} B at rank {}; allowed: the same at all members",
                    record.number, record.bytes, instance.bytes, instance.members.front().first));
  }
  instance.members.emplace_back(record.rank, index);
}

// A send is matched with the next receive of as many bytes. The other end of a message that was not recorded
// is added.
void InspectorJob::match_messages(std::uint32_t communicator, std::uint32_t from, std::uint32_t to,
                                  const Messages& sent, const Messages& received) {
  const auto add = [&](std::optional<std::uint32_t> send, std::optional<std::uint32_t> receive) {
    Instance instance;
    instance.communicator = communicator;
    instance.message = true;
    instance.from = from;
    instance.to = to;
    instance.bytes = log_.records[send ? *send : *receive].bytes;
    if (send) instance.members.emplace_back(from, *send);
    if (receive) instance.members.emplace_back(to, *receive);
    instances_.push_back(std::move(instance));
  };
  std::size_t next = 0;
  for (const std::uint32_t send : sent) {
    std::size_t at = next;
    while (at < received.size() && log_.records[received[at]].bytes != log_.records[send].bytes) ++at;
    if (at == received.size()) {
      add(send, std::nullopt);
      continue;
    }
    for (; next < at; ++next) add(std::nullopt, received[next]);
    add(send, received[next++]);
  }
  for (; next < received.size(); ++next) add(std::nullopt, received[next]);
}

// Members of a collective end together. A clock's offset is the median of the differences of its ends to
// those of clocks with known offsets.
void InspectorJob::align() {
  actors_.front().aligned = true;
  for (bool changed = true; changed;) {
    std::map<std::uint32_t, std::vector<std::int64_t>> differences;  // by actor
    for (const Instance& instance : instances_) {
      if (instance.message || !members_end_together(instance.collective)) continue;
      const auto known =
          std::find_if(instance.members.begin(), instance.members.end(),
                       [&](const auto& member) { return actors_[actor_of_[member.second]].aligned; });
      if (known == instance.members.end()) continue;
      const std::int64_t end = log_.records[known->second].end - actors_[actor_of_[known->second]].offset;
      for (const auto& [rank, record] : instance.members) {
        if (!actors_[actor_of_[record]].aligned)
          differences[actor_of_[record]].push_back(log_.records[record].end - end);
      }
    }
    for (auto& [actor, list] : differences) {
      std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2), list.end());
      actors_[actor].offset = list[list.size() / 2];
      actors_[actor].aligned = true;
      largest_offset_ = std::max({largest_offset_, actors_[actor].offset, -actors_[actor].offset});
    }
    changed = !differences.empty();
  }
  for (const Actor& actor : actors_) unaligned_ += actor.aligned ? 0 : 1;
}

// Calls of a function in a communicator keep the order of their numbers.
void InspectorJob::sort() {
  std::int64_t first = INT64_MAX;
  for (std::uint32_t i = 0; i < log_.records.size(); ++i) first = std::min(first, start(i));
  origin_ = first;
  for (Instance& instance : instances_) {
    instance.time = INT64_MAX;
    for (const auto& [rank, record] : instance.members) instance.time = std::min(instance.time, end(record));
  }
  const Instance* before = nullptr;
  for (const auto& [key, index] : collectives_) {
    Instance& instance = instances_[index];
    if (before != nullptr && before->communicator == instance.communicator &&
        before->collective == instance.collective)
      instance.time = std::max(instance.time, before->time);
    before = &instance;
  }
  std::vector<std::uint32_t> place(instances_.size(), 0);  // of equal times: by number
  for (std::uint32_t next = 0; const auto& [key, index] : collectives_) place[index] = next++;
  std::vector<std::uint32_t> order;
  order.reserve(instances_.size());
  for (std::uint32_t i = 0; i < instances_.size(); ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(instances_[a].time, place[a], a) < std::tuple(instances_[b].time, place[b], b);
  });
  std::vector<Instance> sorted;
  sorted.reserve(instances_.size());
  for (const std::uint32_t index : order) sorted.push_back(std::move(instances_[index]));
  instances_ = std::move(sorted);
}

}  // namespace netsim
