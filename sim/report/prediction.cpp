#include "sim/report/prediction.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "sim/core/random.h"
#include "sim/network/path.h"
#include "sim/transport/sender/timer_line.h"

namespace netsim {
namespace {

// What a hop and a task cost beside a packet's hop over Ethernet: rough, by events (of a packet and its ACK,
// of a piece, of what the executor does for a message). They matter only as far as the rest of a run is
// composed differently from its calibrated part.
constexpr std::array<double, kLinkKinds> kHopWeights{1, 1, 0.7, 0.8};  // by LinkKind
constexpr double kTaskWeight = 3;
// Where a calibration did nothing that could be counted: measured with P1024 on one core,
// docs/performance.md.
constexpr double kWorkPerSecond = 3.5e6;
// What a flow leaves behind (Recorder): its time, and its slowdown, while those are kept one by one.
constexpr std::uint64_t kMemoryPerFlow = 8, kMemoryPerSlowdown = 8;
constexpr std::uint64_t kSlowdownsKept = std::uint64_t{1} << 20;
// A queue pair's two ends, its congestion control, its paths, its place in the table of its source, half as
// much again for growing arrays.
constexpr std::uint64_t kMemoryPerQueuePair = 700;
// The retransmission timer of a flow on a queue pair of its own, until it ends.
constexpr std::uint64_t kMemoryPerTimer = sizeof(TimerLine::Timer);

// A job's source, and where its ranks are.
struct PlacedSource {
  const TaskSource& source;
  const std::vector<std::uint32_t>& gpus;  // by rank
};

// `members`: room for the GPUs of the request's group.
CommunicationRequest request_of(const PlacedSource& job, std::uint32_t rank, const Task& task,
                                std::vector<std::uint32_t>& members) {
  CommunicationRequest request;
  request.bytes = task.bytes;
  request.raw = task.raw;
  request.traits = task.traits;
  request.members = &members;
  members.clear();
  if (is_point_to_point(task)) {
    request.kind = CollectiveKind::point_to_point;
    members = {job.gpus[rank], job.gpus[task.peer]};
    if (task.kind == TaskKind::receive) {
      std::swap(members[0], members[1]);
      request.index = 1;
    }
    return request;
  }
  request.kind = task.collective;
  request.root = task.root;
  request.counts = task.counts;
  request.grouped = task.grouped;
  request.algorithm = task.algorithm;
  for (const std::uint32_t member : job.source.group(task.group)) {
    if (member == rank) request.index = static_cast<std::uint32_t>(members.size());
    members.push_back(job.gpus[member]);
  }
  return request;
}

// What one rank's call of a communication costs, by `ask(request)`; the same calls come again and again, but
// those of flows, which would be as many sizes as flows.
template <class Cost>
class RankCalls {
 public:
  RankCalls(const PlacedSource& job, std::uint32_t rank) : job_(job), rank_(rank) {}

  template <class Ask>
  const Cost& cost(const Task& task, Ask ask) {
    if (task.raw) return flow_ = ask(request_of(job_, rank_, task, members_));
    const auto [it, fresh] = known_.try_emplace(key(task));
    if (fresh) it->second = ask(request_of(job_, rank_, task, members_));
    return it->second;
  }

 private:
  using Key = std::tuple<TaskKind, CollectiveKind, std::uint32_t, std::uint32_t, Bytes, std::uint64_t,
                         GroupedTraffic, const OwnAlgorithm*>;
  static Key key(const Task& task) {
    const std::uint32_t with = task.kind == TaskKind::collective ? task.group : task.peer;
    const std::uint64_t counts = task.counts != nullptr ? task.counts->digest() : 0;
    return {task.kind, task.collective, with, task.root, task.bytes, counts, task.grouped, task.algorithm};
  }

