// Does a job start and end every task when it should? Do the statistics of a rank say what was computed, in
// flight, exposed and idle, to the picosecond? Are tasks that cannot be simulated refused?
#include "sim/jobs/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/jobs/communication_id.h"
#include "sim/jobs/job_set.h"
#include "sim/jobs/job_statistics.h"
#include "sim/jobs/rank_ledger.h"
#include "sim/transport/ideal_endpoint.h"
#include "tests/support/scripted_source.h"
#include "tests/support/single_job.h"
#include "tests/support/without_handles.h"

namespace netsim::job_test {
namespace {

using netsim::test::ScriptedSource;
using netsim::test::SingleJob;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kTp = static_cast<int>(Stream::tp), kPp = static_cast<int>(Stream::pp);
constexpr int kDp = static_cast<int>(Stream::dp);

// ---- The statistics

struct Interval {
  int kind;  // Stream of a communication; kCompute: a computation
  Time begin, end;
};
constexpr int kCompute = -1;

// The definitions, picosecond by picosecond.
RankTimes reference(const std::vector<Interval>& intervals, Time begin, Time until) {
  RankTimes times;
  std::map<std::set<int>, Time> exposed;
  for (Time t = begin; t < until; ++t) {
    bool computing = false;
    std::set<int> kinds;
    for (const Interval& interval : intervals) {
      if (t < interval.begin || t >= interval.end) continue;
      if (interval.kind == kCompute) {
        computing = true;
      } else {
        kinds.insert(interval.kind);
      }
    }
    times.compute += computing ? 1 : 0;
    times.communication += kinds.empty() ? 0 : 1;
    times.idle += !computing && kinds.empty() ? 1 : 0;
    if (!computing && !kinds.empty()) ++exposed[kinds];
  }
  for (const auto& [kinds, time] : exposed) {
    times.exposed += time;
    Time given = 0;
    for (Time one = 0; one < time; ++given) {
      for (auto kind = kinds.begin(); kind != kinds.end() && one < time; ++kind, ++one) {
        ++times.exposed_by[static_cast<std::size_t>(*kind)];
      }
    }
  }
  return times;
}

auto as_tuple(const RankTimes& t) {
  return std::tuple(t.compute, t.communication, t.exposed, t.idle, t.exposed_by);
}

bool can_reduce(const RankTimes& t, Time total) {
  Time by_kind = 0;
  for (Time time : t.exposed_by) by_kind += time;
  return t.compute + t.exposed + t.idle == total && by_kind == t.exposed;
}

// Reports the parts of the intervals up to `until` to the ledger, in order of time.
RankTimes play(const std::vector<Interval>& intervals, Time begin, Time until) {
  std::vector<std::tuple<Time, bool, int>> steps;
  for (const Interval& i : intervals) {
    steps.emplace_back(i.begin, true, i.kind);
    steps.emplace_back(i.end, false, i.kind);
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const auto& a, const auto& b) { return std::get<0>(a) < std::get<0>(b); });
  RankLedger ledger;
  ledger.open(begin);
  for (const auto& [time, begins, kind] : steps) {
    if (time > until) break;
    const auto stream = static_cast<Stream>(std::max(kind, 0));
    if (kind == kCompute) {
      begins ? ledger.compute_begins(time) : ledger.compute_ends(time);
    } else {
      begins ? ledger.communication_begins(stream, time) : ledger.communication_ends(stream, time);
    }
  }
  return ledger.times(until);
}

TEST(RankLedger, CountsAsTheDefinitionsSayPicosecondByPicosecond) {
  EXPECT_TRUE(rc::check([] {
    const Time begin = *rc::gen::inRange<Time>(0, 20), until = begin + *rc::gen::inRange<Time>(0, 120);
    const int count = *rc::gen::inRange(0, 14);
    std::vector<Interval> intervals;
    for (int i = 0; i < count; ++i) {
      const Time from = begin + *rc::gen::inRange<Time>(0, 100), length = *rc::gen::inRange<Time>(0, 50);
      intervals.push_back({*rc::gen::inRange(kCompute, kStreams), from, from + length});
    }
    const RankTimes times = play(intervals, begin, until);
    RC_ASSERT(can_reduce(times, until - begin));
    RC_ASSERT(as_tuple(times) == as_tuple(reference(intervals, begin, until)));
  }));
}

TEST(RankLedger, SplitsWhatIsExposedTogetherEquallyWithTheRemainderInOrder) {
  const RankTimes times = play({{kTp, 0, 8}, {kPp, 0, 8}, {kDp, 0, 8}, {kCompute, 8, 10}}, 0, 10);
  EXPECT_EQ(times.exposed_by, (std::array<Time, kStreams>{0, 3, 3, 2, 0, 0}));
  EXPECT_EQ(times.compute, 2);
  EXPECT_EQ(times.idle, 0);
}

TEST(RankLedger, TheSplitDoesNotDependOnWhatElseBeganMeanwhile) {
  const RankTimes whole = play({{kTp, 0, 9}, {kPp, 0, 9}}, 0, 9);
  const RankTimes cut = play({{kTp, 0, 3}, {kTp, 3, 9}, {kTp, 4, 5}, {kPp, 0, 7}, {kPp, 7, 9}}, 0, 9);
  EXPECT_EQ(as_tuple(whole), as_tuple(cut));
}

// ---- Ids

TEST(CommunicationId, DiffersForWhateverDiffers) {
  std::set<std::uint64_t> ids;
  std::size_t count = 0;
  const std::uint32_t values[] = {0, 1, 2, 32767, 32768, 65535, 65536, UINT32_MAX};
  for (std::uint32_t a : values) {
    for (std::uint32_t b : values) {
      if (a < 1U << 31 && b < 1U << 31) ids.insert(collective_id(a, b)), ++count;
      for (std::uint32_t c : values) {
        for (std::uint32_t d : values) ids.insert(message_id({a, b, c, d})), ++count;
      }
    }
  }
  EXPECT_EQ(ids.size(), count);
}

// ---- A job on an executor whose times are known

// Point-to-point: delivered `delivery` after the sender's start, acknowledged `acknowledgement` later; a
// receiver that enters late is done at once. Collectives: rank i of the group is done `collective` + i *
// `skew` after the last entered.
class ScriptedExecutor final : public Executor {
 public:
  ScriptedExecutor(EventLoop& loop, Time delivery, Time acknowledgement, Time collective, Time skew)
      : delivery_(delivery),
        acknowledgement_(acknowledgement),
        collective_(collective),
        skew_(skew),
        loop_(loop) {
    loop_.set_handler(
        EventKind::executor,
        [](void* self, const Event& event) { static_cast<ScriptedExecutor*>(self)->end(event.argument); },
        this);
  }
  void set_listener(CommunicationListener* listener) override { listener_ = listener; }
  void set_trace(TransferTrace) override {}
  std::uint32_t start(GpuId gpu, const CommunicationRequest& request) override {
    starts.push_back({gpu, loop_.now(), request});
    EXPECT_EQ((*request.members)[request.index], gpu);
    Entered& entered = entered_[request.communication];
    entered.at[request.index] = loop_.now();
    entered.request[request.index] = request;
    if (request.kind == CollectiveKind::point_to_point) {
      point_to_point(gpu, request, entered);
    } else if (entered.at.size() == request.members->size()) {
      for (std::uint32_t i = 0; i < request.members->size(); ++i) {
        finish((*request.members)[i], entered.request.at(i), loop_.now() + collective_ + skew_ * i,
               entered.at[i]);
      }
    }
    return channels;
  }
  std::vector<std::string> waiting(std::size_t) const override { return {}; }
  Bytes scale_out_bytes(GpuId, const CommunicationRequest&) override { return 0; }
  LibraryChoice choice(const CommunicationRequest&) override { return {}; }
  std::string nccl_graph(const std::vector<GpuId>&) override { return {}; }
  void for_each_batch(GpuId, const CommunicationRequest&, const BatchVisitor&) override {}
  void message_delivered(const Delivery&) override {}
  void message_sent(const SendCompletion&) override {}

