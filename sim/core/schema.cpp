#include "sim/core/schema.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <nlohmann/json.hpp>

namespace netsim {
namespace {

using Json = nlohmann::ordered_json;

// Returns the pattern of a number, blanks and a unit, or of a zero without a unit.
Json quantity(const std::string& units) {
  Json text = {{"type", "string"},
               {"pattern", R"(^((0|[1-9][0-9]*)(\.[0-9]+)?|\.[0-9]+) *()" + units + ")$"}};
  return {{"anyOf", {{{"const", 0}}, {{"const", "0"}}, std::move(text)}}};
}

Json json_integer(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Json json_real(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Adds minimum and maximum if they limit the type's values.
template <class Convert>
void add_limits(Json& schema, const ParameterInfo& info, Convert convert) {
  if (!shown_limit(info.type, info.minimum_text).empty()) schema["minimum"] = convert(info.minimum_text);
  if (!shown_limit(info.type, info.maximum_text).empty()) schema["maximum"] = convert(info.maximum_text);
}

Json integer_schema(const ParameterInfo& info) {
  Json schema = {{"type", "integer"}};
  add_limits(schema, info, json_integer);
  return schema;
}

Json real_schema(const ParameterInfo& info) {
  Json number = {{"type", "number"}};
  add_limits(number, info, json_real);
  const std::string decimal = R"(([0-9]+(\.[0-9]+)?|\.[0-9]+))";
  Json text = {{"type", "string"}, {"pattern", "^-?" + decimal + "(/" + decimal + "| ?%)$"}};
  return {{"anyOf", {std::move(number), std::move(text)}}};
}

// Editors that read YAML 1.1 take these words for the two truth values, and digits for a number.
Json choice_schema(const std::vector<std::string>& choices) {
  const auto has = [&](std::initializer_list<const char*> words) {
    return std::find_first_of(choices.begin(), choices.end(), words.begin(), words.end()) != choices.end();
  };
  Json allowed = choices;
  for (const std::string& choice : choices) {
    if (choice.find_first_not_of("0123456789") == std::string::npos) allowed.push_back(json_integer(choice));
  }
  if (has({"off", "no", "n", "false"})) allowed.push_back(false);
  if (has({"on", "yes", "y", "true"})) allowed.push_back(true);
  return {{"enum", std::move(allowed)}};
}

Json table_schema(const ParameterTable& table);

Json reference(const std::string& definition) { return {{"$ref", "#/$defs/" + definition}}; }

Json component_schema(const ParameterInfo& info) {
  Json alternatives = Json::array({reference(info.component_kind)});
  if (!info.default_text.empty())
    alternatives.push_back(reference(info.component_kind + "." + info.default_text));
  return {{"anyOf", std::move(alternatives)}};
}

Json type_schema(const ParameterInfo& info) {
  if (info.type == "bool") return {{"type", "boolean"}};
  if (info.type == "integer") return integer_schema(info);
  if (info.type == "real") return real_schema(info);
  if (info.type == "time") return quantity("s|ms|us|ns|ps|\u00b5s|\u03bcs");
  if (info.type == "bytes") return quantity("[KMGT]?B|kB|[KMGT]iB");
  if (info.type == "rate") return quantity("([kKMGT]?(bps|b/s|bit/s|B/s)|[KMGT]iB/s)");
  if (info.type == "choice") return choice_schema(info.choices);
  if (info.type == "section") return table_schema(info.children);
  if (info.type == "sections")
    return {{"type", "object"}, {"additionalProperties", table_schema(info.children)}};
  if (info.type == "component") return component_schema(info);
  if (info.type == "components")
    return {{"type", "object"}, {"additionalProperties", component_schema(info)}};
  if (info.type == "component_list") return {{"type", "array"}, {"items", reference(info.component_kind)}};
  if (info.type == "groups") {
    Json list = {{"type", "array"}, {"items", {{"type", "object"}}}};
    return {{"anyOf", {integer_schema(info), std::move(list)}}};
  }
  // A single item may stand alone.
  Json list_or_item = {{"type", {"array", "string", "number", "boolean"}}};
  if (info.type == "list") return list_or_item;
  if (info.type == "lists") return {{"type", "object"}, {"additionalProperties", list_or_item}};
  // The type that YAML assigns to a text does not matter.
  Json text = {{"type", {"string", "number", "boolean"}}};
  if (info.type != "names") return text;
  Json list = {{"type", "array"}, {"items", text}};
  return {{"anyOf", {std::move(text), std::move(list)}}};
}

Json default_value(const ParameterInfo& info) {
  if (info.type == "bool") return info.default_text == "true";
  if (info.type == "integer") return json_integer(info.default_text);
  if (info.type == "real") return json_real(info.default_text);
  return info.default_text;
}

std::string description(const ParameterInfo& info) {
  const bool quantity = info.type == "time" || info.type == "bytes" || info.type == "rate";
  const std::string low = shown_limit(info.type, info.minimum_text);
  const std::string high = shown_limit(info.type, info.maximum_text);
  if (!quantity || (low.empty() && high.empty())) return info.doc;
  if (high.empty()) return info.doc + " (at least " + low + ")";
  return info.doc + (low.empty() ? " (at most " : " (" + low + " to ") + high + ")";
}

// An optional value may also be null, which stands for its default.
Json parameter_schema(const ParameterInfo& info) {
  Json schema = type_schema(info);
  if (!info.required) schema = {{"anyOf", {std::move(schema), {{"type", "null"}}}}};
  Json result;
  if (!info.doc.empty()) result["description"] = description(info);
  if (!info.default_text.empty()) result["default"] = default_value(info);
  result.update(schema);
  return result;
}

Json table_schema(const ParameterTable& table) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const ParameterInfo& info : table) {
    properties[info.name] = parameter_schema(info);
    if (info.required) required.push_back(info.name);
  }
  Json schema = {{"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

// Returns the schema of one component's parameters. `kind` is allowed but not required, because it may be
// omitted where the component is the default.
Json component_definition(const ComponentInfo& component) {
  Json schema = table_schema(component.parameters);
  schema["description"] = component.summary;
  schema["properties"]["kind"] = {{"const", component.name}};
  return schema;
}

// Returns the schema of any component of a kind: a bare name, or one of the maps with its `kind`.
Json kind_definition(const std::string& kind, const Catalogue& catalogue) {
  const std::vector<std::string> names = catalogue.chosen_names(kind);
  Json alternatives = Json::array({{{"enum", names}}});
  for (const std::string& name : names) {
    alternatives.push_back({{"allOf", {reference(kind + "." + name), {{"required", {"kind"}}}}}});
  }
  return {{"oneOf", std::move(alternatives)}};
}

Json definitions(const Catalogue& catalogue) {
  Json result = Json::object();
  for (const std::string& kind : catalogue.kinds()) result[kind] = kind_definition(kind, catalogue);
  for (const ComponentInfo* component : catalogue.all()) {
    result[component->kind + "." + component->name] = component_definition(*component);
  }
  return result;
}

// Adds definitions that allow anything for kinds that this program does not have. A reference to a missing
// definition would make the whole schema invalid.
void add_missing(const ParameterTable& table, Json& definitions) {
  for (const ParameterInfo& info : table) {
    add_missing(info.children, definitions);
    if (info.type != "component" && info.type != "components" && info.type != "component_list") continue;
    const std::string standard = info.component_kind + "." + info.default_text;
    if (!definitions.contains(info.component_kind)) definitions[info.component_kind] = true;
    if (!info.default_text.empty() && !definitions.contains(standard)) definitions[standard] = true;
  }
}

// Returns the schema of an item of DocumentShape::list.
Json item_schema(const DocumentShape& shape) {
  const Json text = {{"type", "string"}};
  Json item = table_schema(shape.item);
  item["properties"][shape.source] = {
      {"anyOf", {text, {{"type", "array"}, {"items", text}}, reference(shape.kind)}}};
  item["required"].push_back(shape.source);
  return item;
}

// Adds the definitions of all components, and those that `tables` refer to and that are missing.
void add_definitions(Json& schema, const std::vector<ParameterTable>& tables, const Catalogue& catalogue) {
  Json all = definitions(catalogue);
  for (const ParameterTable& table : tables) add_missing(table, all);
  for (const ComponentInfo* component : catalogue.all()) add_missing(component->parameters, all);
  schema["$defs"] = std::move(all);
}

Json schema_head(const std::string& title) {
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
}

}  // namespace

std::string json_schema(const DocumentShape& shape, const Catalogue& catalogue) {
  Json values = Json::array({{{"type", "array"}, {"items", item_schema(shape)}}});
  for (const ParameterTable& map : shape.maps) values.push_back(table_schema(map));
  Json list = {{"type", "object"}, {"additionalProperties", false}};
  list["properties"][shape.list] = {{"anyOf", std::move(values)}};
  list["required"] = Json::array({shape.list});
  Json schema = schema_head(shape.title);
  schema["type"] = "object";
  schema["anyOf"] = Json::array({reference(shape.kind), std::move(list)});
  std::vector<ParameterTable> tables = shape.maps;
  tables.push_back(shape.item);
  add_definitions(schema, tables, catalogue);
  return schema.dump(2) + "\n";
}

std::string json_schema(const ParameterTable& top_level, const Catalogue& catalogue) {
  Json schema = schema_head("netsim configuration");
  schema.update(table_schema(top_level));
  add_definitions(schema, {top_level}, catalogue);
  return schema.dump(2) + "\n";
}

}  // namespace netsim
