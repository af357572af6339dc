#include "sim/workload/task_list/rank_list.h"

#include <algorithm>
#include <utility>

#include "sim/core/text.h"
#include "sim/workload/traffic/traffic.h"

namespace netsim {
namespace {

constexpr const char* kAllRanks = "all";

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// Returns whether a text is a rank or a range of ranks, right or wrong.
bool looks_like_ranks(const std::string& text) {
  return !text.empty() && (is_digit(text[0]) || text[0] == '-');
}

RankId read_rank(const std::string& text, const ConfigNode& node) {
  const std::int64_t rank = read_integer(ConfigNode::scalar(text, node.place()));
  if (rank < 0 || rank >= kMaxTrafficRanks)
    node.fail("rank " + text + "; allowed: 0 to " + std::to_string(kMaxTrafficRanks - 1));
  return static_cast<std::uint32_t>(rank);
}

// Appends a rank or a range.
void append_ranks(const ConfigNode& node, std::vector<RankId>& ranks) {
  const std::string text = read_text(node);
  const std::size_t dash = text.find('-', 1);
  if (dash == std::string::npos || !is_number(text.substr(0, dash)) || !is_number(text.substr(dash + 1))) {
    if (!looks_like_ranks(text)) node.fail("'" + text + "' is neither a rank nor a range of ranks (0-7)");
    ranks.push_back(read_rank(text, node));
    return;
  }
  const RankId first = read_rank(text.substr(0, dash), node);
  const RankId last = read_rank(text.substr(dash + 1), node);
  if (last < first) node.fail("the range " + text + " ends before it begins");
  for (RankId rank = first; rank <= last; ++rank) ranks.push_back(rank);
}

SharedRanks read_listed(const ConfigNode& node) {
  std::vector<RankId> ranks;
  if (node.is_sequence()) {
    for (const ConfigNode& item : node.items()) append_ranks(item, ranks);
  } else {
    append_ranks(node, ranks);
  }
  if (ranks.empty()) node.fail("a rank, a range (0-7) or a list of these is expected");
  return std::make_shared<const RankList>(std::move(ranks), node);
}

[[noreturn]] void refuse_group(const ConfigNode& node, const RankGroups& groups) {
  std::vector<std::string> names;
  for (const auto& [name, ranks] : groups) names.push_back(name);
  std::string known = names.empty() ? "there are no groups" : "groups are";
  for (std::size_t i = 0; i < names.size(); ++i) known += (i == 0 ? " " : ", ") + names[i];
  node.fail("'" + node.text() + "' is neither a rank, nor a range (0-7), nor a group: " + known +
            did_you_mean(node.text(), names));
}

}  // namespace

RankList::RankList(std::vector<RankId> ranks, const ConfigNode& node)
    : ranks_(std::move(ranks)), sorted_(ranks_) {
  std::sort(sorted_.begin(), sorted_.end());
  const auto twice = std::adjacent_find(sorted_.begin(), sorted_.end());
  if (twice != sorted_.end()) node.fail("rank " + std::to_string(*twice) + " is listed twice");
}

bool RankList::contains(RankId rank) const {
  return std::binary_search(sorted_.begin(), sorted_.end(), rank);
}

bool RankList::meets(const RankList& other) const {
  const RankList& small = sorted_.size() < other.sorted_.size() ? *this : other;
  const RankList& large = &small == this ? other : *this;
  return std::any_of(small.sorted_.begin(), small.sorted_.end(),
                     [&](RankId rank) { return large.contains(rank); });
}

RankGroups read_rank_groups(const ConfigNode& node) {
  RankGroups groups;
  if (node.is_null()) return groups;
  if (!node.is_map()) node.fail("groups by name are expected: {data: [0, 1, 2, 3]}");
  for (const auto& [name, ranks] : node.entries()) {
    if (name == kAllRanks) ranks.fail("'all' stands for all ranks: a group needs another name");
    if (looks_like_ranks(name)) ranks.fail("'" + name + "' would be read as ranks: begin with a letter");
    groups[name] = read_listed(ranks);
  }
  return groups;
}

SharedRanks read_named_ranks(const ConfigNode& node, const RankGroups& groups) {
  if (!node.is_scalar() || looks_like_ranks(node.text())) return read_listed(node);
  const auto group = groups.find(node.text());
  if (group == groups.end()) refuse_group(node, groups);
  return group->second;
}

SharedRanks read_rank_list(const ConfigNode& node, const RankGroups& groups) {
  if (node.is_null() || (node.is_scalar() && node.text() == kAllRanks)) return nullptr;
  return read_named_ranks(node, groups);
}

}  // namespace netsim
