#include "sim/report/compare/difference_text.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/core/output.h"

namespace netsim::compare {

std::string figure_text(const std::string& name, const std::optional<double>& value) {
  if (!value) return "-";
  const double size = std::abs(*value);
  const std::string sign = *value < 0 ? "-" : "";
  if (name.ends_with("_s")) return sign + human_seconds(size);
  if (name.ends_with("bytes")) return sign + human_bytes(size);
  if (size >= 1000 && size == std::floor(size)) return sign + human_count(size);
  return fmt::format("{:.4g}", *value);
}

std::string signed_figure(const std::string& name, const std::optional<double>& value) {
  return (value && *value > 0 ? "+" : "") + figure_text(name, value);
}

std::string change_text(const std::optional<double>& change) {
  if (!change) return "-";
  return *change == 0 ? "0 %" : fmt::format("{:+.2f} %", 100 * *change);
}

std::string cut_text(const std::string& text, std::size_t most) {
  std::string line = printable(text);
  if (columns(line) <= most) return line;
  while (columns(line) > most - 3) line.pop_back();
  return line + "...";
}

std::string sides_text(const std::string& a, const std::string& b) {
  return "A  " + printable(a) + "\nB  " + printable(b) + "\n";
}

std::string settings_text(const std::vector<SettingChange>& settings, std::size_t width) {
  if (settings.empty()) return "\nThe inputs are the same.\n";
  std::string text = "\ninputs that differ\n";
  for (const SettingChange& each : settings) {
    const std::string line =
        each.name + ": " + each.a.value_or("(none)") + " -> " + each.b.value_or("(none)");
    text += "  " + wrapped(printable(line), 2, 6, width) + "\n";
  }
  return text;
}

std::string notes_text(const std::vector<std::string>& notes, std::size_t width) {
  std::string text = notes.empty() ? "" : "\n";
  for (const std::string& note : notes) text += "Note: " + wrapped(printable(note), 6, 6, width) + "\n";
  return text;
}

std::string exact_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i > 0 ? "," : "") + csv_cell(cells[i]);
  return line + "\n";
}

}  // namespace netsim::compare