  struct Start {
    std::uint32_t gpu;
    Time time;
    CommunicationRequest request;
  };
  std::vector<Start> starts;
  std::uint32_t channels = 1;  // of every communication

 private:
  struct Entered {
    std::map<std::uint32_t, Time> at;  // by index in the group
    std::map<std::uint32_t, CommunicationRequest> request;
  };
  struct Finish {
    std::uint32_t gpu;
    CommunicationRequest request;
    Time started;
  };
  void point_to_point(std::uint32_t gpu, const CommunicationRequest& request, Entered& entered) {
    if (request.index == 0) finish(gpu, request, loop_.now() + delivery_ + acknowledgement_, loop_.now());
    if (entered.at.size() < 2) return;
    const Time sent = entered.at[0], arrival = sent + delivery_;
    finish((*entered.request.at(1).members)[1], entered.request.at(1), std::max(arrival, loop_.now()), sent);
  }
  void finish(std::uint32_t gpu, const CommunicationRequest& request, Time at, Time started) {
    loop_.schedule(at, origin_, EventKind::executor, gpu, finishes_.size());
    finishes_.push_back({gpu, request, started});
  }
  void end(std::uint64_t index) {
    const Finish finish = finishes_[index];
    listener_->communication_done(finish.gpu, finish.request, finish.started);
  }

  Time delivery_, acknowledgement_, collective_, skew_;
  EventLoop& loop_;
  CommunicationListener* listener_ = nullptr;
  Origin origin_{1000};
  std::map<std::uint64_t, Entered> entered_;
  std::vector<Finish> finishes_;
};

struct ScriptedRun {
  explicit ScriptedRun(ScriptedSource source_, Time delivery = 10, Time acknowledgement = 3,
                       Time collective = 20, Time skew = 0, std::vector<GpuId> gpus = {},
                       std::shared_ptr<const TaskScheduling> scheduling = nullptr,
                       const GpuParameters& parameters = {})
      : source(std::move(source_)), executor(loop, delivery, acknowledgement, collective, skew) {
    if (gpus.empty()) {
      for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) gpus.push_back(rank);
    }
    JobObserver observer{
        [this](const TaskRecord& task) { tasks.push_back(task); },
        [this](const CommunicationRecord& record) { communications.push_back(record); },
        [this](std::uint32_t, std::uint32_t iteration, Time end) { iterations.emplace_back(iteration, end); },
        [this](std::uint32_t, std::uint32_t, const PathStep& step) { path.push_back(step); }};
    job.emplace(loop, executor, source, gpus, source.durations(), 0, observer, std::move(scheduling),
                parameters);
  }
  void run(Time until = kNever) {
    job->start();
    loop.run(until);
  }
  const TaskRecord& record(std::uint32_t rank, std::uint32_t id) const {
    return *std::find_if(tasks.begin(), tasks.end(),
                         [&](const TaskRecord& task) { return task.rank == rank && task.task.id == id; });
  }
  EventLoop loop;
  ScriptedSource source;
  ScriptedExecutor executor;
  std::vector<TaskRecord> tasks;
  std::vector<CommunicationRecord> communications;
  std::vector<std::pair<std::uint32_t, Time>> iterations;
  std::vector<PathStep> path;
  std::optional<SingleJob> job;
};

