#include "sim/training/strategy/stage_reshardings.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace netsim {
namespace {

// Gives each step the least colour that none of its GPUs has yet.
std::vector<std::uint32_t> colors_of(const MeshResharding& plan) {
  const std::uint32_t sources = plan.source.gpus();
  // By GPU, the source's first, for each kind: the colours that it has.
  std::vector<std::vector<bool>> messages(sources + plan.destination.gpus()), groups = messages;
  std::vector<std::uint32_t> colors;
  colors.reserve(plan.steps.size());
  for (const ReshardingStep& step : plan.steps) {
    auto& had = step.kind == ReshardingStep::Kind::message ? messages : groups;
    std::vector<std::uint32_t> members;
    if (step.kind != ReshardingStep::Kind::gather) members.push_back(step.from);
    for (const GpuId gpu : step.to) members.push_back(sources + gpu);
    const auto taken = [&](std::uint32_t color) {
      return std::any_of(members.begin(), members.end(), [&](std::uint32_t member) {
        return color < had[member].size() && had[member][color];
      });
    };
    std::uint32_t color = 0;
    while (taken(color)) ++color;
    for (const std::uint32_t member : members) {
      had[member].resize(std::max<std::size_t>(had[member].size(), color + 1));
      had[member][color] = true;
    }
    colors.push_back(color);
  }
  return colors;
}

}  // namespace

// Maker: makes the transfer of a tensor of rows and columns.
class StageReshardings::Maker {
  // ColoredPlan: a plan and the colour of each of its steps. Messages have colours of their own.
  struct ColoredPlan {
    MeshResharding plan;
    std::vector<std::uint32_t> colors;
    std::uint32_t most = 0;  // number of colours
  };

 public:
  Maker(const StageReshardings& all, std::uint32_t from, std::uint32_t to,
        std::vector<std::vector<std::uint32_t>> division, Bytes element)
      : source_(all.stages_[from]),
        destination_(all.stages_[to]),
        division_(std::move(division)),
        element_(element),
        how_(all.how_),
        ranks_(rank_count(all.builder_.program())),
        blocks_(std::gcd(source_.data, destination_.data)) {}

  // Transfers a tensor that is divided among the replicas of all blocks.
  void divide(std::int64_t rows, std::int64_t columns) {
    tensor_ = {rows / blocks_, columns};
    const std::uint32_t here = source_.data / blocks_, there = destination_.data / blocks_;
    for (std::uint32_t context = 0; context < source_.context; ++context) {
      for (std::uint32_t block = 0; block < blocks_; ++block) {
        add(ranks_of(source_, context, block * here, here),
            ranks_of(destination_, context, block * there, there), 0);
      }
    }
  }

  // Transfers a tensor of which each replica has its own. One replica of its block receives it; all of these
  // receive the same number.
  void give(std::int64_t rows, std::int64_t columns) {
    tensor_ = {rows, columns};
    const std::uint32_t here = source_.data / blocks_, there = destination_.data / blocks_;
    for (std::uint32_t context = 0; context < source_.context; ++context) {
      for (std::uint32_t replica = 0; replica < source_.data; ++replica) {
        const std::uint32_t block = replica / here, place = replica % here;
        add(ranks_of(source_, context, replica, 1),
            ranks_of(destination_, context, block * there + place % there, 1), place / there);
      }
    }
  }

  Transfer finish(ProgramBuilder& builder) {
    for (std::vector<std::int64_t>& peers : peers_) made_.tables.push_back(builder.table(std::move(peers)));
    return std::move(made_);
  }

 private:
  // Returns the ranks of consecutive replicas.
  static Ranks ranks_of(const StageLayout& stage, std::uint32_t context, std::uint32_t replica,
                        std::uint32_t replicas) {
    Ranks ranks;
    for (std::uint32_t row = replica; row < replica + replicas; ++row) {
      for (std::uint32_t tensor = 0; tensor < stage.tensor; ++tensor)
        ranks.push_back(stage.first + (row * stage.context + context) * stage.tensor + tensor);
    }
    return ranks;
  }

