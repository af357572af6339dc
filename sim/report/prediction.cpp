#include "sim/report/prediction.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/random.h"
#include "sim/jobs/task_request.h"
#include "sim/transport/sender/timer_queue.h"

namespace netsim {
namespace {

// Cost of a hop and of a task, relative to a packet's hop over Ethernet. They are rough numbers of events:
// for a packet with its ACK, a piece, and the executor's work for a message. They matter only where the rest
// of a run has another composition than its calibrated part.
constexpr std::array<double, kLinkKinds> kHopWeights{1, 1, 0.7, 0.8};  // by LinkKind
constexpr double kTaskWeight = 3;
// Used if a calibration did nothing that can be counted. Measured with P1024 on one core
// (docs/evidence/performance.md).
constexpr double kWorkPerSecond = 3.5e6;
// Bytes that the Recorder keeps for each flow: its time and, for the first kSlowdownsKept flows, its
// slowdown.
constexpr std::uint64_t kMemoryPerFlow = 8, kMemoryPerSlowdown = 8;
constexpr std::uint64_t kSlowdownsKept = std::uint64_t{1} << 20;
// Bytes of a queue pair: its two ends, congestion control, paths and entry in the source's table. Half as
// much again is added for growing arrays.
constexpr std::uint64_t kMemoryPerQueuePair = 700;
// Bytes of the retransmission timer of a flow on a queue pair of its own, until the timer expires.
constexpr std::uint64_t kMemoryPerTimer = sizeof(TimerQueue::Timer);

// PlacedSource: a job's task source, the GPUs of its ranks and its task scheduler.
struct PlacedSource {
  const TaskSource& source;
  const std::vector<GpuId>& gpus;    // by rank
  const TaskScheduling* scheduling;  // null: no task scheduler
};

// Returns the request that the rank makes for a task. `members` is storage for the GPUs of the request's
// group.
CommunicationRequest placed_request(const PlacedSource& job, RankId rank, const Task& task,
                                    std::vector<GpuId>& members) {
  CommunicationRequest request = request_of(task);
  request.members = &members;
  members.clear();
  if (is_point_to_point(task)) {
    members = {job.gpus[rank], job.gpus[task.message().peer]};
    if (task.kind() == TaskKind::receive) {
      std::swap(members[0], members[1]);
      request.index = 1;
    }
    return request;
  }
  for (const std::uint32_t member : job.source.group(task.group())) {
    if (member == rank) request.index = static_cast<std::uint32_t>(members.size());
    members.push_back(job.gpus[member]);
  }
  return request;
}

// RankCalls: caches the cost of one rank's communication calls, which `ask(request)` computes. The same calls
// recur, except those of flows, which may have as many sizes as there are flows.
template <class Cost>
class RankCalls {
 public:
  RankCalls(const PlacedSource& job, RankId rank) : job_(job), rank_(rank) {}

  template <class Ask>
  const Cost& cost(const Task& task, Ask ask) {
    if (is_raw(task)) return flow_ = ask(placed_request(job_, rank_, task, members_));
    const auto [it, fresh] = known_.try_emplace(key(task));
    if (fresh) it->second = ask(placed_request(job_, rank_, task, members_));
    return it->second;
  }

 private:
  using Key = std::tuple<TaskKind, CollectiveKind, std::uint32_t, std::uint32_t, Bytes, std::uint64_t,
                         GroupedTraffic, const OwnAlgorithm*>;
  static Key key(const Task& task) {
    if (task.kind() != TaskKind::collective)
      return {task.kind(), {}, task.message().peer, 0, task.bytes(), 0, {}, nullptr};
    const CollectiveTask& call = task.collective();
    const std::uint64_t counts = call.counts != nullptr ? call.counts->digest() : 0;
    return {task.kind(), call.collective, call.group,   call.root,
            call.bytes,  counts,          call.grouped, call.algorithm};
  }

