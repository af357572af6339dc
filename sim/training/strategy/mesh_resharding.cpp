#include "sim/training/strategy/mesh_resharding.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "sim/core/errors.h"
#include "sim/core/random.h"

namespace netsim {
namespace {

using TileExtent = std::vector<std::pair<std::int64_t, std::int64_t>>;

bool contains(const std::vector<GpuId>& gpus, GpuId gpu) {
  return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
}
// Returns the GPU or host with the least load; of equal ones the first.
template <class Id>
Id least_loaded(const std::vector<Id>& ids, const std::vector<Bytes>& loads) {
  return *std::min_element(ids.begin(), ids.end(), [&](Id a, Id b) { return loads[a] < loads[b]; });
}

// Stretch: a range [from, to) of one dimension between two neighbouring boundaries of either mesh, and the
// part of each mesh in which it lies.
struct Stretch {
  std::int64_t from = 0, to = 0;
  std::uint32_t source = 0, destination = 0;
};

std::vector<Stretch> stretches(std::int64_t length, std::uint32_t source, std::uint32_t destination) {
  std::set<std::int64_t> boundaries;
  for (const std::uint32_t parts : {source, destination}) {
    for (std::uint32_t i = 0; i <= parts; ++i) boundaries.insert(length / parts * i);
  }
  std::vector<Stretch> all;
  for (auto at = boundaries.begin(); std::next(at) != boundaries.end(); ++at) {
    all.push_back({*at, *std::next(at), static_cast<std::uint32_t>(*at / (length / source)),
                   static_cast<std::uint32_t>(*at / (length / destination))});
  }
  return all;
}

// Returns the GPUs that have these parts of all dimensions.
std::vector<GpuId> gpus_with(const ShardedMesh& mesh, const std::vector<std::uint32_t>& parts) {
  std::vector<GpuId> gpus;
  for (GpuId gpu = 0; gpu < mesh.gpus(); ++gpu) {
    bool has = true;
    for (std::size_t d = 0; d < parts.size(); ++d) has = has && mesh.part(d, gpu) == parts[d];
    if (has) gpus.push_back(gpu);
  }
  return gpus;
}

std::vector<ReshardingSlice> slices_of(const std::vector<std::int64_t>& tensor, Bytes element,
                                       const ShardedMesh& source, const ShardedMesh& destination) {
  std::vector<std::vector<Stretch>> along;
  for (std::size_t d = 0; d < tensor.size(); ++d)
    along.push_back(stretches(tensor[d], source.parts(d), destination.parts(d)));
  std::vector<ReshardingSlice> slices;
  // Visits all combinations, the last dimension fastest.
  for (std::vector<std::size_t> at(tensor.size(), 0);;) {
    ReshardingSlice slice;
    slice.bytes = element;
    std::vector<std::uint32_t> there, here;
    for (std::size_t d = 0; d < tensor.size(); ++d) {
      const Stretch& stretch = along[d][at[d]];
      slice.extent.emplace_back(stretch.from, stretch.to);
      slice.bytes *= stretch.to - stretch.from;
      here.push_back(stretch.source);
      there.push_back(stretch.destination);
    }
    slice.holders = gpus_with(source, here);
    slice.receivers = gpus_with(destination, there);
    slices.push_back(std::move(slice));
    std::size_t d = tensor.size();
    while (d > 0 && ++at[d - 1] == along[d - 1].size()) at[--d] = 0;
    if (d == 0) return slices;
  }
}

class Planner {
 public:
  explicit Planner(MeshResharding& plan)
      : plan_(plan), sent_by_gpu_(plan.source.gpus(), 0), sent_by_host_(plan.source.hosts(), 0) {}

  // Each slice is sent by the holder with the least to send so far (Alpa's load balance of sends).
  void send_to_each() {
    for (std::uint32_t s = 0; s < slices().size(); ++s) {
      for (const GpuId receiver : slices()[s].receivers) send(s, receiver, 0, slices()[s].bytes);
    }
  }

  void send_parts_and_gather() {
    const std::vector<std::vector<GpuId>> groups = groups_of_hosts();
    for (const std::vector<GpuId>& group : groups) {
      for (std::uint32_t s = 0; s < slices().size(); ++s) {
        if (!contains(slices()[s].receivers, group.front())) continue;
        const auto parts = static_cast<Bytes>(group.size());
        for (Bytes part = 0; part < parts; ++part) {
          send(s, group[static_cast<std::size_t>(part)], slices()[s].bytes * part / parts,
               slices()[s].bytes * (part + 1) / parts);
        }
      }
    }
    for (const std::vector<GpuId>& group : groups) {
      if (group.size() == 1) continue;
      ReshardingStep step;
      step.kind = ReshardingStep::Kind::gather;
      step.to = group;
      for (const ReshardingSlice& slice : slices()) {
        if (contains(slice.receivers, group.front())) step.end += slice.bytes;
      }
      plan_.steps.push_back(std::move(step));
    }
  }

