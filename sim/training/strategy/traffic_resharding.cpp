// resharding: a tensor that is divided over one mesh of GPUs is brought to another mesh with another division
// (mesh_resharding.h), once or several times. Each time is an iteration.
//
// Ranks are in the order of hosts, a host for each row of the source's mesh and then of the destination's. A
// host has as many ranks as the wider mesh has columns, or `gpus_per_host`. Ranks that a narrower mesh does
// not need are idle, so that packed placement gives each row a host of its own.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/training/strategy/mesh_resharding.h"
#include "sim/workload/traffic/simple_source.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

struct MeshParameters {
  ConfigNode mesh;
  std::string spec;
};

struct ReshardingParameters {
  ConfigNode tensor;
  Bytes element = 4;
  MeshParameters from, to;
  ReshardingStrategy strategy = ReshardingStrategy::broadcast;
  ReshardingBalance balance = ReshardingBalance::order;
  std::int64_t gpus_per_host = 0;
  std::int64_t repeat = 1;
};

const Parameters<MeshParameters>& mesh_parameters() {
  using P = MeshParameters;
  static const auto p = Parameters<P>()
                            .list("mesh", &P::mesh, "[hosts, GPUs of each]")
                            .text("spec", &P::spec,
                                  "for each dimension of the tensor R, where it is whole everywhere, or S "
                                  "and the axes of the mesh "
                                  "that divide it: S0 the hosts, S1 the GPUs of each, S01 both; as S01RR");
  return p;
}

