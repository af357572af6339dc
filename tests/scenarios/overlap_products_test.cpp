// Tests the table of docs/concepts/strategies.md that says which ways to overlap combine with which kind of
// parallelism. Each combination that the page offers ends under jitter. Each other one is refused with the
// reason that is given here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <exception>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/scenarios/jittered_star.h"
#include "tests/support/paths.h"
#include "tests/support/test_size.h"

namespace netsim::overlap_products_test {
namespace {

using ::testing::HasSubstr;

// Degrees: those of a job of up to eight ranks.
struct Degrees {
  int tensor = 1, pipeline = 1, context = 1, data = 1, expert = 1;
};
constexpr std::array<const char*, 5> kColumns{"DP", "TP", "PP", "CP", "EP"};

struct System {
  const char* name;  // as the table calls it
  Degrees least;     // those that the system needs
  // Keys of `parallel`, and others. With SEQUENCE the job has sequence parallelism.
  std::string parallel, more;
  bool sequence = false;
  // By column, the reason for a refusal.
  std::map<std::string, const char*> refused = {};
};

const std::vector<System>& systems() {
  static const std::vector<System> all{
      {"`sub_batches`",
       {},
       "",
       "recompute: none, strategies: [{kind: sub_batches, weight_gradients: behind_communication}]"},
      {"`column_slices`",
       {.tensor = 2},
       "",
       "recompute: none, strategies: [{kind: column_slices, count: 4}]"},
      {"`recompute_windows`",
       {.tensor = 2},
       "",
       "strategies: [{kind: recompute_windows, communication: kept}]"},
      {"`sliced_boundaries`",
       {.tensor = 2, .pipeline = 2},
       "",
       "strategies: [sliced_boundaries]",
       false,
       {{"EP", "sequence parallelism leaves all sums in slices already"}}},
      {"`tensor_overlap: pipelined`",
       {.tensor = 2},
       "tensor_overlap: {gathers: pipelined, reduce_scatters: pipelined, pieces: 2}, ",
       "recompute: none",
       true},
      {"`tensor_overlap: ring_exchange`",
       {.tensor = 2},
       "tensor_overlap: {gathers: ring_exchange, reduce_scatters: ring_exchange}, ",
       "recompute: none",
       true},
      {"`tensor_overlap: direct`",
       {.tensor = 2},
       "tensor_overlap: {gathers: direct, reduce_scatters: direct, pieces: 2, kernels: sliced, sums: "
       "memory}, ",
       "recompute: none",
       true},
      {"`expert_overlap`",
       {.data = 2, .expert = 2},
       "expert_tensor: 1, expert_overlap: {exchanges: collective, pieces: 2}, ",
       "recompute: none"},
      {"`partitioned_collectives`",
       {.data = 4},
       "",
       "strategies: [{kind: partitioned_collectives, per_host: 2, within: {startup: 1 us, rate: 400 Gbps}, "
       "between: "
       "{startup: 1 us, rate: 50 Gbps}}]"},
      {"`fold3d`", {.pipeline = 2}, "virtual_stages: 2, schedule: fold3d, ", "recompute: none"},
      {"`pipedream_2bw`", {.pipeline = 2}, "schedule: {kind: pipedream_2bw, batch: 2}, ", "recompute: none"},
      {"`layer_optimizer`",
       {.data = 2},
       "",
       "recompute: none, gradient: {bucket: 200 KB, overlap: true, per: layer}, strategies: "
       "[layer_optimizer]"},
  };
  return all;
}

// Returns the job of a system with the parallelism of a column beside what the system needs.
std::string job_of(const System& system, const std::string& column) {
  Degrees d = system.least;
  const auto twice = [](int& degree) { degree = std::max(degree, 2); };
  if (column == "DP" || column == "EP") twice(d.data);
  if (column == "TP") twice(d.tensor);
  if (column == "PP") twice(d.pipeline);
  if (column == "CP") twice(d.context);
  if (column == "EP") twice(d.expert);
  const bool experts = d.expert > 1;
  const bool sequence = system.sequence || (experts && d.tensor > 1);
  const std::string model = experts ? "{kind: llama, layers: 4, hidden: 128, heads: 4, groups: 4, inner: "
                                      "256, sequence: 64, vocabulary: 512, "
                                      "experts: {count: 4, top_k: 2}}"
                                    : "{layers: 4, hidden: 128, heads: 4, sequence: 64, vocabulary: 512}";
  const auto degree = [](const char* name, int value) {
    return std::string(name) + ": " + std::to_string(value) + ", ";
  };
  return "{kind: ptdp, model: " + model + ", microbatch: 2, microbatches: 2, iterations: 2, parallel: {" +
         system.parallel + degree("tensor", d.tensor) + degree("pipeline", d.pipeline) +
         degree("data", d.data) +
         (d.context > 1 ? degree("context", d.context) + "context_exchange: all_gather, " : "") +
         (experts ? degree("expert", d.expert) : "") + "sequence: " + (sequence ? "true" : "false") + "}, " +
         system.more + "}";
}

// Returns the cells of the page's table, by system and column.
std::map<std::string, std::vector<std::string>> table_of_page() {
  std::ifstream file(source_directory() + "/docs/concepts/strategies.md");
  std::map<std::string, std::vector<std::string>> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("### Which combine")) inside = true;
    if (inside && line.starts_with("## ")) break;
    if (!inside || !line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    for (std::size_t at = 2; at < line.size();) {
      const std::size_t end = line.find(" |", at);
      cells.push_back(line.substr(at, end - at));
      at = end + 3;
    }
    const std::string name = cells.front();
    cells.erase(cells.begin());
    rows[name] = cells;
  }
  return rows;
}

class OverlapProducts : public test::JitteredStar {};

TEST_F(OverlapProducts, EndOrAreRefusedAsThePageSays) {
  const auto page = table_of_page();
  EXPECT_EQ(page.size(), systems().size());
  const std::uint64_t seeds = test::by_size<std::uint64_t>(50, 1, 1);
  std::size_t number = 0;
  for (const System& system : systems()) {
    const auto row = page.find(system.name);
    ASSERT_NE(row, page.end()) << system.name;
    ASSERT_EQ(row->second.size(), kColumns.size()) << system.name;
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      const std::string column = kColumns[i];
      SCOPED_TRACE(std::string(system.name) + " with " + column + ": " + job_of(system, column));
      const auto refusal = system.refused.find(column);
      EXPECT_EQ(row->second[i], refusal == system.refused.end() ? "yes" : "no");
      if (refusal != system.refused.end()) {
        try {
          run({job_of(system, column)});
          ADD_FAILURE() << "was not refused";
        } catch (const std::exception& error) {
          EXPECT_THAT(error.what(), HasSubstr(refusal->second));
        }
        continue;
      }
      // The quick suite runs every second job.
      if (!test::full_size() && number++ % 2 == 1) continue;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        Results results;
        ASSERT_NO_THROW(results = run({job_of(system, column), seed}));
        ASSERT_EQ(results.outcome, Outcome::done) << (results.waiting.empty() ? "" : results.waiting.front());
        test::expect_rank_times_add_up(results.jobs[0]);
      }
    }
  }
}

}  // namespace
}  // namespace netsim::overlap_products_test
