#include "sim/collectives/execution/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "sim/collectives/execution/operation_table.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

constexpr std::size_t kKinds = static_cast<std::size_t>(CollectiveKind::point_to_point) + 1;

struct CollectivesParameters {
  ConfigNode all_reduce, all_gather, reduce_scatter, all_to_all, broadcast;
  // NCCL 2.30 src/graph/tuning.cc, baseLatencies and hwLatencies, column Simple.
  Time base_latency_ring = 8'400 * kNanosecond;
  Time base_latency_tree = 8'400 * kNanosecond;
  Time hop_latency_nvlink_ring = 3'400 * kNanosecond;
  Time hop_latency_nvlink_tree = 4'000 * kNanosecond;
  Time hop_latency_net_ring = 14 * kMicrosecond;
  Time hop_latency_net_tree = 14 * kMicrosecond;
  // A100 with NVSwitch: 12 NVLinks, 2 channels each; 4 channels keep one 200 Gb/s NIC busy.
  std::int64_t scale_up_channels = 24;
  std::int64_t scale_out_channels = 4;
  // Buffer of 4 MiB in NCCL_STEPS = 8 steps, ALLREDUCE_SLICESTEPS = 2 of them a slice; so 8 / 2 slices fit.
  Bytes slice = kMebibyte;
  std::int64_t send_window = 4;
};

// The parameter that chooses a kind's algorithm, and its default. Point-to-point has nothing to choose.
struct Choice {
  CollectiveKind kind;
  ConfigNode CollectivesParameters::*chosen;
  const char* default_name;
};
constexpr Choice kChoices[] = {
    {CollectiveKind::all_reduce, &CollectivesParameters::all_reduce, "ring"},
    {CollectiveKind::all_gather, &CollectivesParameters::all_gather, "ring"},
    {CollectiveKind::reduce_scatter, &CollectivesParameters::reduce_scatter, "ring"},
    {CollectiveKind::all_to_all, &CollectivesParameters::all_to_all, "pairwise"},
    {CollectiveKind::broadcast, &CollectivesParameters::broadcast, "chain"},
};

const Parameters<CollectivesParameters>& parameters() {
  using P = CollectivesParameters;
  static const auto declared = [] {
    Parameters<P> p;
    for (const Choice& choice : kChoices) {
      p.component(to_string(choice.kind), choice.chosen, CollectiveAlgorithm::kComponentKind,
                  choice.default_name, std::string("algorithm of ") + to_string(choice.kind));
    }
    const Range<Time> latency{0, kSecond};
    const Range<std::int64_t> channels{1, 1024};
    p.time("base_latency_ring", &P::base_latency_ring, latency,
           "start of a ring, chain or pairwise collective (NCCL tuning.cc baseLatencies, Ring Simple)")
        .time("base_latency_tree", &P::base_latency_tree, latency,
              "start of a tree collective (NCCL tuning.cc baseLatencies, Tree Simple)")
        .time("hop_latency_nvlink_ring", &P::hop_latency_nvlink_ring, latency,
              "per step within a host, ring (NCCL tuning.cc hwLatencies, NVLINK Ring Simple); also "
              "point-to-point")
        .time("hop_latency_nvlink_tree", &P::hop_latency_nvlink_tree, latency,
              "per step within a host, tree (NCCL tuning.cc hwLatencies, NVLINK Tree Simple)")
        .time(
            "hop_latency_net_ring", &P::hop_latency_net_ring, latency,
            "per step between hosts, ring (NCCL tuning.cc hwLatencies, NET Ring Simple); also point-to-point")
        .time("hop_latency_net_tree", &P::hop_latency_net_tree, latency,
              "per step between hosts, tree (NCCL tuning.cc hwLatencies, NET Tree Simple)")
        .integer("scale_up_channels", &P::scale_up_channels, channels,
                 "channels of a group within one host (NCCL on A100 with NVSwitch: 24), timed together")
        .integer("scale_out_channels", &P::scale_out_channels, channels,
                 "channels of a group on several hosts, each a message chain of its own")
        .bytes("slice", &P::slice, {kKibibyte, kGibibyte},
               "largest message of one channel (NCCL Simple: 4 MiB buffer / 8 steps x 2 steps a slice)")
        .integer("send_window", &P::send_window, {1, 1 << 20},
                 "sends in flight per channel, thread and peer (NCCL Simple: 8 steps / 2 steps a slice)");
    return p;
  }();
  return declared;
}

