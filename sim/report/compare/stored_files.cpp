#include "sim/report/compare/stored_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "sim/core/csv.h"
#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/output.h"

namespace netsim::compare {
namespace {

using Json = nlohmann::ordered_json;
using Kind = StoredValue::Kind;

std::string place_below(const std::string& place, const std::string& name) {
  return place + (place.ends_with(": ") ? "" : ".") + name;
}

StoredValue value_of(const Json& json, const std::string& place) {
  StoredValue value;
  value.place = place;
  if (json.is_boolean() || json.is_number()) {
    value.kind = json.is_boolean() ? Kind::truth : Kind::number;
    value.real = json.is_boolean() ? static_cast<double>(json.get<bool>()) : json.get<double>();
    value.words = json.dump();
  } else if (json.is_string()) {
    value.kind = Kind::text;
    value.words = json.get<std::string>();
  } else if (json.is_array()) {
    value.kind = Kind::list;
    for (const Json& item : json)
      value.items.push_back(value_of(item, place_below(place, std::to_string(value.items.size()))));
  } else if (json.is_object()) {
    value.kind = Kind::object;
    for (const auto& [key, entry] : json.items())
      value.entries.push_back({key, value_of(entry, place_below(place, key))});
  }
  return value;
}

// Returns the name of an item in a list: that of a bin of flow sizes, or its number.
std::string item_name(const StoredValue& item, std::size_t number) {
  const StoredValue* below = item.find("below_bytes");
  if (below == nullptr) return std::to_string(number);
  return below->kind == Kind::number ? fmt::format("{:.0f}", below->real) : "above";
}

std::vector<std::string> texts_of(const std::vector<Word>& cells) {
  std::vector<std::string> texts;
  texts.reserve(cells.size());
  for (const Word& cell : cells) texts.emplace_back(cell.text);
  return texts;
}

}  // namespace

void StoredValue::fail(const std::string& expected) const {
  const std::string where = place.ends_with(": ") ? place : place + ": ";
  throw InputError(where + expected + " is expected here: is this a file of netsim?");
}

const StoredValue* StoredValue::find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name == key) return &value;
  }
  return nullptr;
}

const StoredValue& StoredValue::at(std::string_view key) const {
  const StoredValue* found = find(key);
  if (found == nullptr) fail("an object with '" + std::string(key) + "'");
  return *found;
}

const std::string& StoredValue::text() const {
  if (kind != Kind::text) fail("a text");
  return words;
}

double StoredValue::number() const {
  if (kind != Kind::number) fail("a number");
  return real;
}

std::optional<double> StoredValue::optional_number() const {
  if (kind == Kind::null) return std::nullopt;
  return number();
}

const std::vector<StoredValue>& StoredValue::list() const {
  if (kind != Kind::list) fail("a list");
  return items;
}

const std::vector<StoredValue::Entry>& StoredValue::object() const {
  if (kind != Kind::object) fail("an object");
  return entries;
}

StoredValue read_json(const std::string& path) {
  const std::string text = read_file(path);
  try {
    StoredValue value = value_of(Json::parse(text), path + ": ");
    if (value.kind != Kind::object) throw InputError(path + ": a JSON object is expected");
    return value;
  } catch (const Json::parse_error& error) {
    const std::size_t offset = error.byte > 0 ? error.byte - 1 : 0;
    throw InputError(place_in(text, offset, path),
                     "the file is torn, or no JSON: the text ends here or goes on in an unexpected way");
  }
}

void add_figures(const StoredValue& value, const std::string& name, Figures& figures) {
  const auto below = [&name](const std::string& key) { return name.empty() ? key : name + "." + key; };
  if (value.kind == Kind::number) figures[name] = value.real;
  for (const auto& [key, entry] : value.entries) add_figures(entry, below(key), figures);
  for (std::size_t i = 0; i < value.items.size(); ++i)
    add_figures(value.items[i], below(item_name(value.items[i], i)), figures);
}

std::size_t StoredTable::column(const std::string& name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end())
    throw InputError(Place{file, 1, 1, ""}, "the table has no column '" + name + "'");
  return static_cast<std::size_t>(found - header.begin());
}

double StoredTable::number(std::size_t row, std::size_t column) const {
  const std::optional<double> value = number_of(rows[row][column]);
  if (value) return *value;
  throw InputError(Place{file, lines[row], 1, ""},
                   "'" + rows[row][column] + "' in column '" + header[column] + "' is no number");
}

StoredTable read_table(const std::string& path) {
  const std::string text = read_file(path);
  StoredTable table;
  table.file = path;
  CsvReader reader(text, path);
  if (!reader.next()) reader.fail("the table is empty: it has no line that names columns");
  table.header = texts_of(reader.cells());
  while (reader.next()) {
    if (reader.cells().size() != table.header.size()) {
      reader.fail(fmt::format("the row is torn: it has {} cells, the table has {} columns",
                              reader.cells().size(), table.header.size()));
    }
    table.rows.push_back(texts_of(reader.cells()));
    table.lines.push_back(reader.line());
  }
  return table;
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string path_in(const std::string& directory, const std::string& name) {
  return (std::filesystem::path(directory) / name).string();
}

bool has_file(const std::string& directory, const std::string& name) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path_in(directory, name), ignored);
}

}  // namespace netsim::compare
