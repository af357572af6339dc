// Do tasks that ask for optical circuits meet, and wait until the circuits are up and no longer, in any
// number of sets? Do the statistics and critical paths say what they waited for?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/jobs/circuit_numbers.h"
#include "sim/jobs/job_set.h"
#include "sim/workload/workload.h"
#include "tests/support/scripted_source.h"
#include "tests/support/single_job.h"
#include "tests/support/without_handles.h"

namespace netsim::circuits_test {
namespace {

using netsim::test::ScriptedSource;
using netsim::test::SingleJob;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Time kMessage = 40;    // from GPU to GPU
constexpr Time kLatency = 10;    // of a request
constexpr Time kSwitching = 50;  // of the switches, for one configuration after the other

// A message is delivered kMessage after it is sent and acknowledged as much later. What goes to another set
// is a remote event.
class EngineEndpoint final : public test::WithoutHandles<Endpoint> {
 public:
  EngineEndpoint(Engine& engine, std::vector<std::uint32_t> set_of_gpu)
      : engine_(engine),
        set_of_gpu_(std::move(set_of_gpu)),
        requests_(engine.sets()),
        places_(engine.sets()) {
    for (std::uint32_t gpu = 0; gpu < set_of_gpu_.size(); ++gpu) origins_.emplace_back(100 + gpu);
    for (std::uint32_t set = 0; set < engine_.sets(); ++set) {
      places_[set] = {this, set};
      engine_.loop(set).set_handler<&EngineEndpoint::deliver>(EventKind::deliver, *this);
      engine_.loop(set).set_handler<&EngineEndpoint::acknowledge>(EventKind::control, *this);
      engine_.set(set).set_remote_event_handler(EventKind::deliver, &EngineEndpoint::take, &places_[set]);
    }
  }
  void set_listener(MessageListener* listener) override { listener_ = listener; }
  MessageHandle send(const SendRequest& request) override {
    const Message& message = request.message;
    const std::uint32_t from = set_of_gpu_[message.source], to = set_of_gpu_[message.destination];
    EventLoop& loop = engine_.loop(from);
    Origin& origin = origins_[message.source];
    Event event{loop.now() + kMessage, origin.next_key(), message.destination, EventKind::deliver, 0};
    if (from == to) {
      event.argument = keep(from, request);
      loop.insert(event);
    } else {
      RemoteEvent& remote_event = engine_.set(from).post(to, event.time);
      remote_event.event = event;
      remote_event.event.argument = engine_.set(from).attach(to, request);
    }
    loop.schedule(loop.now() + 2 * kMessage, origin, EventKind::control, message.source, keep(from, request));
    return {message.source, 0, 0};
  }
  Reach reach(GpuId, GpuId) const override { return Reach::ideal; }
  std::uint32_t gpu_count() const override { return static_cast<std::uint32_t>(set_of_gpu_.size()); }

 private:
  struct Place {
    EngineEndpoint* endpoint = nullptr;
    std::uint32_t set = 0;
  };
  std::uint64_t keep(std::uint32_t set, const SendRequest& request) {
    requests_[set].push_back(request);
    return requests_[set].size() - 1;
  }
  SendRequest request(const Event& event) const {
    return requests_[set_of_gpu_[event.target]][event.argument];
  }
  void deliver(const Event& event) {
    const Message message = request(event).message;
    listener_->message_delivered({message, message.bytes});
  }
  void acknowledge(const Event& event) {
    const SendRequest sent = request(event);
    listener_->message_sent({sent, sent.message.bytes});
  }
  static void take(void* context, const RemoteEvent& remote_event, const std::byte* attached) {
    const Place& place = *static_cast<Place*>(context);
    SendRequest request;
    std::memcpy(&request, attached + remote_event.event.argument, sizeof(request));
    Event event = remote_event.event;
    event.argument = place.endpoint->keep(place.set, request);
    place.endpoint->engine_.loop(place.set).insert(event);
  }