TEST(Job, TasksFollowTheirStreamsAndDependencies) {
  ScriptedSource source(2);
  const std::uint32_t group = source.add_group({1, 0});
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::uint32_t first = source.compute(rank, 5 + rank);
    source.all_reduce(rank, group, Stream::tp, {first});
    source.compute(rank, 7);
  }
  ScriptedRun run(source);
  run.run();
  ASSERT_TRUE((*run.job)->done());
  EXPECT_EQ((*run.job)->tasks_done(), 6U);
  EXPECT_EQ(run.record(0, 1).start, 5);
  EXPECT_EQ(run.record(0, 1).end, 26);
  EXPECT_EQ(run.record(1, 2).start, 6);
  EXPECT_EQ(run.record(1, 2).end, 13);
  EXPECT_EQ((*run.job)->end_time(), 26);
  ASSERT_EQ(run.communications.size(), 1U);
  EXPECT_EQ(run.communications[0].first_rank, 1U);
  EXPECT_EQ(run.communications[0].first_start, 5);
  EXPECT_EQ(run.communications[0].last_start, 6);
  EXPECT_EQ(run.communications[0].end, 26);
  const std::vector<RankTimes> times = (*run.job)->rank_times(26);
  EXPECT_EQ(times[0].compute, 12);
  EXPECT_EQ(times[0].communication, 21);
  EXPECT_EQ(times[0].exposed, 14);
  EXPECT_EQ(times[0].exposed_by[kTp], 14);
  EXPECT_EQ(times[0].idle, 0);
  EXPECT_EQ(times[1].compute, 13);
  EXPECT_EQ(times[1].exposed, 13);
}

TEST(Job, APointToPointIsInFlightAtBothEndsFromTheSendersStartToTheDelivery) {
  ScriptedSource source(2);
  const std::uint32_t work = source.compute(0, 100);
  source.message(0, TaskKind::send, 1, 7, {work});
  source.message(1, TaskKind::receive, 0, 7);
  ScriptedRun run(source);
  run.run();
  for (const TaskRecord& record : {run.record(0, 1), run.record(1, 0)}) {
    EXPECT_EQ(record.start, 100);
    EXPECT_EQ(record.end, 110);
  }
  EXPECT_EQ(run.record(1, 0).posted, 0);
  EXPECT_EQ((*run.job)->end_time(), 110) << "the acknowledgement is not part of it";
  EXPECT_EQ(run.loop.now(), 113);
  const std::vector<RankTimes> times = (*run.job)->rank_times((*run.job)->end_time());
  EXPECT_EQ(times[0].compute, 100);
  EXPECT_EQ(times[0].exposed_by[kPp], 10);
  EXPECT_EQ(times[0].idle, 0);
  EXPECT_EQ(times[1].communication, 10);
  EXPECT_EQ(times[1].idle, 100) << "waiting for a sender that has not started is idle";
}

TEST(Job, ALateReceiverWaitsForNothingAndWhatArrivedMeanwhileIsNotExposedUnderItsCompute) {
  ScriptedSource source(2);
  source.message(0, TaskKind::send, 1, 0);
  const std::uint32_t work = source.compute(1, 50);
  source.message(1, TaskKind::receive, 0, 0, {work});
  ScriptedRun run(source, 10, 0);
  run.run();
  EXPECT_EQ(run.record(1, 1).posted, 50);
  EXPECT_EQ(run.record(1, 1).start, 0);
  EXPECT_EQ(run.record(1, 1).end, 10);
  EXPECT_EQ((*run.job)->end_time(), 50);
  const RankTimes times = (*run.job)->rank_times(50)[1];
  EXPECT_EQ(times.compute, 50);
  EXPECT_EQ(times.communication, 10);
  EXPECT_EQ(times.exposed, 0);
}

TEST(Job, RunsOnTheGpusItIsGivenInGroupOrder) {
  ScriptedSource source(3);
  const std::uint32_t group = source.add_group({2, 0});
  source.all_reduce(0, group, Stream::dp);
  source.all_reduce(2, group, Stream::dp);
  source.message(1, TaskKind::send, 2, 0);
  source.message(2, TaskKind::receive, 1, 0);
  ScriptedRun run(source, 10, 3, 20, 0, {5, 9, 3});
  run.run();
  ASSERT_TRUE((*run.job)->done());
  std::set<std::vector<GpuId>> members;
  for (const auto& start : run.executor.starts) {
    EXPECT_EQ(start.request.members->size(), 2U);
    if (start.request.kind == CollectiveKind::all_reduce) members.insert(*start.request.members);
  }
  EXPECT_EQ(members, (std::set<std::vector<GpuId>>{{3, 5}}));
}

TEST(Job, MembersAgreeOnIdsAndNoTwoOperationsShareOne) {
  ScriptedSource source(3);
  const std::uint32_t all = source.add_group({0, 1, 2}), pair = source.add_group({0, 1});
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t rank = 0; rank < 3; ++rank) source.all_reduce(rank, all, Stream::dp);
    for (std::uint32_t rank = 0; rank < 2; ++rank) source.all_reduce(rank, pair, Stream::tp);
    for (const auto& [from, to, tag] : {std::tuple{0U, 1U, 4U}, {1U, 0U, 4U}, {0U, 1U, 70'000U}}) {
      source.message(from, TaskKind::send, to, tag);
      source.message(to, TaskKind::receive, from, tag);
    }
  }
  ScriptedRun run(source);
  run.run();
  ASSERT_TRUE((*run.job)->done());
  std::map<std::uint64_t, std::size_t> members;
  for (const auto& start : run.executor.starts) ++members[start.request.communication];
  std::map<std::size_t, int> sizes;
  for (const auto& [id, count] : members) ++sizes[count];
  EXPECT_EQ(sizes, (std::map<std::size_t, int>{{2, 3 + 9}, {3, 3}}));
}

TEST(Job, StartsNoTaskBeforeItsEarliestStart) {
  ScriptedSource source(2);
  Task send;
  send.stream = Stream::dp;
  send.body = test::message(TaskKind::send, 1, 5, 0, true);
  send.not_before = 40;
  source.add(0, send);
  Task receive = send;
  receive.body = test::message(TaskKind::receive, 0, 5, 0, true);
  receive.not_before = 0;
  source.add(1, receive);
  ScriptedRun run(source);
  run.run();
  EXPECT_EQ(run.record(0, 0).posted, 0);
  EXPECT_EQ(run.record(0, 0).start, 40);
  EXPECT_EQ(run.record(1, 0).end, 50);
  EXPECT_TRUE(run.executor.starts.at(0).request.raw);
}

