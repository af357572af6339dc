// The placement `file` reads a table with one line for each rank:
//
//   rank,host,gpu
//   0,3,0
//   1,3,1
//
// `gpu` is the number within the host.
#include <fmt/format.h>

#include <algorithm>

#include "sim/core/config_entries.h"
#include "sim/core/csv.h"
#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/output.h"
#include "sim/core/registry.h"
#include "sim/scheduling/placement.h"

namespace netsim {
namespace {

struct FileParameters : PlacementParameters {
  std::string file;
};

// PlacementTable: reads the table for one job.
class PlacementTable {
 public:
  PlacementTable(std::string_view text, const std::string& path, const PlacementView& view)
      : table_(text, path), view_(view), gpus_(view.ranks) {
    for (const Gpu& gpu : view.cluster.gpus) first_of_host_.push_back(gpu.host);
  }

  std::vector<GpuId> read() {
    table_.header({"rank", "host", "gpu"}, 3);
    while (table_.next()) take_rank();
    const auto missing = std::find(gpus_.begin(), gpus_.end(), GpuId::none());
    if (missing != gpus_.end()) {
      table_.reader().fail({"", 1, 1}, fmt::format("rank {} of job '{}' ({} ranks) has no line",
                                                   missing - gpus_.begin(), view_.job, view_.ranks));
    }
    return std::move(gpus_);
  }

 private:
  void take_rank() {
    const Cluster& cluster = view_.cluster;
    const TextReader& reader = table_.reader();
    const std::vector<Word>& cells = table_.cells();
    const Word &rank_cell = cells[table_.column(0)], &gpu_cell = cells[table_.column(2)];
    const std::int64_t rank = reader.integer(rank_cell, "the rank", {0, std::int64_t{view_.ranks} - 1});
    const std::int64_t host =
        reader.integer(cells[table_.column(1)], "the host", {0, std::int64_t{cluster.host_count} - 1});
    const auto first = std::lower_bound(first_of_host_.begin(), first_of_host_.end(), host);
    const auto last = std::upper_bound(first_of_host_.begin(), first_of_host_.end(), host);
    const std::int64_t local = reader.integer(gpu_cell, "the GPU", {0, last - first - 1});
    const GpuId gpu = static_cast<std::uint32_t>(first - first_of_host_.begin() + local);
    GpuId& place = gpus_[static_cast<std::size_t>(rank)];
    if (!place.is_none()) reader.fail(rank_cell, fmt::format("a second line for rank {}", rank));
    if (std::find(gpus_.begin(), gpus_.end(), gpu) != gpus_.end())
      reader.fail(gpu_cell, fmt::format("a second rank on GPU {} of host {}", local, host));
    if (view_.taken[gpu]) {
      reader.fail(gpu_cell,
                  fmt::format("another job is on GPU {} of host {} (`share: true` in both placements "
                              "lets them share it)",
                              local, host));
    }
    place = gpu;
  }

  CsvReader table_;
  const PlacementView& view_;
  std::vector<GpuId> gpus_;                  // by rank; none: its line has not come
  std::vector<std::int64_t> first_of_host_;  // by GPU: its host
};

class File final : public Placement {
 public:
  File(const FileParameters& p, Place where) : Placement(p.share), file_(p.file), where_(std::move(where)) {}
  std::vector<GpuId> place(const PlacementView& view) const override {
    const std::string path = find_input_file(file_, where_);
    const std::string text = read_file(path);
    return PlacementTable(text, path, view).read();
  }

 private:
  std::string file_;
  Place where_;
};

const Registration<Placement> kFile{
    "file", "ranks as a table places them: a line rank,host,gpu for each",
    placement_parameters<FileParameters>().text("file", &FileParameters::file, "the table (CSV)").required(),
    [](const FileParameters& p, const ConfigNode& where) {
      return std::make_unique<File>(p, entry_or_self(where, "file").place());
    }};

}  // namespace
}  // namespace netsim
