// Pieces of text, JSON and CSV that comparisons of runs and of sets have in common.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/compare/run_comparison.h"

namespace netsim::compare {

// Returns a figure with the unit that its name ends in: seconds, bytes, or a plain number. "-" stands for
// none.
std::string figure_text(const std::string& name, const std::optional<double>& value);
// Returns the same with its sign.
std::string signed_figure(const std::string& name, const std::optional<double>& value);
// Returns "+4.50 %", "0 %" where nothing changed, and "-" for none.
std::string change_text(const std::optional<double>& change);
// Returns the text as one line of at most `most` columns.
std::string cut_text(const std::string& text, std::size_t most);

// Returns the two lines that name the sides.
std::string sides_text(const std::string& a, const std::string& b);
// Return the section of the inputs that changed, and that of the notes ("" without notes).
std::string settings_text(const std::vector<SettingChange>& settings, std::size_t width);
std::string notes_text(const std::vector<std::string>& notes, std::size_t width);

// Returns the shortest text that reads as the same number, or "" for none.
std::string exact_number(const std::optional<double>& value);
// Returns a line of cells of a CSV file.
std::string csv_line(const std::vector<std::string>& cells);

}  // namespace netsim::compare
