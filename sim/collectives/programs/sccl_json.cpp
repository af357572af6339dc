#include "sim/collectives/programs/sccl_json.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/collectives/programs/json_value.h"
#include "sim/collectives/programs/program_file.h"
#include "sim/collectives/programs/step_schedule.h"
#include "sim/core/config.h"
#include "sim/core/input_file.h"
#include "sim/core/parameters.h"
#include "sim/core/recognise.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr std::int64_t kMostAddresses = INT32_MAX;

void check_kind(const ConfigNode& node, ConfigNode::Kind kind) {
  if (node.kind() != kind) refuse(node, name_of(kind));
}

const ConfigNode& required_entry(const ConfigNode& node, const std::string& key, ConfigNode::Kind kind) {
  check_kind(node, ConfigNode::Kind::map);
  const ConfigNode* found = node.find(key);
  if (found == nullptr) node.fail("'" + key + "' is missing");
  check_kind(*found, kind);
  return *found;
}

const std::vector<ConfigNode>& items(const ConfigNode& node) {
  check_kind(node, ConfigNode::Kind::sequence);
  return node.items();
}

std::string ranks_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " rank" : " ranks");
}

std::uint32_t read_number(const ConfigNode& node, std::int64_t least, std::int64_t most) {
  const std::int64_t value = is_plain(node) ? read_integer(node) : -1;
  if (value < least || value > most)
    refuse(node, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
  return static_cast<std::uint32_t>(value);
}

const std::string& text(const ConfigNode& node) {
  if (!node.is_scalar() || !node.quoted()) refuse(node, "a text");
  return node.text();
}

// ---- Parts that must be valid but are not used

void check_real(const ConfigNode& node) {
  if (!is_plain(node) || read_real(node) < 0) refuse(node, "a number from 0 on");
}
void check_count(const ConfigNode& node) { read_number(node, 0, INT32_MAX); }
void check_count_or_null(const ConfigNode& node) {
  if (node.is_null()) return;
  if (!is_plain(node)) refuse(node, "an integer from 0 on, or null");
  check_count(node);
}
void check_bool(const ConfigNode& node) {
  if (!is_plain(node) || (node.text() != "true" && node.text() != "false")) refuse(node, "true or false");
}
void check_text(const ConfigNode& node) { text(node); }
void check_text_or_null(const ConfigNode& node) {
  if (!node.is_null() && !(node.is_scalar() && node.quoted())) refuse(node, "a text, or null");
}

template <class Check>
void check_if_there(const ConfigNode& node, const char* key, Check check) {
  if (const ConfigNode* found = node.find(key)) check(*found);
}

void check_instance(const ConfigNode& instance) {
  check_kind(instance, ConfigNode::Kind::map);
  for (const char* key : {"steps", "chunks"}) check_if_there(instance, key, check_count);
  for (const char* key : {"pipeline", "extra_memory"}) check_if_there(instance, key, check_count_or_null);
  check_if_there(instance, "extra_rounds", check_real);
  check_if_there(instance, "allow_exchange", check_bool);
}

// Checks a table with a row for each rank and an entry from each rank; 0 means that there is no link.
void check_links(const ConfigNode& links, std::size_t ranks) {
  const auto check_size = [&](const ConfigNode& list) {
    if (items(list).size() != ranks)
      list.fail("a list of " + std::to_string(list.items().size()) + " was given; allowed: of " +
                std::to_string(ranks) + ", one for each rank");
  };
  check_size(links);
  for (const ConfigNode& row : links.items()) {
    check_size(row);
    for (const ConfigNode& link : row.items()) check_real(link);
  }
}

// Checks a switch: [senders, receivers, bandwidth, name].
void check_switch(const ConfigNode& node, std::int64_t ranks) {
  if (items(node).size() != 4) node.fail("allowed: [senders, receivers, bandwidth, name]");
  for (const std::size_t side : {0, 1}) {
    for (const ConfigNode& rank : items(node.items()[side])) read_number(rank, 0, ranks - 1);
  }
  check_real(node.items()[2]);
  check_text(node.items()[3]);
}

// Checks the topology. TACCL's has neither links nor switches; its other entries are ignored.
void check_topology(const ConfigNode& topology, std::int64_t ranks) {
  check_kind(topology, ConfigNode::Kind::map);
  check_if_there(topology, "name", check_text);
  check_if_there(topology, "links",
                 [&](const ConfigNode& links) { check_links(links, static_cast<std::size_t>(ranks)); });
  check_if_there(topology, "switches", [&](const ConfigNode& switches) {
    for (const ConfigNode& each : items(switches)) check_switch(each, ranks);
  });
}

// Checks the triggers: for each rank, the chunk that each chunk becomes.
void check_triggers(const ConfigNode& triggers) {
  check_kind(triggers, ConfigNode::Kind::map);
  for (const auto& [rank, chunks] : triggers.entries()) {
    check_kind(chunks, ConfigNode::Kind::map);
    for (const auto& [chunk, next] : chunks.entries()) check_count(next);
  }
}

// ---- Parts that are used

// Returns the kind of "Allgather(n=8)", "allgather" or "reduce_scatter". The text up to a parenthesis is
// compared by its letters, in lower case.
CollectiveKind kind_named(const ConfigNode& node) {
  static constexpr std::pair<const char*, CollectiveKind> kNames[] = {
      {"allgather", CollectiveKind::all_gather},         {"allreduce", CollectiveKind::all_reduce},
      {"reducescatter", CollectiveKind::reduce_scatter}, {"alltoall", CollectiveKind::all_to_all},
      {"broadcast", CollectiveKind::broadcast},          {"reduce", CollectiveKind::reduce}};
  const std::string& given = text(node);
  std::string name, allowed;
  for (const char c : given.substr(0, given.find('('))) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const auto& [known, kind] : kNames) {
    if (name == known) return kind;
    append_item(allowed, known);
  }
  node.fail("'" + given + "' is no collective; allowed: " + allowed);
}