  Engine& engine_;
  std::vector<std::uint32_t> set_of_gpu_;
  std::vector<std::vector<SendRequest>> requests_;  // by set
  std::vector<Place> places_;
  std::vector<Origin> origins_;
  MessageListener* listener_ = nullptr;
};

// Switches that take kSwitching for each configuration, one after the other.
class FakeCircuits final : public CircuitControl {
 public:
  explicit FakeCircuits(Engine& engine) : engine_(engine) {}
  const std::vector<std::string>& configurations() const override { return names_; }
  Time request_latency() const override { return kLatency; }
  void configure(std::uint32_t configuration, std::function<void()> when_up) override {
    log.emplace_back(engine_.now(), names_[configuration]);
    busy_until_ = std::max(busy_until_, engine_.now()) + kSwitching;
    engine_.call_at(busy_until_, std::move(when_up));
  }
  std::vector<std::pair<Time, std::string>> log;

 private:
  Engine& engine_;
  std::vector<std::string> names_{"ring", "pairs", "star"};
  Time busy_until_ = 0;
};

Engine::Options options_of(std::uint32_t sets, std::uint32_t threads) {
  Engine::Options options{sets, {}, threads};
  if (sets > 1) options.lookahead.assign(std::size_t{sets} * sets, kMessage);
  return options;
}

std::vector<Time> durations_of(const TaskSource& source) {
  std::vector<Time> durations;
  for (const Work& work : source.works()) durations.push_back(work.kernels[0].duration);
  return durations;
}

// Runs the job with rank r in set r mod `sets`.
struct CircuitRun {
  CircuitRun(TaskSource& source, std::uint32_t sets = 1, std::uint32_t threads = 1)
      : engine(options_of(sets, threads)), control(engine), endpoint(engine, set_of_rank(source, sets)) {
    std::vector<EventLoop*> loops;
    std::vector<GpuId> gpus;
    for (std::uint32_t set = 0; set < sets; ++set) loops.push_back(&engine.loop(set));
    for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) gpus.push_back(rank);
    executor = Executor::create(loops, set_of_rank(source, sets), endpoint, ConfigNode(), 10);
    job = std::make_unique<SingleJob>(loops, set_of_rank(source, sets), *executor, source, gpus,
                                      durations_of(source), 200, observer(), nullptr, GpuParameters{},
                                      announce(), &control);
    connect();
    job->start();
    job->jobs().set_journal(
        [this](std::uint32_t set, const JobRecord& record) { engine.set(set).write(job_reader, record); });
    job->jobs().set_transfer_journal(
        [this](std::uint32_t set, const TransferRecord& record, std::span<const PortDelay> ports) {
          engine.set(set).write(transfer_reader, record, ports);
        });
    engine.run();
    if (!(*job)->done()) return;
    end = (*job)->end_time();
    times = (*job)->rank_times(end);
    std::sort(tasks.begin(), tasks.end());
  }
  void connect() {
    JobSet& jobs = job->jobs();
    records = std::make_unique<JournalOf<JobRecord, JobSet>>(jobs, &JobSet::apply);
    transfers =
        std::make_unique<JournalInParts<TransferRecord, PortDelay, JobSet>>(jobs, &JobSet::apply_transfer);
    arrivals = std::make_unique<JournalOf<MemberArrival, JobSet>>(jobs, &JobSet::arrived);
    job_reader = engine.add_reader(*records);
    transfer_reader = engine.add_reader(*transfers);
    arrival_reader = engine.add_reader(*arrivals);
    engine.set_call_delay(kLatency);
  }
  AnnounceArrival announce() {
    return [this](std::uint32_t set, Time time, Origin& origin, const MemberArrival& arrival) {
      engine.set(set).ask_call(time, origin, arrival_reader, arrival);
    };
  }
  JobObserver observer() {
    return {[this](const TaskRecord& t) { tasks.emplace_back(t.rank, t.task.id, t.posted, t.start, t.end); },
            [this](const CommunicationRecord& c) { communications.push_back(c.kind); },
            {},
            [this](std::uint32_t, std::uint32_t, const PathStep& step) {
              path.emplace_back(to_string(step.kind), step.begin, step.end);
            }};
  }
  static std::vector<std::uint32_t> set_of_rank(const TaskSource& source, std::uint32_t sets) {
    std::vector<std::uint32_t> result;
    for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) result.push_back(rank % sets);
    return result;
  }

