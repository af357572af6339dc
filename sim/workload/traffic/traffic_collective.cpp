// collective: every rank runs the same collective several times back to back, as nccl-tests does, of one size
// or of one size after the other. Each run is an iteration; the report has a row for each size. No rank
// begins a size before all ranks have finished the one before, because nccl-tests has a barrier there.
// Without it, ranks that end early (those far from the root of a broadcast) would run ahead and hide a size's
// time.
//
// Queue pairs begin each size as new ones. nccl-tests checks its results between two sizes, by which time
// congestion control no longer depends on the size before. So a size takes as long as it takes alone.
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/collective_names.h"
#include "sim/collectives/own_algorithm.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/workload/routing/token_section.h"
#include "sim/workload/traffic/counts.h"
#include "sim/workload/traffic/simple_source.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

namespace {

// SizesParameters: the options -b, -e and -f of nccl-tests.
struct SizesParameters {
  Bytes from = 0;  // 0: `bytes` is the only size
  Bytes to = 0;
  std::int64_t factor = 2;
  // In any network of a data center, the acknowledgements and credits of the size before have arrived by
  // then.
  Time pause = 100 * kMicrosecond;
};

struct CollectiveParameters {
  CollectiveKind collective = CollectiveKind::all_reduce;
  Bytes bytes = 64 * kMegabyte;
  SizesParameters sizes;
  std::int64_t ranks = 0;
  std::int64_t repeat = 1;
  std::int64_t root = 0;
  ConfigNode counts;
  TokenSection tokens;
  ConfigNode algorithms;
};

// Returns "broadcast: the rank that has the data; ...": a property of all collectives that have it.
std::string each_kind(const char* CollectiveKindInfo::*what) {
  std::string text;
  for (const CollectiveKindInfo& info : kCollectiveKinds) {
    if (!is_collective(info.kind) || info.*what == nullptr) continue;
    append_item(text, std::string(info.name) + ": " + info.*what, "; ");
  }
  return text;
}

const Parameters<SizesParameters>& sizes_parameters() {
  using P = SizesParameters;
  static const auto p =
      Parameters<P>()
          .bytes("from", &P::from, {0, 1000 * kGigabyte}, "the first size; 0: only `bytes`")
          .bytes("to", &P::to, {0, 1000 * kGigabyte}, "upper limit of the last size")
          .integer("factor", &P::factor, {2, 1024}, "factor from each size to the next")
          .time("pause", &P::pause, {kMicrosecond, kSecond},
                "time from the last rank's end of a size to all ranks' start of the next one, as after a "
                "barrier; it is not part of the time of a size, and queue pairs start afresh after it");
  return p;
}

const Parameters<CollectiveParameters>& traffic_collective_parameters() {
  using P = CollectiveParameters;
  static const auto p =
      Parameters<P>()
          .choice("collective", &P::collective, collectives_by_name(), "the collective")
          .bytes("bytes", &P::bytes, {1, 1000 * kGigabyte},
                 "size of the buffer: " + each_kind(&CollectiveKindInfo::bytes))
          .section("sizes", &P::sizes, sizes_parameters(), "sizes one after the other, instead of `bytes`")
          .integer("ranks", &P::ranks, {0, kMaxTrafficRanks},
                   "number of ranks that take part; 0: all GPUs of the cluster")
          .integer("repeat", &P::repeat, {1, 100'000}, "number of times, one after the other")
          .integer("root", &P::root, {0, kMaxTrafficRanks - 1}, each_kind(&CollectiveKindInfo::root))
          .list("algorithms", &P::algorithms,
                "algorithms that run the collective, all sizes by each of them: [ring, tree, {kind: nccl, "
                "nvls: false}]; default: only the configuration's")
          .list("counts", &P::counts, kCountsDoc)
          .section("tokens", &P::tokens, token_section_parameters(), kTokensDoc);
  return p;
}

class CollectiveBenchmark final : public WorkloadKind {
 public:
  CollectiveBenchmark(const CollectiveParameters& p, const ConfigNode& where)
      : p_(p), where_(where), ranks_place_(place_of(where, "ranks")), root_place_(place_of(where, "root")) {
    if (p.root != 0 && !has_root(p.collective)) {
      throw ConfigError(root_place_, std::string(to_string(p.collective)) +
                                         " has no root; these have: " + each_kind(&CollectiveKindInfo::root));
    }
    check_bytes(p.collective, where);
    check_sizes(where);
    own_algorithms();
  }

  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    const std::uint32_t ranks = traffic_ranks(p_.ranks, context, ranks_place_);
    if (p_.root >= std::int64_t{ranks}) {
      throw InputError(root_place_,
                       "root " + std::to_string(p_.root) + "; allowed: 0 to " + std::to_string(ranks - 1));
    }
    const std::string name = to_string(p_.collective);
    auto source = std::make_unique<SimpleSource>(name, ranks);
    std::vector<RankId> everybody(ranks);
    std::iota(everybody.begin(), everybody.end(), 0U);
    Task task;
    task.stream = Stream::dp;
    auto& call = task.body.emplace<CollectiveTask>();
    call.collective = p_.collective;
    call.root = static_cast<std::uint32_t>(p_.root);
    call.group = source->add_group(std::move(everybody));
    task.name = source->add_name(name);
    const std::vector<Load> loads = loads_of(ranks, *source);
    std::vector<const OwnAlgorithm*> algorithms{nullptr};
    if (std::vector<OwnAlgorithm> own = own_algorithms(); !own.empty()) {
      algorithms.clear();
      for (OwnAlgorithm& one : own) {
        check_ranks(one, p_.collective, ranks, call.root);
        algorithms.push_back(source->add_algorithm(std::move(one)));
      }
    }
    for (const OwnAlgorithm* algorithm : algorithms) {
      call.algorithm = algorithm;
      for (const Load& load : loads) {
        call.bytes = load.bytes;
        call.counts = load.counts;
        call.pause = call.series == 0 ? 0 : p_.sizes.pause;
        ++call.series;
        for (std::int64_t i = 0; i < p_.repeat; ++i, ++task.iteration, call.pause = 0)
          source->add_task_everywhere(task);
      }
    }
    return source;
  }

 private:
  // Returns the workload's own algorithms, each with a different name.
  std::vector<OwnAlgorithm> own_algorithms() const {
    const ConfigNode& list = p_.algorithms;
    if (list.is_null()) return {};
    if (!list.is_sequence() || list.items().empty())
      list.fail("a list of algorithms is expected: [ring, {kind: nccl, nvls: false}]");
    std::vector<OwnAlgorithm> all;
    std::map<std::string, int> before;
    for (const ConfigNode& item : list.items()) {
      all.push_back(own_algorithm(p_.collective, item));
      if (const int number = ++before[all.back().name]; number > 1)
        all.back().name += " " + std::to_string(number);
    }
    return all;
  }

  void check_sizes(const ConfigNode& where) const {
    const ConfigNode* node = where.is_map() ? where.find("sizes") : nullptr;
    if (node == nullptr) return;
    if (where.find("bytes") != nullptr) node->fail("'sizes' and 'bytes': only one of them is allowed");
    if (const ConfigNode* from = node->find("from"); from != nullptr && p_.sizes.from == 0)
      from->fail("0 B is no size; allowed: 1 B and more");
    if (p_.sizes.from == 0) node->fail("'from' is missing, the first size");
    if (p_.sizes.to < p_.sizes.from) {
      node->fail("to " + format_bytes(p_.sizes.to) + " is less than from " + format_bytes(p_.sizes.from));
    }
  }

  // Load: the traffic that each algorithm runs, one after the other.
  struct Load {
    Bytes bytes = 0;
    const BlockCounts* counts = nullptr;
  };
  std::vector<Load> loads_of(std::uint32_t ranks, SimpleSource& source) const {
    const auto counted = [&source](BlockCounts counts) {
      const BlockCounts* added = source.add_counts(std::move(counts));
      return Load{added->busiest(), added};
    };
    if (has_tokens(p_.collective)) return {counted(count_tokens(p_.tokens, ranks, tokens_node(where_)))};
    const bool next = has_counts(p_.collective) && counts_are_next(p_.counts);
    if (has_counts(p_.collective) && !next) return {counted(read_counts(p_.counts, ranks, 0))};
    if (!next && !has_bytes(p_.collective)) return {{.bytes = kBarrierBytes}};
    const std::vector<Bytes> all = sizes();
    if (next) check_counts(ranks, all.size());
    std::vector<Load> loads;
    loads.reserve(all.size());
    for (const Bytes size : all)
      loads.push_back(next ? counted(read_counts(p_.counts, ranks, size)) : Load{.bytes = size});
    return loads;
  }

  // Checks the total number of counts, because each size has counts of its own.
  void check_counts(std::uint32_t ranks, std::size_t sizes) const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 27;  // 1 GiB of counts
    if (std::uint64_t{sizes} * ranks * ranks <= kMost) return;
    p_.counts.fail("counts of " + std::to_string(ranks) + " ranks for " + std::to_string(sizes) +
                   " sizes are more than the " + std::to_string(kMost) + " that are allowed");
  }

  std::vector<Bytes> sizes() const {
    if (p_.sizes.from == 0) return {p_.bytes};
    std::vector<Bytes> all;
    for (Bytes size = p_.sizes.from; size <= p_.sizes.to; size *= p_.sizes.factor) all.push_back(size);
    return all;
  }

  CollectiveParameters p_;
  ConfigNode where_;
  Place ranks_place_, root_place_;
};

const Registration<WorkloadKind> kTrafficCollective{
    "collective", "every rank runs the same collective several times back to back, as nccl-tests does",
    traffic_collective_parameters(), [](const CollectiveParameters& p, const ConfigNode& where) {
      return std::make_unique<CollectiveBenchmark>(p, where);
    }};

}  // namespace

}  // namespace netsim