TEST(Job, AnIterationEndsWithItsLastRank) {
  ScriptedSource source(2);
  for (std::uint32_t iteration = 0; iteration < 3; ++iteration) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      Task task;
      task.body = ComputeTask{source.add_work(10 + rank)};
      task.iteration = iteration;
      source.add(rank, task);
    }
  }
  ScriptedRun whole(source), part(source);
  whole.run();
  EXPECT_THAT((*whole.job)->iteration_ends(), ElementsAre(11, 22, 33));
  part.run(30);
  EXPECT_FALSE((*part.job)->done());
  EXPECT_THAT((*part.job)->iteration_ends(), ElementsAre(11, 22));
}

TEST(Job, AJobWithoutTasksIsDoneAtItsBeginning) {
  ScriptedRun run(ScriptedSource(2));
  run.run();
  EXPECT_TRUE((*run.job)->done());
  EXPECT_EQ((*run.job)->end_time(), 0);
  EXPECT_THAT((*run.job)->waiting(10), IsEmpty());
}

// ---- Statistics of whole jobs

// Tasks in one global order of operations, so that no order of streams can deadlock.
ScriptedSource random_source(RandomStream& random) {
  ScriptedSource source(static_cast<std::uint32_t>(2 + random.below(3)));
  std::vector<RankId> everyone;
  for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) everyone.push_back(rank);
  // A group per stream, as a communicator is used on one stream: ids count what a rank reaches on a group.
  std::vector<std::uint32_t> all, pair;
  for (int stream = 0; stream < kStreams; ++stream) all.push_back(source.add_group(everyone));
  for (int stream = 0; stream < kStreams; ++stream) pair.push_back(source.add_group({1, 0}));
  const auto after = [&](std::uint32_t rank) {
    const std::uint32_t count = source.task_count(rank);
    std::vector<std::uint32_t> tasks;
    if (count > 0 && random.below(2) == 0) tasks.push_back(static_cast<std::uint32_t>(random.below(count)));
    return tasks;
  };
  for (std::uint64_t step = 5 + random.below(25); step > 0; --step) {
    const auto rank = static_cast<std::uint32_t>(random.below(source.ranks()));
    const auto peer =
        static_cast<std::uint32_t>((rank + 1 + random.below(source.ranks() - 1)) % source.ranks());
    const auto index = static_cast<std::size_t>(1 + random.below(kStreams - 1));
    const auto stream = static_cast<Stream>(index);
    switch (random.below(4)) {
      case 0:
        for (std::uint32_t member : everyone) source.all_reduce(member, all[index], stream, after(member));
        break;
      case 1:
        for (std::uint32_t member : {0U, 1U}) source.all_reduce(member, pair[index], stream, after(member));
        break;
      case 2:
        source.message(rank, TaskKind::send, peer, 0, after(rank));
        source.message(peer, TaskKind::receive, rank, 0, after(peer));
        break;
      default:
        source.compute(rank, static_cast<Time>(random.below(30)), after(rank));
    }
  }
  return source;
}

// Returns the intervals in which a rank computed or communicated, according to the records.
std::vector<Interval> intervals_of(const std::vector<TaskRecord>& tasks, std::uint32_t rank) {
  std::vector<Interval> intervals;
  for (const TaskRecord& record : tasks) {
    if (record.rank != rank) continue;
    const bool compute = record.task.kind() == TaskKind::compute;
    intervals.push_back(
        {compute ? kCompute : static_cast<int>(record.task.stream), record.start, record.end});
  }
  return intervals;
}

TEST(Job, TheBooksAreWhatTheRecordsSayAtAnyTime) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    RandomStream random(seed, "job");
    const ScriptedSource source = random_source(random);
    const auto delivery = static_cast<Time>(random.below(20)),
               acknowledgement = static_cast<Time>(random.below(5));
    const auto collective = static_cast<Time>(random.below(30)), skew = static_cast<Time>(random.below(4));
    ScriptedRun whole(source, delivery, acknowledgement, collective, skew);
    whole.run();
    RC_ASSERT((*whole.job)->done());
    const Time end = (*whole.job)->end_time();
    for (const Time until :
         {end, end / 2, static_cast<Time>(random.below(static_cast<std::uint64_t>(end) + 1))}) {
      ScriptedRun part(source, delivery, acknowledgement, collective, skew);
      part.run(until);
      const std::vector<RankTimes> times = (*part.job)->rank_times(until);
      for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) {
        RC_ASSERT(can_reduce(times[rank], until));
        RC_ASSERT(as_tuple(times[rank]) == as_tuple(reference(intervals_of(whole.tasks, rank), 0, until)));
      }
    }
    RC_ASSERT(as_tuple((*whole.job)->rank_times(end)[0]) ==
              as_tuple(reference(intervals_of(whole.tasks, 0), 0, end)));
  }));
}

// ---- On the real executor and an ideal network

TEST(Job, PlaysOnTheRealExecutorWithAConstantLinkDelay) {
  ScriptedSource source(2);
  const std::uint32_t work = source.compute(0, 100);
  source.message(0, TaskKind::send, 1, 0, {work});
  const std::uint32_t received = source.message(1, TaskKind::receive, 0, 0);
  source.compute(1, 30, {received});
  EventLoop loop;
  IdealEndpoint endpoint(loop, 2, 7, 0);
  const auto executor = Executor::create(loop, endpoint, ConfigNode(), 10);
  SingleJob job(loop, *executor, source, {0, 1}, source.durations(), 20);
  job.start();
  loop.run();
  ASSERT_TRUE(job->done());
  EXPECT_EQ(job->end_time(), 137);
  const std::vector<RankTimes> times = job->rank_times(137);
  EXPECT_EQ(times[1].exposed_by[kPp], 7);
  EXPECT_EQ(times[1].idle, 100);
  EXPECT_EQ(times[0].idle, 30);
}

// ---- Match keys, and the order of launches

