#include "sim/workload/traffic/counts.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/plan.h"
#include "sim/core/csv.h"
#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/output.h"
#include "sim/workload/program/program.h"

namespace netsim {
namespace {

constexpr std::uint64_t kMaxFile = 1ULL << 30;

// Reads a size. Plain numbers are bytes.
Bytes read_size(const ConfigNode& node) {
  const std::string text = read_text(node);
  const bool plain = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  const Bytes size = plain ? read_integer(node) : read_bytes(node);
  if (size < 0 || size > ProgramLimits::kBytes)
    node.fail(text + "; allowed: 0 to " + format_bytes(ProgramLimits::kBytes));
  return size;
}

std::string expected(const char* what, std::size_t given, std::uint32_t members) {
  return std::to_string(given) + " " + what + " for " + std::to_string(members) + " ranks";
}

void add_row(const ConfigNode& row, std::uint32_t members, std::vector<Bytes>& rows) {
  if (row.items().size() != members) row.fail(expected("counts", row.items().size(), members));
  for (const ConfigNode& item : row.items()) rows.push_back(read_size(item));
}

std::vector<Bytes> listed(const ConfigNode& list, std::uint32_t members) {
  std::vector<Bytes> rows;
  rows.reserve(std::size_t{members} * members);
  if (!list.items().empty() && !list.items().front().is_sequence()) {
    for (std::uint32_t source = 0; source < members; ++source) add_row(list, members, rows);
    return rows;
  }
  if (list.items().size() != members) list.fail(expected("rows", list.items().size(), members));
  for (const ConfigNode& row : list.items()) {
    if (!row.is_sequence()) row.fail("a list of sizes is expected, one for each rank");
    add_row(row, members, rows);
  }
  return rows;
}

std::vector<Bytes> of_file(const std::string& path, std::uint32_t members) {
  const std::string text = read_file(path, kMaxFile);
  CsvReader reader(text, path);
  std::vector<Bytes> rows;
  rows.reserve(std::size_t{members} * members);
  std::uint32_t lines = 0;
  for (; reader.next(); ++lines) {
    if (lines == members) reader.fail("a row more than there are ranks, " + std::to_string(members));
    if (reader.cells().size() != members) reader.fail(expected("counts", reader.cells().size(), members));
    for (const Word& cell : reader.cells()) {
      const Place place = reader.reader().place(cell);
      rows.push_back(as_input([&] { return read_size(ConfigNode::scalar(std::string(cell.text), place)); }));
    }
  }
  if (lines < members) throw InputError(Place{path, 0, 0, ""}, expected("rows", lines, members));
  return rows;
}

std::vector<Bytes> to_next(std::uint32_t members, Bytes bytes) {
  std::vector<Bytes> rows(std::size_t{members} * members);
  for (std::uint32_t source = 0; source < members; ++source)
    rows[std::size_t{source} * members + (source + 1) % members] = bytes;
  return rows;
}

}  // namespace

bool counts_are_next(const ConfigNode& counts) { return counts.is_scalar() && counts.text() == "next"; }

void check_bytes(CollectiveKind kind, const ConfigNode& section) {
  const auto given = [&](const char* key) { return section.is_map() ? section.find(key) : nullptr; };
  const std::string name = to_string(kind);
  const bool needs_counts = has_counts(kind) && !has_tokens(kind);
  if (needs_counts && given("counts") == nullptr)
    section.fail("'counts' is missing, " + std::string(kCountsDoc));
  if (const ConfigNode* counts = given("counts"); counts != nullptr && !needs_counts)
    counts->fail("only all_to_all_v has counts, not " + name);
  if (const ConfigNode* tokens = given("tokens"); tokens != nullptr && !has_tokens(kind))
    tokens->fail("only dispatch and combine have tokens, not " + name);
  if (needs_counts && counts_are_next(*given("counts"))) return;
  for (const char* key : {"bytes", "sizes"}) {
    if (const ConfigNode* node = given(key); node != nullptr && !has_bytes(kind))
      node->fail(name + (has_tokens(kind)   ? " has its bytes from 'tokens'"
                         : has_counts(kind) ? " has its bytes from 'counts'"
                                            : " has no bytes"));
  }
}

BlockCounts read_counts(const ConfigNode& node, std::uint32_t members, Bytes bytes) {
  if (members > ProgramLimits::kCountsMembers) {
    node.fail("counts of " + std::to_string(members) + " ranks; at most " +
              std::to_string(ProgramLimits::kCountsMembers) + " are allowed");
  }
  std::vector<Bytes> rows;
  if (node.is_sequence()) {
    rows = listed(node, members);
  } else if (counts_are_next(node)) {
    rows = to_next(members, bytes);
  } else {
    rows = of_file(find_input_file(read_text(node), node.place()), members);
  }
  BlockCounts counts(members, std::move(rows));
  if (counts.busiest() == 0) node.fail("by these counts no rank sends anything to another");
  return counts;
}

}  // namespace netsim