// An algorithm as the executor uses it.
struct Chosen {
  std::string algorithm;
  CostFamily family = CostFamily::ring;
};

std::string algorithms_for(CollectiveKind kind) {
  const auto& registry = Registry<CollectiveAlgorithm>::instance();
  std::string names;
  for (const std::string& name : registry.names()) {
    if (registry.create(name)->supports(kind)) names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

Chosen choose(CollectiveKind kind, const ConfigNode& node, const std::string& default_name) {
  const auto& registry = Registry<CollectiveAlgorithm>::instance();
  const auto algorithm = registry.create(node, default_name);
  const std::string name = registry.component_name(node, default_name);
  if (!algorithm->supports(kind)) {
    node.fail("'" + name + "' does not do " + to_string(kind) + " (allowed: " + algorithms_for(kind) + ")");
  }
  return {name, algorithm->cost_family()};
}

constexpr std::uint64_t pack(std::uint32_t high, std::uint32_t low) {
  return static_cast<std::uint64_t>(high) << 32 | low;
}
constexpr std::uint32_t low_half(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

// How many of something there are by key: a few entries in any order, so that linear search is right.
class Counts {
 public:
  std::uint32_t get(std::uint64_t key) const {
    const std::size_t i = find(key);
    return i < entries_.size() ? entries_[i].count : 0;
  }
  void add(std::uint64_t key) {
    const std::size_t i = find(key);
    if (i == entries_.size()) entries_.push_back({key, 0});
    ++entries_[i].count;
    ++total_;
  }
  // False if there is none.
  bool take(std::uint64_t key) {
    const std::size_t i = find(key);
    if (i == entries_.size()) return false;
    --total_;
    if (--entries_[i].count == 0) {
      entries_[i] = entries_.back();
      entries_.pop_back();
    }
    return true;
  }
  std::uint64_t total() const { return total_; }
  void clear() {
    entries_.clear();
    total_ = 0;
  }

 private:
  struct Entry {
    std::uint64_t key;
    std::uint32_t count;
  };
  std::size_t find(std::uint64_t key) const {
    std::size_t i = 0;
    while (i < entries_.size() && entries_[i].key != key) ++i;
    return i;
  }
  std::vector<Entry> entries_;
  std::uint64_t total_ = 0;
};

// How an operation is cut and paced: see the header.
struct Cut {
  std::uint32_t channels = 1;
  Bytes slice = 0;           // largest chunk of one channel; 0: unlimited
  std::uint32_t window = 0;  // sends in flight per lane and peer; 0: unlimited
};

std::uint64_t rounds_of(const Schedule& schedule, const Cut& cut, Bytes channel_bytes) {
  if (cut.slice == 0) return 1;
  __extension__ using Wide = __int128;
  const Wide round = static_cast<Wide>(schedule.divisions()) * cut.slice;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>((channel_bytes + round - 1) / round));
}

// How many messages of which size a chunk is, over all channels and rounds. Channels come in two sizes, a
// channel's rounds too, and all chunks of one round's size are alike but for a byte: so this is arithmetic,
// and few distinct sizes.
class ChunkSizes {
 public:
  struct Size {
    Bytes bytes = 0;  // > 0
    std::uint64_t count = 0;
  };

  // Of this operation; keeps what is known if it is the same as before.
  void open(const Schedule& schedule, const Cut& cut, Bytes bytes) {
    if (schedule_ == &schedule && channels_ == cut.channels && slice_ == cut.slice && bytes_ == bytes) return;
    schedule_ = &schedule;
    channels_ = cut.channels;
    slice_ = cut.slice;
    bytes_ = bytes;
    find_rounds(cut);
    known_.assign(schedule.divisions(), {});
  }

  const std::vector<Size>& of(std::uint32_t chunk) {
    const std::uint32_t division = chunk % schedule_->divisions();
    std::vector<Size>& sizes = known_[division];
    if (!sizes.empty()) return sizes;
    for (const Size& round : rounds_)
      add(sizes, share(round.bytes, schedule_->divisions(), division), round.count);
    return sizes;
  }

  Bytes total(std::uint32_t chunk) {
    Bytes sum = 0;
    for (const Size& size : of(chunk)) sum += size.bytes * static_cast<Bytes>(size.count);
    return sum;
  }

 private:
  static void add(std::vector<Size>& sizes, Bytes bytes, std::uint64_t count) {
    if (bytes == 0 || count == 0) return;
    const auto same =
        std::find_if(sizes.begin(), sizes.end(), [&](const Size& s) { return s.bytes == bytes; });
    if (same != sizes.end()) {
      same->count += count;
    } else {
      sizes.push_back({bytes, count});
    }
  }

  void find_rounds(const Cut& cut) {
    rounds_.clear();
    for (std::uint32_t channel = 0; channel < channels_; ++channel) {
      const Bytes channel_bytes = share(bytes_, channels_, channel);
      const std::uint64_t rounds = rounds_of(*schedule_, cut, channel_bytes);
      const Bytes small = channel_bytes / static_cast<Bytes>(rounds);
      const auto larger = static_cast<std::uint64_t>(channel_bytes % static_cast<Bytes>(rounds));
      add(rounds_, small, rounds - larger);
      add(rounds_, small + 1, larger);
    }
  }

  const Schedule* schedule_ = nullptr;
  std::uint32_t channels_ = 0;
  Bytes slice_ = 0, bytes_ = 0;
  std::vector<Size> rounds_;
  std::vector<std::vector<Size>> known_;  // by division
};

class ScheduleExecutor final : public Executor {
 public:
  ScheduleExecutor(const std::vector<EventLoop*>& loops, const std::vector<std::uint32_t>& set_of_gpu,
                   Endpoint& endpoint, const ConfigNode& section, std::uint32_t first_origin);

  void set_listener(CommunicationListener* listener) override { listener_ = listener; }
  void start(std::uint32_t gpu, const CommunicationRequest& request) override;
  std::vector<std::string> waiting(std::size_t limit) const override;
  Bytes scale_out_bytes(std::uint32_t gpu, const CommunicationRequest& request) override;
  void for_each_batch(std::uint32_t gpu, const CommunicationRequest& request,
                      const BatchVisitor& visit) override;
  void message_delivered(const SendRequest& message) override;
  void message_sent(const SendRequest& message) override;

 private:
  using Op = Instruction::Op;

  // One thread of one channel: number channel * threads + thread.
  struct Lane {
    std::uint32_t instruction = 0;   // next one
    std::uint32_t instructions = 0;  // per round
    std::uint64_t round = 0;
    std::uint64_t rounds = 1;
    Bytes channel_bytes = 0;
    Bytes round_bytes = 0;
    bool done() const { return round == rounds; }
  };
  // What one GPU does of one communication. `announced`: messages came before the GPU entered it.
  enum class Phase : std::uint8_t { announced, entered, running, finishing, finished, recycled };
  struct Operation {
    Phase phase = Phase::announced;
    std::uint32_t gpu = 0;
    std::uint64_t number = 0;  // in the order in which they were opened
    CommunicationRequest request;
    const Schedule* schedule = nullptr;
    Cut cut;
    CostFamily family = CostFamily::ring;
    std::uint32_t threads = 1;
    std::uint32_t open_lanes = 0;
    Time started = 0;
    Time sender_started = 0;
    std::vector<Lane> lanes;
    Counts arrived;    // by tag: messages delivered that no instruction has taken yet
    Counts in_flight;  // by (destination GPU, lane): sends not yet reported as sent
  };
  // What the GPUs of one set share.
  struct alignas(64) Context {
    explicit Context(EventLoop& event_loop) : loop(event_loop) {}
    EventLoop& loop;
    std::map<std::tuple<CollectiveKind, std::uint32_t, std::uint32_t>, const Schedule*> schedules;
    std::vector<Operation> operations;  // arena
    std::vector<std::uint32_t> free_operations;
    std::vector<SendRequest> delayed;  // arena: sends in their hop latency
    std::vector<std::uint32_t> free_delayed;
  };
  // What one GPU has of its own.
  struct GpuState {
    Origin origin;
    std::uint32_t set = 0;
    OperationTable active;     // its operations
    std::uint64_t opened = 0;  // operations so far
  };
  // The argument of an executor event: what, and the slot of an operation or a delayed send.
  enum class What : std::uint32_t { begin, finish, send };

  Context& context_of(std::uint32_t gpu) { return contexts_[gpus_[gpu].set]; }
  void handle(const Event& event);
  void schedule_event(Context& context, Time time, std::uint32_t gpu, What what, std::uint32_t slot) {
    context.loop.schedule(time, gpus_[gpu].origin, EventKind::executor, gpu,
                          pack(static_cast<std::uint32_t>(what), slot));
  }

  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t find(std::uint32_t gpu, std::uint64_t communication) const;
  std::uint32_t open(Context& context, std::uint32_t gpu, std::uint64_t communication);
  void prepare(Operation& operation);
  void prepare_lanes(Operation& operation);
  void begin(Operation& operation);
  // A point-to-point sender is busy until its data is acknowledged; a collective only hands its last sends
  // over.
  bool finished(const Operation& operation) const {
    return operation.open_lanes == 0 &&
           (operation.request.kind != CollectiveKind::point_to_point || operation.in_flight.total() == 0);
  }
  void finish(Context& context, std::uint32_t slot);
  void recycle(Context& context, std::uint32_t slot);
  [[noreturn]] void disagree(const Operation& operation) const;

  void wake(Context& context, std::uint32_t slot, std::uint32_t lane);
  void advance_channel(Operation& operation, std::uint32_t channel);
  bool advance(Operation& operation, std::uint32_t lane);
  bool execute(Operation& operation, std::uint32_t lane);
  void open_round(Operation& operation, Lane& lane);
  bool has_passed(const Operation& operation, std::uint32_t lane, const Instruction& wait) const;
  Bytes chunk_bytes(const Operation& operation, const Lane& lane, std::uint32_t chunk) const;
  bool window_open(const Operation& operation, std::uint32_t lane, std::uint32_t destination) const;
  void post(Operation& operation, std::uint32_t lane, std::uint32_t destination, Bytes bytes);
  void delay(const SendRequest& message, Time latency);

  const Schedule& schedule_for(Context& context, const CommunicationRequest& request);
  Reach group_reach(const CommunicationRequest& request) const;
  Cut cut_for(const CommunicationRequest& request) const;
  template <class Visit>
  void for_each_chunk(std::uint32_t gpu, const CommunicationRequest& request, Visit visit);
  Time base_latency(const Operation& operation) const;
  Time hop_latency(const Operation& operation, std::uint32_t destination) const;
  std::string describe(const Operation& operation) const;
  std::string describe(const Operation& operation, std::uint32_t lane) const;
  std::string describe_instruction(const Operation& operation, std::uint32_t lane) const;

  Endpoint& endpoint_;
  CollectivesParameters parameters_;
  std::array<Chosen, kKinds> chosen_;
  CommunicationListener* listener_ = nullptr;
  std::vector<Context> contexts_;  // by set
  std::vector<GpuState> gpus_;
  // Behind the sets' own tables of schedules.
  ScheduleCache cache_;
  std::mutex cache_mutex_;
  ChunkSizes sizes_;  // of the operation last asked about
};

ScheduleExecutor::ScheduleExecutor(const std::vector<EventLoop*>& loops,
                                   const std::vector<std::uint32_t>& set_of_gpu, Endpoint& endpoint,
                                   const ConfigNode& section, std::uint32_t first_origin)
    : endpoint_(endpoint), parameters_(parameters().parse(section)), gpus_(endpoint.gpu_count()) {
  for (const Choice& choice : kChoices) {
    chosen_[static_cast<std::size_t>(choice.kind)] =
        choose(choice.kind, parameters_.*choice.chosen, choice.default_name);
  }
  chosen_[static_cast<std::size_t>(CollectiveKind::point_to_point)].algorithm = "direct";
  NETSIM_CHECK(set_of_gpu.size() == gpus_.size(), "one set per GPU");
  for (std::uint32_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    NETSIM_CHECK(set_of_gpu[gpu] < loops.size(), "GPU " + std::to_string(gpu) + " is in no set");
    gpus_[gpu].origin = Origin(first_origin + gpu);
    gpus_[gpu].set = set_of_gpu[gpu];
  }
  endpoint_.set_listener(this);
  contexts_.reserve(loops.size());
  for (EventLoop* loop : loops) {
    contexts_.emplace_back(*loop);
    loop->set_handler<&ScheduleExecutor::handle>(EventKind::executor, *this);
  }
}

void ScheduleExecutor::handle(const Event& event) {
  Context& context = context_of(event.target);
  const std::uint32_t slot = low_half(event.argument);
  switch (static_cast<What>(event.argument >> 32)) {
    case What::begin:
      begin(context.operations[slot]);
      if (finished(context.operations[slot])) finish(context, slot);
      break;
    case What::finish:
      finish(context, slot);
      break;
    case What::send:
      context.free_delayed.push_back(slot);
      endpoint_.send(context.delayed[slot]);
      break;
  }
}

// ---- Operations

std::uint32_t ScheduleExecutor::find(std::uint32_t gpu, std::uint64_t communication) const {
  return gpus_[gpu].active.find(communication);
}

std::uint32_t ScheduleExecutor::open(Context& context, std::uint32_t gpu, std::uint64_t communication) {
  std::uint32_t slot = static_cast<std::uint32_t>(context.operations.size());
  if (context.free_operations.empty()) {
    context.operations.emplace_back();
  } else {
    slot = context.free_operations.back();
    context.free_operations.pop_back();
  }
  Operation& operation = context.operations[slot];
  operation.phase = Phase::announced;
  operation.gpu = gpu;
  operation.request.communication = communication;
  operation.number = gpus_[gpu].opened++;
  gpus_[gpu].active.insert(communication, slot);
  return slot;
}

void ScheduleExecutor::start(std::uint32_t gpu, const CommunicationRequest& request) {
  NETSIM_CHECK(request.members != nullptr && request.index < request.members->size() &&
                   (*request.members)[request.index] == gpu && request.bytes > 0,
               "communication request of gpu " + std::to_string(gpu));
  NETSIM_CHECK(!request.raw || request.kind == CollectiveKind::point_to_point,
               "only point-to-point may be raw");
  Context& context = context_of(gpu);
  std::uint32_t slot = find(gpu, request.communication);
  if (slot == kNone) slot = open(context, gpu, request.communication);
  Operation& operation = context.operations[slot];
  NETSIM_CHECK(operation.phase == Phase::announced, describe(operation) + " is started twice");
  operation.request = request;
  operation.started = context.loop.now();
  prepare(operation);
  const Time latency = base_latency(operation);
  if (latency > 0) {
    schedule_event(context, context.loop.now() + latency, gpu, What::begin, slot);
    return;
  }
  begin(operation);
  if (!finished(operation)) return;
  operation.phase = Phase::finishing;  // the listener is told from an event, never from here
  schedule_event(context, context.loop.now(), gpu, What::finish, slot);
}

void ScheduleExecutor::prepare(Operation& operation) {
  const CommunicationRequest& request = operation.request;
  operation.phase = Phase::entered;
  operation.open_lanes = 0;
  operation.schedule = nullptr;
  operation.lanes.clear();
  if (request.members->size() == 1) return;
  operation.schedule = &schedule_for(context_of(operation.gpu), request);
  operation.cut = cut_for(request);
  operation.family = chosen_[static_cast<std::size_t>(request.kind)].family;
  operation.threads = operation.schedule->threads();
  prepare_lanes(operation);
}

void ScheduleExecutor::prepare_lanes(Operation& operation) {
  const CommunicationRequest& request = operation.request;
  for (std::uint32_t channel = 0; channel < operation.cut.channels; ++channel) {
    Lane lane;
    lane.channel_bytes = share(request.bytes, operation.cut.channels, channel);
    lane.rounds = rounds_of(*operation.schedule, operation.cut, lane.channel_bytes);
    for (std::uint32_t thread = 0; thread < operation.threads; ++thread) {
      lane.instructions = operation.schedule->instructions(request.index, thread);
      lane.round = lane.instructions == 0 ? lane.rounds : 0;
      lane.round_bytes = share(lane.channel_bytes, lane.rounds, 0);
      operation.lanes.push_back(lane);
      if (!lane.done()) ++operation.open_lanes;
    }
  }
}

void ScheduleExecutor::begin(Operation& operation) {
  operation.phase = Phase::running;
  if (operation.schedule == nullptr) return;
  for (std::uint32_t channel = 0; channel < operation.cut.channels; ++channel)
    advance_channel(operation, channel);
}

void ScheduleExecutor::finish(Context& context, std::uint32_t slot) {
  Operation& operation = context.operations[slot];
  if (operation.arrived.total() > 0) disagree(operation);
  const CommunicationRequest request = operation.request;
  const bool receiver = request.kind == CollectiveKind::point_to_point && request.index == 1;
  const std::uint32_t gpu = operation.gpu;
  const Time started = receiver ? operation.sender_started : operation.started;
  operation.phase = Phase::finished;
  if (operation.in_flight.total() == 0) recycle(context, slot);  // else with the last acknowledgement
  // May start operations: nothing of ours is touched after.
  listener_->communication_done(gpu, request, started);
}

void ScheduleExecutor::recycle(Context& context, std::uint32_t slot) {
  Operation& operation = context.operations[slot];
  gpus_[operation.gpu].active.erase(operation.request.communication);
  operation.phase = Phase::recycled;
  context.free_operations.push_back(slot);
}

// Messages came that this member does not expect. The one that builds the requests refuses such members with
// what they said; it may be behind, and then this ends the run before it goes astray.
void ScheduleExecutor::disagree(const Operation& operation) const {
  throw InputError(describe(operation) + ": its members disagree on bytes or group");
}

// ---- Instructions

void ScheduleExecutor::wake(Context& context, std::uint32_t slot, std::uint32_t lane) {
  Operation& operation = context.operations[slot];
  if (operation.phase != Phase::running) return;
  if (lane >= operation.lanes.size()) disagree(operation);
  if (operation.threads == 1) {
    advance(operation, lane);
  } else if (advance(operation, lane)) {
    advance_channel(operation, lane / operation.threads);
  }
  if (finished(operation)) finish(context, slot);
}

// Until no thread of the channel can go on: threads may wait for each other.
void ScheduleExecutor::advance_channel(Operation& operation, std::uint32_t channel) {
  bool progress = true;
  while (progress) {
    progress = false;
    for (std::uint32_t thread = 0; thread < operation.threads; ++thread) {
      if (advance(operation, channel * operation.threads + thread)) progress = true;
    }
  }
}

// Executes what can be executed of one lane; true if anything was.
bool ScheduleExecutor::advance(Operation& operation, std::uint32_t number) {
  Lane& lane = operation.lanes[number];
  bool progress = false;
  while (!lane.done() && execute(operation, number)) {
    progress = true;
    if (++lane.instruction == lane.instructions) open_round(operation, lane);
  }
  return progress;
}

void ScheduleExecutor::open_round(Operation& operation, Lane& lane) {
  lane.instruction = 0;
  ++lane.round;
  if (lane.done()) {
    --operation.open_lanes;
  } else {
    lane.round_bytes = share(lane.channel_bytes, lane.rounds, lane.round);
  }
}

bool ScheduleExecutor::execute(Operation& operation, std::uint32_t number) {
  const Lane& lane = operation.lanes[number];
  const Instruction instruction =
      operation.schedule->instruction(operation.request.index, number % operation.threads, lane.instruction);
  if (instruction.op == Op::wait) return has_passed(operation, number, instruction);
  const Bytes bytes = chunk_bytes(operation, lane, instruction.chunk);
  if (bytes == 0) return true;
  if (instruction.op != Op::send) return operation.arrived.take(pack(instruction.peer, number));
  const std::uint32_t destination = (*operation.request.members)[instruction.peer];
  if (!window_open(operation, number, destination)) return false;
  post(operation, number, destination, bytes);
  return true;
}

bool ScheduleExecutor::has_passed(const Operation& operation, std::uint32_t number,
                                  const Instruction& wait) const {
  const Lane& lane = operation.lanes[number];
  const Lane& other = operation.lanes[number - number % operation.threads + wait.peer];
  return other.round > lane.round || (other.round == lane.round && other.instruction >= wait.chunk);
}

Bytes ScheduleExecutor::chunk_bytes(const Operation& operation, const Lane& lane, std::uint32_t chunk) const {
  const std::uint32_t divisions = operation.schedule->divisions();
  return divisions == 1 ? lane.round_bytes : share(lane.round_bytes, divisions, chunk % divisions);
}

bool ScheduleExecutor::window_open(const Operation& operation, std::uint32_t lane,
                                   std::uint32_t destination) const {
  const std::uint32_t window = operation.cut.window;
  return window == 0 || operation.in_flight.get(pack(destination, lane)) < window;
}

void ScheduleExecutor::post(Operation& operation, std::uint32_t lane, std::uint32_t destination,
                            Bytes bytes) {
  operation.in_flight.add(pack(destination, lane));
  SendRequest message;
  message.source = operation.gpu;
  message.destination = destination;
  message.bytes = bytes;
  message.traits = operation.request.traits;
  message.traits.own_queue_pair = operation.request.raw;
  if (!operation.request.raw) message.traits.channel = lane / operation.threads;
  message.name = operation.request.name;
  message.communication = operation.request.communication;
  message.tag = pack(operation.request.index, lane);
  message.started = operation.started;
  delay(message, hop_latency(operation, destination));
}

void ScheduleExecutor::delay(const SendRequest& message, Time latency) {
  if (latency == 0) {
    endpoint_.send(message);
    return;
  }
  Context& context = context_of(message.source);
  std::uint32_t slot = static_cast<std::uint32_t>(context.delayed.size());
  if (context.free_delayed.empty()) {
    context.delayed.push_back(message);
  } else {
    slot = context.free_delayed.back();
    context.free_delayed.pop_back();
    context.delayed[slot] = message;
  }
  schedule_event(context, context.loop.now() + latency, message.source, What::send, slot);
}

// ---- Messages

void ScheduleExecutor::message_delivered(const SendRequest& message) {
  Context& context = context_of(message.destination);
  std::uint32_t slot = find(message.destination, message.communication);
  if (slot == kNone) slot = open(context, message.destination, message.communication);
  Operation& operation = context.operations[slot];
  operation.arrived.add(message.tag);
  operation.sender_started = message.started;
  wake(context, slot, low_half(message.tag));
}

void ScheduleExecutor::message_sent(const SendRequest& message) {
  Context& context = context_of(message.source);
  const std::uint32_t slot = find(message.source, message.communication);
  const std::uint32_t lane = low_half(message.tag);
  NETSIM_CHECK(slot != kNone && context.operations[slot].in_flight.take(pack(message.destination, lane)),
               "a message of gpu " + std::to_string(message.source) + " was sent that it had not posted");
  const Operation& operation = context.operations[slot];
  if (operation.phase != Phase::finished) {
    wake(context, slot, lane);
  } else if (operation.in_flight.total() == 0) {
    recycle(context, slot);
  }
}

// ---- What an operation costs

const Schedule& ScheduleExecutor::schedule_for(Context& context, const CommunicationRequest& request) {
  const auto ranks = static_cast<std::uint32_t>(request.members->size());
  const std::uint32_t root = request.kind == CollectiveKind::broadcast ? request.root : 0;
  NETSIM_CHECK(root < ranks && (request.kind != CollectiveKind::point_to_point || ranks == 2),
               std::string("group of a ") + to_string(request.kind));
  const Schedule*& known = context.schedules[{request.kind, ranks, root}];
  if (known == nullptr) {
    const std::lock_guard lock(cache_mutex_);
    known = &cache_.get(chosen_[static_cast<std::size_t>(request.kind)].algorithm, request.kind, ranks, root);
  }
  return *known;
}

// The farthest of the group from its first member: the same at every member.
Reach ScheduleExecutor::group_reach(const CommunicationRequest& request) const {
  const std::vector<std::uint32_t>& members = *request.members;
  for (std::size_t i = 1; i < members.size(); ++i) {
    const Reach reach = endpoint_.reach(members[0], members[i]);
    if (reach != Reach::scale_up) return reach;
  }
  return Reach::scale_up;
}

Cut ScheduleExecutor::cut_for(const CommunicationRequest& request) const {
  if (request.raw) return {};
  const auto window = static_cast<std::uint32_t>(parameters_.send_window);
  switch (group_reach(request)) {
    case Reach::scale_up:
      return {1, parameters_.slice * parameters_.scale_up_channels, window};
    case Reach::scale_out:
      return {static_cast<std::uint32_t>(parameters_.scale_out_channels), parameters_.slice, window};
    case Reach::self:
    case Reach::ideal:
      break;
  }
  return {};
}

Time ScheduleExecutor::base_latency(const Operation& operation) const {
  if (operation.schedule == nullptr || operation.request.kind == CollectiveKind::point_to_point) return 0;
  if (group_reach(operation.request) == Reach::ideal) return 0;
  return operation.family == CostFamily::tree ? parameters_.base_latency_tree : parameters_.base_latency_ring;
}

Time ScheduleExecutor::hop_latency(const Operation& operation, std::uint32_t destination) const {
  if (operation.request.raw) return 0;
  const bool tree = operation.family == CostFamily::tree;
  switch (endpoint_.reach(operation.gpu, destination)) {
    case Reach::scale_up:
      return tree ? parameters_.hop_latency_nvlink_tree : parameters_.hop_latency_nvlink_ring;
    case Reach::scale_out:
      return tree ? parameters_.hop_latency_net_tree : parameters_.hop_latency_net_ring;
    case Reach::self:
    case Reach::ideal:
      break;
  }
  return 0;
}

// Calls visit(destination, reach, chunk) for the rank's send instructions.
template <class Visit>
void ScheduleExecutor::for_each_chunk(std::uint32_t gpu, const CommunicationRequest& request, Visit visit) {
  if (request.members->size() == 1) return;
  const Schedule& schedule = schedule_for(context_of(gpu), request);
  sizes_.open(schedule, cut_for(request), request.bytes);
  for (std::uint32_t thread = 0; thread < schedule.threads(); ++thread) {
    const std::uint32_t count = schedule.instructions(request.index, thread);
    for (std::uint32_t index = 0; index < count; ++index) {
      const Instruction instruction = schedule.instruction(request.index, thread, index);
      if (instruction.op != Op::send) continue;
      const std::uint32_t destination = (*request.members)[instruction.peer];
      visit(destination, endpoint_.reach(gpu, destination), instruction.chunk);
    }
  }
}

Bytes ScheduleExecutor::scale_out_bytes(std::uint32_t gpu, const CommunicationRequest& request) {
  Bytes sum = 0;
  for_each_chunk(gpu, request, [&](std::uint32_t, Reach reach, std::uint32_t chunk) {
    if (reach == Reach::scale_out) sum += sizes_.total(chunk);
  });
  return sum;
}

void ScheduleExecutor::for_each_batch(std::uint32_t gpu, const CommunicationRequest& request,
                                      const BatchVisitor& visit) {
  const std::uint32_t channels = request.members->size() == 1 ? 1 : cut_for(request).channels;
  for_each_chunk(gpu, request, [&](std::uint32_t destination, Reach reach, std::uint32_t chunk) {
    for (const ChunkSizes::Size& size : sizes_.of(chunk)) {
      visit({destination, reach, channels, size.bytes, size.count});
    }
  });
}

// ---- Stall reports

// By GPU, each one's oldest first.
std::vector<std::string> ScheduleExecutor::waiting(std::size_t limit) const {
  std::vector<const Operation*> active;
  for (const Context& context : contexts_) {
    for (const Operation& operation : context.operations) {
      if (operation.phase != Phase::recycled) active.push_back(&operation);
    }
  }
  std::sort(active.begin(), active.end(), [](const Operation* a, const Operation* b) {
    return std::pair(a->gpu, a->number) < std::pair(b->gpu, b->number);
  });
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < active.size() && i < limit; ++i) lines.push_back(describe(*active[i]));
  return lines;
}

std::string ScheduleExecutor::describe(const Operation& operation) const {
  const std::uint64_t id = operation.request.communication;
  if (operation.phase == Phase::announced) {
    return fmt::format("gpu {}: {} messages of communication {:#x} arrived, which the GPU has not started",
                       operation.gpu, operation.arrived.total(), id);
  }
  const std::string name =
      fmt::format("gpu {}: {} {:#x}", operation.gpu, to_string(operation.request.kind), id);
  if (operation.phase == Phase::entered) return name + " is in its base latency";
  for (std::uint32_t lane = 0; lane < operation.lanes.size(); ++lane) {
    if (!operation.lanes[lane].done()) return name + describe(operation, lane);
  }
  return fmt::format("{} waits for the acknowledgement of {} sends", name, operation.in_flight.total());
}

std::string ScheduleExecutor::describe(const Operation& operation, std::uint32_t number) const {
  const Lane& lane = operation.lanes[number];
  return fmt::format(" round {} of {}: channel {} thread {} {}", lane.round + 1, lane.rounds,
                     number / operation.threads, number % operation.threads,
                     describe_instruction(operation, number));
}

std::string ScheduleExecutor::describe_instruction(const Operation& operation, std::uint32_t number) const {
  const Instruction instruction = operation.schedule->instruction(
      operation.request.index, number % operation.threads, operation.lanes[number].instruction);
  if (instruction.op == Op::wait) return fmt::format("waits for thread {}", instruction.peer);
  const std::uint32_t peer = (*operation.request.members)[instruction.peer];
  if (instruction.op == Op::send) {
    return fmt::format("waits to send chunk {} to gpu {} ({} sends in flight)", instruction.chunk, peer,
                       operation.in_flight.get(pack(peer, number)));
  }
  return fmt::format("waits to {} chunk {} from gpu {}", instruction.op == Op::reduce ? "reduce" : "receive",
                     instruction.chunk, peer);
}

}  // namespace

std::unique_ptr<Executor> Executor::create(const std::vector<EventLoop*>& loops,
                                           const std::vector<std::uint32_t>& set_of_gpu, Endpoint& endpoint,
                                           const ConfigNode& section, std::uint32_t first_origin) {
  return std::make_unique<ScheduleExecutor>(loops, set_of_gpu, endpoint, section, first_origin);
}

std::unique_ptr<Executor> Executor::create(EventLoop& loop, Endpoint& endpoint, const ConfigNode& section,
                                           std::uint32_t first_origin) {
  return create({&loop}, std::vector<std::uint32_t>(endpoint.gpu_count(), 0), endpoint, section,
                first_origin);
}

const ParameterTable& Executor::parameter_table() { return parameters().table(); }

}  // namespace netsim
