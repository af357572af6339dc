// The compute model `measured`: a table of measured kernel times.
//
//   kernel,m,n,k,batch,precision,time_us
//   qkv_gemm,2048,4608,12288,1,half,982.4
//   flash_attention,,,,,,1310
//
// A row matches a kernel if all its cells agree with the kernel; an empty cell or a missing column matches
// anything. The first matching row gives the time. Kernels that match no row are timed by the compute model
// `otherwise`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/compute/compute_model.h"
#include "sim/core/config_entries.h"
#include "sim/core/csv.h"
#include "sim/core/output.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr Range<std::int64_t> kSizes{0, 1LL << 50};
constexpr Range<Time> kTimes{0, 1'000'000 * kSecond};

// Row: a row of the table, without a value for each empty cell.
struct Row {
  std::string kernel;
  std::optional<Precision> precision;
  std::array<std::optional<std::int64_t>, 5> sizes;  // m, n, k, batch, bytes
  Time time = 0;
  int line = 0;  // line in the file

  bool fits(const Kernel& k) const {
    if (!kernel.empty() && kernel != k.name) return false;
    if (precision && *precision != k.precision) return false;
    const std::array<std::int64_t, 5> of_kernel{k.m, k.n, k.k, k.batch, k.bytes};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] && *sizes[i] != of_kernel[i]) return false;
    }
    return true;
  }
};

Precision precision_of(const Word& cell, const TextReader& reader) {
  std::string allowed;
  for (const Precision precision :
       {Precision::half, Precision::fp32, Precision::tf32, Precision::fp8, Precision::fp4}) {
    if (cell.text == to_string(precision)) return precision;
    append_item(allowed, to_string(precision));
  }
  reader.fail(cell, "the precision is '" + std::string(cell.text) + "'; allowed: " + allowed);
}

const std::vector<std::string>& column_names() {
  static const std::vector<std::string> names{"time_us", "time", "kernel", "precision", "m",
                                              "n",       "k",    "batch",  "bytes"};
  return names;
}

std::vector<Row> read_rows(const std::string& path) {
  const std::vector<std::string>& names = column_names();
  constexpr std::size_t kTimeUs = 0, kTime = 1, kKernel = 2, kPrecision = 3, kFirstSize = 4;
  const std::string text = read_file(path);
  CsvReader table(text, path);
  const std::vector<std::size_t> columns = table.header(names, 0);
  if ((table.column(kTimeUs) == CsvReader::kNone) == (table.column(kTime) == CsvReader::kNone))
    table.fail("one column 'time_us' (microseconds) or 'time' (with a unit) is needed, and not both");
  std::vector<Row> rows;
  while (table.next()) {
    Row& row = rows.emplace_back();
    row.line = table.line();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Word& cell = table.cells()[i];
      const TextReader& reader = table.reader();
      if (columns[i] == kTimeUs) {
        row.time = reader.time_in(cell, "the time", kMicrosecond, kTimes);
      } else if (columns[i] == kTime) {
        row.time = reader.time(cell, "the time", kTimes);
      } else if (cell.text.empty()) {
        continue;
      } else if (columns[i] == kKernel) {
        row.kernel = cell.text;
      } else if (columns[i] == kPrecision) {
        row.precision = precision_of(cell, reader);
      } else {
        row.sizes[columns[i] - kFirstSize] = reader.integer(cell, names[columns[i]], kSizes);
      }
    }
  }
  if (rows.empty()) table.fail("no rows follow the header");
  return rows;
}

class Measured final : public ComputeModel {
 public:
  Measured(std::string file, std::vector<Row> rows, std::unique_ptr<ComputeModel> otherwise)
      : file_(std::move(file)), rows_(std::move(rows)), otherwise_(std::move(otherwise)) {}

