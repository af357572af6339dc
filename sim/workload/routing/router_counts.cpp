// counts: how many tokens each expert got, measured in a training run:
//
//   iteration,layer,expert,tokens
//   0,0,0,5123
//
// An expert without a row got none. Layers are those that have experts. Without the columns `iteration` and
// `layer`, all are alike. After the last iteration the trace begins again. The numbers are shares. A job with
// more or fewer tokens divides them as exactly as whole tokens allow, and no expert gets a token twice.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "sim/core/csv.h"
#include "sim/core/errors.h"
#include "sim/core/named_file.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/workload/routing/router.h"

namespace netsim {
namespace {

struct CountsParameters {
  std::string file;
};

// Trace: tokens by expert, for every layer of every iteration.
struct Trace {
  std::string path;
  bool of_layers = false;
  std::uint32_t iterations = 0, layers = 0, experts = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> tokens;
};

const std::vector<std::string>& column_names() {
  static const std::vector<std::string> names{"expert", "tokens", "iteration", "layer"};
  return names;
}

Trace read_trace(const InputText& input) {
  const std::vector<std::string>& names = column_names();
  constexpr std::size_t kExpert = 0, kTokens = 1, kIteration = 2, kLayer = 3;
  constexpr Range<std::int64_t> kNumbers{0, 99'999}, kCounts{0, 1LL << 40};
  CsvReader table(input.text, input.path);
  const std::vector<std::size_t> columns = table.header(names, 2);
  Trace trace;
  trace.path = input.path;
  trace.of_layers = table.column(kLayer) != CsvReader::kNone;
  while (table.next()) {
    std::array<std::int64_t, 4> values{};
    for (std::size_t i = 0; i < columns.size(); ++i)
      values[columns[i]] = table.reader().integer(table.cells()[i], names[columns[i]],
                                                  columns[i] == kTokens ? kCounts : kNumbers);
    const auto of = [&](std::size_t column) { return static_cast<std::uint32_t>(values[column]); };
    std::vector<std::int64_t>& row = trace.tokens[{of(kIteration), of(kLayer)}];
    if (row.size() <= of(kExpert)) row.resize(of(kExpert) + std::size_t{1}, -1);
    if (row[of(kExpert)] >= 0) table.fail("a second row for expert " + std::to_string(of(kExpert)));
    row[of(kExpert)] = values[kTokens];
    trace.iterations = std::max(trace.iterations, of(kIteration) + 1);
    trace.layers = std::max(trace.layers, of(kLayer) + 1);
    trace.experts = std::max(trace.experts, of(kExpert) + 1);
  }
  if (trace.tokens.empty()) table.fail("no rows follow the header");
  for (auto& [where, row] : trace.tokens)
    std::replace(row.begin(), row.end(), std::int64_t{-1}, std::int64_t{0});
  return trace;
}

class Counts final : public Router {
 public:
  Counts(Trace trace, const ConfigNode& where) : trace_(std::move(trace)), where_(*where.find("file")) {}
  bool changes() const override { return trace_.iterations > 1; }

  void check(const RoutingShape& shape, std::uint32_t layers) const override {
    const auto refuse = [&](const std::string& what) { where_.fail(trace_.path + " " + what); };
    if (trace_.experts > shape.experts) {
      refuse("has tokens of expert " + std::to_string(trace_.experts - 1) + "; the model has " +
             std::to_string(shape.experts) + " experts, 0 to " + std::to_string(shape.experts - 1));
    }
    if (trace_.of_layers && trace_.layers != layers) {
      refuse("has counts of " + std::to_string(trace_.layers) + " layers; the model has experts in " +
             std::to_string(layers));
    }
    if (shape.group_limit < shape.groups)
      refuse(
          "states how many tokens experts got, but not which tokens: group_limit has to be the number of "
          "groups");
    for (std::uint32_t iteration = 0; iteration < trace_.iterations; ++iteration) {
      for (std::uint32_t layer = 0; layer < trace_.layers; ++layer) {
        const auto row = trace_.tokens.find({iteration, layer});
        const auto got = row == trace_.tokens.end() ? 0
                                                    : std::count_if(row->second.begin(), row->second.end(),
                                                                    [](auto n) { return n > 0; });
        if (static_cast<std::uint32_t>(got) >= shape.top_k) continue;
        refuse("gives tokens to " + std::to_string(got) + " experts in layer " + std::to_string(layer) +
               " of iteration " + std::to_string(iteration) + ": each token goes to " +
               std::to_string(shape.top_k));
      }
    }
  }

  // The experts lie side by side on a line, each as long as its number of tokens. Token i of n gets those at
  // i, i + n, i + 2n, ... They are different experts if none is longer than n. Tokens of the sources
  // alternate.
  std::vector<std::uint32_t> route(const RoutingShape& shape, std::uint32_t layer, std::uint32_t iteration,
                                   std::uint32_t source) const override {
    const std::uint64_t all = std::uint64_t{shape.tokens} * shape.sources;
    const std::vector<std::uint64_t> ends = ends_of(shape, layer, iteration, all);
    std::vector<std::uint32_t> chosen;
    chosen.reserve(std::size_t{shape.tokens} * shape.top_k);
    for (std::uint32_t token = 0; token < shape.tokens; ++token) {
      for (std::uint32_t i = 0; i < shape.top_k; ++i) {
        const std::uint64_t at = std::uint64_t{token} * shape.sources + source + i * all;
        chosen.push_back(
            static_cast<std::uint32_t>(std::upper_bound(ends.begin(), ends.end(), at) - ends.begin()));
      }
    }
    return chosen;
  }

 private:
  // Returns where the experts' tokens end on the line. An expert may have more tokens than there are. It then
  // gets every token once, and the other experts share the rest.
  std::vector<std::uint64_t> ends_of(const RoutingShape& shape, std::uint32_t layer, std::uint32_t iteration,
                                     std::uint64_t all) const {
    std::vector<std::int64_t> shares =
        trace_.tokens.at({iteration % trace_.iterations, trace_.of_layers ? layer : 0});
    shares.resize(shape.experts, 0);
    std::vector<std::uint64_t> of_expert(shape.experts, 0);
    std::uint64_t left = all * shape.top_k;
    for (bool full = true; full;) {
      full = false;
      UInt128 sum = 0;
      for (const std::int64_t share : shares) sum += static_cast<std::uint64_t>(share);
      for (std::uint32_t e = 0; e < shape.experts && sum > 0; ++e) {
        if (static_cast<UInt128>(left) * static_cast<std::uint64_t>(shares[e]) <= sum * all || shares[e] == 0)
          continue;
        of_expert[e] = all;
        left -= all;
        shares[e] = 0;
        full = true;
        break;
      }
    }
    UInt128 sum = 0, before = 0;
    for (const std::int64_t share : shares) sum += static_cast<std::uint64_t>(share);
    std::uint64_t dealt = 0, end = 0;
    std::vector<std::uint64_t> ends;
    ends.reserve(shape.experts);
    for (std::uint32_t e = 0; e < shape.experts; ++e) {
      before += static_cast<std::uint64_t>(shares[e]);
      const std::uint64_t until = sum == 0 ? 0 : static_cast<std::uint64_t>(before * left / sum);
      end += of_expert[e] + (until - dealt);
      dealt = until;
      ends.push_back(end);
    }
    return ends;
  }

  Trace trace_;
  ConfigNode where_;
};

const Registration<Router> kRouterCounts{
    "counts", "every expert gets as many tokens as in a training run, by a table",
    with_file(Parameters<CountsParameters>(), "tokens by iteration, layer and expert (CSV)"),
    [](const CountsParameters&, const ConfigNode& where) {
      return std::make_unique<Counts>(read_trace(read_named_file(where, "expert_counts")), where);
    }};

// Returns whether the first line names columns: only known ones, and all required ones.
bool is_trace(const Excerpt& file) {
  const auto cells = file.cells(0, ',');
  const auto is_ours = [](std::string_view cell) {
    const std::vector<std::string>& names = column_names();
    return std::find(names.begin(), names.end(), cell) != names.end();
  };
  const auto has = [&](std::string_view name) {
    return std::find(cells.begin(), cells.end(), name) != cells.end();
  };
  return std::all_of(cells.begin(), cells.end(), is_ours) && has("expert") && has("tokens");
}

const FormatRegistration kRouterCountsFormat{
    {.name = "expert_counts",
     .what = "tokens that experts got",
     .use = Format::Use::part,
     .matches = is_trace,
     .component = {},
     .advice = "name it in a job of a mixture of experts: router: {kind: counts, file: ...}",
     .endings = {".csv"}}};

}  // namespace
}  // namespace netsim
