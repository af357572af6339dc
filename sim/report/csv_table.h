// CsvTable: a table of comma-separated values that is written row by row, up to a number of rows. Units are
// part of the headers. docs/reference/results.md documents the columns.
//
// Ids begin with a letter, so that readers do not take them for numbers: flows f, communications c
// (collectives and point-to-point operations), tasks t.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/output.h"

namespace netsim {

class CsvTable {
 public:
  // `header` is the first line without its line break; "": none. `file` must outlive the table.
  CsvTable(OutputFile& file, std::string_view header, std::int64_t max_rows);

  // Begins a row. Returns false if the row is over the limit; it is then only counted.
  bool begin_row();
  void cell(std::int64_t value);
  // Writes a text, quoted where it has to be.
  void cell(std::string_view text);
  void empty() { separate(); }
  // Writes the letter and 16 hexadecimal digits.
  void id(char letter, std::uint64_t value);
  // Writes "t", the rank and the task's id in its rank.
  void task_id(RankId rank, std::uint32_t task);
  void end_row();
  // Writes a whole row of other form, with its line break.
  void line(std::string_view text);

  // Returns the note on rows that are over the limit, or nothing.
  std::vector<std::string> notes() const;

 private:
  void separate();

  OutputFile& file_;
  std::uint64_t limit_;
  std::uint64_t rows_ = 0;
  bool first_ = true;
};

}  // namespace netsim