  double peak_flops() const override { return otherwise_ != nullptr ? otherwise_->peak_flops() : 0; }
  Bytes memory() const override { return otherwise_ != nullptr ? otherwise_->memory() : 0; }
  std::uint32_t multiprocessors() const override {
    return otherwise_ != nullptr ? otherwise_->multiprocessors() : 0;
  }
  std::string objection(const Kernel& kernel) const override {
    if (kernel.kind == Kernel::Kind::fixed || find(kernel) != nullptr) return "";
    if (otherwise_ != nullptr) return otherwise_->objection(kernel);
    return fmt::format(
        "no row of {} fits (m {}, n {}, k {}, batch {}, bytes {}, precision {}), and "
        "'otherwise' names no model",
        file_, kernel.m, kernel.n, kernel.k, kernel.batch, kernel.bytes, to_string(kernel.precision));
  }
  Time duration(const Kernel& kernel) const override {
    if (kernel.kind == Kernel::Kind::fixed) return kernel.duration;
    const Row* row = find(kernel);
    return row != nullptr ? row->time : otherwise_->duration(kernel);
  }
  using ComputeModel::duration;
  // A measured kernel has the waves that `otherwise` gives it, in the measured time.
  KernelWaves waves(const Kernel& kernel) const override {
    const Time all = duration(kernel);
    const bool known =
        otherwise_ != nullptr && kernel.kind != Kernel::Kind::fixed && otherwise_->objection(kernel).empty();
    if (!known) return {0, all, 1, 1, 1};
    KernelWaves waves = otherwise_->waves(kernel);
    waves.begin = std::min(waves.begin, all);
    waves.end = all;
    return waves;
  }
  // Returns a note for each row that timed no kernel.
  std::vector<std::string> notes(const std::vector<const Kernel*>& kernels) const override {
    constexpr std::size_t kMost = 5;
    std::set<const Row*> used;
    for (const Kernel* kernel : kernels) used.insert(find(*kernel));
    std::vector<std::string> lines;
    std::size_t unused = 0;
    for (const Row& row : rows_) {
      if (used.contains(&row) || ++unused > kMost) continue;
      const bool fits = std::any_of(kernels.begin(), kernels.end(),
                                    [&](const Kernel* kernel) { return row.fits(*kernel); });
      lines.push_back(fmt::format("{}:{}: this row timed no kernel: {}", file_, row.line,
                                  fits ? "earlier rows match all kernels that it fits"
                                       : "no kernel of the workload matches its cells"));
    }
    if (unused > kMost)
      lines.push_back(fmt::format("{}: {} more rows timed no kernel", file_, unused - kMost));
    return lines;
  }

 private:
  const Row* find(const Kernel& kernel) const {
    for (const Row& row : rows_) {
      if (row.fits(kernel)) return &row;
    }
    return nullptr;
  }

  std::string file_;
  std::vector<Row> rows_;
  std::unique_ptr<ComputeModel> otherwise_;
};

struct MeasuredParameters {
  std::string file;
  ConfigNode otherwise;
};

Parameters<MeasuredParameters> measured_parameters() {
  using P = MeasuredParameters;
  return Parameters<P>()
      .text("file", &P::file, "the table (CSV): kernel, m, n, k, batch, bytes, precision, time_us")
      .required()
      .component("otherwise", &P::otherwise, "compute_model", "", "model of kernels that no row fits");
}

const Registration<ComputeModel> kMeasured{
    "measured",
    "looks kernels up in a table of measured times, with another model for kernels that are not there",
    measured_parameters(),
    [](const MeasuredParameters& p, const ConfigNode& where) -> std::unique_ptr<ComputeModel> {
      const std::string path = find_input_file(p.file, entry_or_self(where, "file").place());
      std::unique_ptr<ComputeModel> otherwise;
      if (!p.otherwise.is_null()) otherwise = Registry<ComputeModel>::instance().create(p.otherwise, "");
      return std::make_unique<Measured>(path, read_rows(path), std::move(otherwise));
    }};

// Returns whether the first line consists of known column names only, with a time among them.
bool is_table_of_kernels(const Excerpt& file) {
  const auto cells = file.cells(0, ',');
  const auto is_ours = [](std::string_view cell) {
    const std::vector<std::string>& names = column_names();
    return std::find(names.begin(), names.end(), cell) != names.end();
  };
  return cells.size() >= 2 && std::all_of(cells.begin(), cells.end(), is_ours) &&
         std::any_of(cells.begin(), cells.end(),
                     [](std::string_view cell) { return cell.starts_with("time"); });
}

const FormatRegistration kMeasuredFormat{
    {.name = "measured_kernels",
     .what = "a table of measured kernels",
     .use = Format::Use::part,
     .matches = is_table_of_kernels,
     .component = {},
     .advice = "name it in the section `compute`: {kind: measured, file: ...}",
     .endings = {".csv"}}};

}  // namespace
}  // namespace netsim
