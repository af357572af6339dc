// Text files in the notations of other tools: these functions find them and split them into words with
// their places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/input_set.h"
#include "sim/core/line_reader.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"

namespace netsim {

// Returns the path of the file or folder that `name` means at the place `where`, whose file may be "" or
// "--set" for none. A relative path is searched in the folder of that file, in its parent (tools are often
// started there), and in the working directory. Throws IoError with the place and the paths searched.
std::string find_input_file(const std::string& name, const Place& where);

// Returns the input that a value names, which is a file, a folder, or a sequence of them. Throws ConfigError
// for another value, and IoError as find_input_file() does.
InputPaths named_input(const ConfigNode& node);

// Returns text * factor, computed exactly and rounded to the nearest integer. The text has decimal digits, at
// most one point and an exponent ("2.5e-06"), with no sign but in the exponent. Returns nothing for other
// text and for results above INT64_MAX.
std::optional<std::int64_t> scaled_decimal(std::string_view text, std::int64_t factor);

// Returns the place of a byte in the text of a file.
Place place_in(std::string_view text, std::size_t offset, const std::string& file);

struct Word {
  std::string_view text;
  int line = 0, column = 0;  // from 1
};

// TextReader: reads words separated by white space. Its errors are InputErrors at a word's place. It skips
// empty lines only, and the byte order mark of a file: comments are words.
class TextReader {
 public:
  // `text` must outlive the reader and its words; `file` stands for it in messages.
  TextReader(std::string_view text, std::string file) : TextReader(LineReader(text), std::move(file)) {}
  // Reads a file in pieces. Its words are valid until a word of a later line is read.
  explicit TextReader(const InputSet::File& file) : TextReader(LineReader(file), file.path) {}

  // Reads the remaining words of the current line, or those of the next line that has any. Returns false at
  // the end.
  bool next_line(std::vector<Word>& words);
  // Returns the next word on any line. Throws an InputError that names `what` at the end.
  Word next(const std::string& what);
  bool at_end();

  const std::string& file() const { return file_; }
  Place place(const Word& word) const { return {file_, word.line, word.column, ""}; }
  [[noreturn]] void fail(const Word& word, const std::string& message) const;

  // Read a word as a value; `what` names it in messages.
  std::int64_t integer(const Word& word, const std::string& what, Range<std::int64_t> range) const;
  // Reads an integer that tools may write as a real number: "25165824.0", "1e6". A fraction is rounded.
  std::int64_t whole(const Word& word, const std::string& what, Range<std::int64_t> range) const;
  double real(const Word& word, const std::string& what, Range<double> range) const;
  // Reads a number of units of `unit`, rounded to picoseconds: "2.5" with kSecond is 2.5 s.
  Time time_in(const Word& word, const std::string& what, Time unit, Range<Time> range) const;
  // Read values with their unit in the word: "1us", "100Gbps".
  Time time(const Word& word, const std::string& what, Range<Time> range) const;
  BitRate rate(const Word& word, const std::string& what, Range<BitRate> range) const;

 private:
  TextReader(LineReader lines, std::string file);
  bool advance();
  void skip_space();
  Word take_word();

  LineReader lines_;
  std::string file_;
  std::string_view line_;  // current line
  std::size_t at_ = 0;     // position in line_
  int number_ = 1;         // number of the line
  bool ended_ = false;     // no line follows
};

// Runs `act`. An InputError that does not name a file, such as that of a task while it runs, gets the place
// `file`.
template <class Act>
auto naming_file(const std::string& file, Act act) {
  try {
    return act();
  } catch (const InputError& error) {
    if (std::string_view(error.what()).starts_with(file)) throw;
    throw InputError(Place{file, 0, 0, ""}, error.what());
  }
}

// Throw a ConfigError's message as an InputError and the reverse, for readings that both kinds of files
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
