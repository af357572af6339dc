// phases: every rank goes through a list of phases, one after the other, several times. Phases are
// collectives, computation, and requests for other optical circuits.
//
//   kind: phases
//   ranks: 16
//   iterations: 10
//   phases:
//     - {circuits: ring}
//     - {collective: all_reduce, bytes: 100 MB}
//     - {circuits: pairs}
//     - {collective: all_to_all, bytes: 8 MB, groups: [[0, 1, 2, 3], [4, 5, 6, 7]]}
//     - {compute: 2 ms}
//     - together:
//         - {collective: all_reduce, bytes: 1 MB}
//         - {collective: all_gather, bytes: 4 MB}
//
// A rank begins a phase when its own part in the one before has ended. Ranks in none of a phase's groups skip
// it. Collectives that are listed together are one call (ncclGroupStart, ncclGroupEnd). They begin together,
// after one launch, and the next phase begins when all of them have ended. Circuits are requested when all
// members of a group have reached them.
#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/collective_names.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/workload/program/program_file.h"
#include "sim/workload/program/role_program_source.h"
#include "sim/workload/routing/token_section.h"
#include "sim/workload/traffic/counts.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

namespace {

constexpr std::int64_t kMaxPhases = 10'000;

struct Phase {
  CollectiveKind collective = CollectiveKind::all_reduce;
  Bytes bytes = 64 * kMegabyte;
  std::int64_t root = 0;
  Time compute = 0;
  std::string circuits;
  ConfigNode counts;
  TokenSection tokens;
  ConfigNode groups;
  std::string name;
  // These are not parameters: the kind, the groups (none: all ranks are one group), and the place in the
  // file.
  TaskKind kind = TaskKind::collective;
  std::vector<std::vector<RankId>> members;
  ConfigNode node;
  std::uint32_t call = 0;  // phases with the same number are one call
};

const Parameters<Phase>& phase_parameters() {
  using P = Phase;
  static const auto p =
      Parameters<P>()
          .choice("collective", &P::collective, collectives_by_name(), "collective of each group")
          .bytes("bytes", &P::bytes, {1, 1000 * kGigabyte},
                 "size of its buffer (netsim --describe collective)")
          .integer("root", &P::root, {0, kMaxTrafficRanks - 1},
                   "root of the collective, counted in the group")
          .list("counts", &P::counts, kCountsDoc)
          .section("tokens", &P::tokens, token_section_parameters(), kTokensDoc)
          .time("compute", &P::compute, {0, ProgramLimits::kKernelTime}, "or time that each rank computes")
          .text("circuits", &P::circuits, "or configuration of the optical switches that each group requests")
          .list("groups", &P::groups, "lists of ranks; default: all ranks are one group")
          .text("name", &P::name, "name of the phase in tables; default: its operation");
  return p;
}

struct PhasesParameters {
  std::int64_t ranks = 0;
  std::int64_t iterations = 1;
  std::string name = "phases";
};

const Parameters<PhasesParameters>& traffic_phases_parameters() {
  using P = PhasesParameters;
  static const auto p =
      Parameters<P>()
          .text("name", &P::name, "name of the job")
          .integer("ranks", &P::ranks, {0, kMaxTrafficRanks},
                   "number of ranks that take part; 0: all GPUs of the cluster")
          .integer("iterations", &P::iterations, {1, 1'000'000}, "number of times that all phases run");
  return p;
}

// Returns the kind of a phase. Each kind has keys of its own.
TaskKind kind_of(const ConfigNode& phase) {
  static const std::vector<std::pair<const char*, TaskKind>> kinds{
      {"collective", TaskKind::collective}, {"compute", TaskKind::compute}, {"circuits", TaskKind::circuits}};
  std::vector<TaskKind> given;
  for (const auto& [key, kind] : kinds) {
    if (phase.find(key) != nullptr) given.push_back(kind);
  }
  if (given.size() != 1) phase.fail("a phase is one of: collective, compute, circuits");
  for (const char* key : {"bytes", "root", "counts", "tokens"}) {
    if (given[0] == TaskKind::collective) continue;
    if (const ConfigNode* node = phase.find(key); node != nullptr)
      node->fail(std::string("only a collective has '") + key + "'");
  }
  return given[0];
}

std::vector<RankId> read_group(const ConfigNode& group, std::set<std::uint32_t>& taken) {
  if (!group.is_sequence() || group.items().empty()) group.fail("a list of ranks is expected");
  std::vector<RankId> ranks;
  for (const ConfigNode& item : group.items()) {
    const std::int64_t rank = read_integer(item);
    if (rank < 0 || rank >= kMaxTrafficRanks) out_of_range(item, "0", std::to_string(kMaxTrafficRanks - 1));
    if (!taken.insert(static_cast<std::uint32_t>(rank)).second)
      item.fail("rank " + std::to_string(rank) + " is in this phase twice");
    ranks.push_back(static_cast<std::uint32_t>(rank));
  }
  return ranks;
}

Phase read_phase(const ConfigNode& node) {
  Phase phase = phase_parameters().parse(node);
  phase.kind = kind_of(node);
  phase.node = node;
  if (phase.kind == TaskKind::collective) check_bytes(phase.collective, node);
  if (phase.groups.is_null()) return phase;
  if (!phase.groups.is_sequence() || phase.groups.items().empty())
    phase.groups.fail("a list of groups is expected: [[0, 1], [2, 3]]");
  std::set<std::uint32_t> taken;
  for (const ConfigNode& group : phase.groups.items()) phase.members.push_back(read_group(group, taken));
  return phase;
}

std::vector<Phase> read_phases(const ConfigNode& section) {
  const char* expected =
      "{collective, bytes}, {compute} or {circuits}, each with groups or without, or "
      "{together: [collectives]}";
  const ConfigNode* list = section.find("phases");
  if (list == nullptr) section.fail(std::string("'phases' is missing: a sequence of ") + expected);
  if (!list->is_sequence() || list->items().empty())
    list->fail(std::string("a sequence of ") + expected + " is expected");
  if (list->items().size() > kMaxPhases) list->fail("at most " + std::to_string(kMaxPhases) + " are allowed");
  std::vector<Phase> phases;
  std::uint32_t call = 0;
  for (const ConfigNode& item : list->items()) {
    const ConfigNode* together = item.is_map() ? item.find("together") : nullptr;
    if (together == nullptr) {
      phases.push_back(read_phase(item));
      phases.back().call = call++;
      continue;
    }
    item.allow_keys({"together"});
    if (!together->is_sequence() || together->items().empty())
      together->fail("a sequence of collectives is expected");
    for (const ConfigNode& one : together->items()) {
      phases.push_back(read_phase(one));
      phases.back().call = call;
      if (phases.back().kind != TaskKind::collective) one.fail("only collectives can share one call");
    }
    ++call;
  }
  return phases;
}

// PhasesProgram: the phases as role programs. Ranks in the same groups have the same role.
class PhasesProgram {
 public:
  PhasesProgram(const PhasesParameters& p, const std::vector<Phase>& phases, std::uint32_t ranks)
      : phases_(phases), ranks_(ranks), builder_(p.name), axis_(builder_.axis("rank", ranks)) {
    builder_.program().iterations = static_cast<std::uint32_t>(p.iterations);
    groups_by_rank_.resize(ranks);
    for (const Phase& phase : phases) join(phase);
    std::map<Part, std::vector<std::uint32_t>> roles;
    for (RankId rank = 0; rank < ranks; ++rank) roles[groups_by_rank_[rank]].push_back(rank);
    for (const auto& [part, players] : roles) add_role(part, players);
  }
  Program finish() { return builder_.finish(); }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  using Part = std::vector<std::uint32_t>;  // by phase: group of the program, or none

