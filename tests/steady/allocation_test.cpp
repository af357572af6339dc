// Does a run in its steady state allocate nothing, per packet or per event (law 5)? This program replaces
// operator new to count, so it is one of its own.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <new>
#include <numeric>
#include <string>
#include <vector>

#include "sim/simulation/simulation.h"
#include "sim/workload/workload.h"
#include "tests/report/fixtures.h"

namespace {

std::uint64_t allocations = 0;  // of this program, which has one thread

void* count_and_allocate(std::size_t size, std::size_t alignment) {
  ++allocations;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

// The other forms call these. Never inline: GCC would take a call of free() for a mistake.
[[gnu::noinline]] void* operator new(std::size_t size) {
  return count_and_allocate(size, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return count_and_allocate(size, static_cast<std::size_t>(alignment));
}
// std::stable_sort() asks by this one, which does not call the first under AddressSanitizer.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return count_and_allocate(size, alignof(std::max_align_t));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace netsim {
namespace {

// A job that runs event by event.
class SteppedRun {
 public:
  SteppedRun(const std::string& cluster, const std::string& workload)
      : root_(parse_config(cluster, "cluster.yaml")),
        system_(root_, 1, 1, [this](const FlowRecord&) { ++flows_; }),
        source_(read(workload)) {
    std::vector<GpuId> gpus(source_->ranks());
    std::iota(gpus.begin(), gpus.end(), 0);
    jobs_.emplace(system_.loops(), system_.set_of_gpu(), system_.executor(), system_.devices(),
                  system_.next_origin(), JobObserver{});
    jobs_->add({"job", source_.get(), &times_, std::move(gpus), 0, 0, nullptr});
    jobs_->start(0);
  }

  // False if fewer were left.
  bool run(std::uint64_t events) { return system_.engine().run_some(events) == events; }
  std::uint64_t flows() const { return flows_; }
  NetworkCounters counters() const { return system_.packets()->counters(); }

 private:
  std::unique_ptr<TaskSource> read(const std::string& workload) const {
    const test::Directory directory;
    const std::string path = directory.path() + "/workload.yaml";
    std::ofstream(path) << workload;
    return load_workload(path, WorkloadContext(static_cast<std::uint32_t>(system_.cluster().gpus.size())));
  }

  ConfigNode root_;
  std::uint64_t flows_ = 0;
  System system_;
  std::unique_ptr<TaskSource> source_;
  WorkDurations times_{{}};
  std::optional<JobSet> jobs_;
};

struct Allocated {
  std::uint64_t allocations = 0;
  NetworkCounters before, after;
  std::uint64_t flows = 0;  // that ended meanwhile
};

// Returns the allocations of `events` events after `warm_up` others.
Allocated steady_state(SteppedRun& run, std::uint64_t warm_up, std::uint64_t events) {
  Allocated result;
  EXPECT_TRUE(run.run(warm_up));
  result.before = run.counters();
  const std::uint64_t flows = run.flows(), before = allocations;
  EXPECT_TRUE(run.run(events));
  result.allocations = allocations - before;
  result.after = run.counters();
  result.flows = run.flows() - flows;
  return result;
}

const std::string kTree = "topology: {kind: fat_tree, k: 4, rate: 100 Gbps}\nhost: single_nic\n";

TEST(Allocations, AreCounted) {
  const std::uint64_t before = allocations;
  std::vector<int> some(100);
  EXPECT_EQ(allocations, before + 1);
}

TEST(Allocations, NoneForPacketsOfAPermutation) {
  SteppedRun run(kTree, "kind: permutation\nbytes: 1 GB\n");
  const Allocated found = steady_state(run, 3'000'000, 1'000'000);
  EXPECT_EQ(found.allocations, 0u);
  EXPECT_GT(found.after.packets, found.before.packets + 40'000);
}

TEST(Allocations, NoneForAnIncastThatIsPaused) {
  SteppedRun run(
      "topology: {kind: star, hosts: 9, rate: 100 Gbps}\nhost: single_nic\n"
      "transport: {congestion_control: none}\nnetwork: {switch: {buffer: 1 MB}}\n",
      "kind: incast\nsenders: 8\nreceiver: 8\nbytes: 1 GB\n");
  const Allocated found = steady_state(run, 3'000'000, 1'000'000);
  EXPECT_EQ(found.allocations, 0u);
  EXPECT_GT(found.after.pfc_pauses, found.before.pfc_pauses + 100);
}

TEST(Allocations, NoneForPacketsOnWaysOfTheirOwnTakenInAnyOrder) {
  SteppedRun run(kTree + "network: {switch: {routing: spray}}\ntransport: {reliability: irn}\n",
                 "kind: permutation\nbytes: 1 GB\n");
  EXPECT_EQ(steady_state(run, 3'000'000, 1'000'000).allocations, 0u);
}

// Whole messages too: the executor's and the transport's arenas are used again.
TEST(Allocations, NoneForTheMessagesOfARing) {
  SteppedRun run(kTree, "kind: collective\ncollective: all_reduce\nbytes: 2 GB\n");
  const Allocated found = steady_state(run, 3'000'000, 2'000'000);
  EXPECT_EQ(found.allocations, 0u);
  EXPECT_GT(found.flows, 500u);
}

TEST(Allocations, NoneForTheMessagesOfARingOverNvlinkAndPcie) {
  SteppedRun run("topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n",
                 "kind: collective\ncollective: all_reduce\nbytes: 10 GB\n");
  const Allocated found = steady_state(run, 3'000'000, 2'000'000);
  EXPECT_EQ(found.allocations, 0u);
  EXPECT_GT(found.flows, 500u);
}

// A run of many events makes no allocation in steady state, and the process's memory does not grow.
// NETSIM_STEADY_EVENTS sets the number of events.
TEST(LongAllocations, NoneInAQuarterOfABillionEvents) {
  const char* asked = std::getenv("NETSIM_STEADY_EVENTS");
  const std::uint64_t events = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 250'000'000;
  SteppedRun run(kTree, "kind: permutation\nbytes: 100 GB\n");
  ASSERT_TRUE(run.run(10'000'000));
  const std::uint64_t memory = peak_memory(), before = allocations;
  ASSERT_TRUE(run.run(events));
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(peak_memory(), memory);
}

}  // namespace
}  // namespace netsim