std::vector<std::uint32_t> launched_by(const ScriptedRun& run, std::uint32_t rank) {
  std::vector<std::pair<Time, std::uint32_t>> starts;
  for (const TaskRecord& record : run.tasks) {
    if (record.rank == rank) starts.emplace_back(record.start, record.task.id);
  }
  std::sort(starts.begin(), starts.end());
  std::vector<std::uint32_t> ids;
  ids.reserve(starts.size());
  for (const auto& [time, id] : starts) ids.push_back(id);
  return ids;
}

TEST(JobOrder, AStreamIsInProgramOrderHoweverItsTasksBecomeReady) {
  ScriptedSource source(1);
  const std::uint32_t transfer = source.all_reduce(0, source.add_group({0}), Stream::tp);
  source.compute(0, 5, {transfer});
  source.compute(0, 5);
  ScriptedRun run(source);
  run.run();
  EXPECT_THAT(launched_by(run, 0), ElementsAre(0, 1, 2)) << "the last is ready before the second";
}

// One group is used in two streams, in an order that differs between its members. The order of the program
// counts.
TEST(JobOrder, MembersFindEachOtherByTheOrderOfTheProgram) {
  ScriptedSource source(2);
  const std::uint32_t group = source.add_group({0, 1});
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::uint32_t early = source.compute(rank, 5), late = source.compute(rank, 5);
    Task first;
    first.stream = Stream::tp;
    first.body = test::collective(CollectiveKind::all_reduce, group, 64);
    source.add(rank, first, {rank == 0 ? early : late});
    Task second = first;
    second.stream = Stream::dp;
    second.body = test::collective(CollectiveKind::all_gather, group, 32);
    source.add(rank, second, {rank == 0 ? late : early});
  }
  EventLoop loop;
  IdealEndpoint endpoint(loop, 2, 7, 0);
  const auto executor = Executor::create(loop, endpoint, ConfigNode(), 10);
  std::vector<CommunicationRecord> records;
  JobObserver observer{{}, [&](const CommunicationRecord& record) { records.push_back(record); }, {}, {}};
  SingleJob job(loop, *executor, source, {0, 1}, source.durations(), 20, observer);
  job.start();
  loop.run();
  ASSERT_TRUE(job->done());
  ASSERT_EQ(records.size(), 2U);
  for (const CommunicationRecord& record : records) {
    EXPECT_EQ(record.id, collective_id(group, record.kind == CollectiveKind::all_reduce ? 0 : 1));
    EXPECT_EQ(record.first_start, 5);
    EXPECT_EQ(record.last_start, 10);
  }
}

// ---- Computing: shared, disturbed, different

struct TwoJobs {
  TwoJobs(Time first, Time second, std::vector<GpuId> second_gpus)
      : executor(loop, 10, 3, 20, 0),
        times{WorkDurations({first}), WorkDurations({second})},
        devices({&loop}, {0, 0}, {}, 0),
        jobs({&loop}, {0, 0}, executor, devices, 2, {}) {
    for (ScriptedSource& source : sources) source.compute(0, 1);
    jobs.add({"first", &sources[0], &times[0], {0}, 0, 0});
    jobs.add({"second", &sources[1], &times[1], std::move(second_gpus), 50, 0});
  }
  void run() {
    jobs.start(0);
    loop.run(49);
    loop.advance(50);
    jobs.start(1);
    loop.run();
  }
  EventLoop loop;
  ScriptedExecutor executor;
  ScriptedSource sources[2] = {ScriptedSource(1), ScriptedSource(1)};
  WorkDurations times[2];
  ComputeDevices devices;
  JobSet jobs;
};

TEST(JobsOnOneGpu, ComputeAtHalfRateEachWhileBothDo) {
  TwoJobs run(100, 100, {0});
  run.run();
  EXPECT_EQ(run.jobs.job(0).end_time(), 150) << "50 alone, 50 in 100";
  EXPECT_EQ(run.jobs.job(1).end_time(), 200) << "50 in 100, 50 alone";
}

TEST(JobsOnOneGpu, DoNotEndEarlyWhereTheShareIsNoWholeNumber) {
  TwoJobs run(101, 7, {0});
  run.run();
  EXPECT_EQ(run.jobs.job(1).end_time(), 64);
  EXPECT_EQ(run.jobs.job(0).end_time(), 108) << "all work together, without a gap";
}

TEST(JobsOnTwoGpus, DoNotKnowOfEachOther) {
  TwoJobs run(100, 100, {1});
  run.run();
  EXPECT_EQ(run.jobs.job(0).end_time(), 100);
  EXPECT_EQ(run.jobs.job(1).end_time(), 150);
  EXPECT_EQ(run.jobs.job(1).begin_time(), 50);
}

TEST(JobsOnTwoGpus, MayGetOtherGpusAndALaterBeginUntilTheyBegin) {
  TwoJobs run(100, 100, {0});
  const WorkDurations shorter({30});
  run.jobs.start(0);
  run.loop.run(69);
  run.loop.advance(70);
  run.jobs.place(1, {1}, shorter, 70);
  run.jobs.start(1);
  run.loop.run();
  const Job& second = run.jobs.job(1);
  EXPECT_EQ(run.jobs.job(0).end_time(), 100) << "nobody shares its GPU";
  EXPECT_EQ(second.plan().arrival, 50);
  EXPECT_EQ(second.plan().gpus, std::vector<GpuId>{1});
  EXPECT_EQ(second.begin_time(), 70);
  EXPECT_EQ(second.end_time(), 100);
  EXPECT_EQ(second.rank_times(100).at(0).compute, 30);
  EXPECT_THROW(run.jobs.place(1, {0}, shorter, 100), InternalError);
}

TEST(JobsOnTwoGpus, SayThatTheyAreOver) {
  TwoJobs run(100, 100, {1});
  std::vector<JobId> over;
  run.jobs.on_end([&](JobId job) { over.push_back(job); });
  run.jobs.set_journal([&](std::uint32_t, const JobRecord& record) { run.jobs.apply(record); });
  run.run();
  EXPECT_EQ(over, (std::vector<JobId>{0, 1}));
}