  void join(const Phase& phase) {
    if (phase.members.empty()) {
      check(phase, ranks_);
      const std::uint32_t all = builder_.group({{{axis_, {}}}, {}, 0});
      for (Part& part : groups_by_rank_) part.push_back(all);
      return;
    }
    for (Part& part : groups_by_rank_) part.push_back(kNone);
    for (const std::vector<RankId>& members : phase.members) {
      check(phase, members.size());
      const std::uint32_t group = builder_.group({{}, members, 0});
      for (const RankId rank : members) {
        if (rank >= ranks_) refuse(phase, "groups", "rank", rank, ranks_);
        groups_by_rank_[rank].back() = group;
      }
    }
  }
  static void check(const Phase& phase, std::size_t members) {
    if (phase.kind != TaskKind::collective) return;
    if (members < 2) throw InputError(phase.groups.place(), "a collective needs at least 2 ranks");
    if (static_cast<std::size_t>(phase.root) >= members) refuse(phase, "root", "root", phase.root, members);
  }
  [[noreturn]] static void refuse(const Phase& phase, const char* key, const char* what, std::int64_t given,
                                  std::size_t size) {
    throw InputError(place_of(phase.node, key), std::string(what) + " " + std::to_string(given) +
                                                    "; allowed: 0 to " + std::to_string(size - 1));
  }

  void add_role(const Part& part, const std::vector<std::uint32_t>& players) {
    BlockBuilder block(builder_, "phases");
    std::vector<BlockBuilder::Position> before, call;  // operations of the last call, and of this one
    std::optional<std::uint32_t> number;
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      if (part[i] == kNone) continue;
      const bool joins = number == phases_[i].call;
      if (!joins) before = std::exchange(call, {});
      number = phases_[i].call;
      call.push_back(add(block, phases_[i], part[i], size_of(phases_[i], players.front()), before, joins));
    }
    if (block.size() == 0) {
      throw InputError(phases_.front().node.place(),
                       "rank " + std::to_string(players.front()) + " is in no group of any phase");
    }
    ProgramRole role{"phases", {}, block.finish()};
    if (players.size() < ranks_) role.where.push_back({axis_, players});
    builder_.role(std::move(role));
  }