  PlacedSource job_;
  std::uint32_t rank_;
  std::vector<std::uint32_t> members_;
  std::map<Key, Cost> known_;
  Cost flow_{};
};

void add(HopCounts& sum, const HopCounts& more, std::uint64_t times = 1) {
  for (std::size_t kind = 0; kind < sum.size(); ++kind) sum[kind] += times * more[kind];
}

// What one rank will send.
class RankVolume {
 public:
  RankVolume(const PlacedSource& job, Executor& executor, const Cluster& cluster,
             const std::vector<TransportFigures>& transports, std::uint32_t rank)
      : job_(job),
        executor_(executor),
        cluster_(cluster),
        transports_(transports),
        rank_(rank),
        gpu_(job.gpus[rank]),
        calls_(job, rank) {}

  // Adds the rank's to `volume`.
  void add_to(Volume& volume) {
    const auto visit = [&](const Task& task) {
      ++volume.tasks;
      add_task(task, volume);
    };
    if (!job_.source.for_each_task(rank_, visit)) volume.known = false;
    std::sort(lanes_.begin(), lanes_.end());
    volume.queue_pairs +=
        static_cast<std::uint64_t>(std::unique(lanes_.begin(), lanes_.end()) - lanes_.begin());
  }

 private:
  // The way to another GPU.
  struct Way {
    HopCounts links{};
    Bytes mtu = 0;
  };

  void add_task(const Task& task, Volume& volume) {
    if (!is_communication(task)) return;  // a receiver sends credits
    if (is_copy(task.kind)) return add_copy(task, volume);
    const Volume& cost = calls_.cost(task, [this](const CommunicationRequest& r) { return ask(r); });
    volume.scale_out_bytes += cost.scale_out_bytes;
    volume.flows += cost.flows;
    volume.packets += cost.packets;
    add(volume.packet_hops, cost.packet_hops);
    if (task.traits.only_message) {
      volume.single_flows += cost.flows;
    } else if (task.raw && cost.flows > 0) {
      use_lane(job_.gpus[task.peer], task.traits.traffic_class, task.traits.channel);
    }
  }

  // Between the GPU and its host's memory: over the same links whichever way.
  void add_copy(const Task& task, Volume& volume) {
    const Way& way = way_to(gpu_, Reach::pcie);
    if (way.mtu == 0) return;  // an ideal network
    const auto packets = static_cast<std::uint64_t>((task.bytes + way.mtu - 1) / way.mtu);
    volume.packets += packets;
    add(volume.packet_hops, way.links, packets);
    use_lane(gpu_, 0, task.kind == TaskKind::copy_from_host ? 1 : 0);
  }

  Volume ask(const CommunicationRequest& request) {
    Volume cost;
    executor_.for_each_batch(gpu_, request, [&](const MessageBatch& batch) {
      if (batch.reach == Reach::self || batch.reach == Reach::ideal) return;
      const Way& way = way_to(batch.destination, batch.reach);
      const auto each = static_cast<std::uint64_t>((batch.bytes + way.mtu - 1) / way.mtu);
      cost.packets += each * batch.count;
      add(cost.packet_hops, way.links, each * batch.count);
      const bool outside = batch.reach == Reach::scale_out;
      if (outside) {
        cost.scale_out_bytes += batch.bytes * static_cast<Bytes>(batch.count);
        if (!batch.credit) cost.flows += batch.count;
      }
      if (!request.raw) {
        use_lanes(batch, outside, request.traits.traffic_class);
      } else if (!outside) {
        use_lane(batch.destination, 0, 0);
      }
    });
    return cost;
  }

  void use_lanes(const MessageBatch& batch, bool outside, std::uint8_t traffic_class) {
    const std::uint32_t shared = outside ? transport_to(batch.destination).queue_pairs : 1;
    for (std::uint32_t i = 0; i < batch.channels; ++i) {
      const std::uint32_t channel = batch.first_channel + i * batch.channel_step;
      use_lane(batch.destination, outside ? traffic_class : std::uint8_t{0},
               outside ? channel % shared : channel);
    }
  }

  void use_lane(std::uint32_t destination, std::uint8_t traffic_class, std::uint32_t channel) {
    const Lane lane{destination, traffic_class, channel};
    if (lanes_.empty() || lanes_.back() != lane) lanes_.push_back(lane);
  }

