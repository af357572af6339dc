// Text files in the notations of other tools: finding them, and taking them apart into words that know their
// place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"

namespace netsim {

// The file that `name` means where it is written in the file `named_in` ("" or "--set": nowhere): an absolute
// path itself; else relative to the folder of `named_in`, to the one above that (tools are often started
// there), or to the working directory, the first that exists. IoError with the places looked at otherwise.
std::string find_input_file(const std::string& name, const std::string& named_in);

// text * factor rounded to the nearest integer, exactly computed; text: decimal digits, at most one point, an
// exponent ("2.5e-06"), no sign but in the exponent. Nothing for other text and for results above INT64_MAX.
std::optional<std::int64_t> scaled_decimal(std::string_view text, std::int64_t factor);

// The place of a byte in the text of a file.
Place place_in(std::string_view text, std::size_t offset, const std::string& file);

struct Word {
  std::string_view text;
  int line = 0, column = 0;  // from 1
};

// Words are what white space separates. Errors are InputErrors at a word's place.
class TextReader {
 public:
  // `text` must outlive the reader and its words; `file` stands for it in messages.
  TextReader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  // The rest of the current line's words, or the next line's that has any; false at the end.
  bool next_line(std::vector<Word>& words);
  // The next word, on whatever line; an InputError that names `what` at the end.
  Word next(const std::string& what);
  bool at_end();

  const std::string& file() const { return file_; }
  Place place(const Word& word) const { return {file_, word.line, word.column, ""}; }
  [[noreturn]] void fail(const Word& word, const std::string& message) const;

  // Readings of a word; `what` names it in messages.
  std::int64_t integer(const Word& word, const std::string& what, Range<std::int64_t> range) const;
  double real(const Word& word, const std::string& what, Range<double> range) const;
  // A number of units of `unit`: "2.5" with kSecond is 2.5 s; rounded to picoseconds.
  Time time_in(const Word& word, const std::string& what, Time unit, Range<Time> range) const;
  // With their unit in the word: "1us", "100Gbps".
  Time time(const Word& word, const std::string& what, Range<Time> range) const;
  BitRate rate(const Word& word, const std::string& what, Range<BitRate> range) const;

 private:
  void skip_space();
  Word take_word();

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
};

// A ConfigError's message as an InputError, and the other way round: for readings that both kinds of files
// share.
template <class Read>
auto as_input(Read read) {
  try {
    return read();
  } catch (const ConfigError& error) {
    throw InputError(error.what());
  }
}
template <class Read>
auto as_config(Read read) {
  try {
    return read();
  } catch (const InputError& error) {
    throw ConfigError(error.what());
  }
}

}  // namespace netsim
