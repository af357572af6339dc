// htsim: the fat tree of a .topo file of htsim: 2 or 3 tiers, with bundles of parallel links between
// switches.
//
//   Nodes 8
//   Tiers 3
//   Podsize 4
//   Tier 0                    # its downlinks lead to hosts
//   Downlink_speed_Gbps 200
//   Radix_Down 2
//   Radix_Up 2
//   Downlink_Latency_ns 1000
//   ...
//
// Links are those of htsim (fat_tree_topology.cpp). A switch of tier 0 is joined to every switch of tier 1 of
// its pod. Switch p of a pod's tier 1 is joined to the switches p, p + n, p + 2n, ... of tier 2, where n is
// the number of tier-1 switches in a pod. `Bundle` of a tier is the number of parallel links down to each
// neighbour. A switch's latency is added to the delay of the links that leave it.
//
// Queue sizes (Queue_Down, Queue_Up) have no effect, and a note reports this: `network.switch` sets the
// buffers of switches.
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/topology/files/file_parameters.h"
#include "sim/topology/files/link_list.h"

namespace netsim {

namespace {

const Parameters<FileFabricParameters>& htsim_parameters() {
  static const auto p = with_file_fabric(Parameters<FileFabricParameters>(), "the .topo file");
  return p;
}

// One tier of the file; absent values are -1.
struct Tier {
  bool given = false;
  std::int64_t speed_gbps = -1, radix_down = -1, radix_up = -1, latency_ns = -1;
  std::int64_t bundle = 1, switch_latency_ns = 0;
};

struct Tree {
  std::uint32_t hosts = 0, tiers = 0, pod_hosts = 0;
  std::array<Tier, 3> tier;
  // Computed counts: pods, switches of tiers 0 and 1 in a pod, and all switches of the top tier.
  std::uint32_t pods = 0, lower = 0, upper = 0, cores = 0;
  bool has_queues = false;
};

class TreeReader {
 public:
  TreeReader(std::string_view text, const std::string& path) : reader_(text, path), whole_{path, 0, 0, ""} {
    std::vector<Word> words;
    while (reader_.next_line(words)) {
      if (!words[0].text.starts_with('#')) read_line(words);
    }
    check_complete();
    count_switches();
  }
  const Tree& tree() const { return tree_; }

 private:
  void read_line(const std::vector<Word>& words) {
    if (words.size() < 2) reader_.fail(words[0], "a key and a number are expected");
    if (words.size() > 2 && !words[2].text.starts_with('#')) reader_.fail(words[2], "one number is expected");
    const std::string key = lower_case(words[0].text);
    if (key == "tier") {
      tier_ = &tree_.tier[static_cast<std::size_t>(reader_.integer(words[1], "the tier", {0, 2}))];
      if (tier_->given) reader_.fail(words[1], "a second section for this tier");
      tier_->given = true;
    } else if (!read_header(key, words[1]) && !read_tier_value(key, words[1])) {
      reader_.fail(words[0], "'" + std::string(words[0].text.substr(0, 40)) +
                                 "' is not known here (allowed: Nodes, Tiers, Podsize, Tier; in a tier "
                                 "Downlink_speed_Gbps, Radix_Down, Radix_Up, Downlink_Latency_ns, "
                                 "Switch_Latency_ns, Bundle, Oversubscribed, Queue_Down, Queue_Up)");
    }
  }

  bool read_header(const std::string& key, const Word& word) {
    if (key == "nodes") {
      tree_.hosts = static_cast<std::uint32_t>(reader_.integer(word, "Nodes", {1, kMaxHostPorts}));
    } else if (key == "tiers") {
      tree_.tiers = static_cast<std::uint32_t>(reader_.integer(word, "Tiers", {2, 3}));
    } else if (key == "podsize") {
      tree_.pod_hosts = static_cast<std::uint32_t>(reader_.integer(word, "Podsize", {1, kMaxHostPorts}));
    } else {
      return false;
    }
    return true;
  }