  PlacedSource job_;
  std::uint32_t rank_;
  std::vector<GpuId> members_;
  std::map<Key, Cost> known_;
  Cost flow_{};
};

void add(HopCounts& sum, const HopCounts& more, std::uint64_t times = 1) {
  for (std::size_t kind = 0; kind < sum.size(); ++kind) sum[kind] += times * more[kind];
}

// LinksCrossed: counts the links that the packets of a message cross. The count is exact, or an average over
// the intermediate switches that packets may draw.
struct LinksCrossed {
  explicit LinksCrossed(const MessageCost& cost)
      : payload(cost.payload),
        least(cost.always ? cost.detour_links : cost.links),
        most(cost.detours > 0 ? cost.detour_links : cost.links),
        least_of(cost.always ? cost.detours : 1),
        most_of(std::max(cost.detours, 1U)) {}
  Bytes payload;
  HopCounts least, most;  // links crossed by `least_of` and `most_of` packets
  std::uint64_t least_of, most_of;
};

void add_packets(Volume& volume, const LinksCrossed& crossed, std::uint64_t packets) {
  for (std::size_t kind = 0; kind < crossed.least.size(); ++kind) {
    volume.packet_hops[kind] += packets * crossed.least[kind] / crossed.least_of;
    volume.most_hops[kind] += packets * crossed.most[kind] / crossed.most_of;
  }
}

// Aggregation and multicast groups live as long as the run, and all their members use the same entry.
using GroupRoutes = std::map<std::pair<const SwitchAggregation*, AggregationUse>, LinksCrossed>;

// RankVolume: computes the volume of the messages that one rank sends.
class RankVolume {
 public:
  RankVolume(const PlacedSource& job, Executor& executor, const Cluster& cluster,
             const PacketNetwork* network, GroupRoutes& group_routes, RankId rank)
      : job_(job),
        executor_(executor),
        cluster_(cluster),
        network_(network),
        lanes_matter_(network != nullptr && network->ways_differ()),
        group_routes_(group_routes),
        rank_(rank),
        gpu_(job.gpus[rank]),
        calls_(job, rank) {
    if (job.scheduling != nullptr) operations_.emplace(*job.scheduling, rank);
  }

  // Adds the rank's volume to `volume`.
  void add_to(Volume& volume) {
    const auto visit = [&](const Task& task) {
      ++volume.tasks;
      if (network_ != nullptr) add_task(task, volume);
    };
    if (!job_.source.for_each_task(rank_, visit)) volume.known = false;
    std::sort(lanes_.begin(), lanes_.end());
    volume.queue_pairs +=
        static_cast<std::uint64_t>(std::unique(lanes_.begin(), lanes_.end()) - lanes_.begin());
  }

 private:
  void add_task(const Task& task, Volume& volume) {
    if (!is_communication(task)) return;  // receivers count too, because they send credits
    if (is_copy(task.kind())) return add_copy(task, volume);
    if (!operations_) return add_operations(task, 1, volume);
    for (const PlannedOperation& operation : operations_->add(task))
      add_operations(operation.task, operation.count, volume);
  }

  // Adds `count` equal communications.
  void add_operations(const Task& task, std::uint64_t count, Volume& volume) {
    const Volume& cost = calls_.cost(task, [this](const CommunicationRequest& r) { return ask(r); });
    volume.scale_out_bytes += cost.scale_out_bytes * static_cast<Bytes>(count);
    volume.flows += cost.flows * count;
    volume.packets += cost.packets * count;
    add(volume.packet_hops, cost.packet_hops, count);
    add(volume.most_hops, cost.most_hops, count);
    const TransferTraits& traits = task.payload()->traits;
    if (traits.only_message) {
      volume.single_flows += cost.flows * count;
    } else if (is_raw(task) && cost.flows > 0) {
      use_lane(job_.gpus[task.message().peer], traits.traffic_class, traits.channel);
    }
  }

  // Adds a copy between the GPU and its host's memory. Both directions cross the same links.
  void add_copy(const Task& task, Volume& volume) {
    Message message;
    message.source = message.destination = gpu_;
    count(links_crossed_by(message), task.bytes(), 1, volume);
    use_lane(gpu_, 0, task.kind() == TaskKind::copy_from_host ? 1 : 0);
  }

  Volume ask(const CommunicationRequest& request) {
    Volume cost;
    executor_.for_each_batch(gpu_, request, [&](const MessageBatch& batch) {
      if (batch.reach == Reach::self || batch.reach == Reach::ideal) return;
      const bool outside = batch.reach == Reach::scale_out;
      if (outside) {
        cost.scale_out_bytes += batch.bytes * static_cast<Bytes>(batch.count);
        if (!batch.credit) cost.flows += batch.count;
      }
      if (batch.aggregation != nullptr) return add_group(batch, cost);
      Message message;
      message.source = gpu_;
      message.destination = batch.destination;
      message.traits = request.traits;
      message.traits.own_queue_pair = request.raw;
      if (!request.raw) message.traits.channel = batch.first_channel;
      count(links_crossed_by(message), batch.bytes, batch.count, cost);
      if (!request.raw) {
        use_lanes(batch, outside, request.traits.traffic_class);
      } else if (!outside) {
        use_lane(batch.destination, 0, 0);
      }
    });
    return cost;
  }

