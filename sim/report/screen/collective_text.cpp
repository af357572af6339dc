#include "sim/report/screen/collective_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/text.h"

namespace netsim::screen {
namespace {

// Returns the algorithm: "tree", or "nccl: tree" if the workload's algorithm nccl chose it.
std::string algorithm_text(const LibraryChoice& choice) {
  return choice.own.empty() || choice.own == choice.algorithm ? choice.algorithm
                                                              : choice.own + ": " + choice.algorithm;
}

}  // namespace

std::vector<TableColumn> collective_table(const Results& results) {
  TableColumn name{"collective", 4, true, {}}, ranks{"ranks", 3, false, {}}, size{"size (B)", 0, false, {}},
      count{"count", 5, false, {}}, type{"type", 7, false, {}}, reduction{"redop", 6, false, {}},
      protocol{"protocol", 1, true, {}}, time{"time (us)", 0, false, {}}, runs{"algorithm", 1, true, {}},
      algorithm{"algbw (GB/s)", 2, false, {}}, bus{"busbw (GB/s)", 0, false, {}}, job{"job", 0, true, {}};
  for (TableColumn* column : {&name, &ranks, &type, &reduction, &protocol, &runs, &job})
    column->said_once = true;
  for (const CollectiveTimes& row : results.collectives) {
    name.cells.emplace_back(to_string(row.kind));
    ranks.cells.push_back(fmt::format("{}", row.ranks));
    size.cells.push_back(fmt::format("{}", row.bytes));
    count.cells.push_back(fmt::format("{}", row.elements()));
    type.cells.emplace_back("float");
    reduction.cells.emplace_back(row.reduction());
    runs.cells.push_back(algorithm_text(row.choice));
    protocol.cells.emplace_back(to_string(row.choice.protocol));
    time.cells.push_back(fmt::format("{:.2f}", row.mean_s() * 1e6));
    algorithm.cells.push_back(fmt::format("{:.2f}", row.algorithm_bandwidth() * 1e-9));
    bus.cells.push_back(fmt::format("{:.2f}", row.bus_bandwidth() * 1e-9));
    job.cells.push_back(printable(results.jobs[row.job].name));
  }
  std::vector<TableColumn> table{name, ranks,    size, count,     type, reduction,
                                 runs, protocol, time, algorithm, bus};
  if (results.jobs.size() > 1) table.push_back(job);
  return table;
}

void collectives(Text out, const Results& results, std::size_t width) {
  constexpr std::size_t kRows = 1000;
  if (results.collectives.empty()) return;
  if (results.collectives.size() > kRows) {
    fmt::format_to(out, "\n  {} kinds and sizes of collectives: --out DIR writes bandwidths.csv\n",
                   results.collectives.size());
    return;
  }
  std::vector<TableColumn> table = collective_table(results);
  if (std::none_of(results.collectives.begin(), results.collectives.end(),
                   [](const CollectiveTimes& row) { return !row.choice.own.empty(); })) {
    std::erase_if(table, [](const TableColumn& column) { return column.title == "algorithm"; });
  }
  fmt::format_to(out, "\n{}\n", text_table(std::move(table), 2, width));
}

}  // namespace netsim::screen
