#include "sim/core/parameters.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace netsim {

std::string shown_limit(const std::string& type, const std::string& limit) {
  if (type == "time" && limit == format_time(INT64_MAX)) return "";
  if (type == "bytes" && limit == format_bytes(INT64_MAX)) return "";
  if (type == "rate" && limit == format_rate(INT64_MAX)) return "";
  if (type == "integer" && (limit == std::to_string(INT64_MAX) || limit == std::to_string(INT64_MIN)))
    return "";
  const double largest = std::numeric_limits<double>::max();
  if (type == "real" && (limit == "inf" || limit == "-inf")) return "";
  if (type == "real" && (limit == format_real(largest) || limit == format_real(-largest))) return "";
  return limit;
}

namespace {

const ParameterInfo* find_parameter(const ParameterTable& table, const std::string& name) {
  const auto* const found =
      std::find_if(table.begin(), table.end(), [&](const ParameterInfo& info) { return info.name == name; });
  return found == table.end() ? nullptr : found;
}

}  // namespace

std::string merge_parameters(ParameterTable& into, const ParameterTable& from) {
  std::vector<ParameterInfo>& list = into.edit();
  for (const ParameterInfo& info : from) {
    const auto other = std::find_if(list.begin(), list.end(),
                                    [&](const ParameterInfo& known) { return known.name == info.name; });
    if (other == list.end()) {
      list.push_back(info);
      continue;
    }
    if (other->type != "section" || info.type != "section") return info.name;
    const std::string both = merge_parameters(other->children, info.children);
    if (!both.empty()) return info.name + "." + both;
  }
  return "";
}

ConfigNode entries_of(const ParameterTable& table, const ConfigNode& node) {
  if (!node.is_map()) return node;
  ConfigNode entries =
      node.filtered([&](const std::string& key) { return find_parameter(table, key) != nullptr; });
  for (const ParameterInfo& info : table) {
    if (info.type == "section" && entries.find(info.name) != nullptr)
      entries.at_or_add(info.name) = entries_of(info.children, *node.find(info.name));
  }
  return entries;
}

void refuse_unknown_keys(const ParameterTable& table, const ConfigNode& node,
                         const std::vector<std::string>& also_allowed) {
  std::vector<std::string> allowed = also_allowed;
  for (const ParameterInfo& info : table) allowed.push_back(info.name);
  node.allow_keys(allowed);
  for (const auto& [key, value] : node.entries()) {
    const ParameterInfo* info = find_parameter(table, key);
    if (info != nullptr && info->type == "section") refuse_unknown_keys(info->children, value, {});
  }
}

void out_of_range(const ConfigNode& node, const std::string& minimum, const std::string& maximum) {
  const auto limits_nothing = [](const std::string& limit) {
    for (const char* type : {"time", "bytes", "rate", "integer", "real"}) {
      if (shown_limit(type, limit).empty()) return true;
    }
    return false;
  };
  std::string allowed = minimum + " to " + maximum;
  if (limits_nothing(maximum)) allowed = "at least " + minimum;
  if (limits_nothing(minimum)) allowed = "at most " + maximum;
  node.fail("'" + node.text() + "' is out of range: " + allowed + " is allowed");
}

bool is_negative(const ConfigNode& node) {
  if (!node.is_scalar()) return false;
  const std::string& text = node.text();
  return text.size() > 1 && text[0] == '-' && is_digit(text[1]);
}

void refuse_empty(const ParameterInfo& parameter, const ConfigNode& node) {
  for (const char* type : {"section", "sections", "list", "lists", "components", "component_list"}) {
    if (parameter.type == type) return;
  }
  // A null that was not written has the place of its key. A written null has a place of its own, and a null
  // of --set has none.
  const Place& given = node.place();
  const Place key = node.key_place();
  if (!node.is_null() || given.line == 0 || given.line != key.line || given.column != key.column) return;
  const std::string& absent = parameter.computed.empty() ? parameter.default_text : parameter.computed;
  node.fail("nothing is given (" + parameter.type + "); leave the key out, or write null, for the default" +
            (absent.empty() ? "" : ", " + absent));
}

std::string format_real(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

ParameterTable::ParameterTable(std::initializer_list<ParameterInfo> parameters)
    : parameters_(std::make_shared<std::vector<ParameterInfo>>(parameters)) {}

const ParameterInfo* ParameterTable::begin() const {
  return parameters_ != nullptr ? parameters_->data() : nullptr;
}
const ParameterInfo* ParameterTable::end() const { return begin() + size(); }
std::size_t ParameterTable::size() const { return parameters_ != nullptr ? parameters_->size() : 0; }
const ParameterInfo& ParameterTable::operator[](std::size_t index) const { return begin()[index]; }
void ParameterTable::push_back(ParameterInfo parameter) { edit().push_back(std::move(parameter)); }

std::vector<ParameterInfo>& ParameterTable::edit() {
  if (parameters_ == nullptr) {
    parameters_ = std::make_shared<std::vector<ParameterInfo>>();
  } else if (parameters_.use_count() > 1) {
    parameters_ = std::make_shared<std::vector<ParameterInfo>>(*parameters_);
  }
  return *parameters_;
}

ParameterInfo section_info(std::string name, ParameterTable parameters, std::string doc) {
  ParameterInfo info;
  info.name = std::move(name);
  info.type = "section";
  info.children = std::move(parameters);
  info.doc = std::move(doc);
  return info;
}

ParameterInfo names_info(std::string name, std::string default_name, std::string doc) {
  ParameterInfo info;
  info.name = std::move(name);
  info.type = "names";
  info.default_text = std::move(default_name);
  info.doc = std::move(doc);
  return info;
}

std::vector<ConfigNode> read_names(const ConfigNode& node, const std::string& default_name) {
  if (node.is_null()) return {ConfigNode::scalar(default_name, {})};
  if (node.is_map()) node.fail("a name or a list of names");
  if (!node.is_sequence()) return {node};
  for (const ConfigNode& item : node.items()) {
    if (!item.is_scalar()) item.fail("a name");
  }
  return node.items();
}

ParameterInfo component_info(std::string name, std::string component_kind, std::string default_name,
                             std::string doc) {
  ParameterInfo info;
  info.name = std::move(name);
  info.type = "component";
  info.component_kind = std::move(component_kind);
  info.default_text = std::move(default_name);
  info.doc = std::move(doc);
  return info;
}

}  // namespace netsim