TEST(Job, ComputesSlowerBesideCommunicationWhereTheConfigurationSaysSo) {
  ScriptedSource source(1);
  source.compute(0, 100);
  source.all_reduce(0, source.add_group({0}), Stream::dp);
  ScriptedRun run(source, 10, 3, 20, 0, {}, nullptr, {.slowdown_beside_communication = 2});
  run.run();
  EXPECT_EQ(run.record(0, 0).end, 110) << "20 at half rate, 90 at full rate";
  EXPECT_EQ(run.record(0, 1).end, 20);
}

// Returns when 100 of computing end that begin beside a collective of stream `first`. This collective takes
// 20, and one of `second` after it takes 20 more. Each has `channels`.
Time end_beside(Stream first, Stream second, const GpuParameters& parameters, std::uint32_t channels = 1) {
  ScriptedSource source(1);
  source.compute(0, 100);
  const std::uint32_t group = source.add_group({0});
  source.all_reduce(0, group, second, {source.all_reduce(0, group, first)});
  ScriptedRun run(source, 10, 3, 20, 0, {}, nullptr, parameters);
  run.executor.channels = channels;
  run.run();
  EXPECT_EQ(run.record(0, 1).end, 20);
  EXPECT_EQ(run.record(0, 2).end, 40);
  return run.record(0, 0).end;
}

TEST(Job, ComputesSlowerBesideTheStreamsThatTheConfigurationNames) {
  const auto end = [](const char* streams) {
    return end_beside(
        Stream::pp, Stream::ep,
        {.slowdown_beside_communication = 2, .slowing_streams = parse_config(streams, "gpus.yaml")});
  };
  EXPECT_EQ(end("dp"), 100);
  EXPECT_EQ(end("[tp, cp, dp, io]"), 100);
  EXPECT_EQ(end("pp"), 110) << "20 at half rate, then 90";
  EXPECT_EQ(end("ep"), 110);
  EXPECT_EQ(end("[ep, pp]"), 120) << "40 at half rate, then 80";
  EXPECT_EQ(end("all"), 120);
}

// Each of the two holds half of the GPU's multiprocessors.
TEST(Job, ComputesOnTheMultiprocessorsThatChannelsLeave) {
  const auto end = [](const char* streams) {
    return end_beside(Stream::dp, Stream::ep,
                      {.channels_hold_multiprocessors = parse_config(streams, "gpus.yaml")},
                      SingleJob::kMultiprocessors / 2);
  };
  EXPECT_EQ(end("none"), 100);
  EXPECT_EQ(end("[pp, tp]"), 100);
  EXPECT_EQ(end("dp"), 110) << "20 at half rate, then 90";
  EXPECT_EQ(end("[dp, ep]"), 120) << "40 at half rate, then 80";
  EXPECT_EQ(end("all"), 120);
}

