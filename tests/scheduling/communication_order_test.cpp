// Do the orders of communications equal their published rules, replayed in another way, and the optimum where
// the rule reaches it?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/scheduling/task/communication_times.h"
#include "sim/scheduling/task/operation_graph.h"
#include "sim/scheduling/task/order_of_use.h"
#include "sim/scheduling/task/tictac.h"
#include "tests/scheduling/profile_maker.h"
#include "tests/support/test_size.h"

namespace netsim::communication_order_test {
namespace {

using netsim::test::by_size;
using netsim::test::layer_chain;
using netsim::test::ProfileMaker;
using ::testing::ElementsAre;

std::uint64_t cases() { return by_size<std::uint64_t>(200, 60, 20); }

// Random ranks whose collectives have the same positions, so that no tasks wait for each other.
struct RandomJob {
  explicit RandomJob(std::uint64_t seed) {
    RandomStream random(seed, "random_job");
    const auto length = static_cast<std::uint32_t>(6 + random.below(20));
    const auto ranks = static_cast<std::uint32_t>(1 + random.below(3));
    std::vector<bool> collective(length);
    for (std::uint32_t i = 0; i < length; ++i) collective[i] = random.below(3) == 0;
    collective[0] = true;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      if (rank > 0) maker.next_rank();
      add_rank(random, collective);
    }
    profile = maker.finish();
  }

  void add_rank(RandomStream& random, const std::vector<bool>& collective) {
    const auto length = static_cast<std::uint32_t>(collective.size());
    const auto first = static_cast<std::uint32_t>(tasks);
    std::uint32_t communication = 0;
    for (std::uint32_t i = 0; i < length; ++i) {
      std::vector<std::uint32_t> after;
      for (std::uint32_t j = 0; j < i; ++j) {
        if (random.below(6) == 0) after.push_back(first + j);
      }
      const auto duration = static_cast<Time>(1 + random.below(9));
      if (collective[i]) {
        maker.add(ProfileTaskKind::collective, duration, communication++, after);
      } else {
        maker.compute(duration, after, random.below(3) == 0 ? kNoIndex : 0);
      }
      for (std::uint32_t j = 0; j < length; ++j) {
        if (random.below(12) == 0) maker.edge_to_next(first + i, first + j);
      }
    }
    tasks += length;
  }

  ProfileMaker maker;
  std::size_t tasks = 0;
  JobProfile profile;
};

// Searches forward from a communication, task by task.
class UseSearch {
 public:
  explicit UseSearch(const JobProfile& profile) : profile_(profile) {}

  // Returns the iteration and the position of the first computation that waits for the communication.
  std::pair<int, std::uint32_t> first_use(std::uint32_t communication) {
    seen_.clear();
    best_ = {9, 0};
    visit_ends(profile_.members.of(communication).front(), 0);
    return best_;
  }

 private:
  void visit_ends(std::uint32_t task, int iteration) {
    if (!seen_.insert({task, iteration}).second) return;
    for (const std::uint32_t next : profile_.successors.of(task)) visit(next, iteration);
    if (iteration == 0) {
      for (const std::uint32_t next : profile_.next_successors.of(task)) visit(next, 1);
    }
    const ProfileTask& one = profile_.tasks[task];
    if (one.communication == kNoIndex) return;
    for (const std::uint32_t member : profile_.members.of(one.communication)) visit_ends(member, iteration);
  }
  void visit(std::uint32_t task, int iteration) {
    const ProfileTask& one = profile_.tasks[task];
    if (one.kind == ProfileTaskKind::compute && one.queue == 0) {
      best_ = std::min(best_, {iteration, one.position});
    } else {
      visit_ends(task, iteration);
    }
  }

  const JobProfile& profile_;
  std::set<std::pair<std::uint32_t, int>> seen_;
  std::pair<int, std::uint32_t> best_;
};

// The longest path after a task, by recursion over tasks of both iterations.
class TailSearch {
 public:
  explicit TailSearch(const JobProfile& profile) : profile_(profile) {}