// ChunkCheck: compares the chunks of a collective with the maps, by the ranks that have an address before and
// after. An address is one chunk where nothing is added up. Otherwise it is one chunk of each rank that has
// it before.
class ChunkCheck {
 public:
  explicit ChunkCheck(const StepSchedule& schedule)
      : kind_(schedule.kind),
        adds_up_(info_of(schedule.kind).goal.contributors == ChunkRanks::all),
        ranks_(static_cast<std::int64_t>(schedule.inputs.size())) {
    collect(schedule.inputs, before_);
    collect(schedule.outputs, after_);
  }

  void check(const ConfigNode& chunks) {
    for (const ConfigNode& chunk : chunks.items()) check_chunk(chunk);
    for (const auto& [address, holders] : before_) {
      for (const std::uint32_t rank : holders) {
        if (!begins_[address].contains(rank))
          chunks.fail("no chunk of address " + std::to_string(address) + " begins at rank " +
                      std::to_string(rank) + ", which has it in input_map; allowed: " +
                      (adds_up_ ? "one of each rank that has it there" : "one of each address"));
      }
    }
  }

 private:
  using Ranks = std::set<std::uint32_t>;

  static void collect(const std::vector<std::vector<std::uint32_t>>& map,
                      std::map<std::uint32_t, Ranks>& holders) {
    for (std::uint32_t rank = 0; rank < map.size(); ++rank) {
      for (const std::uint32_t address : map[rank]) holders[address].insert(rank);
    }
  }

  void check_chunk(const ConfigNode& chunk) {
    const ConfigNode& at = required_entry(chunk, "addr", ConfigNode::Kind::scalar);
    const std::uint32_t address = read_number(at, 0, kMostAddresses);
    if (!before_.contains(address))
      refuse(at, "an address that input_map has, because each chunk begins somewhere");
    const ConfigNode& pre = required_entry(chunk, "pre", ConfigNode::Kind::sequence);
    if (adds_up_ && pre.items().size() != 1)
      pre.fail(ranks_text(pre.items().size()) + " given; allowed: one, because the " + to_string(kind_) +
               " adds up the chunks of an address");
    const Ranks begins = ranks_in(pre, before_[address], address, "input_map");
    if (!adds_up_) check_all(pre, begins, before_[address], address, "input_map");
    const ConfigNode& post = required_entry(chunk, "post", ConfigNode::Kind::sequence);
    const Ranks ends = ranks_in(post, after_[address], address, "output_map");
    check_all(post, ends, after_[address], address, "output_map");
    for (const std::uint32_t rank : begins) {
      if (!begins_[address].insert(rank).second)
        at.fail("address " + std::to_string(address) + " was given, of which another chunk begins at rank " +
                std::to_string(rank) + "; allowed: one");
    }
  }

  Ranks ranks_in(const ConfigNode& list, const Ranks& holders, std::uint32_t address, const char* map) const {
    Ranks result;
    for (const ConfigNode& item : list.items()) {
      const std::uint32_t rank = read_number(item, 0, ranks_ - 1);
      if (!holders.contains(rank))
        item.fail("rank " + std::to_string(rank) + " was given, which does not have address " +
                  std::to_string(address) + " in " + map + "; allowed: ranks that have it there");
      if (!result.insert(rank).second)
        item.fail("rank " + std::to_string(rank) + " was given twice; allowed: once");
    }
    return result;
  }

