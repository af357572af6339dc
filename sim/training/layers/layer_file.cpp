// The two forms of a CSV with layers: a table of netsim's own, and the rows of SwitchML's DNN benchmark.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/config_entries.h"
#include "sim/core/csv.h"
#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/output.h"
#include "sim/training/layers/timed_layer.h"

namespace netsim {
namespace {

constexpr std::uint64_t kMaxLayerFile = 64ULL << 20;

const std::vector<std::string>& layer_columns() {
  static const std::vector<std::string> columns{"name",  "forward", "backward", "weight_gradient",
                                                "bytes", "after",   "matrix",   "all_to_all"};
  return columns;
}
constexpr std::size_t kRequiredColumns = 3;

// Returns whether the first row of the text begins with a number.
bool is_benchmark(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || line[first] == '#') continue;
    return line[first] >= '0' && line[first] <= '9';
  }
  return false;
}

// Returns the words of a cell as a list, each at its place.
ConfigNode words_of(std::string_view text, const Place& place) {
  ConfigNode list = ConfigNode::sequence(place);
  std::size_t at = text.find_first_not_of(' ');
  while (at != std::string_view::npos) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    Place of_word = place;
    of_word.column += static_cast<int>(at);
    list.push_back(ConfigNode::scalar(std::string(text.substr(at, end - at)), of_word));
    at = text.find_first_not_of(' ', end);
  }
  return list;
}

std::vector<ConfigNode> read_layer_table(CsvReader& reader) {
  const std::vector<std::size_t> columns = reader.header(layer_columns(), kRequiredColumns);
  std::vector<ConfigNode> rows;
  while (reader.next()) {
    const std::vector<Word>& cells = reader.cells();
    ConfigNode row = ConfigNode::map(reader.reader().place(cells.front()));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string& column = layer_columns()[columns[i]];
      const Place place = reader.reader().place(cells[i]);
      // An empty cell stands for the default.
      if (cells[i].text.empty()) continue;
      const bool list = column == "after" || column == "matrix";
      row.at_or_add(column) =
          list ? words_of(cells[i].text, place) : ConfigNode::scalar(std::string(cells[i].text), place);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<ConfigNode> read_benchmark(CsvReader& reader, std::int64_t element_bytes) {
  std::vector<ConfigNode> rows;
  while (reader.next()) {
    const std::vector<Word>& cells = reader.cells();
    if (cells.size() != 3) {
      reader.fail(std::to_string(cells.size()) +
                  " cells; a row of SwitchML's benchmark has 3: elements, forward and backward in "
                  "nanoseconds. A table of netsim begins with a line of column names");
    }
    const std::int64_t elements = reader.reader().integer(cells[0], "the number of elements", {0, 1LL << 40});
    const auto place = [&](std::size_t cell) { return reader.reader().place(cells[cell]); };
    const auto time = [&](std::size_t cell, const char* what) {
      constexpr Range<Time> kTimes{0, 1000 * kSecond};
      const Time value = reader.reader().time_in(cells[cell], what, kNanosecond, kTimes);
      return ConfigNode::scalar(format_time(value), place(cell));
    };
    ConfigNode row = ConfigNode::map(place(0));
    row.at_or_add("name") = ConfigNode::scalar("layer_" + std::to_string(rows.size() + 1), place(0));
    row.at_or_add("bytes") = ConfigNode::scalar(format_bytes(elements * element_bytes), place(0));
    row.at_or_add("forward") = time(1, "the forward time");
    row.at_or_add("backward") = time(2, "the backward time");
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::vector<ConfigNode> read_layer_file(const LayerInput& input, std::vector<std::string>& notes) {
  const std::string path = find_input_file(input.file, entry_or_self(input.where, "file").place());
  const std::string text = read_file(path, kMaxLayerFile);
  CsvReader reader(text, path);
  if (!is_benchmark(text)) return read_layer_table(reader);
  notes.push_back(path + " is read as layers of SwitchML's DNN benchmark: elements of " +
                  std::to_string(input.element_bytes) + " bytes, forward and backward in nanoseconds");
  return read_benchmark(reader, input.element_bytes);
}

}  // namespace netsim
