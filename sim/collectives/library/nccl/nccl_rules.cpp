#include "sim/collectives/library/nccl/nccl_rules.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "sim/core/csv.h"
#include "sim/core/input_file.h"
#include "sim/core/output.h"
#include "sim/core/recognise.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr std::uint64_t kMaxFile = 16 << 20;

// AlgorithmName: the name in lists, and the name in the tuner's files.
struct AlgorithmName {
  const char *listed, *filed;
};
constexpr std::array<AlgorithmName, kNcclAlgorithms> kAlgorithms{{{"tree", "tree"},
                                                                  {"ring", "ring"},
                                                                  {"collnetdirect", "collnet_direct"},
                                                                  {"collnetchain", "collnet_chain"},
                                                                  {"nvls", "nvls"},
                                                                  {"nvlstree", "nvls_tree"},
                                                                  {"pat", "pat"}}};
constexpr std::array<std::pair<const char*, CollectiveKind>, 5> kFunctions{
    {{"broadcast", CollectiveKind::broadcast},
     {"reduce", CollectiveKind::reduce},
     {"allgather", CollectiveKind::all_gather},
     {"reducescatter", CollectiveKind::reduce_scatter},
     {"allreduce", CollectiveKind::all_reduce}}};

using Names = std::vector<std::string>;

Names function_names() {
  Names names;
  for (const auto& [name, kind] : kFunctions) names.emplace_back(name);
  return names;
}
Names algorithm_names(const char* AlgorithmName::*notation) {
  Names names;
  for (const AlgorithmName& name : kAlgorithms) names.emplace_back(name.*notation);
  return names;
}
// Returns the names of the protocols by their numbers.
Names protocol_names() {
  Names names;
  for (const Protocol protocol : {Protocol{0}, Protocol{1}, Protocol{2}})
    names.push_back(lower_case(to_string(protocol)));
  return names;
}

std::string unknown(std::string_view what, std::string_view given, const Names& names) {
  std::string allowed;
  for (const std::string& name : names) append_item(allowed, name);
  return std::string(what) + " '" + std::string(given.substr(0, 40)) + "' is not known (allowed: " + allowed +
         ")";
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::size_t> number_of(const Names& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), lower_case(name));
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

// ListReader: reads one list of algorithms or of protocols.
template <std::size_t size>
class ListReader {
 public:
  using Row = std::array<bool, size>;
  ListReader(const ConfigNode& node, const char* what, Names names)
      : node_(node), what_(what), names_(std::move(names)) {}

  void read(std::array<Row, kCollectiveKindCount>& allowed) {
    std::set<CollectiveKind> own;
    const std::string text = read_text(node_);
    bool first = true;
    for (const std::string_view entry : parts_of(text, ';')) {
      const std::size_t colon = entry.find(':');
      if (colon == std::string_view::npos) {
        if (!first)
          node_.fail("only the first entry may be without a function: '" + std::string(entry) + "'");
        allowed.fill(row(entry));
      } else {
        const auto number = number_of(function_names(), entry.substr(0, colon));
        if (!number) node_.fail(unknown("function", entry.substr(0, colon), function_names()));
        const CollectiveKind kind = kFunctions[*number].second;
        if (!own.insert(kind).second)
          node_.fail("there is a second entry for '" + std::string(entry.substr(0, colon)) + "'");
        allowed[static_cast<std::size_t>(kind)] = row(entry.substr(colon + 1));
      }
      first = false;
    }
  }

 private:
  Row row(std::string_view entry) const {
    const bool without = entry.starts_with('^');
    if (without) entry.remove_prefix(1);
    Row result;
    result.fill(without);
    for (const std::string_view name : parts_of(entry, ',')) {
      const auto number = number_of(names_, name);
      if (!number) node_.fail(unknown(what_, name, names_));
      result[*number] = !without;
    }
    return result;
  }

  const ConfigNode& node_;
  const char* what_;
  Names names_;
};

// TunerReader: reads one file of rules.
class TunerReader {
 public:
  TunerReader(std::string_view text, const std::string& file) : reader_(text, file) {}

  std::vector<NcclRules::Line> read() {
    std::vector<NcclRules::Line> lines;
    while (reader_.next()) {
      if (cells().front().text == "collective_type") continue;  // a header, as spreadsheets write it
      lines.push_back(line());
    }
    return lines;
  }

 private:
  static constexpr std::size_t kLeast = 8, kMost = 10;

  const std::vector<Word>& cells() const { return reader_.cells(); }