  static void check_all(const ConfigNode& list, const Ranks& given, const Ranks& holders,
                        std::uint32_t address, const char* map) {
    for (const std::uint32_t rank : holders) {
      if (!given.contains(rank))
        list.fail(ranks_text(given.size()) + " given, and not rank " + std::to_string(rank) +
                  ", which has address " + std::to_string(address) + " in " + map +
                  "; allowed: all that have it there");
    }
  }

  CollectiveKind kind_;
  bool adds_up_;
  std::int64_t ranks_;
  std::map<std::uint32_t, Ranks> before_, after_;  // by address
  std::map<std::uint32_t, Ranks> begins_;          // of the chunks so far, by address
};

class AlgorithmReader {
 public:
  explicit AlgorithmReader(const ConfigNode& root) : root_(root) {}

  StepSchedule read() {
    const ConfigNode& collective = required_entry(root_, "collective", ConfigNode::Kind::map);
    read_names(collective);
    ranks_ = read_number(required_entry(collective, "nodes", ConfigNode::Kind::scalar), 2, kMostProgramRanks);
    schedule_.inputs = addresses("input_map");
    schedule_.outputs = addresses("output_map");
    if (collective.find("chunks") != nullptr)
      ChunkCheck(schedule_).check(required_entry(collective, "chunks", ConfigNode::Kind::sequence));
    check_if_there(collective, "triggers", check_triggers);
    check_if_there(root_, "instance", check_instance);
    check_if_there(root_, "topology", [&](const ConfigNode& node) { check_topology(node, ranks_); });
    for (const ConfigNode& step : required_entry(root_, "steps", ConfigNode::Kind::sequence).items())
      add_step(step);
    return std::move(schedule_);
  }

 private:
  void read_names(const ConfigNode& collective) {
    check_if_there(collective, "runtime_name", check_text_or_null);
    const ConfigNode* runtime = collective.find("runtime_name");
    const bool named = runtime != nullptr && !runtime->is_null();
    schedule_.kind =
        kind_named(required_entry(collective, named ? "runtime_name" : "name", ConfigNode::Kind::scalar));
    schedule_.name = text(required_entry(root_, "name", ConfigNode::Kind::scalar));
    schedule_.place = root_.place();
  }

  // Returns each rank's addresses. The maps are sets. Chunks of a buffer are ordered by address, not by their
  // order in the file (sorted(algorithm.input_map[rank]) in sccl/ncclize.py of msccl and TACCL).
  std::vector<std::vector<std::uint32_t>> addresses(const char* map) const {
    std::vector<std::vector<std::uint32_t>> result(ranks_);
    for (const auto& [name, list] : required_entry(root_, map, ConfigNode::Kind::map).entries()) {
      const std::uint32_t rank = read_number(ConfigNode::scalar(name, list.key_place()), 0, ranks_ - 1);
      for (const ConfigNode& address : items(list))
        result[rank].push_back(read_number(address, 0, kMostAddresses));
      std::sort(result[rank].begin(), result[rank].end());
    }
    return result;
  }

  void add_step(const ConfigNode& step) {
    std::vector<StepSchedule::Send>& sends = schedule_.steps.emplace_back();
    for (const ConfigNode& send : required_entry(step, "sends", ConfigNode::Kind::sequence).items()) {
      if (!send.is_sequence() || send.items().size() < 3 || send.items().size() > 6)
        send.fail("allowed: [address, from, to] and up to 3 more");
      const std::vector<ConfigNode>& words = send.items();
      sends.push_back({read_number(words[0], 0, kMostAddresses), read_number(words[1], 0, ranks_ - 1),
                       read_number(words[2], 0, ranks_ - 1), send.place()});
      if (words.size() > 3) check_real(words[3]);          // time
      if (words.size() > 4) check_count(words[4]);         // link
      if (words.size() > 5) check_text_or_null(words[5]);  // how it is added
    }
    check_if_there(step, "rounds", check_real);
  }

  const ConfigNode& root_;
  std::int64_t ranks_ = 0;
  StepSchedule schedule_;
};

const FormatRegistration kScclJsonFormat{{.name = "sccl_json",
                                          .what = "an algorithm of SCCL or TACCL (JSON)",
                                          .use = Format::Use::part,
                                          .matches =
                                              [](const Excerpt& file) {
                                                return file.has_any_key({"msccl_type", "sccl_type"});
                                              },
                                          .component = "msccl",
                                          .advice = kProgramAdvice,
                                          .endings = {".json"}}};

}  // namespace

CollectiveProgram read_sccl_json(std::string text, const std::string& path) {
  return as_input([&] {
    const ConfigNode root = parse_config(text, path);
    return program_of(AlgorithmReader(root).read());
  });
}

}  // namespace netsim
