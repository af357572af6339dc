// Rows of the tables of kernels that were measured on one H100 for this project
// (shared/reference/measured/h100_kernels).
#pragma once

#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/shared.h"

namespace netsim::test {

constexpr const char* kKernelTables = "reference/measured/h100_kernels";

// KernelRow: the cells of a row by the names of their columns.
class KernelRow {
 public:
  explicit KernelRow(std::map<std::string, std::string> cells) : cells_(std::move(cells)) {}
  const std::string& text(const std::string& column) const { return cells_.at(column); }
  double number(const std::string& column) const { return std::stod(text(column)); }
  // Returns the number of a cell, or 1 if the cell is empty.
  std::int64_t size(const std::string& column) const {
    return text(column).empty() ? 1 : std::stoll(text(column));
  }

 private:
  std::map<std::string, std::string> cells_;
};

inline std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else if (c != '\r')
      cells.back() += c;
  }
  return cells;
}

// Returns the rows of a table in a folder of the shared ones.
inline std::vector<KernelRow> table_rows(const std::string& folder, const std::string& file) {
  std::ifstream in(shared_folder() + "/" + folder + "/" + file);
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> names = cells_of(line);
  std::vector<KernelRow> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = cells_of(line);
    std::map<std::string, std::string> row;
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = i < cells.size() ? cells[i] : "";
    rows.emplace_back(std::move(row));
  }
  return rows;
}

inline std::vector<KernelRow> kernel_rows(const std::string& file) { return table_rows(kKernelTables, file); }

// Errors: the deviations of predicted times from measured ones.
class Errors {
 public:
  // Adds the deviation of one row and returns it as a share of the measured time.
  double add(double predicted, double measured) {
    const double factor = predicted / measured, off = factor > 1 ? factor : 1 / factor;
    logarithms_ += std::log(off);
    worst_ = off > worst_ ? off : worst_;
    ++rows_;
    return factor - 1;
  }
  std::size_t rows() const { return rows_; }
  double mean() const { return std::exp(logarithms_ / static_cast<double>(rows_)) - 1; }  // geometric
  double worst() const { return worst_ - 1; }

 private:
  double logarithms_ = 0, worst_ = 1;
  std::size_t rows_ = 0;
};

}  // namespace netsim::test