  const Way& way_to(std::uint32_t destination, Reach reach) {
    const auto [it, fresh] = ways_.try_emplace(destination);
    if (fresh) it->second = reach == Reach::scale_out ? fabric_way(destination) : scale_up_way(destination);
    return it->second;
  }

  Way scale_up_way(std::uint32_t destination) const {
    Way way;
    const Graph& graph = cluster_.graph;
    for (const PortId port : scale_up_path(cluster_, gpu_, destination)) {
      if (way.mtu == 0) way.mtu = graph.port(port).link.mtu;
      count_link(way, port);
    }
    return way;
  }

  // The first of the equal-cost paths, and PCIe at both ends where there is one.
  Way fabric_way(std::uint32_t destination) const {
    Way way;
    way.mtu = transport_to(destination).mtu;
    const Graph& graph = cluster_.graph;
    const auto [from, to] = cluster_.nic_ends(gpu_, destination, 0);
    for (const PortId port : from.ports) count_link(way, port);
    for (NodeId at = from.nic; at != to.nic;) {
      const PortId port = cluster_.routes->next_hops(at, to.nic).front();
      count_link(way, port);
      at = graph.port(port).peer_node;
    }
    for (const PortId port : to.ports) count_link(way, port);
    return way;
  }

  const TransportFigures& transport_to(std::uint32_t destination) const {
    return transports_[cluster_.packet_fabric(gpu_, destination)];
  }

  void count_link(Way& way, PortId port) const {
    ++way.links[static_cast<std::size_t>(cluster_.graph.port(port).link.kind)];
  }

  using Lane = std::tuple<std::uint32_t, std::uint8_t, std::uint32_t>;  // destination, class, channel

  PlacedSource job_;
  Executor& executor_;
  const Cluster& cluster_;
  const std::vector<TransportFigures>& transports_;
  std::uint32_t rank_, gpu_;
  RankCalls<Volume> calls_;
  std::map<std::uint32_t, Way> ways_;
  std::vector<Lane> lanes_;
};

double weighted_hops(const Volume& volume) {
  double sum = 0;
  for (std::size_t kind = 0; kind < kHopWeights.size(); ++kind) {
    sum += kHopWeights[kind] * static_cast<double>(volume.packet_hops[kind]);
  }
  return sum;
}

// Half of a packet's work is done as it moves from link to link; the other half, its acknowledgement's way
// back, after it is delivered. So packets under way, of which a run has most at its beginning, do not count
// for more than they are. `all`: of what `done` is a part.
double work(const Volume& done, const Volume& all) {
  const double moved = weighted_hops(done);
  double delivered = moved;
  if (all.packets > 0) {
    delivered = static_cast<double>(done.packets) * weighted_hops(all) / static_cast<double>(all.packets);
  }
  return kTaskWeight * static_cast<double>(done.tasks) + (moved + delivered) / 2;
}

constexpr std::uint64_t left(std::uint64_t total, std::uint64_t done) {
  return total > done ? total - done : 0;
}

// By the speed at the end of the calibration, when the caches are what they will be.
double seconds_left(const Volume& volume, const Calibration& calibration) {
  const double done = work(calibration.end.done, volume);
  const double lately = done - work(calibration.early.done, volume);
  const double during = calibration.end.seconds - calibration.early.seconds;
  const double rate = lately > 0 && during > 0 ? lately / during : kWorkPerSecond;
  return std::max(0.0, work(volume, volume) - done) / rate;
}

// How many flows' timers there are at most when so many flows are over, at the speed of the calibration.
std::uint64_t timers(std::uint64_t flows, const Volume& all, const Calibration& calibration) {
  if (all.flows == 0) return 0;
  const double own = static_cast<double>(all.single_flows) / static_cast<double>(all.flows);
  double most = static_cast<double>(flows);
  if (calibration.simulated > 0) {
    const double part = static_cast<double>(calibration.timer) / static_cast<double>(calibration.simulated);
    most = std::min(most, part * static_cast<double>(calibration.end.done.flows));
  }
  return static_cast<std::uint64_t>(own * most);
}

// What is left behind between two states of a run.
std::uint64_t memory_left_behind(const Volume& before, const Volume& after, const Volume& all,
                                 const Calibration& calibration) {
  const std::uint64_t flows = left(after.flows, before.flows);
  return flows * kMemoryPerFlow + std::min(flows, left(kSlowdownsKept, before.flows)) * kMemoryPerSlowdown +
         left(after.queue_pairs, before.queue_pairs) * kMemoryPerQueuePair +
         left(timers(after.flows, all, calibration), timers(before.flows, all, calibration)) *
             kMemoryPerTimer;
}

// What is in flight, and not left behind: its peak grows ever more slowly, and is taken to grow as much with
// each doubling of the work as it did on average since the early mark.
std::uint64_t growth_in_flight(const Volume& volume, const Calibration& calibration) {
  const Calibration::Mark &early = calibration.early, &end = calibration.end;
  const double begun = work(early.done, volume), done = work(end.done, volume), all = work(volume, volume);
  if (begun <= 0 || done <= begun || all <= done) return 0;
  const std::uint64_t grown =
      left(end.memory, early.memory + memory_left_behind(early.done, end.done, volume, calibration));
  return static_cast<std::uint64_t>(static_cast<double>(grown) * portable_log(all / done) /
                                    portable_log(done / begun));
}

std::uint64_t memory_to_come(const Volume& volume, const Calibration& calibration) {
  return growth_in_flight(volume, calibration) +
         memory_left_behind(calibration.end.done, volume, volume, calibration);
}

// What the system tells of this process under `name`, bytes.
std::uint64_t process_status(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kibibytes = 0;
    if (word == name && status >> kibibytes) return kibibytes << 10;
  }
  return 0;
}

}  // namespace

