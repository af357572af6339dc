#include "sim/collectives/programs/sccl_json.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "sim/collectives/programs/program_file.h"
#include "sim/collectives/programs/step_schedule.h"
#include "sim/core/config.h"
#include "sim/core/input_file.h"
#include "sim/core/parameters.h"
#include "sim/core/recognise.h"

namespace netsim {
namespace {

constexpr std::int64_t kMostAddresses = INT32_MAX;

const ConfigNode& entry(const ConfigNode& node, const std::string& key, ConfigNode::Kind kind) {
  static constexpr const char* kKinds[] = {"a null", "a value", "a list", "an object"};
  const ConfigNode* found = node.find(key);
  if (found == nullptr) node.fail("'" + key + "' is missing");
  if (found->kind() != kind) found->fail(std::string("allowed: ") + kKinds[static_cast<std::size_t>(kind)]);
  return *found;
}

std::uint32_t number(const ConfigNode& node, std::int64_t least, std::int64_t most) {
  const std::int64_t value = node.is_scalar() ? read_integer(node) : -1;
  if (value < least || value > most)
    node.fail("allowed: an integer from " + std::to_string(least) + " to " + std::to_string(most));
  return static_cast<std::uint32_t>(value);
}

// "Allgather(n=8)", "allgather", "reduce_scatter": small letters up to what is none, joined.
CollectiveKind kind_named(const ConfigNode& node) {
  static constexpr std::pair<const char*, CollectiveKind> kNames[] = {
      {"allgather", CollectiveKind::all_gather},         {"allreduce", CollectiveKind::all_reduce},
      {"reducescatter", CollectiveKind::reduce_scatter}, {"alltoall", CollectiveKind::all_to_all},
      {"broadcast", CollectiveKind::broadcast},          {"reduce", CollectiveKind::reduce}};
  const std::string given = read_text(node);
  std::string name, allowed;
  for (const char c : given.substr(0, given.find('('))) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const auto& [known, kind] : kNames) {
    if (name == known) return kind;
    allowed += (allowed.empty() ? "" : ", ") + std::string(known);
  }
  node.fail("'" + given + "' is no collective; allowed: " + allowed);
}

class AlgorithmReader {
 public:
  explicit AlgorithmReader(const ConfigNode& root) : root_(root) {}

  StepSchedule read() {
    const ConfigNode& collective = entry(root_, "collective", ConfigNode::Kind::map);
    const bool named =
        collective.find("runtime_name") != nullptr && collective.find("runtime_name")->is_scalar();
    schedule_.kind = kind_named(entry(collective, named ? "runtime_name" : "name", ConfigNode::Kind::scalar));
    schedule_.name = read_text(entry(root_, "name", ConfigNode::Kind::scalar));
    schedule_.place = root_.place();
    ranks_ = number(entry(collective, "nodes", ConfigNode::Kind::scalar), 2, kMostProgramRanks);
    schedule_.inputs = addresses("input_map");
    schedule_.outputs = addresses("output_map");
    for (const ConfigNode& step : entry(root_, "steps", ConfigNode::Kind::sequence).items()) add_step(step);
    return std::move(schedule_);
  }

 private:
  std::vector<std::vector<std::uint32_t>> addresses(const char* map) const {
    std::vector<std::vector<std::uint32_t>> result(ranks_);
    for (const auto& [name, list] : entry(root_, map, ConfigNode::Kind::map).entries()) {
      const std::uint32_t rank = number(ConfigNode::scalar(name, list.key_place()), 0, ranks_ - 1);
      if (!list.is_sequence()) list.fail("allowed: a list of addresses");
      for (const ConfigNode& address : list.items())
        result[rank].push_back(number(address, 0, kMostAddresses));
    }
    return result;
  }

  void add_step(const ConfigNode& step) {
    std::vector<StepSchedule::Send>& sends = schedule_.steps.emplace_back();
    for (const ConfigNode& send : entry(step, "sends", ConfigNode::Kind::sequence).items()) {
      if (!send.is_sequence() || send.items().size() < 3 || send.items().size() > 6)
        send.fail("allowed: [address, from, to] and up to 3 more");
      const std::vector<ConfigNode>& words = send.items();
      sends.push_back({number(words[0], 0, kMostAddresses), number(words[1], 0, ranks_ - 1),
                       number(words[2], 0, ranks_ - 1), send.place()});
    }
  }

  const ConfigNode& root_;
  std::int64_t ranks_ = 0;
  StepSchedule schedule_;
};

const FormatRegistration kFormat{{.name = "sccl_json",
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