  void broadcast(ReshardingBalance balance) {
    std::vector<std::uint32_t> order(slices().size());
    std::iota(order.begin(), order.end(), 0U);
    if (balance != ReshardingBalance::none) {
      std::stable_sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
        return slices()[a].bytes > slices()[b].bytes;
      });
    }
    if (balance == ReshardingBalance::order) {
      for (const Placed& placed : best_schedule(std::move(order))) broadcast(placed.slice, placed.host);
      return;
    }
    for (const std::uint32_t slice : order) {
      const std::vector<HostId> hosts = hosts_with(slice);
      broadcast(slice,
                balance == ReshardingBalance::none ? hosts.front() : least_loaded(hosts, sent_by_host_));
    }
  }

 private:
  const std::vector<ReshardingSlice>& slices() const { return plan_.slices; }
  HostId receiving_host(GpuId gpu) const { return plan_.destination.host(gpu); }
  HostId sending_host(GpuId gpu) const { return plan_.source.host(gpu); }

  void send(std::uint32_t slice, GpuId receiver, Bytes begin, Bytes end) {
    if (begin == end) return;
    const GpuId sender = least_loaded(slices()[slice].holders, sent_by_gpu_);
    sent_by_gpu_[sender] += end - begin;
    plan_.steps.push_back({ReshardingStep::Kind::message, slice, sender, {receiver}, begin, end});
  }

  // Returns the groups of GPUs of a host that need the same tile.
  std::vector<std::vector<GpuId>> groups_of_hosts() const {
    const ShardedMesh& mesh = plan_.destination;
    std::map<std::pair<HostId, std::vector<std::uint32_t>>, std::vector<GpuId>> groups;
    for (GpuId gpu = 0; gpu < mesh.gpus(); ++gpu) {
      std::vector<std::uint32_t> tile;
      for (std::size_t d = 0; d < mesh.division.size(); ++d) tile.push_back(mesh.part(d, gpu));
      groups[{receiving_host(gpu), std::move(tile)}].push_back(gpu);
    }
    std::vector<std::vector<GpuId>> all;
    all.reserve(groups.size());
    for (auto& [key, group] : groups) all.push_back(std::move(group));
    return all;
  }

  std::vector<HostId> hosts_with(std::uint32_t slice) const {
    std::vector<HostId> hosts;
    for (const GpuId holder : slices()[slice].holders) {
      if (hosts.empty() || hosts.back() != sending_host(holder)) hosts.push_back(sending_host(holder));
    }
    return hosts;
  }

  // Placed: a broadcast that begins at a time, which is counted in bytes.
  struct Placed {
    std::uint32_t slice = 0;
    HostId host = 0;
    Bytes start = 0;
  };
  struct Schedule {
    std::vector<Placed> placed;
    Bytes end = 0;
  };
  // Times: builds a schedule, slice by slice.
  class Times {
   public:
    explicit Times(const MeshResharding& plan)
        : plan_(plan), sending_(plan.source.hosts(), 0), receiving_(plan.destination.hosts(), 0) {}
    // Returns the broadcast as early as a host that has the slice, and all hosts that need it, are free.
    Placed earliest(std::uint32_t slice, const std::vector<HostId>& hosts) const {
      Bytes free = 0;
      for (const GpuId receiver : plan_.slices[slice].receivers)
        free = std::max(free, receiving_[plan_.destination.host(receiver)]);
      const HostId host = least_loaded(hosts, sending_);
      return {slice, host, std::max(free, sending_[host])};
    }
    Bytes place(const Placed& placed) {
      const Bytes end = placed.start + plan_.slices[placed.slice].bytes;
      sending_[placed.host] = end;
      for (const GpuId receiver : plan_.slices[placed.slice].receivers)
        receiving_[plan_.destination.host(receiver)] = end;
      return end;
    }

