// Tables of comma-separated values: a line that names the columns, in any order, then rows; or rows alone.
// Lines that begin with # and empty ones do not count; a quoted cell may hold commas and, doubled, quotes;
// white space around a cell is not part of it.
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
  // `text` must outlive the reader; `file` stands for it in messages.
  CsvReader(std::string_view text, const std::string& file);

  // The line that names the columns, once, before any row: for each column of the file which of `names` it
  // is. InputError for another name, one that comes twice, and where one of the first `required` is missing.
  const std::vector<std::size_t>& header(const std::vector<std::string>& names, std::size_t required);
  // Of `names`: the column it is; kNone where the file has none.
  static constexpr std::size_t kNone = SIZE_MAX;
  std::size_t column(std::size_t name) const;
  // Moves to the next row; false at the end. InputError where it has not as many cells as the header, if
  // there was one.
  bool next();
  // Of the row, in the order of the header. Valid until next().
  const std::vector<Word>& cells() const { return cells_; }
  // Number of the line that was read last, from 1.
  int line() const { return number_; }
  // At least as many as there are rows left.
  std::size_t most() const;

  // Readings of cells, and errors at them.
  const TextReader& reader() const { return reader_; }
  // An InputError at the beginning of the line that was read last.
  [[noreturn]] void fail(const std::string& message) const { reader_.fail({"", number_, 1}, message); }

 private:
  bool next_line();
  void split();
  std::size_t unquote(std::size_t begin, std::string& text) const;

  std::string_view text_, line_;
  int number_ = 0;
  TextReader reader_;
  std::vector<std::size_t> columns_;
  std::vector<std::string> texts_;  // of the cells, which look into them
  std::vector<Word> cells_;
};

}  // namespace netsim