TEST(Job, RefusesStreamsThatRunNoKernels) {
  const auto refusal = [](const char* streams) -> std::string {
    EventLoop loop;
    try {
      ComputeDevices({&loop}, {0}, {.slowing_streams = parse_config(streams, "gpus.yaml")}, 0);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(
      refusal("[ep, compute]"),
      AllOf(HasSubstr("gpus.yaml:1:6:"), HasSubstr("'compute' is not one of: all, tp, cp, ep, pp, dp, io")));
  EXPECT_THAT(refusal("offload"), HasSubstr("'offload' is not one of"));
  EXPECT_THAT(refusal("[]"), HasSubstr("no stream is named"));
  EXPECT_THAT(refusal("{ep: 1.2}"), HasSubstr("a name or a list of names"));
}

// The third iteration of rank 1 is a straggler.
class Straggling final : public ComputeTimes {
 public:
  Time duration(RankId rank, const ComputeRequest& task) const override {
    return rank == 1 && task.iteration == 2 ? 25 : 5;
  }
};

TEST(Job, AsksForTheTimeOfEachTask) {
  ScriptedSource source(2);
  Task task;
  task.body = ComputeTask{source.add_work(1)};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (task.iteration = 0; task.iteration < 4; ++task.iteration) source.add(rank, task);
  }
  EventLoop loop;
  ScriptedExecutor executor(loop, 10, 3, 20, 0);
  const Straggling times;
  ComputeDevices devices({&loop}, {0, 0}, {}, 0);
  std::vector<std::pair<std::uint32_t, Time>> iterations;
  JobSet jobs(
      {&loop}, {0, 0}, executor, devices, 2,
      {{}, {}, [&](std::uint32_t, std::uint32_t i, Time end) { iterations.emplace_back(i, end); }, {}});
  jobs.add({"job", &source, &times, {0, 1}, 0, 0, nullptr});
  jobs.start(0);
  loop.run();
  EXPECT_THAT(iterations,
              ElementsAre(std::pair(0U, 5), std::pair(1U, 10), std::pair(2U, 35), std::pair(3U, 40)));
}

TEST(Job, LivesWithoutACensus) {
  ScriptedSource source(2);
  source.census = false;
  const std::uint32_t group = source.add_group({1, 0});
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    source.all_reduce(rank, group, Stream::tp, {source.compute(rank, 5)});
  ScriptedRun run(source);
  run.run();
  EXPECT_TRUE((*run.job)->done());
  EXPECT_EQ((*run.job)->tasks_done(), 4U);
  EXPECT_THAT(run.iterations, ElementsAre(std::pair(0U, 25)));
}

// ---- In several sets

// A message is delivered `delay` after it is sent and acknowledged another `delay` later. What goes to
// another GPU is kept until exchange().
class MailEndpoint final : public test::WithoutHandles<Endpoint> {
 public:
  MailEndpoint(std::vector<EventLoop*> loops, std::vector<std::uint32_t> set_of_gpu, Time delay)
      : loops_(std::move(loops)),
        set_of_gpu_(std::move(set_of_gpu)),
        delay_(delay),
        outgoing_(loops_.size()),
        requests_(loops_.size()) {
    for (std::uint32_t gpu = 0; gpu < set_of_gpu_.size(); ++gpu) origins_.emplace_back(100 + gpu);
    for (EventLoop* loop : loops_) {
      loop->set_handler(
          EventKind::deliver,
          [](void* self, const Event& event) {
            auto& endpoint = *static_cast<MailEndpoint*>(self);
            const SendRequest request = endpoint.request(event);
            endpoint.listener_->message_delivered({request.message, request.message.bytes});
          },
          this);
      loop->set_handler(
          EventKind::control,
          [](void* self, const Event& event) {
            auto& endpoint = *static_cast<MailEndpoint*>(self);
            const SendRequest request = endpoint.request(event);
            endpoint.listener_->message_sent({request, request.message.bytes});
          },
          this);
    }
  }
  void set_listener(MessageListener* listener) override { listener_ = listener; }
  MessageHandle send(const SendRequest& request) override {
    const GpuId source = request.message.source;
    const std::uint32_t set = set_of_gpu_[source];
    EventLoop& loop = *loops_[set];
    Origin& origin = origins_[source];
    outgoing_[set].push_back(
        {{loop.now() + delay_, origin.next_key(), request.message.destination, EventKind::deliver, 0},
         request});
    loop.schedule(loop.now() + 2 * delay_, origin, EventKind::control, source, requests_[set].size());
    requests_[set].push_back(request);
    return {source, 0, 0};
  }
  Reach reach(GpuId, GpuId) const override { return Reach::ideal; }
  std::uint32_t gpu_count() const override { return static_cast<std::uint32_t>(set_of_gpu_.size()); }
  void exchange() {
    for (std::vector<RemoteEvent>& box : outgoing_) {
      for (RemoteEvent& remote_event : box) {
        const std::uint32_t set = set_of_gpu_[remote_event.event.target];
        remote_event.event.argument = requests_[set].size();
        requests_[set].push_back(remote_event.request);
        loops_[set]->insert(remote_event.event);
      }
      box.clear();
    }
  }

 private:
  struct RemoteEvent {
    Event event;
    SendRequest request;
  };
  SendRequest request(const Event& event) const {
    return requests_[set_of_gpu_[event.target]][event.argument];
  }
  std::vector<EventLoop*> loops_;
  std::vector<std::uint32_t> set_of_gpu_;
  Time delay_;
  std::vector<Origin> origins_;
  MessageListener* listener_ = nullptr;
  std::vector<std::vector<RemoteEvent>> outgoing_;  // by set
  std::vector<std::vector<SendRequest>> requests_;  // by set
};

// A job whose rank r runs in set r mod `sets`, one thread each, in windows as long as the delay of messages.
// The statistics receive their records at the end of each window.
struct RunInSets {
  RunInSets(ScriptedSource source_, std::uint32_t sets, Time delay)
      : source(std::move(source_)),
        loops(sets),
        endpoint(pointers(), set_of_rank(sets), delay),
        executor(Executor::create(pointers(), set_of_rank(sets), endpoint, ConfigNode(), 10)) {
    std::vector<GpuId> gpus;
    for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) gpus.push_back(rank);
    SingleJob job(pointers(), set_of_rank(sets), *executor, source, gpus, source.durations(), 20, observer());
    std::vector<std::vector<JobRecord>> journals(sets);
    job.start();
    endpoint.exchange();
    job.jobs().set_journal(
        [&](std::uint32_t set, const JobRecord& record) { journals[set].push_back(record); });
    for (Time horizon = delay - 1; pending(); horizon += delay) {
      std::vector<std::thread> threads;
      for (EventLoop& loop : loops) threads.emplace_back([&] { loop.run(horizon); });
      for (std::thread& thread : threads) thread.join();
      endpoint.exchange();
      settle(job.jobs(), journals);
    }
    done = job->done();
    end = job->end_time();
    times = job->rank_times(end);
    std::sort(tasks.begin(), tasks.end());
    std::sort(communications.begin(), communications.end());
  }
  static void settle(JobSet& job, std::vector<std::vector<JobRecord>>& journals) {
    std::vector<JobRecord> all;
    for (std::vector<JobRecord>& journal : journals) {
      all.insert(all.end(), journal.begin(), journal.end());
      journal.clear();
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const JobRecord& a, const JobRecord& b) { return a.time < b.time; });
    for (const JobRecord& record : all) job.apply(record);
  }
  bool pending() const {
    return std::any_of(loops.begin(), loops.end(), [](const EventLoop& loop) { return loop.pending() > 0; });
  }
  std::vector<EventLoop*> pointers() {
    std::vector<EventLoop*> result;
    for (EventLoop& loop : loops) result.push_back(&loop);
    return result;
  }
  std::vector<std::uint32_t> set_of_rank(std::uint32_t sets) const {
    std::vector<std::uint32_t> result;
    for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) result.push_back(rank % sets);
    return result;
  }
  JobObserver observer() {
    return {[this](const TaskRecord& t) { tasks.emplace_back(t.rank, t.task.id, t.posted, t.start, t.end); },
            [this](const CommunicationRecord& c) {
              communications.emplace_back(c.id, c.first_start, c.last_start, c.end);
            },
            {},
            {}};
  }

  ScriptedSource source;
  std::deque<EventLoop> loops;
  MailEndpoint endpoint;
  std::unique_ptr<Executor> executor;
  std::vector<std::tuple<std::uint32_t, std::uint32_t, Time, Time, Time>> tasks;
  std::vector<std::tuple<std::uint64_t, Time, Time, Time>> communications;
  std::vector<RankTimes> times;
  bool done = false;
  Time end = 0;
};