   private:
    const MeshResharding& plan_;
    std::vector<Bytes> sending_, receiving_;  // by host: time from which it is free
  };
  Schedule schedule(const std::vector<std::uint32_t>& order) const {
    Schedule result;
    Times times(plan_);
    for (const std::uint32_t s : order) {
      result.placed.push_back(times.earliest(s, hosts_with(s)));
      result.end = std::max(result.end, times.place(result.placed.back()));
    }
    return result;
  }
  // Builds a schedule in which the slice that can begin first is always the next.
  Schedule greedy(std::vector<std::uint32_t> left) const {
    Schedule result;
    Times times(plan_);
    while (!left.empty()) {
      auto next = left.begin();
      Placed first = times.earliest(*next, hosts_with(*next));
      for (auto at = next + 1; at != left.end(); ++at) {
        const Placed other = times.earliest(*at, hosts_with(*at));
        if (other.start >= first.start) continue;
        first = other;
        next = at;
      }
      left.erase(next);
      result.placed.push_back(first);
      result.end = std::max(result.end, times.place(first));
    }
    return result;
  }
  // Returns a lower bound of the time: the most that a host receives, and an equal share of all bytes for
  // each sending host.
  Bytes bound() const {
    std::vector<Bytes> in(plan_.destination.hosts(), 0);
    Bytes all = 0;
    for (const ReshardingSlice& slice : slices()) {
      std::set<HostId> hosts;
      for (const GpuId receiver : slice.receivers) hosts.insert(receiving_host(receiver));
      for (const HostId host : hosts) in[host] += slice.bytes;
      all += slice.bytes;
    }
    const Bytes senders = plan_.source.hosts();
    return std::max(*std::max_element(in.begin(), in.end()), (all + senders - 1) / senders);
  }
  // Returns the best of the greedy schedule and random orders after it, which are the same in each run.
  std::vector<Placed> best_schedule(std::vector<std::uint32_t> order) const {
    constexpr std::uint64_t kWork = 4'000'000, kOrders = 2000;
    const std::uint64_t slices = order.size(), orders = std::clamp<std::uint64_t>(kWork / slices, 1, kOrders);
    const Bytes least = bound();
    RandomStream random(0, "order of broadcasts");
    Schedule best = greedy(order);
    for (std::uint64_t i = 1; i < orders && best.end > least; ++i) {
      for (std::size_t at = order.size(); at > 1; --at)
        std::swap(order[at - 1], order[static_cast<std::size_t>(random.below(at))]);
      Schedule other = schedule(order);
      if (other.end < best.end) best = std::move(other);
    }
    std::stable_sort(best.placed.begin(), best.placed.end(),
                     [](const Placed& a, const Placed& b) { return a.start < b.start; });
    return std::move(best.placed);
  }

  void broadcast(std::uint32_t s, HostId host) {
    const ReshardingSlice& slice = slices()[s];
    std::vector<GpuId> there;
    std::copy_if(slice.holders.begin(), slice.holders.end(), std::back_inserter(there),
                 [&](GpuId holder) { return sending_host(holder) == host; });
    const GpuId sender = least_loaded(there, sent_by_gpu_);
    sent_by_gpu_[sender] += slice.bytes;
    sent_by_host_[host] += slice.bytes;
    plan_.steps.push_back({ReshardingStep::Kind::broadcast, s, sender, slice.receivers, 0, slice.bytes});
  }

  MeshResharding& plan_;
  std::vector<Bytes> sent_by_gpu_, sent_by_host_;
};

// ReceivedBytes: the bytes that the GPUs of the destination have, as intervals [begin, end) of each slice.
class ReceivedBytes {
 public:
  explicit ReceivedBytes(std::uint32_t gpus) : of_(gpus) {}
  bool add(GpuId gpu, std::uint32_t slice, Bytes begin, Bytes end) {
    auto& intervals = of_[gpu][slice];
    const auto behind = intervals.lower_bound(begin);
    if (behind != intervals.end() && behind->first < end) return false;
    if (behind != intervals.begin() && std::prev(behind)->second > begin) return false;
    intervals[begin] = end;
    return true;
  }
  Bytes bytes(GpuId gpu, std::uint32_t slice) const {
    Bytes sum = 0;
    const auto found = of_[gpu].find(slice);
    if (found == of_[gpu].end()) return 0;
    for (const auto& [begin, end] : found->second) sum += end - begin;
    return sum;
  }
  const std::map<std::uint32_t, std::map<Bytes, Bytes>>& of(GpuId gpu) const { return of_[gpu]; }

 private:
  std::vector<std::map<std::uint32_t, std::map<Bytes, Bytes>>> of_;
};

}  // namespace

const std::vector<std::pair<std::string, ReshardingStrategy>>& resharding_strategies() {
  static const std::vector<std::pair<std::string, ReshardingStrategy>> names{
      {"send_recv", ReshardingStrategy::send_recv},
      {"all_gather", ReshardingStrategy::all_gather},
      {"broadcast", ReshardingStrategy::broadcast}};
  return names;
}

