// Does the schedule equal the published rule of PyTorch's compiler, replayed in another way, and is a plan
// made of it as the header says?
#include "sim/scheduling/task/compiler_overlap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "sim/core/random.h"
#include "sim/scheduling/task/operation_graph.h"
#include "tests/scheduling/profile_maker.h"
#include "tests/support/test_size.h"

namespace netsim::compiler_overlap_test {
namespace {

using netsim::test::by_size;
using netsim::test::layer_chain;
using netsim::test::ProfileMaker;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// ---- Replay

// Replay: a transcript of the published Python, line by line, with sets of ancestors. It takes the profile of
// one rank whose tasks wait for earlier ones only.
class Replay {
 public:
  Replay(const JobProfile& profile, const OverlapLimits& limits) : profile_(profile), limits_(limits) {
    std::vector<int> last;  // by task: its wait or itself
    for (std::uint32_t task = 0; task < profile.tasks.size(); ++task) {
      const bool collective = profile.tasks[task].kind == ProfileTaskKind::collective;
      const int node = add(collective ? 's' : profile.in_ordinary_queue(task) ? 'c' : 'o', task);
      for (std::uint32_t before = 0; before < task; ++before) {
        const auto users = profile.successors.of(before);
        if (std::find(users.begin(), users.end(), task) != users.end()) link(last[before], node);
      }
      if (collective) link(node, add('w', task));
      last.push_back(static_cast<int>(nodes_.size()) - 1);
    }
    for (int n = 0; n < count(); ++n) {
      if (nodes_[n].type == 'c') computes_.push_back(n);
      if (nodes_[n].type == 's') exposed_[n] = profile.tasks[nodes_[n].task].duration, unscheduled_.insert(n);
      for (const int input : nodes_[n].inputs) {
        nodes_[n].ancestors.insert(input);
        nodes_[n].ancestors.insert(nodes_[input].ancestors.begin(), nodes_[input].ancestors.end());
      }
    }
    for (int n = count(); n-- > 0;) {
      const auto at = std::find(computes_.begin(), computes_.end(), n);
      nodes_[n].domination = at != computes_.end() ? at - computes_.begin() : kFar;
      for (const int user : nodes_[n].users) {
        if (nodes_[n].type != 'c')
          nodes_[n].domination = std::min(nodes_[n].domination, nodes_[user].domination);
      }
    }
  }

  std::string run() {
    for (int n = 0; n < count(); ++n) {
      if (nodes_[n].inputs.empty()) push(n);
    }
    while (!ready_.empty()) {
      if (!in_flight_.empty() && bytes() >= limits_.in_flight) {
        handle_wait(in_flight_.front() + 1);
        continue;
      }
      const int n = std::get<2>(*ready_.begin());
      ready_.erase(ready_.begin());
      if (scheduled_.contains(n)) continue;
      if (nodes_[n].type == 'c') handle_compute(n);
      if (nodes_[n].type == 's') handle_start(n);
      if (nodes_[n].type == 'w') handle_wait(n);
      if (nodes_[n].type == 'o') schedule(n);
    }
    return text_;
  }

 private:
  static constexpr std::int64_t kFar = INT64_MAX / 2;
  struct Node {
    char type;
    std::uint32_t task;
    std::set<int> inputs, users, ancestors;
    std::int64_t domination = kFar;
  };

