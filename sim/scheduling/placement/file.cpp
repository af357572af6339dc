// file: as a table says, one line a rank:
//
//   rank,host,gpu
//   0,3,0
//   1,3,1
//
// `gpu` is the number within the host. Columns in any order; lines that begin with # and empty ones do not
// count.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/output.h"
#include "sim/core/registry.h"
#include "sim/scheduling/placement.h"

namespace netsim {
namespace {

constexpr std::uint32_t kNowhere = UINT32_MAX;
constexpr std::array<std::string_view, 3> kColumns{"rank", "host", "gpu"};

struct FileParameters : PlacementParameters {
  std::string file;
};

// The cells of a line with their places, without white space around them.
std::vector<Word> cells_of(std::string_view line, int number) {
  std::vector<Word> cells;
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  for (std::size_t begin = 0; begin <= line.size();) {
    std::size_t end = std::min(line.find(',', begin), line.size());
    const std::size_t next = end + 1;
    while (begin < end && is_space(line[begin])) ++begin;
    while (end > begin && is_space(line[end - 1])) --end;
    cells.push_back({line.substr(begin, end - begin), number, static_cast<int>(begin) + 1});
    begin = next;
  }
  return cells;
}

// Reads the table for one job.
class PlacementTable {
 public:
  PlacementTable(std::string text, const std::string& path, const PlacementView& view)
      : text_(std::move(text)), reader_("", path), view_(view), gpus_(view.ranks, kNowhere) {
    for (const Gpu& gpu : view.cluster.gpus) first_of_host_.push_back(gpu.host);
  }

  std::vector<std::uint32_t> read() {
    std::string_view rest = text_;
    if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);
    for (int number = 1; !rest.empty(); ++number) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      take_line(rest.substr(0, end), number);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    const auto missing = std::find(gpus_.begin(), gpus_.end(), kNowhere);
    if (missing != gpus_.end()) {
      reader_.fail({"", 1, 1}, fmt::format("rank {} of job '{}' ({} ranks) has no line",
                                           missing - gpus_.begin(), view_.job, view_.ranks));
    }
    return std::move(gpus_);
  }

 private:
  void take_line(std::string_view line, int number) {
    const std::vector<Word> cells = cells_of(line, number);
    if (cells.size() == 1 && cells[0].text.empty()) return;
    if (cells[0].text.starts_with('#')) return;
    if (cells.size() != kColumns.size())
      reader_.fail(cells[0], fmt::format("{} cells (allowed: 3, rank,host,gpu)", cells.size()));
    header_ ? take_rank(cells) : take_header(cells);
  }

  void take_header(const std::vector<Word>& cells) {
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      const auto found =
          std::find_if(cells.begin(), cells.end(), [&](const Word& w) { return w.text == kColumns[i]; });
      if (found == cells.end())
        reader_.fail(cells[0],
                     fmt::format("the first line has no column '{}' (allowed: rank,host,gpu)", kColumns[i]));
      column_[i] = static_cast<std::size_t>(found - cells.begin());
    }
    header_ = true;
  }

  void take_rank(const std::vector<Word>& cells) {
    const Cluster& cluster = view_.cluster;
    const Word &rank_cell = cells[column_[0]], &gpu_cell = cells[column_[2]];
    const std::int64_t rank = reader_.integer(rank_cell, "the rank", {0, std::int64_t{view_.ranks} - 1});
    const std::int64_t host =
        reader_.integer(cells[column_[1]], "the host", {0, std::int64_t{cluster.host_count} - 1});
    const auto first = std::lower_bound(first_of_host_.begin(), first_of_host_.end(), host);
    const auto last = std::upper_bound(first_of_host_.begin(), first_of_host_.end(), host);
    const std::int64_t local = reader_.integer(gpu_cell, "the GPU", {0, last - first - 1});
    const auto gpu = static_cast<std::uint32_t>(first - first_of_host_.begin() + local);
    std::uint32_t& place = gpus_[static_cast<std::size_t>(rank)];
    if (place != kNowhere) reader_.fail(rank_cell, fmt::format("a second line for rank {}", rank));
    if (std::find(gpus_.begin(), gpus_.end(), gpu) != gpus_.end())
      reader_.fail(gpu_cell, fmt::format("a second rank on GPU {} of host {}", local, host));
    if (view_.taken[gpu]) {
      reader_.fail(gpu_cell,
                   fmt::format("another job is on GPU {} of host {} (`share: true` in both placements "
                               "lets them share it)",
                               local, host));
    }
    place = gpu;
  }

  std::string text_;
  TextReader reader_;  // for its readings
  const PlacementView& view_;
  std::vector<std::uint32_t> gpus_;
  std::vector<std::int64_t> first_of_host_;  // by GPU: its host
  std::array<std::size_t, 3> column_{};
  bool header_ = false;
};

class File final : public Placement {
 public:
  File(const FileParameters& p, Place where) : Placement(p.share), file_(p.file), where_(std::move(where)) {}
  std::vector<std::uint32_t> place(const PlacementView& view) const override {
    const std::string path = find_input_file(file_, where_.file);
    return PlacementTable(read_file(path), path, view).read();
  }

 private:
  std::string file_;
  Place where_;
};

const Registration<Placement> kRegistration{
    "file", "ranks where a table says: rank,host,gpu, a line each",
    placement_parameters<FileParameters>().text("file", &FileParameters::file, "the table (CSV)").required(),
    [](const FileParameters& p, const ConfigNode& where) {
      return std::make_unique<File>(p, where.place());
    }};

}  // namespace
}  // namespace netsim
