#include "sim/core/description.h"

#include <algorithm>
#include <vector>

#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr std::size_t kLeastDoc = 36;  // least width of the last column; with less there is no table
// Greatest width of the allowed values for which other columns make space.
constexpr std::size_t kMostRange = 36;

struct Row {
  std::string name, type, standard, range, doc;
};

std::string limits(const ParameterInfo& info) {
  if (!info.choices.empty()) {
    std::string result;
    for (const std::string& choice : info.choices) append_item(result, choice, " | ");
    return result;
  }
  const std::string low = shown_limit(info.type, info.minimum_text),
                    high = shown_limit(info.type, info.maximum_text);
  if (low.empty() && high.empty()) return "";
  if (high.empty()) return ">= " + low;
  if (low.empty()) return "<= " + high;
  return low + " to " + high;
}

void add_rows(const ParameterTable& table, const std::string& prefix, std::vector<Row>& rows) {
  for (const ParameterInfo& info : table) {
    const bool component = info.type == "component" || info.type == "component_list";
    const std::string range = component ? "a " + info.component_kind : limits(info);
    const std::string known = info.computed.empty() ? info.default_text : info.computed;
    const std::string standard = info.required ? "required" : known;
    rows.push_back({prefix + info.name, info.type, standard, range, info.doc});
    if (info.type == "section") add_rows(info.children, prefix + info.name + ".", rows);
  }
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 0, ' ') + "  ";
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// Layout: the widths of the columns.
struct Layout {
  std::size_t name = 0, type = 0, standard = 0, range = 0;

  explicit Layout(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      name = std::max(name, row.name.size());
      type = std::max(type, row.type.size());
      standard = std::max(standard, row.standard.size());
      range = std::max(range, std::min(row.range.size(), kMostRange));
    }
  }
  std::size_t indent() const { return 2 + name + 2 + type + 2 + standard + 2 + range + 2; }
};

std::string table_of(const std::vector<Row>& rows, const Layout& layout, std::size_t width) {
  std::string result;
  for (const Row& row : rows) {
    const std::string before = "  " + padded(row.name, layout.name) + padded(row.type, layout.type) +
                               padded(row.standard, layout.standard);
    const std::string start = before + padded(row.range, layout.range);
    const auto doc_from = [&](std::size_t column) {
      return wrapped(row.doc, column, layout.indent(), width);
    };
    if (start.size() <= layout.indent() || start.size() + kLeastDoc <= width) {
      result += without_trailing_blanks(start + doc_from(start.size())) + "\n";
    } else {  // the allowed values take the space of the description, which follows below
      result += before + wrapped(row.range, before.size(), before.size(), width) + "\n";
      if (!row.doc.empty()) result += std::string(layout.indent(), ' ') + doc_from(layout.indent()) + "\n";
    }
  }
  return result;
}

// Returns "  mtu: bytes, default 4 KiB, 64 B to 64 KiB", and below it the description.
std::string paragraph_of(const Row& row, std::size_t width) {
  std::string facts = row.name + ": " + row.type;
  if (!row.standard.empty()) facts += row.standard == "required" ? ", required" : ", default " + row.standard;
  if (!row.range.empty()) facts += ", " + row.range;
  std::string result = "  " + wrapped(facts, 2, 6, width) + "\n";
  if (!row.doc.empty()) result += "      " + wrapped(row.doc, 6, 6, width) + "\n";
  return result;
}

}  // namespace

std::string describe_parameters(const ParameterTable& table, std::size_t width) {
  std::vector<Row> rows = {{"parameter", "type", "default", "allowed", "what it is"}};
  add_rows(table, "", rows);
  const Layout layout(rows);
  if (layout.indent() + kLeastDoc <= width) return table_of(rows, layout, width);
  std::string result;
  for (std::size_t i = 1; i < rows.size(); ++i) result += paragraph_of(rows[i], width);
  return result;
}

std::string describe(const std::string& title, const std::string& doc, const ParameterTable& parameters,
                     std::size_t width) {
  std::string result = title + "\n";
  if (!doc.empty()) result += "  " + wrapped(doc, 2, 2, width) + "\n";
  if (parameters.empty()) return result + "\n  no parameters\n";
  return result + "\n" + describe_parameters(parameters, width);
}

std::string describe(const ComponentInfo& component, std::size_t width) {
  std::string result =
      describe(component.kind + "." + component.name, component.summary, component.parameters, width);
  if (component.columns.empty()) return result;
  std::size_t name = std::string("column").size();
  for (const ColumnInfo& column : component.columns) name = std::max(name, column.name.size());
  result += "\n  " + padded("column", name) + "meaning\n";
  for (const ColumnInfo& column : component.columns) {
    const std::size_t indent = 2 + name + 2;
    result += "  " + padded(column.name, name) + wrapped(column.meaning, indent, indent, width) + "\n";
  }
  return result;
}

}  // namespace netsim