  bool read_tier_value(const std::string& key, const Word& word) {
    struct Entry {
      const char* key;
      std::int64_t Tier::*member;
      Range<std::int64_t> range;
    };
    constexpr std::int64_t kRadix = 1 << 16, kLatency = 1'000'000'000;
    static const Entry entries[] = {{"downlink_speed_gbps", &Tier::speed_gbps, {1, 100'000}},
                                    {"radix_down", &Tier::radix_down, {1, kRadix}},
                                    {"radix_up", &Tier::radix_up, {1, kRadix}},
                                    {"downlink_latency_ns", &Tier::latency_ns, {1, kLatency}},
                                    {"switch_latency_ns", &Tier::switch_latency_ns, {0, kLatency}},
                                    {"bundle", &Tier::bundle, {1, kRadix}},
                                    // `oversubscribed` follows from radices; queue sizes have no effect.
                                    {"oversubscribed", nullptr, {1, kRadix}},
                                    {"queue_down", nullptr, {0, INT64_MAX}},
                                    {"queue_up", nullptr, {0, INT64_MAX}}};
    for (const Entry& entry : entries) {
      if (key != entry.key) continue;
      if (tier_ == nullptr)
        reader_.fail(word, "'" + key + "' belongs in a tier: 'Tier 0' must come before it");
      const std::int64_t value = reader_.integer(word, key, entry.range);
      if (entry.member != nullptr) tier_->*entry.member = value;
      if (key.starts_with("queue")) tree_.has_queues = true;
      return true;
    }
    return false;
  }

  [[noreturn]] void fail(const std::string& message) const { throw InputError(whole_, message); }

  void check_complete() const {
    if (tree_.hosts == 0) fail("'Nodes' is missing");
    if (tree_.tiers == 0) fail("'Tiers' is missing");
    if (tree_.pod_hosts == 0) fail("'Podsize' is missing");
    for (std::uint32_t i = 0; i < tree_.tiers; ++i) {
      const Tier& tier = tree_.tier[i];
      const std::string where = " of tier " + std::to_string(i) + " is missing";
      if (!tier.given) fail("'Tier " + std::to_string(i) + "' is missing");
      if (tier.speed_gbps < 0) fail("Downlink_speed_Gbps" + where);
      if (tier.radix_down < 0) fail("Radix_Down" + where);
      if (tier.latency_ns < 0) fail("Downlink_Latency_ns" + where);
      if (tier.radix_up < 0 && i + 1 < tree_.tiers) fail("Radix_Up" + where);
    }
    if (tree_.tier[0].bundle != 1) fail("Bundle of tier 0 is above 1: hosts have one link");
  }

  std::uint32_t divided(std::int64_t dividend, std::int64_t divisor, const std::string& what) const {
    if (dividend % divisor != 0 || dividend == 0) {
      fail(what + ": " + std::to_string(dividend) + " is not a multiple of " + std::to_string(divisor));
    }
    return static_cast<std::uint32_t>(dividend / divisor);
  }

  void count_switches() {
    const auto& [t0, t1, t2] = tree_.tier;
    const bool three = tree_.tiers == 3;
    if (!three) tree_.pod_hosts = tree_.hosts;
    tree_.pods = divided(tree_.hosts, tree_.pod_hosts, "Nodes / Podsize");
    tree_.lower = divided(tree_.pod_hosts, t0.radix_down, "Podsize / Radix_Down of tier 0");
    tree_.upper =
        divided(tree_.lower * t0.radix_up, t1.radix_down, "uplinks of a pod's tier 0 / Radix_Down of tier 1");
    if (tree_.upper * t1.bundle != t0.radix_up || tree_.lower * t1.bundle != t1.radix_down) {
      fail("tiers 0 and 1 do not fit: " + std::to_string(tree_.lower) + " and " +
           std::to_string(tree_.upper) + " switches a pod, bundles of " + std::to_string(t1.bundle));
    }
    if (!three) return;
    const std::int64_t uplinks = std::int64_t{tree_.pods} * tree_.upper * t1.radix_up;
    tree_.cores = divided(uplinks, t2.radix_down, "uplinks of tier 1 / Radix_Down of tier 2");
    const std::uint32_t each = divided(t1.radix_up, t2.bundle, "Radix_Up of tier 1 / Bundle of tier 2");
    if (each * tree_.upper != tree_.cores || tree_.pods * t2.bundle != t2.radix_down) {
      fail("tiers 1 and 2 do not fit: " + std::to_string(tree_.pods * tree_.upper) + " and " +
           std::to_string(tree_.cores) + " switches, bundles of " + std::to_string(t2.bundle));
    }
  }

  TextReader reader_;
  Place whole_;
  Tree tree_;
  Tier* tier_ = nullptr;
};

// Builds the list of links. Switches are numbered tier by tier: tor0, ..., agg0, ..., core0, ...
class TreeBuilder {
 public:
  TreeBuilder(const Tree& tree, const FileFabricParameters& p) : tree_(tree), p_(p) {
    first_upper_ = tree.pods * tree.lower;
    first_core_ = first_upper_ + tree.pods * tree.upper;
    list_.host_ports = tree.hosts;
    name_switches("tor", first_upper_, 0);
    name_switches("agg", tree.pods * tree.upper, 1);
    name_switches("core", tree.cores, 2);
    join_hosts();
    join_pods();
    join_cores();
  }
  LinkList take() { return std::move(list_); }

 private:
  void name_switches(const char* name, std::uint32_t count, int tier) {
    for (std::uint32_t i = 0; i < count; ++i) list_.switches.push_back({name + std::to_string(i), tier});
  }
  // Joins a switch of tier `tier` to a switch or host below it.
  void join(std::uint32_t upper, LinkEnd lower, std::size_t tier) {
    const Tier& t = tree_.tier[tier];
    LinkSpec down{.kind = p_.link_kind,
                  .rate = t.speed_gbps * kGbps,
                  .delay = (t.latency_ns + t.switch_latency_ns) * kNanosecond,
                  .overhead = p_.overhead};
    LinkSpec up = down;
    up.delay = (t.latency_ns + (tier > 0 ? tree_.tier[tier - 1].switch_latency_ns : 0)) * kNanosecond;
    for (std::int64_t i = 0; i < t.bundle; ++i) list_.links.push_back({{false, upper}, lower, down, up, {}});
  }
  void join_hosts() {
    for (std::uint32_t host = 0; host < tree_.hosts; ++host) {
      join(host / static_cast<std::uint32_t>(tree_.tier[0].radix_down), {true, host}, 0);
    }
  }
  void join_pods() {
    for (std::uint32_t tor = 0; tor < first_upper_; ++tor) {
      const std::uint32_t pod = tor / tree_.lower;
      for (std::uint32_t i = 0; i < tree_.upper; ++i) {
        join(first_upper_ + pod * tree_.upper + i, {false, tor}, 1);
      }
    }
  }
  void join_cores() {
    for (std::uint32_t agg = 0; agg < tree_.pods * tree_.upper; ++agg) {
      for (std::uint32_t core = agg % tree_.upper; core < tree_.cores; core += tree_.upper) {
        join(first_core_ + core, {false, first_upper_ + agg}, 2);
      }
    }
  }

  const Tree& tree_;
  const FileFabricParameters& p_;
  std::uint32_t first_upper_ = 0, first_core_ = 0;
  LinkList list_;
};

class HtsimTree final : public Topology {
 public:
  HtsimTree(LinkList list, bool has_queues) : list_(std::move(list)), has_queues_(has_queues) {}
  std::uint32_t host_ports() const override { return list_.host_ports; }
  std::vector<std::uint32_t> host_numbers() const override { return list_.numbers(); }
  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const override {
    constexpr ChannelParameters kNone{.channels = 1};  // routes lead up, then down
    return list_.build(graph, nics, kNone);
  }
  std::vector<std::string> notes() const override {
    if (!has_queues_) return {};
    return {
        "the .topo file's Queue_Down and Queue_Up have no effect: `network.switch.buffer` sets the buffer of "
        "a switch"};
  }

 private:
  LinkList list_;
  bool has_queues_;
};

// Returns whether the file has htsim's keys, in any order and case.
bool is_htsim_topology(const Excerpt& file) {
  const auto key = [&](std::size_t line) {
    const auto words = file.words(line);
    return words.size() > 1 && is_integer_word(words[1]) ? lower_case(words[0]) : std::string();
  };
  if (!is_one_of(key(0), {"nodes", "tiers", "podsize", "tier"})) return false;
  for (std::size_t i = 0; i < file.lines(); ++i) {
    if (is_one_of(key(i), {"tiers", "podsize", "tier"})) return true;
  }
  return false;
}

const FormatRegistration kHtsimFormat{{.name = "htsim_topology",
                                       .what = "a fat tree of htsim (.topo)",
                                       .use = Format::Use::topology,
                                       .matches = is_htsim_topology,
                                       .component = "htsim",
                                       .advice = {},
                                       .endings = {".topo"}}};

const Registration<Topology> kHtsim{
    "htsim", "the fat tree of a .topo file of htsim: 2 or 3 tiers, bundles, latencies of links and switches",
    htsim_parameters(), [](const FileFabricParameters& p, const ConfigNode& where) {
      const InputText input = read_named_file(where, "htsim_topology");
      const TreeReader reader(input.text, input.path);
      return std::make_unique<HtsimTree>(TreeBuilder(reader.tree(), p).take(), reader.tree().has_queues);
    }};

}  // namespace

}  // namespace netsim
