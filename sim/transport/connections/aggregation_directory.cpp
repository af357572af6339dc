#include "sim/transport/connections/aggregation_directory.h"

#include <algorithm>

#include "sim/core/errors.h"

namespace netsim {

void AggregationDirectory::close_broken(const std::vector<bool>& down) {
  const auto is_down = [&](PortId port) { return down[port] || down[port ^ 1U]; };
  const auto breaks = [&](std::uint32_t session) {
    return std::any_of(sessions[session].ports.begin(), sessions[session].ports.end(), is_down);
  };
  std::erase_if(laid, [&](const auto& entry) {
    const std::vector<PortId> links = entry.second->links();
    return std::any_of(links.begin(), links.end(), is_down);
  });
  table.close(breaks);
  if (ledger != nullptr) ledger->close(breaks);
}

AggregationLedger::AggregationLedger(Engine& engine, AggregationDirectory& directory)
    : directory_(directory) {
  began_reader_ = engine.add_reader(began_journal_);
  ended_reader_ = engine.add_reader(ended_journal_);
}

void AggregationLedger::close(const std::function<bool(std::uint32_t)>& breaks) {
  table_.close([&](std::uint32_t tree) { return breaks(trees_[tree].carrier); });
}

void AggregationLedger::began(const Began& message) {
  const AggregationSession& carrier = directory_.sessions[message.session];
  const auto members = static_cast<std::uint32_t>(carrier.gpus.size());
  std::uint32_t tree = table_.find(message.key, message.member);
  if (tree == kNone) {
    tree = table_.add(members);
    table_.bind_new(tree, message.key, carrier.parts.empty());
    trees_.push_back({message.session, std::vector<std::uint32_t>(members, 0)});
    for (const AggregationMemory::Share& share : carrier.memory) directory_.memory.take(share);
  }
  std::uint64_t ways = 0;
  for (std::uint32_t member = 0; member < members; ++member) {
    if (carrier.gives[member] != 0 && member != message.member) continue;
    ++ways;
    on_their_way_[{message.key, member}].push_back({tree, tree, trees_[tree].messages[member]++});
  }
  table_.begin(tree, message.member, ways);
}

void AggregationLedger::ended(const Ended& message) {
  const auto at = on_their_way_.find({message.key, message.member});
  NETSIM_CHECK(at != on_their_way_.end(), "a message through switches ended that had not begun");
  const Name name = at->second.front();
  at->second.pop_front();
  if (at->second.empty()) on_their_way_.erase(at);
  table_.end(name.session, 1);
  if (message.sends) last_ = name;
}

}  // namespace netsim