  Engine engine;
  FakeCircuits control;
  EngineEndpoint endpoint;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<SingleJob> job;
  std::unique_ptr<JournalReader> records, transfers, arrivals;
  std::uint32_t job_reader = 0, transfer_reader = 0, arrival_reader = 0;
  std::vector<std::tuple<std::uint32_t, std::uint32_t, Time, Time, Time>> tasks;
  std::vector<std::tuple<std::string, Time, Time>> path;
  std::vector<CollectiveKind> communications;
  std::vector<RankTimes> times;
  Time end = -1;
};

auto step(const char* kind, Time begin, Time end) { return std::tuple(std::string(kind), begin, end); }

// Rank r computes 100 + 20 r, then they ask, then they compute 30.
ScriptedSource asking(std::uint32_t ranks) {
  ScriptedSource source(ranks);
  std::vector<RankId> all;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) all.push_back(rank);
  const std::uint32_t group = source.add_group(all);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto before = source.compute(rank, 100 + 20 * Time{rank});
    source.compute(rank, 30, {source.circuits(rank, group, "pairs", {before})});
  }
  return source;
}

TEST(CircuitTasks, ATaskWaitsForItsLastMemberTheRequestAndTheSwitches) {
  for (const std::uint32_t ranks : {1U, 2U, 4U}) {
    for (std::uint32_t sets = 1; sets <= ranks; ++sets) {
      ScriptedSource source = asking(ranks);
      const CircuitRun run(source, sets, std::min(sets, 2U));
      const Time last = 100 + 20 * (Time{ranks} - 1), up = last + kLatency + kSwitching;
      EXPECT_THAT(run.control.log, ElementsAre(std::pair(last + kLatency, std::string("pairs"))));
      EXPECT_EQ(run.end, up + 30);
      EXPECT_THAT(run.path, ElementsAre(step("compute", 0, last), step("circuits", last, up),
                                        step("compute", up, run.end)));
      ASSERT_EQ(run.times.size(), ranks);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const Time asked = 100 + 20 * Time{rank};
        EXPECT_EQ(run.times[rank].compute, asked + 30);
        EXPECT_EQ(run.times[rank].exposed_by[static_cast<std::size_t>(Stream::dp)], up - asked);
        EXPECT_EQ(run.times[rank].idle, 0);
        EXPECT_EQ(run.tasks[3 * rank + 1], std::tuple(rank, 1U, asked, asked, up));
      }
      EXPECT_THAT(run.communications, IsEmpty()) << "circuits move nothing";
      EXPECT_EQ((*run.job)->paths().at(0).circuits, kLatency + kSwitching);
    }
  }
}

// Two groups ask at once: the switches serve them in the order of ranks, in any number of sets.
TEST(CircuitTasks, WhoAsksAtOneTimeIsServedInTheOrderOfRanks) {
  for (const std::uint32_t sets : {1U, 2U, 3U, 4U}) {
    ScriptedSource source(4);
    const std::uint32_t high = source.add_group({3, 2}), low = source.add_group({1, 0});
    for (const std::uint32_t rank : {3U, 1U, 2U, 0U})
      source.circuits(rank, rank < 2 ? low : high, rank < 2 ? "star" : "ring");
    const CircuitRun run(source, sets, 2);
    EXPECT_THAT(run.control.log, ElementsAre(std::pair(kLatency, std::string("star")),
                                             std::pair(kLatency, std::string("ring"))));
    EXPECT_EQ(std::get<4>(run.tasks.at(0)), kLatency + kSwitching);
    EXPECT_EQ(std::get<4>(run.tasks.at(3)), kLatency + 2 * kSwitching);
  }
}

TEST(CircuitTasks, AComputationBesideThemGoesOn) {
  ScriptedSource source(1);
  const std::uint32_t self = source.add_group({0});
  source.circuits(0, self, "ring");
  source.compute(0, 40);
  const CircuitRun run(source);
  EXPECT_EQ(run.end, kLatency + kSwitching);
  EXPECT_EQ(run.times[0].compute, 40);
  EXPECT_EQ(run.times[0].exposed, kLatency + kSwitching - 40);
}

// ---- Any program, in any number of sets and threads