  // Returns the size of the rank's group.
  std::uint32_t size_of(const Phase& phase, RankId rank) const {
    for (const std::vector<RankId>& members : phase.members) {
      if (std::find(members.begin(), members.end(), rank) != members.end())
        return static_cast<std::uint32_t>(members.size());
    }
    return ranks_;
  }

  // Returns the counts in the program, which are read once for each phase and number of ranks.
  std::uint32_t counts_of(const Phase& phase, std::uint32_t members) {
    auto& all = builder_.program().counts;
    const auto [known, added] =
        counts_.try_emplace({&phase - phases_.data(), members}, static_cast<std::uint32_t>(all.size()));
    if (added && has_tokens(phase.collective)) {
      all.push_back(count_tokens(phase.tokens, members, tokens_node(phase.node)));
    } else if (added) {
      all.push_back(read_counts(phase.counts, members, phase.bytes));
    }
    return known->second;
  }

  BlockBuilder::Position add(BlockBuilder& block, const Phase& phase, std::uint32_t group,
                             std::uint32_t group_size, const std::vector<BlockBuilder::Position>& after,
                             bool joins) {
    if (phase.kind == TaskKind::compute) {
      const std::string name = phase.name.empty() ? "compute" : phase.name;
      Kernel kernel;
      kernel.kind = Kernel::Kind::fixed;
      kernel.name = name;
      kernel.duration = phase.compute;
      return block.compute({name, {kernel}}, after);
    }
    ProgramOp op;
    op.kind = phase.kind;
    op.joins = joins;
    op.stream = Stream::dp;
    op.group = group;
    if (phase.kind == TaskKind::circuits) {
      op.circuits = builder_.name(phase.circuits);
      op.name = phase.name.empty() ? op.circuits : builder_.name(phase.name);
    } else {
      op.collective = phase.collective;
      op.root = static_cast<std::uint32_t>(phase.root);
      if (has_bytes(phase.collective)) op.bytes = phase.bytes;
      if (has_counts(phase.collective)) op.counts_plus_one = counts_of(phase, group_size) + 1;
      op.name = builder_.name(phase.name.empty() ? to_string(phase.collective) : phase.name);
    }
    return block.add(std::move(op), after);
  }

  const std::vector<Phase>& phases_;
  std::uint32_t ranks_;
  ProgramBuilder builder_;
  std::uint32_t axis_;
  std::vector<Part> groups_by_rank_;  // by rank
  // By phase and members.
  std::map<std::pair<std::ptrdiff_t, std::uint32_t>, std::uint32_t> counts_;
};

class Phases final : public WorkloadKind {
 public:
  Phases(PhasesParameters p, const ConfigNode& where)
      : p_(std::move(p)),
        place_(where.place()),
        ranks_place_(place_of(where, "ranks")),
        phases_(read_phases(where)) {
    for (const Phase& phase : phases_) {
      const bool rooted = phase.kind == TaskKind::collective && has_root(phase.collective);
      if (phase.root != 0 && !rooted)
        phase.node.fail(std::string(to_string(phase.collective)) + " has no root");
    }
  }

  std::string compile() const override {
    if (p_.ranks == 0)
      throw ConfigError(ranks_place_, "'ranks' is missing: a compiled file needs a fixed number of ranks");
    return serialize_program(PhasesProgram(p_, phases_, static_cast<std::uint32_t>(p_.ranks)).finish());
  }
  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    const std::uint32_t ranks = traffic_ranks(p_.ranks, context, ranks_place_);
    std::map<std::string, Place> circuits;
    for (const Phase& phase : phases_) {
      if (phase.kind == TaskKind::circuits)
        circuits.try_emplace(phase.circuits, place_of(phase.node, "circuits"));
    }
    return make_role_program_source(PhasesProgram(p_, phases_, ranks).finish(), place_.file, circuits);
  }

 private:
  PhasesParameters p_;
  Place place_, ranks_place_;
  std::vector<Phase> phases_;
};

ParameterTable phases_table() {
  ParameterInfo list;
  list.name = "phases";
  list.type = "list";
  list.doc = "operations of all ranks, in order";
  list.children = phase_parameters().table();
  ParameterInfo together;
  together.name = "together";
  together.type = "list";
  together.doc = "instead of these: collectives of one grouped call, which begin together";
  list.children.push_back(together);
  ParameterTable table = traffic_phases_parameters().table();
  table.push_back(list);
  return table;
}

const Registration<WorkloadKind> kTrafficPhases{
    "phases", "collectives, computing and requests for optical circuits, one after the other, several times",
    phases_table(), [](const ConfigNode& node) {
      const ConfigNode own = node.is_scalar() ? ConfigNode() : node;
      return std::make_unique<Phases>(traffic_phases_parameters().parse(own, {"kind", "phases"}), node);
    }};

}  // namespace

}  // namespace netsim