  int count() const { return static_cast<int>(nodes_.size()); }
  int add(char type, std::uint32_t task) {
    nodes_.push_back({type, task, {}, {}, {}});
    return count() - 1;
  }
  void link(int from, int to) {
    nodes_[from].users.insert(to);
    nodes_[to].inputs.insert(from);
  }
  Bytes bytes() const {
    Bytes sum = 0;
    for (const int start : in_flight_) sum += profile_.tasks[nodes_[start].task].memory;
    return sum;
  }
  bool chain(int n) const {
    if (nodes_[n].users.size() != 1) return false;
    const int user = *nodes_[n].users.begin();
    if (nodes_[user].inputs.size() != 1) return false;
    if (unscheduled_.contains(user)) return true;
    return nodes_[user].type == 'o' && chain(user);
  }
  void push(int n) {
    const int local = nodes_[n].type == 'w' ? exposed_.at(n - 1) != 0 : chain(n) ? -1 : 0;
    ready_.insert({nodes_[n].domination, local, n});
  }
  void schedule(int n) {
    scheduled_.insert(n);
    text_ += nodes_[n].type == 'c' ? 'o' : nodes_[n].type;
    text_ += std::to_string(nodes_[n].task) + ' ';
    for (const int user : nodes_[n].users) {
      if (std::includes(scheduled_.begin(), scheduled_.end(), nodes_[user].inputs.begin(),
                        nodes_[user].inputs.end()))
        push(user);
    }
  }
  void handle_start(int n) {
    in_flight_.push_back(n);
    unscheduled_.erase(n);
    schedule(n);
  }
  void handle_wait(int wait) {
    std::vector<int> earlier;
    for (const int start : in_flight_) {
      if (start == wait - 1) break;
      if (group(start) == group(wait)) earlier.push_back(start);
    }
    for (const int start : earlier) handle_wait(start + 1);
    std::erase(in_flight_, wait - 1);
    schedule(wait);
  }
  GroupId group(int n) const { return profile_.tasks[nodes_[n].task].group; }
  void handle_compute(int n) {
    Time available = profile_.tasks[nodes_[n].task].duration;
    for (const int start : in_flight_) {
      if (exposed_[start] == 0) continue;
      hide(start, n, available);
      if (available == 0) break;
    }
    if (available > 0) prefetch(n, available);
    schedule(n);
    ++index_;
  }
  void hide(int start, int n, Time& available) {
    const Time overlap = std::min(exposed_[start], available);
    exposed_[start] -= overlap;
    available -= overlap;
    hiding_[start].insert(n);
  }
  void prefetch(int n, Time available) {
    std::vector<std::pair<std::int64_t, int>> possible;
    for (const int start : unscheduled_) {
      if (std::abs(n - start) > limits_.distance) break;
      if (nodes_[start].domination != kFar && nodes_[start].domination - index_ > limits_.prefetch) continue;
      possible.emplace_back(nodes_[start].domination, start);
    }
    std::sort(possible.begin(), possible.end());
    for (const auto& [domination, start] : possible) {
      if (available == 0) break;
      if (nodes_[n].ancestors.contains(start) || nodes_[start].ancestors.contains(n)) continue;
      const Bytes size = profile_.tasks[nodes_[start].task].memory;
      while (!in_flight_.empty() && limits_.in_flight - bytes() < size && exposed_[in_flight_[0]] == 0 &&
             !hiding_[in_flight_[0]].contains(n))
        handle_wait(in_flight_[0] + 1);
      if (limits_.in_flight - bytes() < size || !may_go(start, n)) continue;
      for (const int before : nodes_[start].ancestors) {
        if (scheduled_.contains(before)) continue;
        if (nodes_[before].type == 'w') handle_wait(before);
        if (nodes_[before].type == 'o') schedule(before);
      }
      handle_start(start);
      hide(start, n, available);
    }
  }
  bool may_go(int start, int n) {
    for (const int before : nodes_[start].ancestors) {
      if (scheduled_.contains(before) || nodes_[before].type == 'o') continue;
      if (nodes_[before].type != 'w') return false;
      const std::set<int>& hiding = hiding_[before - 1];
      if (!hiding.empty() && !hiding.contains(n)) continue;
      if (could_be_hidden(before)) return false;
    }
    return true;
  }
  bool could_be_hidden(int n) const {
    return std::any_of(computes_.begin(), computes_.end(), [&](int compute) {
      return !nodes_[compute].ancestors.contains(n) && !nodes_[n].ancestors.contains(compute);
    });
  }