const std::vector<std::pair<std::string, ReshardingBalance>>& resharding_balances() {
  static const std::vector<std::pair<std::string, ReshardingBalance>> names{
      {"none", ReshardingBalance::none},
      {"size", ReshardingBalance::size},
      {"order", ReshardingBalance::order}};
  return names;
}

std::uint32_t ShardedMesh::parts(std::size_t dimension) const {
  std::uint32_t parts = 1;
  for (const std::uint32_t axis : division[dimension]) parts *= size(axis);
  return parts;
}

std::uint32_t ShardedMesh::part(std::size_t dimension, GpuId gpu) const {
  std::uint32_t part = 0;
  for (const std::uint32_t axis : division[dimension])
    part = part * size(axis) + (axis == 0 ? gpu / columns : gpu % columns);
  return part;
}

std::string parse_division(const std::string& spec, std::vector<std::vector<std::uint32_t>>& division) {
  constexpr const char* kAllowed = "allowed: for each dimension R, S0, S1, S01 or S10, as in S01RR";
  division.clear();
  std::set<char> used;
  for (std::size_t i = 0; i < spec.size();) {
    const char letter = spec[i++];
    if (letter != 'R' && letter != 'S') return "'" + std::string(1, letter) + "' says nothing; " + kAllowed;
    std::vector<std::uint32_t>& axes = division.emplace_back();
    for (; letter == 'S' && i < spec.size() && (spec[i] == '0' || spec[i] == '1'); ++i) {
      if (!used.insert(spec[i]).second)
        return "axis " + std::string(1, spec[i]) + " of the mesh divides twice";
      axes.push_back(static_cast<std::uint32_t>(spec[i] - '0'));
    }
    if (letter == 'S' && axes.empty())
      return "S without the axis of the mesh that it is along; " + std::string(kAllowed);
  }
  return "";
}

MeshResharding make_resharding(const std::vector<std::int64_t>& tensor, Bytes element,
                               const ShardedMesh& source, const ShardedMesh& destination,
                               ReshardingStrategy strategy, ReshardingBalance balance) {
  MeshResharding plan{source, destination, slices_of(tensor, element, source, destination), {}};
  Planner planner(plan);
  switch (strategy) {
    case ReshardingStrategy::send_recv:
      planner.send_to_each();
      break;
    case ReshardingStrategy::all_gather:
      planner.send_parts_and_gather();
      break;
    case ReshardingStrategy::broadcast:
      planner.broadcast(balance);
      break;
  }
  const std::string objection = prove_resharding(plan);
  NETSIM_CHECK(objection.empty(), "a plan of a resharding is wrong: " + objection);
  return plan;
}

std::string prove_resharding(const MeshResharding& plan) {
  ReceivedBytes have(plan.destination.gpus());
  const auto name = [](std::uint32_t slice, GpuId gpu) {
    return "slice " + std::to_string(slice) + " at GPU " + std::to_string(gpu);
  };
  for (const ReshardingStep& step : plan.steps) {
    if (step.kind == ReshardingStep::Kind::gather) {
      std::vector<std::tuple<GpuId, std::uint32_t, Bytes, Bytes>> parts;  // owner, slice, begin, end
      for (const GpuId member : step.to) {
        for (const auto& [slice, intervals] : have.of(member)) {
          for (const auto& [begin, end] : intervals) parts.emplace_back(member, slice, begin, end);
        }
      }
      for (const auto& [owner, slice, begin, end] : parts) {
        for (const GpuId member : step.to) {
          if (member != owner && !have.add(member, slice, begin, end))
            return name(slice, member) + " is there twice";
        }
      }
      continue;
    }
    if (!contains(plan.slices[step.slice].holders, step.from))
      return "GPU " + std::to_string(step.from) + " sends slice " + std::to_string(step.slice) +
             ", which it has not";
    for (const GpuId receiver : step.to) {
      if (!have.add(receiver, step.slice, step.begin, step.end))
        return name(step.slice, receiver) + " is there twice";
    }
  }
  for (GpuId gpu = 0; gpu < plan.destination.gpus(); ++gpu) {
    for (std::uint32_t s = 0; s < plan.slices.size(); ++s) {
      const bool needs = contains(plan.slices[s].receivers, gpu);
      if (have.bytes(gpu, s) != (needs ? plan.slices[s].bytes : 0))
        return name(s, gpu) + (needs ? " is not complete" : " is not of its tile");
    }
  }
  return "";
}

}  // namespace netsim
