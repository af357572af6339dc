#include "sim/transport/connections/aggregation_table.h"

#include <algorithm>

#include "sim/core/random.h"

namespace netsim {

AggregationKey AggregationKey::of(const Message& message) {
  const AggregationUse use = message.aggregation_use;
  const std::uint8_t traffic_class =
      use == AggregationUse::allreduce ? message.traits.traffic_class : std::uint8_t{0};
  return {message.aggregation, use, traffic_class, message.traits.job, message.communication, message.tag};
}

std::size_t AggregationKeyHash::operator()(const AggregationKey& key) const {
  std::uint64_t hash = hash_combine(key.aggregation, key.communication);
  hash = hash_combine(hash, key.tag);
  return static_cast<std::size_t>(hash_combine(hash, static_cast<std::uint64_t>(key.job) << 16 |
                                                         static_cast<std::uint64_t>(key.traffic_class) << 8 |
                                                         static_cast<std::uint64_t>(key.use)));
}

// Returns the oldest session of the key that still takes a message of the member; kNone if there is none.
std::uint32_t AggregationTable::known(const AggregationKey& key, std::uint32_t member) const {
  const auto at = session_of_.find(key);
  std::uint32_t found = kNone;
  for (std::uint32_t one = at == session_of_.end() ? kNone : at->second; one != kNone;
       one = entries_[one].before) {
    const Entry& entry = entries_[one];
    if (entry.retired && is_idle(one)) continue;
    if (entry.closes_at == UINT64_MAX || entry.sent[member] < entry.closes_at) found = one;
  }
  return found;
}

std::uint32_t AggregationTable::find(const AggregationKey& key, std::uint32_t member) {
  if (const std::uint32_t session = known(key, member); session != kNone) return session;
  std::vector<std::uint32_t>& same = sessions_of_group_[key.of_group()];
  std::erase_if(same, [&](std::uint32_t one) { return !entries_[one].usable(); });
  const auto idle = std::find_if(same.begin(), same.end(), [&](std::uint32_t one) { return is_idle(one); });
  if (idle == same.end()) return kNone;
  session_of_.erase(entries_[*idle].key);
  bind(*idle, key);
  return *idle;
}

std::uint32_t AggregationTable::add(std::uint32_t members) {
  const auto session = static_cast<std::uint32_t>(entries_.grow(1));
  entries_[session].sent.assign(members, 0);
  return session;
}

void AggregationTable::bind_new(std::uint32_t session, const AggregationKey& key, bool shared) {
  if (shared) sessions_of_group_[key.of_group()].push_back(session);
  bind(session, key);
}

void AggregationTable::bind(std::uint32_t session, const AggregationKey& key) {
  const auto former = session_of_.find(key);
  entries_[session].key = key;
  entries_[session].before = former == session_of_.end() ? kNone : former->second;
  session_of_[key] = session;
}

void AggregationTable::close(const std::function<bool(std::uint32_t)>& breaks) {
  for (std::uint32_t session = 0; session < size(); ++session) {
    Entry& entry = entries_[session];
    if (!entry.usable() || entry.sent.empty() || !breaks(session)) continue;
    entry.closes_at = *std::max_element(entry.sent.begin(), entry.sent.end());
  }
}

}  // namespace netsim