  const JobProfile& profile_;
  const OverlapLimits limits_;
  std::vector<Node> nodes_;
  std::vector<int> computes_, in_flight_;
  std::map<int, Time> exposed_;
  std::map<int, std::set<int>> hiding_;
  std::set<int> unscheduled_, scheduled_;
  std::set<std::tuple<std::int64_t, int, int>> ready_;
  std::int64_t index_ = 0;
  std::string text_;
};

// Returns the steps as the replay writes them: "s4 " starts the collective of task 4, "w4 " waits for it.
std::string steps(const JobProfile& profile, const OverlapLimits& limits) {
  std::string text;
  for (const OverlapStep& step : compiler_overlap_steps(profile, 0, limits)) {
    text += step.kind == OverlapStep::Kind::start ? 's' : step.kind == OverlapStep::Kind::wait ? 'w' : 'o';
    text += std::to_string(step.task) + ' ';
  }
  return text;
}

JobProfile random_profile(RandomStream& random) {
  ProfileMaker maker;
  const auto length = static_cast<std::uint32_t>(6 + random.below(30));
  std::uint32_t communication = 0;
  for (std::uint32_t i = 0; i < length; ++i) {
    std::vector<std::uint32_t> after;
    for (std::uint32_t j = i > 8 ? i - 8 : 0; j < i; ++j) {
      if (random.below(6) == 0) after.push_back(j);
    }
    const auto duration = static_cast<Time>(1 + random.below(9));
    switch (random.below(5)) {
      case 0:
      case 1:
        maker.add(ProfileTaskKind::collective, duration, communication++, after);
        break;
      case 2:
        maker.add(ProfileTaskKind::other, 0, kNoIndex, after);
        break;
      default:
        maker.compute(duration, after, 0);
    }
  }
  JobProfile profile = maker.finish();
  for (ProfileTask& task : profile.tasks) {
    if (task.kind != ProfileTaskKind::collective) continue;
    task.group = static_cast<std::uint32_t>(random.below(2));
    task.memory = static_cast<Bytes>(1 + random.below(4));
  }
  return profile;
}

TEST(CompilerOverlap, EqualsAReplayOfThePublishedRule) {
  for (std::uint64_t seed = 0; seed < by_size<std::uint64_t>(3000, 1000, 200); ++seed) {
    RandomStream random(seed, "compiler_overlap");
    const JobProfile profile = random_profile(random);
    OverlapLimits limits;
    limits.in_flight = static_cast<Bytes>(2 + random.below(8));
    limits.prefetch = static_cast<std::int64_t>(random.below(4));
    limits.distance = static_cast<std::int64_t>(3 + random.below(40));
    ASSERT_EQ(steps(profile, limits), Replay(profile, limits).run()) << "seed " << seed;
  }
}

// ---- Schedules and plans by hand

// Gathers of three layers, each of which the layer's computation waits for: tasks 0, 2, 4 and 1, 3, 5.
JobProfile three_gathers() {
  ProfileMaker maker;
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    const std::uint32_t gather = maker.add(ProfileTaskKind::collective, 10, layer, {});
    maker.compute(10, {gather}, 0);
  }
  return maker.finish();
}

// A gather starts at most one computation before the one that needs it.
TEST(CompilerOverlap, StartsGathersOneComputationAhead) {
  OverlapLimits limits;
  limits.prefetch = 1;
  const JobProfile profile = three_gathers();
  EXPECT_EQ(steps(profile, limits), "s0 w0 s2 o1 w2 s4 o3 w4 o5 ");
  const LaunchPlan plan = compiler_overlap(profile, limits);
  EXPECT_THAT(plan.sequences, ElementsAre(ElementsAre(0, 1, 2)));
  using Hold = LaunchPlan::Hold;
  EXPECT_THAT(plan.holds, ElementsAre(Hold{1, 0}, Hold{2, 1}, Hold{2, 2}));
}

// With room for one collective, the rule waits for the one in flight before it takes the next node.
TEST(CompilerOverlap, BoundsTheBytesInFlight) {
  JobProfile profile = three_gathers();
  for (ProfileTask& task : profile.tasks) task.memory = task.kind == ProfileTaskKind::collective ? 8 : 0;
  OverlapLimits limits;
  limits.in_flight = 8;
  EXPECT_EQ(steps(profile, limits), "s0 w0 s2 o1 w2 s4 o3 w4 o5 ");
  limits.in_flight = 7;
  EXPECT_EQ(steps(profile, limits), "s0 w0 o1 s2 w2 o3 s4 w4 o5 ");
}

// Gradients' all-reduces hide behind the rest of the backward: each starts before the next computation.
TEST(CompilerOverlap, StartsGradientsBesideTheBackward) {
  const JobProfile profile = layer_chain(1, 2, {2, 2, 2});
  EXPECT_EQ(steps(profile, {}), "o0 o1 o2 o3 s4 o5 s6 o7 s8 w4 w6 w8 ");
}

// Each hold is an edge of the graph in which netsim looks for circles.
TEST(OperationGraph, MoreEdgesMayCloseACircle) {
  const JobProfile profile = three_gathers();
  EXPECT_TRUE(OperationGraph(profile).circle().empty());
  EXPECT_THAT(OperationGraph(profile, {{1, 0}}).circle(), UnorderedElementsAre(0, 1));
}

// Among equal collectives, the one whose computation comes first is launched first.
TEST(CompilerOverlap, TakesWhatTheEarliestComputationNeeds) {
  ProfileMaker maker;
  const std::uint32_t late = maker.add(ProfileTaskKind::collective, 5, 0, {});
  const std::uint32_t early = maker.add(ProfileTaskKind::collective, 5, 1, {});
  maker.compute(5, {early}, 0);
  maker.compute(5, {late}, 0);
  const JobProfile profile = maker.finish();
  EXPECT_THAT(compiler_overlap(profile, {}).sequences, ElementsAre(ElementsAre(1, 0)));
}

}  // namespace
}  // namespace netsim::compiler_overlap_test