  Time tail(std::uint32_t task, int iteration) {
    const auto known = known_.find({task, iteration});
    if (known != known_.end()) return known->second;
    Time longest = 0;
    std::vector<std::uint32_t> ends{task};
    if (const std::uint32_t communication = profile_.tasks[task].communication; communication != kNoIndex) {
      const auto members = profile_.members.of(communication);
      ends.assign(members.begin(), members.end());
    }
    for (const std::uint32_t end : ends) {
      for (const std::uint32_t next : profile_.successors.of(end))
        longest = std::max(longest, time_of(next) + tail(next, iteration));
      if (iteration == 1) continue;
      for (const std::uint32_t next : profile_.next_successors.of(end))
        longest = std::max(longest, time_of(next) + tail(next, 1));
    }
    return known_[{task, iteration}] = longest;
  }

 private:
  // A collective takes the time of its lowest rank.
  Time time_of(std::uint32_t task) const {
    const std::uint32_t communication = profile_.tasks[task].communication;
    return communication == kNoIndex ? profile_.tasks[task].duration
                                     : profile_.task_of(communication).duration;
  }

  const JobProfile& profile_;
  std::map<std::pair<std::uint32_t, int>, Time> known_;
};

// Returns the order of sorted keys, one after the other.
template <class Key>
void expect_sorted_by(const std::vector<std::uint32_t>& order, const std::vector<Key>& keys) {
  for (std::size_t a = 0; a < keys.size(); ++a) {
    for (std::size_t b = 0; b < keys.size(); ++b) {
      EXPECT_EQ(order[a] < order[b], keys[a] < keys[b]) << a << " " << b;
    }
  }
}

TEST(OrderOfUse, IsTheOrderOfTheForwardOnAChain) {
  EXPECT_THAT(order_of_use(layer_chain(1, 2, {3, 3, 3, 3})), ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(order_of_tail(layer_chain(1, 2, {1, 1, 1, 9})), ElementsAre(3, 2, 1, 0));
}

TEST(OrderOfUse, EqualsTheOrderOfTailsOnRandomChains) {
  for (std::uint64_t seed = 0; seed < cases(); ++seed) {
    RandomStream random(seed, "chain_of_layers");
    std::vector<Time> durations(2 + random.below(9));
    for (Time& duration : durations) duration = static_cast<Time>(random.below(30));
    const JobProfile profile = layer_chain(1 + static_cast<Time>(random.below(5)), 2, durations);
    EXPECT_EQ(order_of_use(profile), order_of_tail(profile)) << seed;
  }
}

TEST(OrderOfUse, LeadsThroughServersAndStepsThatAreInNoOrder) {
  ProfileMaker worker;
  worker.compute(1, {}, 0);
  worker.compute(1, {}, 0);
  const auto backward = worker.compute(1, {}, 0);
  worker.add(ProfileTaskKind::send, 5, 0, {backward});
  worker.add(ProfileTaskKind::send, 5, 1, {backward});
  const auto pull_0 = worker.add(ProfileTaskKind::receive, 5, 2, {});
  const auto pull_1 = worker.add(ProfileTaskKind::receive, 5, 3, {});
  worker.edge_to_next(pull_0, 1);
  worker.edge_to_next(pull_1, 0);
  worker.next_rank();
  for (const std::uint32_t i : {0U, 1U}) {
    const auto pushed = worker.add(ProfileTaskKind::receive, 5, i, {});
    const auto update = worker.compute(4, {pushed});
    worker.add(ProfileTaskKind::send, 5, 2 + i, {update});
  }
  EXPECT_THAT(order_of_use(worker.finish()), ElementsAre(1, 0, 1, 0));
}

TEST(OrderOfUse, CommunicationsOfThisIterationComeFirstAndUnusedOnesLast) {
  ProfileMaker maker;
  const auto first = maker.compute(1, {}, 0);
  maker.add(ProfileTaskKind::collective, 1, 0, {first});
  const auto reduced = maker.add(ProfileTaskKind::collective, 1, 1, {first});
  const auto exchanged = maker.add(ProfileTaskKind::collective, 1, 2, {first});
  maker.compute(1, {exchanged}, 0);
  maker.edge_to_next(reduced, first);
  EXPECT_THAT(order_of_use(maker.finish()), ElementsAre(2, 1, 0));
}

TEST(OrderOfUse, EqualsASearchOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < cases(); ++seed) {
    const RandomJob job(seed);
    UseSearch search(job.profile);
    std::vector<std::pair<int, std::uint32_t>> keys;
    for (std::uint32_t i = 0; i < job.profile.communications(); ++i) keys.push_back(search.first_use(i));
    SCOPED_TRACE(seed);
    expect_sorted_by(order_of_use(job.profile), keys);
  }
}

TEST(CommunicationTimes, TailsEqualARecursionOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < cases(); ++seed) {
    const RandomJob job(seed);
    TailSearch search(job.profile);
    const std::vector<CommunicationTimes> times = communication_times(job.profile);
    Time least = kNever;
    for (std::uint32_t i = 0; i < times.size(); ++i) {
      EXPECT_EQ(times[i].tail, search.tail(job.profile.members.of(i).front(), 0)) << seed;
      EXPECT_GE(times[i].slack, 0) << seed;
      least = std::min(least, times[i].slack);
    }
    EXPECT_LT(least, kNever);
  }
}