const Parameters<ReshardingParameters>& traffic_resharding_parameters() {
  using P = ReshardingParameters;
  static const auto p =
      Parameters<P>()
          .list("tensor", &P::tensor, "dimensions of the tensor, as [1024, 1024, 512]")
          .bytes("element", &P::element, {1, 64}, "bytes of an element of the tensor")
          .section("from", &P::from, mesh_parameters(), "mesh that has the tensor")
          .section("to", &P::to, mesh_parameters(), "mesh that gets the tensor")
          .choice("strategy", &P::strategy, resharding_strategies(), kReshardingStrategies)
          .choice("balance", &P::balance, resharding_balances(), kReshardingBalances)
          .integer("gpus_per_host", &P::gpus_per_host, {0, 1024},
                   "number of ranks on a host; 0: as many as the wider mesh has in a row")
          .integer("repeat", &P::repeat, {1, 100'000}, "number of repetitions, one after the other");
  return p;
}

constexpr std::int64_t kLongest = std::int64_t{1} << 40, kMostBytes = std::int64_t{1} << 50;
constexpr std::uint64_t kMostSteps = 10'000'000;

// Returns the list `key` of the section `where`.
std::vector<std::int64_t> numbers(const ConfigNode& list, const ConfigNode& where, const char* key,
                                  std::size_t least, std::size_t most, std::int64_t largest) {
  if (list.is_null()) where.fail(std::string("'") + key + "' is missing");
  return read_sizes(list, "numbers", least, most, largest);
}

class Resharding final : public WorkloadKind {
 public:
  Resharding(const ReshardingParameters& p, const ConfigNode& where) : p_(p), where_(where) {
    tensor_ = numbers(p.tensor, where, "tensor", 1, 8, kLongest);
    double bytes = static_cast<double>(p.element);
    for (const std::int64_t size : tensor_) bytes *= static_cast<double>(size);
    if (bytes > static_cast<double>(kMostBytes)) p.tensor.fail("the tensor has more than 2^50 bytes");
    from_ = read_mesh(p.from, entry_or_self(where, "from"));
    to_ = read_mesh(p.to, entry_or_self(where, "to"));
    const std::uint32_t widest = std::max(from_.columns, to_.columns);
    per_host_ = p.gpus_per_host == 0 ? widest : static_cast<std::uint32_t>(p.gpus_per_host);
    if (per_host_ < widest)
      entry_or_self(where, "gpus_per_host").fail("a row of a mesh has " + std::to_string(widest) + " GPUs");
    double slices = 1;
    for (std::size_t d = 0; d < tensor_.size(); ++d)
      slices *= static_cast<double>(from_.parts(d)) + static_cast<double>(to_.parts(d));
    if (slices * to_.gpus() > static_cast<double>(kMostSteps))
      where.fail("the meshes divide the tensor into too many slices");
  }

  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    const std::uint32_t ranks = (from_.rows + to_.rows) * per_host_;
    if (ranks > context.gpus) {
      throw InputError(where_.place(), "the meshes take " + std::to_string(from_.rows + to_.rows) +
                                           " hosts of " + std::to_string(per_host_) +
                                           " ranks; the cluster has " + std::to_string(context.gpus) +
                                           " GPUs");
    }
    const MeshResharding plan = make_resharding(tensor_, p_.element, from_, to_, p_.strategy, p_.balance);
    auto source = std::make_unique<SimpleSource>("resharding", ranks);
    Groups groups;
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(p_.repeat); ++i) {
      for (const ReshardingStep& step : plan.steps) add(*source, groups, step, i);
    }
    return source;
  }

 private:
  ShardedMesh read_mesh(const MeshParameters& mesh, const ConfigNode& where) const {
    const std::vector<std::int64_t> sizes = numbers(mesh.mesh, where, "mesh", 2, 2, 1024);
    ShardedMesh result;
    result.rows = static_cast<std::uint32_t>(sizes[0]);
    result.columns = static_cast<std::uint32_t>(sizes[1]);
    const ConfigNode& spec = entry_or_self(where, "spec");
    if (mesh.spec.empty()) where.fail("'spec' is missing: how the mesh divides the tensor, as S01RR");
    const std::string objection = parse_division(mesh.spec, result.division);
    if (!objection.empty()) spec.fail(objection);
    if (result.division.size() != tensor_.size()) {
      spec.fail(std::to_string(result.division.size()) + " dimensions; the tensor has " +
                std::to_string(tensor_.size()));
    }
    for (std::size_t d = 0; d < tensor_.size(); ++d) {
      if (tensor_[d] % result.parts(d) == 0) continue;
      spec.fail("dimension " + std::to_string(d) + " of the tensor (" + std::to_string(tensor_[d]) +
                ") cannot be divided by " + std::to_string(result.parts(d)));
    }
    return result;
  }

  RankId source_rank(GpuId gpu) const { return gpu / from_.columns * per_host_ + gpu % from_.columns; }
  RankId destination_rank(GpuId gpu) const {
    return (from_.rows + gpu / to_.columns) * per_host_ + gpu % to_.columns;
  }

  using Groups = std::map<std::vector<RankId>, GroupId>;  // group numbers, by ranks

  void add(SimpleSource& source, Groups& groups, const ReshardingStep& step, std::uint32_t iteration) const {
    Task task;
    task.stream = Stream::pp;
    task.iteration = iteration;
    const Bytes bytes = step.end - step.begin;
    if (step.kind == ReshardingStep::Kind::message) {
      task.name = source.add_name("slice");
      const RankId from = source_rank(step.from), to = destination_rank(step.to.front());
      task.body = SendTask{{{bytes, {}}, to, 0, false, false}};
      source.add_task(from, task);
      task.body = ReceiveTask{{{bytes, {}}, from, 0, false, false}};
      source.add_task(to, task);
      return;
    }
    std::vector<RankId> group;
    const bool broadcast = step.kind == ReshardingStep::Kind::broadcast;
    if (broadcast) group.push_back(source_rank(step.from));
    for (const GpuId receiver : step.to) group.push_back(destination_rank(receiver));
    task.name = source.add_name(broadcast ? "slice" : "tile");
    const auto [known, added] = groups.try_emplace(group, 0);
    if (added) known->second = source.add_group(group);
    auto& call = task.body.emplace<CollectiveTask>();
    call.collective = broadcast ? CollectiveKind::broadcast : CollectiveKind::all_gather;
    call.bytes = bytes;
    call.group = known->second;
    for (const RankId rank : group) source.add_task(rank, task);
  }

  ReshardingParameters p_;
  ConfigNode where_;
  std::vector<std::int64_t> tensor_;
  ShardedMesh from_, to_;
  std::uint32_t per_host_ = 1;
};

const Registration<WorkloadKind> kTrafficResharding{
    "resharding",
    "a tensor that one mesh of GPUs divides is brought to another mesh with another division, as between "
    "pipeline stages",
    traffic_resharding_parameters(), [](const ReshardingParameters& p, const ConfigNode& where) {
      return std::make_unique<Resharding>(p, where);
    }};

}  // namespace
}  // namespace netsim
