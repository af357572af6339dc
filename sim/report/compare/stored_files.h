// Readings of the JSON files and tables in an output directory. They take any columns and keys, because the
// files may be of another version.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/compare/stored_run.h"

namespace netsim::compare {

// StoredValue: a value of a JSON file. Its readings throw InputError, which names the file and the path of
// the value in it, where the value is of another kind.
struct StoredValue {
  enum class Kind { null, truth, number, text, list, object };

  struct Entry;  // an entry of an object: name and value

  Kind kind = Kind::null;
  double real = 0;                 // of a number, or 0 and 1 of a truth value
  std::string words;               // of a text; a number as the file has it
  std::vector<StoredValue> items;  // of a list
  std::vector<Entry> entries;      // of an object, in the order of the file
  std::string place;               // "FILE: PATH", for messages

  // Returns the entry of an object, or nullptr.
  const StoredValue* find(std::string_view key) const;
  // Returns the entry of an object.
  const StoredValue& at(std::string_view key) const;
  const std::string& text() const;
  double number() const;
  // Returns nothing for null.
  std::optional<double> optional_number() const;
  const std::vector<StoredValue>& list() const;
  const std::vector<Entry>& object() const;
  [[noreturn]] void fail(const std::string& expected) const;
};

struct StoredValue::Entry {
  std::string name;
  StoredValue value;
};

// Reads a JSON file. Throws IoError if it cannot be read, and InputError with the place where it is torn.
StoredValue read_json(const std::string& path);
// Adds the numbers of a value below `name`, as scripts/sweep.py names the columns of its table.
void add_figures(const StoredValue& value, const std::string& name, Figures& figures);

// StoredTable: a CSV table as text. All rows have as many cells as the header.
struct StoredTable {
  std::string file;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<int> lines;  // number of each row's line in the file

  // Returns the column of a name. Throws InputError if the table lacks it.
  std::size_t column(const std::string& name) const;
  // Returns the number in a cell. Throws InputError with the line if it is none.
  double number(std::size_t row, std::size_t column) const;
};

// Reads a table. Throws IoError if it cannot be read, and InputError with the line of a torn row.
StoredTable read_table(const std::string& path);

// Returns the number that the whole text is, or nothing.
std::optional<double> number_of(std::string_view text);
// Returns the path of a file in a directory.
std::string path_in(const std::string& directory, const std::string& name);
// Returns whether the directory has a regular file of this name.
bool has_file(const std::string& directory, const std::string& name);

}  // namespace netsim::compare
