// CsvReader: reads tables of comma-separated values. A table has a line of column names, in any order, and
// rows, or rows alone. Lines that begin with # and empty lines are skipped. A quoted cell may contain commas
// and doubled quotes, and white space around a cell is removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/input_file.h"

namespace netsim {

class CsvReader {
 public:
  // `text` must outlive the reader; `file` names it in messages.
  CsvReader(std::string_view text, const std::string& file) : lines_(text), reader_("", file) {}
  // Reads a file in pieces.
  explicit CsvReader(const InputSet::File& file) : lines_(file), reader_("", file.path) {}

  // Reads the line of column names; called once, before any row. Returns for each column of the file its
  // index in `names`. Throws InputError for an unknown or repeated name, or if one of the first `required`
  // names is missing. Where `others` is given, it receives the unknown names, and their columns are kNone.
  const std::vector<std::size_t>& header(const std::vector<std::string>& names, std::size_t required,
                                         std::string* others = nullptr);
  // Returns the column of a name given by its index in `names`, or kNone if the file has no such column.
  static constexpr std::size_t kNone = SIZE_MAX;
  std::size_t column(std::size_t name) const;
  // Moves to the next row; returns false at the end. Throws InputError if the row's number of cells differs
  // from the header's, if there is a header.
  bool next();
  // Returns the cells of the row in the order of the header. Valid until next().
  const std::vector<Word>& cells() const { return cells_; }
  // Returns the number of the line that was read last, from 1.
  int line() const { return lines_.number(); }

  // Returns the reader of cells, which also reports errors at them.
  const TextReader& reader() const { return reader_; }
  // Throws an InputError at the beginning of the line that was read last.
  [[noreturn]] void fail(const std::string& message) const { reader_.fail({"", line(), 1}, message); }

 private:
  bool next_line();
  void split();
  std::size_t unquote(std::size_t begin, std::string& text) const;

  LineReader lines_;
  std::string_view line_;
  TextReader reader_;
  std::vector<std::size_t> columns_;
  std::vector<std::string> texts_;  // storage of the cells' texts
  std::vector<Word> cells_;
};

}  // namespace netsim