  // Adds a message to an aggregation or multicast group. The links that packets of all members share are
  // counted at the first member.
  void add_group(const MessageBatch& batch, Volume& cost) {
    const auto known = group_routes_.find({batch.aggregation, batch.aggregation_use});
    const LinksCrossed& crossed =
        known != group_routes_.end()
            ? known->second
            : group_routes_
                  .emplace(std::pair(batch.aggregation, batch.aggregation_use),
                           network_->aggregation_cost(*batch.aggregation, batch.aggregation_use))
                  .first->second;
    const bool multicast = batch.aggregation_use == AggregationUse::multicast;
    const std::uint64_t packets = packets_of(crossed, batch.bytes) * batch.count;
    cost.packets += packets;
    if (multicast || batch.aggregation->members.front() == gpu_) add_packets(cost, crossed, packets);
    for (std::uint32_t i = 0; i < batch.channels; ++i) {
      const std::uint32_t channel = batch.first_channel + i * batch.channel_step;
      // A multicast has a queue pair into the switch and one from it to each member. A tree has one at each
      // member.
      const std::size_t pairs = multicast ? batch.aggregation->members.size() + 1
                                : batch.aggregation->others.size() > batch.aggregation->members.size()
                                    ? batch.aggregation->others.size()
                                    : 1;
      for (std::size_t pair = 0; pair < pairs; ++pair)
        lanes_.push_back({static_cast<std::uint32_t>(pair), static_cast<std::uint8_t>(batch.aggregation_use),
                          channel, batch.aggregation});
    }
  }

  static std::uint64_t packets_of(const LinksCrossed& crossed, Bytes bytes) {
    return crossed.payload == 0 ? 0
                                : static_cast<std::uint64_t>((bytes + crossed.payload - 1) / crossed.payload);
  }
  static void count(const LinksCrossed& crossed, Bytes bytes, std::uint64_t messages, Volume& volume) {
    const std::uint64_t packets = packets_of(crossed, bytes) * messages;
    volume.packets += packets;
    add_packets(volume, crossed, packets);
  }

  void use_lanes(const MessageBatch& batch, bool outside, std::uint8_t traffic_class) {
    const std::uint32_t shared = outside ? queue_pairs_to(batch.destination) : 1;
    for (std::uint32_t i = 0; i < batch.channels; ++i) {
      const std::uint32_t channel = batch.first_channel + i * batch.channel_step;
      use_lane(batch.destination, outside ? traffic_class : std::uint8_t{0},
               outside ? channel % shared : channel);
    }
  }

  void use_lane(std::uint32_t destination, std::uint8_t traffic_class, std::uint32_t channel) {
    const Lane lane{destination, traffic_class, channel, nullptr};
    if (lanes_.empty() || lanes_.back() != lane) lanes_.push_back(lane);
  }

  const LinksCrossed& links_crossed_by(const Message& message) {
    std::pair<std::uint32_t, std::uint64_t> key{message.destination, 0};
    if (lanes_matter_)
      key.second = static_cast<std::uint64_t>(message.traits.traffic_class) << 32 | message.traits.channel;
    const auto known = crossed_.find(key);
    if (known != crossed_.end()) return known->second;
    return crossed_.emplace(key, network_->message_cost(message)).first->second;
  }

  std::uint32_t queue_pairs_to(std::uint32_t destination) const {
    return network_->transport_figures(cluster_.packet_fabric(gpu_, destination)).queue_pairs;
  }

  // Lane: a queue pair of the rank. It holds destination, traffic class and channel. For a group it holds the
  // number of the queue pair, the use and the channel.
  using Lane = std::tuple<std::uint32_t, std::uint8_t, std::uint32_t, const SwitchAggregation*>;