TEST(JobThreads, DoNotShowInAnyNumberOfSets) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    RandomStream random(seed, "sets");
    const ScriptedSource source = random_source(random);
    const auto delay = static_cast<Time>(5 + random.below(20));
    const RunInSets one(source, 1, delay);
    RC_ASSERT(one.done);
    for (const std::uint32_t sets : {2U, source.ranks()}) {
      const RunInSets several(source, sets, delay);
      RC_ASSERT(several.done && several.end == one.end);
      RC_ASSERT(several.tasks == one.tasks);
      RC_ASSERT(several.communications == one.communications);
      for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) {
        RC_ASSERT(as_tuple(several.times[rank]) == as_tuple(one.times[rank]));
      }
    }
  }));
}

// ---- Stalls

TEST(Job, SaysWhatAStalledRankWaitsFor) {
  ScriptedSource source(6);
  const std::uint32_t group = source.add_group({0, 1, 2, 3, 4, 5});
  source.all_reduce(0, group, Stream::tp);
  source.compute(0, 5, {0});
  source.message(1, TaskKind::receive, 2, 9);
  source.all_reduce(1, group, Stream::tp, {0});
  ScriptedRun run(source);
  run.run();
  EXPECT_FALSE((*run.job)->done());
  const std::vector<std::string> lines = (*run.job)->waiting(10);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0],
            "rank 0, stream tp: all_reduce 'step' (task 0) waits for ranks 1, 2, 3, 4 and 1 more, which did "
            "not reach it");
  EXPECT_EQ(lines[1],
            "rank 1, stream pp: receive 'step' (task 0) waits for rank 2, which did not send it (tag 9)");
  EXPECT_EQ(lines[2],
            "rank 0, stream compute: compute 'step' (task 1) did not start: it waits for other tasks of its "
            "rank");
  EXPECT_THAT(lines[3], HasSubstr("rank 1, stream tp"));
  EXPECT_EQ((*run.job)->waiting(2).size(), 2U);
}

TEST(Job, SaysWhatIsUnderWay) {
  ScriptedSource source(2);
  source.compute(0, 1'000'000'000'000);
  source.message(0, TaskKind::send, 1, 3);
  const std::uint32_t group = source.add_group({0, 1});
  for (std::uint32_t rank = 0; rank < 2; ++rank) source.all_reduce(rank, group, Stream::dp);
  ScriptedRun run(source);
  run.run(5);
  const std::vector<std::string> lines = (*run.job)->waiting(10);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[0], HasSubstr("compute 'step' (task 0) runs until 1 s"));
  EXPECT_THAT(lines[1], HasSubstr("send 'step' (task 1) is in flight to rank 1 (tag 3)"));
  EXPECT_THAT(lines[2], HasSubstr("all_reduce 'step' (task 2) is in flight among 2 ranks"));
}

// ---- Tasks that cannot run

std::string refusal(const ScriptedSource& source) {
  try {
    ScriptedRun run(source);
    run.run();
  } catch (const InputError& error) {
    return error.what();
  }
  return "not refused";
}

ScriptedSource with_message(Bytes sent, Bytes expected, std::uint32_t peer = 1, bool raw = false) {
  ScriptedSource source(2);
  Task task;
  task.stream = Stream::pp;
  task.body = test::message(TaskKind::send, peer, sent);
  source.add(0, task);
  task.body = test::message(TaskKind::receive, 0, expected, 0, raw);
  source.add(1, task);
  return source;
}

TEST(JobBadInput, MessagesWithoutASecondRankOrWithoutBytes) {
  EXPECT_EQ(refusal(with_message(1, 1, 2)),
            "scripted: rank 0, stream pp: send 'step' (task 0): peer 2 (allowed: another rank, 0 to 1)");
  EXPECT_THAT(refusal(with_message(1, 1, 0)), HasSubstr("peer 0 (allowed: another rank"));
  EXPECT_THAT(refusal(with_message(0, 0)), HasSubstr("0 bytes (allowed: at least 1)"));
}

TEST(JobBadInput, EndsThatDisagree) {
  EXPECT_EQ(refusal(with_message(4, 5)),
            "scripted: rank 1, stream pp: receive 'step' (task 0): 5 bytes, but 4 at rank 0, stream pp: send "
            "'step' (task 0)");
  EXPECT_THAT(refusal(with_message(4, 4, 1, true)),
              HasSubstr("raw, but not raw at rank 0, stream pp: send 'step'"));
}

TEST(JobBadInput, CollectivesThatDisagree) {
  const auto refused = [](void (*change)(Task&)) {
    ScriptedSource source(2);
    Task task;
    task.stream = Stream::dp;
    task.body = test::collective(CollectiveKind::all_reduce, source.add_group({0, 1}), 16);
    source.add(0, task);
    change(task);
    source.add(1, task);
    return refusal(source);
  };
  EXPECT_THAT(refused([](Task& task) { task.payload()->bytes = 17; }),
              HasSubstr("17 bytes, but 16 at rank 0, stream "));
  EXPECT_THAT(refused([](Task& task) { task.collective().collective = CollectiveKind::all_gather; }),
              HasSubstr("all_gather, but all_reduce at rank 0, stream "));
  EXPECT_THAT(refused([](Task& task) { task.collective().root = 1; }),
              HasSubstr("root 1, but 0 at rank 0, stream "));
}

TEST(JobBadInput, GroupsThatCannotBe) {
  const auto refused = [](std::vector<RankId> group) {
    ScriptedSource source(2);
    source.all_reduce(0, source.add_group(std::move(group)), Stream::dp);
    return refusal(source);
  };
  EXPECT_THAT(refused({0, 5}), HasSubstr("group 0 has rank 5 of 2"));
  EXPECT_THAT(refused({0, 1, 0}), HasSubstr("group 0 has rank 0 twice"));
  EXPECT_THAT(refused({1}), HasSubstr("the rank is not in group 0"));
}

TEST(JobBadInput, WorkThatDoesNotExist) {
  ScriptedSource source(1);
  Task task;
  task.body = ComputeTask{3};
  source.add(0, task);
  EXPECT_THAT(refusal(source), HasSubstr("work 3 does not exist"));
}

}  // namespace
}  // namespace netsim::job_test