std::uint64_t Volume::hops() const {
  return std::accumulate(packet_hops.begin(), packet_hops.end(), std::uint64_t{0});
}

Volume predict_volume(const TaskSource& source, const std::vector<std::uint32_t>& gpus, Executor& executor,
                      const Cluster& cluster, const std::vector<TransportFigures>& transports) {
  Volume volume;
  for (std::uint32_t rank = 0; rank < source.ranks() && volume.known; ++rank) {
    RankVolume({source, gpus}, executor, cluster, transports, rank).add_to(volume);
  }
  return volume;
}

void add_volume(Volume& sum, const Volume& more) {
  sum.known = sum.known && more.known;
  sum.tasks += more.tasks;
  sum.scale_out_bytes += more.scale_out_bytes;
  sum.flows += more.flows;
  sum.packets += more.packets;
  sum.queue_pairs += more.queue_pairs;
  sum.single_flows += more.single_flows;
  add(sum.packet_hops, more.packet_hops);
}

double share_done(const Volume& done, const Volume& all) {
  const double whole = work(all, all);
  return whole > 0 ? std::min(1.0, work(done, all) / whole) : 0;
}

Prediction extrapolate(std::uint32_t ranks, const Volume& volume, const Calibration& calibration) {
  Prediction prediction;
  prediction.ranks = ranks;
  prediction.volume = volume;
  prediction.calibration = calibration;
  const bool whole = calibration.complete || work(volume, volume) <= 0;
  prediction.share = whole ? 1 : share_done(calibration.end.done, volume);
  double seconds = calibration.setup_seconds + calibration.end.seconds;
  prediction.memory = calibration.memory;
  if (!calibration.complete) {
    seconds += seconds_left(volume, calibration);
    prediction.memory += memory_to_come(volume, calibration);
  }
  prediction.minutes = seconds / 60;
  return prediction;
}

std::uint64_t peak_memory() { return process_status("VmHWM:"); }
std::uint64_t peak_address_space() { return process_status("VmPeak:"); }

}  // namespace netsim