  NcclRules::Line line() {
    if (cells().size() < kLeast || cells().size() > kMost) {
      reader_.fail(std::to_string(cells().size()) +
                   " cells; 8 to 10 are expected: collective_type,min_bytes,max_bytes,algorithm,"
                   "protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]");
    }
    NcclRules::Line line;
    line.place = reader_.reader().place(cells().front());
    line.kind = kFunctions[one_of(0, "collective type", function_names())].second;
    line.least = integer(1, "min_bytes", {0, INT64_MAX});
    line.most = integer(2, "max_bytes", {0, INT64_MAX});
    if (line.most < line.least) reader_.reader().fail(cells()[2], "max_bytes is less than min_bytes");
    line.algorithm =
        static_cast<NcclAlgorithm>(one_of(3, "algorithm", algorithm_names(&AlgorithmName::filed)));
    line.protocol = static_cast<Protocol>(one_of(4, "protocol", protocol_names()));
    line.channels = number(5, "channels", 1, 1024);
    line.nodes = number(6, "nNodes", 1, UINT32_MAX);
    line.ranks = number(7, "nRanks", 1, UINT32_MAX);
    if (cells().size() > kLeast) line.operations = number(8, "numPipeOps", 1, UINT32_MAX);
    if (cells().size() > kLeast + 1) line.registered = number(9, "regBuff", 0, 1);
    return line;
  }

  std::int64_t integer(std::size_t cell, const std::string& what, Range<std::int64_t> range) const {
    return reader_.reader().integer(cells()[cell], what, range);
  }
  // Returns nullopt for -1.
  std::optional<std::uint32_t> number(std::size_t cell, const std::string& what, std::int64_t least,
                                      std::int64_t most) const {
    if (cells()[cell].text == "-1") return std::nullopt;
    return static_cast<std::uint32_t>(integer(cell, what + " (or -1)", {least, most}));
  }
  std::size_t one_of(std::size_t cell, const char* what, const Names& names) const {
    const auto number = number_of(names, cells()[cell].text);
    if (!number) reader_.reader().fail(cells()[cell], unknown(what, cells()[cell].text, names));
    return *number;
  }

  CsvReader reader_;
};

bool is_nccl_tuner(const Excerpt& file) {
  const auto cells = file.cells(0, ',');
  return cells.size() >= 8 &&
         is_one_of(cells[0], {"broadcast", "reduce", "allgather", "reducescatter", "allreduce"}) &&
         is_number_word(cells[1]) && is_number_word(cells[2]) &&
         is_one_of(cells[3], {"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"});
}

const FormatRegistration kNcclRulesFormat{{.name = "nccl_tuner",
                                           .what = "a table of NCCL's tuner",
                                           .use = Format::Use::part,
                                           .matches = is_nccl_tuner,
                                           .component = {},
                                           .advice = "name it as `tuner` in the section `collectives`",
                                           .endings = {".conf", ".csv"}}};

}  // namespace

NcclAlgorithm nccl_algorithm(CostFamily family) {
  switch (family) {
    case CostFamily::tree:
      return NcclAlgorithm::tree;
    case CostFamily::nvls:
    case CostFamily::nvls_collnet:
      return NcclAlgorithm::nvls;
    case CostFamily::collnet_direct:
      return NcclAlgorithm::collnet_direct;
    case CostFamily::collnet_chain:
      return NcclAlgorithm::collnet_chain;
    case CostFamily::nvls_tree:
      return NcclAlgorithm::nvls_tree;
    case CostFamily::pat:
      return NcclAlgorithm::pat;
    case CostFamily::ring:
      break;
  }
  return NcclAlgorithm::ring;
}

const char* to_string(NcclAlgorithm algorithm) {
  return kAlgorithms[static_cast<std::size_t>(algorithm)].filed;
}

bool NcclRules::Line::fits(CollectiveKind of, Bytes bytes, std::uint32_t of_nodes,
                           std::uint32_t of_ranks) const {
  return kind == of && least <= bytes && bytes <= most && nodes.value_or(of_nodes) == of_nodes &&
         ranks.value_or(of_ranks) == of_ranks && operations.value_or(1) == 1 && registered.value_or(0) == 0;
}

NcclRules::NcclRules() {
  for (auto& row : algorithms_) row.fill(true);
  for (auto& row : protocols_) row.fill(true);
}

void NcclRules::set_algorithms(const ConfigNode& node) {
  ListReader<kNcclAlgorithms>(node, "algorithm", algorithm_names(&AlgorithmName::listed)).read(algorithms_);
  lists_algorithms_ = true;
}

void NcclRules::set_protocols(const ConfigNode& node) {
  ListReader<3>(node, "protocol", protocol_names()).read(protocols_);
  lists_protocols_ = true;
}

void NcclRules::read_tuner(const ConfigNode& node) {
  const std::string path = find_input_file(read_text(node), node.place());
  const std::string text = read_file(path, kMaxFile);
  tuner_ = TunerReader(text, path).read();
  if (tuner_.empty()) throw InputError(Place{path, 0, 0, ""}, "no rules are in it");
}

}  // namespace netsim