std::string random_phases(RandomStream& random, std::uint32_t ranks) {
  std::string text = "{kind: phases, ranks: " + std::to_string(ranks) +
                     ", iterations: " + std::to_string(1 + random.below(3)) + ", phases: [{compute: 7 ps}";
  for (std::uint64_t i = 2 + random.below(6); i > 0; --i) {
    const std::uint64_t what = random.below(4);
    const std::string groups =
        random.below(2) == 0 ? "" : ", groups: [[0, 2], [1, 3" + std::string(ranks > 4 ? ", 4" : "") + "]]";
    if (what == 0) text += ", {compute: " + std::to_string(random.below(90)) + " ps";
    if (what == 1)
      text += ", {collective: all_reduce, bytes: " + std::to_string(1 + random.below(100)) + " B";
    if (what > 1) text += ", {circuits: " + std::string(random.below(2) == 0 ? "ring" : "pairs");
    text += groups + "}";
  }
  return text + "]}";
}

TEST(CircuitThreads, DoNotShowInAnyNumberOfSets) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    RandomStream random(seed, "phases");
    const auto ranks = static_cast<std::uint32_t>(4 + random.below(3));
    const std::string text = random_phases(random, ranks);
    const auto play = [&](std::uint32_t sets, std::uint32_t threads) {
      const auto kind = Registry<WorkloadKind>::instance().create(parse_config(text, "test.yaml"), "");
      const auto source = kind->tasks(ranks);
      return std::make_unique<CircuitRun>(*source, sets, threads);
    };
    const auto one = play(1, 1);
    RC_ASSERT(one->end >= 0);
    Time path_end = 0;
    for (const auto& [kind, begin, end] : one->path) {
      RC_ASSERT(begin == path_end);
      path_end = end;
    }
    RC_ASSERT(path_end == one->end);
    for (const RankTimes& times : one->times)
      RC_ASSERT(times.compute + times.exposed + times.idle == one->end);
    for (const std::uint32_t sets : {2U, 3U, ranks}) {
      const auto several = play(sets, 1 + static_cast<std::uint32_t>(random.below(sets)));
      RC_ASSERT(several->tasks == one->tasks);
      RC_ASSERT(several->path == one->path);
      RC_ASSERT(several->control.log == one->control.log);
      RC_ASSERT(several->communications == one->communications);
    }
  }));
}

// ---- Requests that cannot run

std::string error_of(TaskSource& source) {
  try {
    const CircuitRun run(source, 2, 1);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(CircuitTasks, ThatThereAreNotAreRefusedWithTheNearestAndAll) {
  ScriptedSource source(2);
  source.circuits(0, source.add_group({0}), "rings");
  EXPECT_THAT(error_of(source),
              AllOf(HasSubstr("script:1"), HasSubstr("no circuits 'rings', did you mean 'ring'?"),
                    HasSubstr("ring, pairs, star")));
}

TEST(CircuitTasks, CannotBeAskedForWhereThereAreNone) {
  ScriptedSource source(1);
  source.circuits(0, source.add_group({0}), "ring");
  try {
    const CircuitNumbers numbers(source, nullptr);
    FAIL() << "nothing was refused";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("script:1"), HasSubstr("'ring'"), HasSubstr("no optical circuits")));
  }
}

TEST(CircuitTasks, MembersMustAgree) {
  ScriptedSource names(2);
  const std::uint32_t both = names.add_group({0, 1});
  names.circuits(0, both, "ring");
  names.circuits(1, both, "pairs");
  EXPECT_THAT(error_of(names), AllOf(HasSubstr("'pairs'"), HasSubstr("'ring' at rank 0")));
  ScriptedSource kinds(2);
  kinds.add_group({0, 1});
  kinds.circuits(0, 0, "ring");
  kinds.all_reduce(1, 0, Stream::dp);
  EXPECT_THAT(error_of(kinds), HasSubstr("collective, but circuits at rank 0"));
}

TEST(CircuitTasks, AStallSaysWhoDidNotAsk) {
  ScriptedSource source(4);
  const std::uint32_t all = source.add_group({0, 1, 2, 3});
  for (const std::uint32_t rank : {0U, 1U, 3U}) source.circuits(rank, all, "pairs");
  source.message(2, TaskKind::receive, 3, 9);
  const CircuitRun run(source, 2, 1);
  EXPECT_THAT(run.control.log, IsEmpty());
  const std::vector<std::string> lines = run.job->waiting(1);
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("rank 0, stream dp: circuits"),
                                       HasSubstr("waits for circuits 'pairs', asked for by 3 of 4 members, "
                                                 "not by rank 2"))));
}

}  // namespace
}  // namespace netsim::circuits_test