  // Returns the hosts of ranks, numbered from 0 on.
  std::vector<HostId> hosts_of(const Ranks& ranks) const {
    std::vector<HostId> hosts;
    hosts.reserve(ranks.size());
    HostId host = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (i > 0 && ranks[i] / how_.ranks_per_host != ranks[i - 1] / how_.ranks_per_host) ++host;
      hosts.push_back(host);
    }
    return hosts;
  }
  ShardedMesh mesh_of(const StageLayout& stage, std::vector<HostId> hosts) const {
    ShardedMesh mesh;
    mesh.rows = static_cast<std::uint32_t>(hosts.size()) / stage.tensor;
    mesh.columns = stage.tensor;
    mesh.division = division_;
    mesh.hosts_of = std::move(hosts);
    return mesh;
  }
  const ColoredPlan& plan_of(const Ranks& from, const Ranks& to) {
    const std::pair hosts(hosts_of(from), hosts_of(to));
    const auto [known, added] = plans_.try_emplace(hosts);
    if (added) {
      known->second.plan = make_resharding(tensor_, element_, mesh_of(source_, hosts.first),
                                           mesh_of(destination_, hosts.second), how_.strategy, how_.balance);
      known->second.colors = colors_of(known->second.plan);
      for (const std::uint32_t color : known->second.colors)
        known->second.most = std::max(known->second.most, color + 1);
    }
    return known->second;
  }

  // `before` is the number of earlier transfers to the same receivers.
  void add(const Ranks& from, const Ranks& to, std::uint32_t before) {
    const ColoredPlan& colored = plan_of(from, to);
    for (std::size_t i = 0; i < colored.plan.steps.size(); ++i) {
      const ReshardingStep& step = colored.plan.steps[i];
      Call call{step.kind, false, step.end - step.begin, colored.colors[i] + before * colored.most};
      Ranks members;
      if (step.kind != ReshardingStep::Kind::gather) members.push_back(from[step.from]);
      for (const GpuId gpu : step.to) members.push_back(to[gpu]);
      for (const RankId rank : members) {
        call.sends = step.kind != ReshardingStep::Kind::gather && rank == members.front();
        made_.calls[rank].push_back(call);
      }
      if (step.kind == ReshardingStep::Kind::message) {
        std::vector<std::int64_t>& peers = of_color(peers_, call.color);
        peers.resize(ranks_);
        peers[members.front()] = members.back();
        peers[members.back()] = members.front();
      } else {
        of_color(made_.groups, call.color).push_back(std::move(members));
      }
    }
  }
  template <class T>
  static T& of_color(std::vector<T>& all, std::uint32_t color) {
    if (all.size() <= color) all.resize(color + 1);
    return all[color];
  }

  const StageLayout &source_, &destination_;
  std::vector<std::vector<std::uint32_t>> division_;
  Bytes element_;
  const StageResharding& how_;
  std::size_t ranks_;  // number of ranks of the job
  std::uint32_t blocks_;
  std::vector<std::int64_t> tensor_;
  std::map<std::pair<std::vector<HostId>, std::vector<HostId>>, ColoredPlan> plans_;  // by hosts
  std::vector<std::vector<std::int64_t>> peers_;                                      // by colour and rank
  Transfer made_;
};

StageReshardings::StageReshardings(ProgramBuilder& builder, const PipelinePlacement& placement,
                                   std::vector<StageLayout> stages, StageBoundaries boundaries,
                                   const std::optional<SharedParameters>& shared, StageResharding how)
    : builder_(builder), stages_(std::move(stages)), boundaries_(std::move(boundaries)), how_(how) {
  for (std::uint32_t route = 0; route < placement.routes(); ++route) {
    for (std::uint32_t part = 0; part + 1 < placement.parts(); ++part) {
      const std::uint32_t one = placement.at(route, part).stage, other = placement.at(route, part + 1).stage;
      plan(one, other, part);
      plan(other, one, part);
    }
  }
  if (shared) {
    exchange(*shared, shared->first, shared->last);
    exchange(*shared, shared->last, shared->first);
  }
  for (std::uint32_t stage = 0; stage < stages_.size(); ++stage) classify(stage);
}

void StageReshardings::plan(std::uint32_t from, std::uint32_t to, std::uint32_t part) {
  if (!reshards(from, to)) return;
  const auto [place, added] = transfers_.try_emplace(key(from, to, part));
  if (!added) return;
  std::vector<std::vector<std::uint32_t>> division{{0}, {}};
  if (boundaries_.sequence) division[1] = {1};
  Maker maker(*this, from, to, std::move(division), boundaries_.element);
  maker.divide(boundaries_.samples, boundaries_.elements[part]);
  place->second = maker.finish(builder_);
}

void StageReshardings::exchange(const SharedParameters& shared, std::uint32_t from, std::uint32_t to) {
  Maker maker(*this, from, to, {{1}, {}}, shared.element);
  maker.give(shared.rows, shared.columns);
  transfers_[key(from, to, kShared)] = maker.finish(builder_);
}

void StageReshardings::classify(std::uint32_t stage) {
  std::vector<Ranks>& classes = classes_.emplace_back();
  std::map<std::vector<std::vector<Call>>, std::size_t> known;  // classes by calls of each transfer
  const RankId first = stages_[stage].first;
  for (RankId rank = first; rank < first + stages_[stage].ranks(); ++rank) {
    std::vector<std::vector<Call>> does;
    for (const auto& [key, transfer] : transfers_) {
      if (std::get<0>(key) != stage && std::get<1>(key) != stage) continue;
      const auto calls = transfer.calls.find(rank);
      does.push_back(calls == transfer.calls.end() ? std::vector<Call>() : calls->second);
    }
    const auto [same, added] = known.try_emplace(std::move(does), classes.size());
    if (added) classes.emplace_back();
    classes[same->second].push_back(rank);
  }
}

const std::vector<StageReshardings::Call>& StageReshardings::calls(std::uint32_t from, std::uint32_t to,
                                                                   std::uint32_t part, std::uint32_t stage,
                                                                   std::uint32_t rank_class) const {
  static const std::vector<Call> none;
  const std::map<RankId, std::vector<Call>>& all = transfer(from, to, part).calls;
  const auto found = all.find(classes_[stage][rank_class].front());
  return found == all.end() ? none : found->second;
}

PeerExpression StageReshardings::peer(std::uint32_t from, std::uint32_t to, std::uint32_t part,
                                      const Call& call) const {
  return {PeerExpression::Kind::table, false, 0, 0, 0, transfer(from, to, part).tables[call.color]};
}

std::uint32_t StageReshardings::group(std::uint32_t from, std::uint32_t to, std::uint32_t part,
                                      const Call& call, std::uint32_t communicator) const {
  GroupExpression group;
  group.communicator = communicator;
  group.lists = transfer(from, to, part).groups[call.color];
  return builder_.group(group);
}

}  // namespace netsim
