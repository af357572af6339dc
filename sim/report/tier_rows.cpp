#include "sim/report/tier_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr std::size_t kOfLongerRows = 14;

// Returns groups of hosts that are joined to the same switches, in the order of their first hosts. Hosts are
// single groups if there are at most `longest`. Hosts with a router of their own are drawn as the router.
std::vector<TierEntry> host_row(const ClusterParts& parts, std::size_t longest) {
  std::vector<TierEntry> row;
  std::map<std::vector<NodeId>, std::size_t> known;
  const auto hosts = static_cast<std::uint32_t>(parts.switches_of_hosts().size());
  const bool alone = hosts <= longest;
  for (std::uint32_t host = 0; host < hosts; ++host) {
    if (parts.has_router(host)) continue;
    const auto [at, fresh] = known.try_emplace(parts.switches_of_hosts()[host], row.size());
    if (alone || fresh) row.emplace_back();
    (alone ? row.back() : row[at->second]).hosts.push_back(host);
  }
  return row;
}

class RowFolding {
 public:
  // A row with at most `longest` boxes is not folded.
  RowFolding(const ClusterParts& parts, std::size_t longest) : parts_(parts), longest_(longest) {
    std::map<int, std::vector<TierEntry>> above, below;
    for (const NodeId id : parts.switches()) {
      const int tier = parts.graph().node(id).tier;
      (parts.fabric_of(id) == 0 ? above[-tier] : below[tier]).push_back({{id}, {}, 0});
    }
    std::vector<TierEntry> hosts = host_row(parts, longest);
    for (auto& [tier, row] : above) rows_.rows.push_back(std::move(row));
    if (!hosts.empty()) rows_.rows.push_back(std::move(hosts));
    for (auto& [tier, row] : below) rows_.rows.push_back(std::move(row));
  }

  bool is_whole() const {
    return std::none_of(rows_.rows.begin(), rows_.rows.end(),
                        [this](const auto& row) { return is_long(row); });
  }
  TierRows fold() {
    if (!is_whole()) fold_pods();
    for (std::vector<TierEntry>& row : rows_.rows) {
      if (is_long(row)) fold_alike(row);
      if (is_long(row)) leave_out_middle(row);
    }
    return std::move(rows_);
  }

 private:
  bool is_long(const std::vector<TierEntry>& row) const { return row.size() > longest_; }
  static std::size_t members(const TierEntry& entry) {
    return entry.switches.size() + entry.hosts.size() + entry.left_out;
  }

  // Returns the pod of all switches of an entry, or of all switches that its hosts are joined to.
  std::optional<std::size_t> pod_of(const TierEntry& entry) const {
    std::set<std::optional<std::size_t>> pods;
    const auto add = [&](NodeId id) {
      const auto found = parts_.pods().find(id);
      pods.insert(found == parts_.pods().end() ? std::nullopt : std::optional(found->second));
    };
    for (const NodeId id : entry.switches) add(id);
    for (const std::uint32_t host : entry.hosts) {
      for (const NodeId id : parts_.switches_of_hosts()[host]) {
        if (parts_.fabric_of(id) == 0) add(id);
      }
    }
    return pods.size() == 1 ? *pods.begin() : std::nullopt;
  }

  // Keeps so many pods that their rows fit: the first ones and the last, or only the first.
  void fold_pods() {
    if (parts_.pod_count() < 2) return;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> sizes;  // by row and pod
    std::size_t widest = 1;
    for (std::size_t row = 0; row < rows_.rows.size(); ++row) {
      for (const TierEntry& entry : rows_.rows[row]) {
        if (const auto pod = pod_of(entry)) widest = std::max(widest, ++sizes[{row, *pod}]);
      }
    }
    const std::size_t fit = (longest_ - 1) / widest, all = parts_.pod_count();
    if (fit == 0 || fit >= all) return;
    const auto is_shown = [&](std::size_t pod) { return pod + 1 < fit || pod == (fit == 1 ? 0 : all - 1); };
    for (std::vector<TierEntry>& row : rows_.rows) {
      std::vector<TierEntry> kept;
      std::optional<std::size_t> gap;
      for (TierEntry& entry : row) {
        const auto pod = pod_of(entry);
        if (!pod || is_shown(*pod)) {
          kept.push_back(std::move(entry));
          continue;
        }
        if (!gap) {
          gap = kept.size();
          kept.emplace_back();
        }
        kept[*gap].left_out += members(entry);
      }
      row = std::move(kept);
    }
    rows_.notes.push_back(
        fmt::format("{} of {} equal pods {} drawn; +N counts the switches and hosts of the others.", fit, all,
                    fit == 1 ? "is" : "are"));
  }

  // Puts switches with the same neighbours into one box, if that halves the row.
  void fold_alike(std::vector<TierEntry>& row) {
    std::map<std::set<NodeId>, std::size_t> known;
    std::vector<TierEntry> folded;
    for (const TierEntry& entry : row) {
      if (entry.switches.empty()) return;
      std::set<NodeId> peers;
      for (const PortId port : parts_.graph().ports_of(entry.switches.front()))
        peers.insert(parts_.graph().port(port).peer_node);
      const auto [at, fresh] = known.try_emplace(std::move(peers), folded.size());
      if (fresh) folded.emplace_back();
      folded[at->second].switches.push_back(entry.switches.front());
    }
    if (2 * folded.size() > row.size()) return;
    row = std::move(folded);
    rows_.notes.push_back(fmt::format("{} to {}: switches that are joined alike share a box.",
                                      parts_.graph().node(row.front().switches.front()).name,
                                      parts_.graph().node(row.back().switches.back()).name));
  }

  static void leave_out_middle(std::vector<TierEntry>& row) {
    TierEntry gap;
    for (std::size_t i = kOfLongerRows; i + 1 < row.size(); ++i) gap.left_out += members(row[i]);
    row[kOfLongerRows] = std::move(gap);
    row[kOfLongerRows + 1] = std::move(row.back());
    row.resize(kOfLongerRows + 2);
  }

  const ClusterParts& parts_;
  std::size_t longest_;
  TierRows rows_;
};

// Returns a name for switches from `first` to `last`: "core0-7", or their number and kind.
std::string name_of_range(const std::string& first, const std::string& last, std::size_t count) {
  std::size_t a = first.size(), b = last.size();
  while (a > 0 && is_digit(first[a - 1])) --a;
  while (b > 0 && is_digit(last[b - 1])) --b;
  const auto is_number = [](std::size_t digits) { return digits > 0 && digits < 19; };  // it fits 64 bits
  const bool range = is_number(first.size() - a) && is_number(last.size() - b) &&
                     first.substr(0, a) == last.substr(0, b) &&
                     std::stoul(first.substr(a)) + count == std::stoul(last.substr(b)) + 1;
  return range ? first + "-" + last.substr(b) : fmt::format("{} switches", count);
}

}  // namespace

TierRows rows_of_tiers(const ClusterParts& parts, std::size_t whole) {
  RowFolding rows(parts, whole);
  return rows.is_whole() ? rows.fold() : RowFolding(parts, kLongestRow).fold();
}

std::string name_of_switches(const std::vector<NodeId>& switches, const Graph& graph) {
  const std::string &first = graph.node(switches.front()).name, &last = graph.node(switches.back()).name;
  return switches.size() == 1 ? first : name_of_range(first, last, switches.size());
}

}  // namespace netsim