TEST(CommunicationTimes, OfAChain) {
  const auto times = communication_times(layer_chain(1, 2, {3, 3}));
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].ready, 4);  // two forwards and the backward of layer 1
  EXPECT_EQ(times[1].ready, 6);
  // After the all-reduce of layer 0: two forwards, two backwards and an all-reduce of the next iteration.
  EXPECT_EQ(times[1].tail, 1 + 1 + 2 + 2 + 3);
  EXPECT_EQ(times[0].tail, 1 + 2 + 2 + 3);
  EXPECT_EQ(times[1].slack, 0);
  EXPECT_EQ(times[0].slack, 3);
}

TEST(OperationGraph, NamesTheTasksOfACircle) {
  ProfileMaker maker;
  const auto a = maker.add(ProfileTaskKind::collective, 1, 0, {});
  maker.add(ProfileTaskKind::collective, 1, 1, {a});
  maker.next_rank();
  const auto b = maker.add(ProfileTaskKind::collective, 1, 1, {});
  maker.add(ProfileTaskKind::collective, 1, 0, {b});
  const JobProfile profile = maker.finish();
  EXPECT_THAT(OperationGraph(profile).circle(), ::testing::UnorderedElementsAre(0, 1));
  EXPECT_TRUE(OperationGraph(layer_chain(1, 1, {1, 1})).circle().empty());
}

TEST(Tictac, TacFinishesTheBranchThatHidesMore) {
  const ReceiveDemand demand{{2, 2}, {{{0}, 4}, {{1}, 1}, {{0, 1}, 1}}};
  EXPECT_THAT(tac_order(demand), ElementsAre(0, 1));
  const ReceiveDemand other{{2, 2}, {{{0}, 1}, {{1}, 4}, {{0, 1}, 1}}};
  EXPECT_THAT(tac_order(other), ElementsAre(1, 0));
}

TEST(Tictac, TicGivesEqualNumbersToReceivesWithEqualSums) {
  const ReceiveDemand chain{{9, 2, 5}, {{{0}, 4}, {{0, 1}, 1}, {{0, 1, 2}, 1}}};
  EXPECT_THAT(tic_order(chain), ElementsAre(0, 0, 1));
}

TEST(Tictac, TacOrdersGradientsAsTheForwardOnAChain) {
  EXPECT_THAT(tac_order(layer_chain(1, 2, {3, 1, 9, 3})), ElementsAre(3, 2, 1, 0));
}

TEST(Tictac, RefusesMoreReceivesThanItCanOrder) {
  ProfileMaker maker;
  for (std::uint32_t i = 0; i <= kMostTacReceives; ++i) maker.add(ProfileTaskKind::receive, 1, i, {});
  EXPECT_THROW(tac_order(maker.finish()), InputError);
}

// Returns the end of a chain of computations, each of which waits for its receive.
Time end_of_chain(const std::vector<Time>& receive, const std::vector<Time>& compute,
                  const std::vector<std::uint32_t>& order) {
  std::vector<Time> arrival(receive.size());
  Time now = 0, end = 0;
  for (const std::uint32_t i : order) arrival[i] = now += receive[i];
  for (std::size_t i = 0; i < compute.size(); ++i) end = std::max(end, arrival[i]) + compute[i];
  return end;
}

