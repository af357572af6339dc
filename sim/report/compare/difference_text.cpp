#include "sim/report/compare/difference_text.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string_view>

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

namespace {

// Returns the maps of the components whose kind differs: "transport.congestion_control.".
std::vector<std::string> maps_of_other_kinds(const std::vector<SettingChange>& settings) {
  constexpr std::string_view kKind = "kind";
  std::vector<std::string> maps;
  for (const SettingChange& each : settings) {
    if (each.a && each.b && each.name.ends_with(".kind"))
      maps.push_back(each.name.substr(0, each.name.size() - kKind.size()));
  }
  return maps;
}

// Returns the outermost of the maps that the parameter of one side is in, or "".
std::string map_of_one_kind(const SettingChange& each, const std::vector<std::string>& maps) {
  std::string outermost;
  if (each.a && each.b) return outermost;
  for (const std::string& map : maps) {
    if (each.name.starts_with(map) && (outermost.empty() || map.size() < outermost.size())) outermost = map;
  }
  return outermost;
}

}  // namespace

std::string settings_text(const std::vector<SettingChange>& settings, std::size_t width) {
  if (settings.empty()) return "\nThe inputs are the same.\n";
  const std::vector<std::string> maps = maps_of_other_kinds(settings);
  std::map<std::string, std::size_t> of_one_kind;  // parameters by the map
  for (const SettingChange& each : settings) {
    if (const std::string map = map_of_one_kind(each, maps); !map.empty()) ++of_one_kind[map];
  }
  std::string text = "\ninputs that differ\n";
  for (const SettingChange& each : settings) {
    if (!map_of_one_kind(each, maps).empty()) continue;
    std::string line = each.name + ": " + each.a.value_or("(none)") + " -> " + each.b.value_or("(none)");
    const auto hidden = of_one_kind.find(each.name.substr(0, each.name.rfind('.') + 1));
    if (each.name.ends_with(".kind") && hidden != of_one_kind.end())
      line += " (" + counted(hidden->second, "parameter") + " of one kind only; --json and --out have all)";
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
