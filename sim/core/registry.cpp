#include "sim/core/registry.h"

#include <algorithm>

namespace netsim {

Catalogue& Catalogue::instance() {
  static Catalogue catalogue;
  return catalogue;
}

void Catalogue::add(ComponentInfo info) {
  auto key = std::make_pair(info.kind, info.name);
  const std::string name = info.kind + "." + info.name;
  NETSIM_CHECK(components_.emplace(std::move(key), std::move(info)).second, name + " is registered twice");
}

std::vector<const ComponentInfo*> Catalogue::all() const {
  std::vector<const ComponentInfo*> result;
  for (const auto& [key, info] : components_) result.push_back(&info);
  return result;
}

std::vector<std::string> Catalogue::kinds() const {
  std::vector<std::string> result;
  for (const auto& [key, info] : components_) {
    if (result.empty() || result.back() != key.first) result.push_back(key.first);
  }
  return result;
}

std::vector<std::string> Catalogue::names(const std::string& kind) const {
  std::vector<std::string> result;
  for (const auto& [key, info] : components_) {
    if (key.first == kind) result.push_back(key.second);
  }
  return result;
}

const ComponentInfo* Catalogue::find(const std::string& kind, const std::string& name) const {
  const auto it = components_.find({kind, name});
  return it == components_.end() ? nullptr : &it->second;
}

namespace {

struct Row {
  std::string name, type, standard, range, doc;
};

std::string limits(const ParameterInfo& info) {
  if (!info.choices.empty()) {
    std::string result;
    for (const std::string& choice : info.choices) result += (result.empty() ? "" : " | ") + choice;
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
    const bool component = info.type == "component";
    const std::string range = component ? "a " + info.component_kind : limits(info);
    const std::string known = info.computed.empty() ? info.default_text : info.computed;
    const std::string standard = info.required ? "required" : known;
    rows.push_back({prefix + info.name, info.type, standard, range, info.doc});
    add_rows(info.children, prefix + info.name + ".", rows);
  }
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 0, ' ') + "  ";
}

// Breaks `text` at blanks into lines of at most `width`, all but the first indented.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::string result;
  std::size_t column = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    if (column > 0 && column + 1 + (end - begin) > width) {
      result += "\n" + std::string(indent, ' ');
      column = 0;
    } else if (column > 0) {
      result += ' ';
      ++column;
    }
    result += text.substr(begin, end - begin);
    column += end - begin;
    begin = end + 1;
  }
  return result;
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string describe_parameters(const ParameterTable& table) {
  std::vector<Row> rows = {{"parameter", "type", "default", "allowed", "what it is"}};
  add_rows(table, "", rows);
  std::size_t name = 0, type = 0, standard = 0, range = 0;
  for (const Row& row : rows) {
    name = std::max(name, row.name.size());
    type = std::max(type, row.type.size());
    standard = std::max(standard, row.standard.size());
    range = std::max(range, std::min<std::size_t>(row.range.size(), 36));
  }
  const std::size_t indent = 2 + name + 2 + type + 2 + standard + 2 + range + 2;
  const std::size_t width = std::max<std::size_t>(40, indent < 80 ? 120 - indent : 0);
  std::string result;
  for (const Row& row : rows) {
    result +=
        trimmed("  " + padded(row.name, name) + padded(row.type, type) + padded(row.standard, standard) +
                padded(row.range, range) + wrapped(row.doc, indent, width)) +
        "\n";
  }
  return result;
}

std::string describe(const ComponentInfo& component) {
  std::string result =
      component.kind + "." + component.name + "\n  " + wrapped(component.summary, 2, 100) + "\n\n";
  if (component.parameters.empty()) return result + "  no parameters\n";
  return result + describe_parameters(component.parameters);
}

}  // namespace netsim