TEST(Tictac, TacIsTheBestOrderOnRandomChains) {
  for (std::uint64_t seed = 0; seed < cases(); ++seed) {
    RandomStream random(seed, "tac_chain");
    const auto n = static_cast<std::uint32_t>(2 + random.below(by_size(6, 5, 4)));
    ProfileMaker maker;
    std::vector<Time> receive, compute;
    for (std::uint32_t i = 0; i < n; ++i) {
      receive.push_back(static_cast<Time>(1 + random.below(20)));
      compute.push_back(static_cast<Time>(1 + random.below(20)));
      maker.add(ProfileTaskKind::receive, receive[i], i, {});
    }
    for (std::uint32_t i = 0; i < n; ++i) maker.compute(compute[i], {i}, 0);
    const std::vector<std::uint32_t> places = tac_order(maker.finish());
    std::vector<std::uint32_t> order(n), any(n);
    for (std::uint32_t i = 0; i < n; ++i) order[places[i]] = any[i] = i;
    Time best = kNever;
    do {
      best = std::min(best, end_of_chain(receive, compute, any));
    } while (std::next_permutation(any.begin(), any.end()));
    EXPECT_EQ(end_of_chain(receive, compute, order), best) << seed;
  }
}

// The receives that each computation of a random graph waits for, found backward from it.
struct RandomBranches {
  explicit RandomBranches(std::uint64_t seed) {
    RandomStream random(seed, "tac_branches");
    receives = static_cast<std::uint32_t>(2 + random.below(7));
    ProfileMaker maker;
    for (std::uint32_t i = 0; i < receives; ++i) {
      times.push_back(static_cast<Time>(1 + random.below(9)));
      maker.add(ProfileTaskKind::receive, times.back(), i, {});
    }
    const auto computations = static_cast<std::uint32_t>(2 + random.below(10));
    for (std::uint32_t i = 0; i < computations; ++i) {
      std::vector<std::uint32_t> after;
      for (std::uint32_t j = 0; j < receives + i; ++j) {
        if (random.below(5) == 0) after.push_back(j);
      }
      times.push_back(static_cast<Time>(1 + random.below(9)));
      maker.compute(times.back(), after);
      before.push_back(after);
    }
    profile = maker.finish();
  }
  std::set<std::uint32_t> waits_for(std::uint32_t computation) const {
    std::set<std::uint32_t> result;
    for (const std::uint32_t task : before[computation]) {
      if (task < receives) result.insert(task);
      if (task >= receives) result.merge(waits_for(task - receives));
    }
    return result;
  }

  std::uint32_t receives = 0;
  std::vector<Time> times;  // receives, then computations
  std::vector<std::vector<std::uint32_t>> before;
  JobProfile profile;
};

// Replays the rule: one pick from the receives that are left.
std::uint32_t replayed_pick(const RandomBranches& graph, const std::set<std::uint32_t>& left) {
  std::map<std::uint32_t, Time> alone, together;
  for (const std::uint32_t r : left) together[r] = kNever;
  for (std::uint32_t c = 0; c < graph.before.size(); ++c) {
    std::set<std::uint32_t> open;
    for (const std::uint32_t r : graph.waits_for(c)) {
      if (left.count(r) != 0) open.insert(r);
    }
    Time sum = 0;
    for (const std::uint32_t r : open) sum += graph.times[r];
    if (open.size() == 1) alone[*open.begin()] += graph.times[graph.receives + c];
    if (open.size() < 2) continue;
    for (const std::uint32_t r : open) together[r] = std::min(together[r], sum);
  }
  std::uint32_t best = *left.begin();
  for (const std::uint32_t r : left) {
    const Time first = std::min(alone[best], graph.times[r]), second = std::min(alone[r], graph.times[best]);
    if (first < second || (first == second && together[r] < together[best])) best = r;
  }
  return best;
}

TEST(Tictac, TacEqualsAReplayOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < cases(); ++seed) {
    const RandomBranches graph(seed);
    const std::vector<std::uint32_t> places = tac_order(graph.profile);
    std::set<std::uint32_t> left;
    for (std::uint32_t i = 0; i < graph.receives; ++i) left.insert(i);
    for (std::uint32_t place = 0; place < graph.receives; ++place) {
      const std::uint32_t pick = replayed_pick(graph, left);
      EXPECT_EQ(places[pick], place) << seed;
      left.erase(pick);
    }
  }
}

}  // namespace
}  // namespace netsim::communication_order_test