  PlacedSource job_;
  Executor& executor_;
  const Cluster& cluster_;
  const PacketNetwork* network_;
  const bool lanes_matter_;
  GroupRoutes& group_routes_;
  std::uint32_t rank_, gpu_;
  RankCalls<Volume> calls_;
  std::optional<PlannedOperations> operations_;  // with a task scheduler
  std::map<std::pair<std::uint32_t, std::uint64_t>, LinksCrossed>
      crossed_;  // by destination, and by class and channel
  std::vector<Lane> lanes_;
};

double weighted_hops(const Volume& volume) {
  double sum = 0;
  for (std::size_t kind = 0; kind < kHopWeights.size(); ++kind) {
    sum += kHopWeights[kind] * static_cast<double>(volume.packet_hops[kind]);
  }
  return sum;
}

// Returns the work in weighted hops and tasks. Half of a packet's work is done on its way, the other half
// after delivery, on the way of its acknowledgement. Packets in flight, of which a run has most at its
// beginning, therefore do not count too much. `done` is a part of `all`.
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

// Returns the seconds that the rest takes at the speed at the end of the calibration, when the caches are
// warm.
double seconds_left(const Volume& volume, const Calibration& calibration) {
  const double done = work(calibration.end.done, volume);
  const double lately = done - work(calibration.early.done, volume);
  const double during = calibration.end.seconds - calibration.early.seconds;
  const double rate = lately > 0 && during > 0 ? lately / during : kWorkPerSecond;
  return std::max(0.0, work(volume, volume) - done) / rate;
}

std::uint64_t sum_of(const HopCounts& hops) {
  return std::accumulate(hops.begin(), hops.end(), std::uint64_t{0});
}

// Returns the volume in which the share of possible detours is that of the packets in `done`.
Volume with_detours(Volume volume, const Volume& done) {
  const std::uint64_t least = sum_of(volume.packet_hops), most = sum_of(volume.most_hops);
  if (most <= least || done.packets == 0 || volume.packets == 0) return volume;
  const double each = static_cast<double>(done.hops()) / static_cast<double>(done.packets);
  const auto packets = static_cast<double>(volume.packets);
  const double part =
      std::clamp((each * packets - static_cast<double>(least)) / static_cast<double>(most - least), 0.0, 1.0);
  for (std::size_t kind = 0; kind < volume.packet_hops.size(); ++kind) {
    const double more =
        static_cast<double>(volume.most_hops[kind]) - static_cast<double>(volume.packet_hops[kind]);
    volume.packet_hops[kind] += static_cast<std::uint64_t>(std::max(0.0, part * more));
  }
  return volume;
}

// Returns the largest number of flow timers alive when `flows` flows have ended, at the speed of the
// calibration.
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

// Returns the bytes that flows, queue pairs and timers leave allocated between two states of a run.
std::uint64_t memory_left_behind(const Volume& before, const Volume& after, const Volume& all,
                                 const Calibration& calibration) {
  const std::uint64_t flows = left(after.flows, before.flows);
  return flows * kMemoryPerFlow + std::min(flows, left(kSlowdownsKept, before.flows)) * kMemoryPerSlowdown +
         left(after.queue_pairs, before.queue_pairs) * kMemoryPerQueuePair +
         left(timers(after.flows, all, calibration), timers(before.flows, all, calibration)) *
             kMemoryPerTimer;
}

// Returns by how many bytes the memory of messages in flight will still grow. Its peak grows ever more
// slowly. It is assumed to grow as much with each doubling of the work as it did on average since the early
// mark.
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

// Returns the value that the system reports for this process under `name`, in bytes.
std::uint64_t process_status(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kibibytes = 0;
    if (word == name && status >> kibibytes) return kibibytes << 10;
  }
  return 0;
}

}  // namespace

std::uint64_t Volume::hops() const { return sum_of(packet_hops); }

Volume predict_volume(const TaskSource& source, const std::vector<GpuId>& gpus, Executor& executor,
                      const Cluster& cluster, const PacketNetwork* network,
                      const TaskScheduling* scheduling) {
  Volume volume;
  GroupRoutes group_routes;
  for (RankId rank = 0; rank < source.ranks() && volume.known; ++rank) {
    RankVolume({source, gpus, scheduling}, executor, cluster, network, group_routes, rank).add_to(volume);
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
  add(sum.most_hops, more.most_hops);
}

double share_done(const Volume& done, const Volume& all) {
  const double whole = work(all, all);
  return whole > 0 ? std::min(1.0, work(done, all) / whole) : 0;
}

Prediction extrapolate(std::uint32_t ranks, const Volume& predicted, const Calibration& calibration) {
  Prediction prediction;
  prediction.ranks = ranks;
  const Volume volume = with_detours(predicted, calibration.end.done);
  prediction.volume = volume;
  prediction.least_hops = predicted.hops();
  prediction.most_hops = std::max(predicted.hops(), sum_of(predicted.most_hops));
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
