// Decodes InfraGraph's protobuf messages (artifacts/infragraph.proto) into the document of the equivalent
// JSON.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <string>
#include <vector>

#include "sim/core/protobuf_fields.h"
#include "sim/core/recognise.h"
#include "sim/core/text.h"
#include "sim/topology/files/infragraph/infragraph.h"

namespace netsim {
namespace {

struct Message;

// A field of the schema: text, an integer, a real number, a name from a list (numbered from 1), or a message.
struct SchemaField {
  std::uint64_t number;
  const char* name;
  enum class Type : std::uint8_t { text, integer, real, name_of, message } type = Type::text;
  std::vector<const char*> names = {};
  const Message* message = nullptr;
  bool repeated = false;
};
struct Message {
  std::vector<SchemaField> fields;
};

const Message& infrastructure() {
  using Type = SchemaField::Type;
  static const Message bandwidth{
      {{1,
        "choice",
        Type::name_of,
        {"gigabits_per_second", "gigabytes_per_second", "gigatransfers_per_second"}},
       {2, "gigabits_per_second", Type::real},
       {3, "gigabytes_per_second", Type::real},
       {4, "gigatransfers_per_second", Type::real}}};
  static const Message latency{{{1, "choice", Type::name_of, {"ms", "us", "ns"}},
                                {2, "ms", Type::real},
                                {3, "us", Type::real},
                                {4, "ns", Type::real}}};
  static const Message physical{
      {{1, "bandwidth", Type::message, {}, &bandwidth}, {2, "latency", Type::message, {}, &latency}}};
  static const Message link{{{1, "name"}, {2, "description"}, {3, "physical", Type::message, {}, &physical}}};
  static const Message custom{{{1, "type"}}};
  static const Message component{
      {{1, "name"},
       {2, "description"},
       {3, "count", Type::integer},
       {4, "choice", Type::name_of, {"custom", "device", "cpu", "xpu", "nic", "memory", "port", "switch"}},
       {10, "custom", Type::message, {}, &custom}}};
  static const auto edge = [](const Message& end) {
    return Message{{{1, "ep1", Type::message, {}, &end},
                    {2, "ep2", Type::message, {}, &end},
                    {3, "scheme", Type::name_of, {"one2one", "many2many", "ring"}},
                    {4, "link"}}};
  };
  static const Message inner_end{{{1, "device"}, {2, "component"}}};
  static const Message outer_end{{{1, "instance"}, {2, "component"}}};
  static const Message inner_edge = edge(inner_end), outer_edge = edge(outer_end);
  static const Message device{{{1, "name"},
                               {2, "description"},
                               {3, "components", Type::message, {}, &component, true},
                               {4, "links", Type::message, {}, &link, true},
                               {5, "edges", Type::message, {}, &inner_edge, true}}};
  static const Message instance{
      {{1, "name"}, {2, "description"}, {3, "device"}, {4, "count", Type::integer}}};
  static const Message infrastructure_message{{{1, "name"},
                                               {2, "description"},
                                               {3, "devices", Type::message, {}, &device, true},
                                               {4, "links", Type::message, {}, &link, true},
                                               {5, "instances", Type::message, {}, &instance, true},
                                               {6, "edges", Type::message, {}, &outer_edge, true}}};
  return infrastructure_message;
}

Place below(Place place, const std::string& key) {
  append_item(place.path, key, ".");
  return place;
}

std::string real_text(std::string_view bytes) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < sizeof bits; ++i)
    bits |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  std::array<char, 64> text{};
  const float value = std::bit_cast<float>(bits);
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  return {text.data(), end};
}

// Decodes a message. Fields that the schema does not have are ignored, as in protobuf.
ConfigNode decoded(std::string_view bytes, const Message& message, const Place& place);

ConfigNode value_of(const ProtobufFields::Field& field, const SchemaField& schema, const Place& place) {
  using Type = SchemaField::Type;
  const unsigned wanted = schema.type == Type::integer || schema.type == Type::name_of ? 0
                          : schema.type == Type::real                                  ? 5
                                                                                       : 2;
  if (field.type != wanted) throw ConfigError(place, "the message has another type of value here");
  switch (schema.type) {
    case Type::text:
      if (find_not_name(field.content)) throw ConfigError(place, "text of one line is expected");
      return ConfigNode::scalar(std::string(field.content), place);
    case Type::integer:
      return ConfigNode::scalar(std::to_string(static_cast<std::int64_t>(field.value)), place);
    case Type::real:
      return ConfigNode::scalar(real_text(field.content), place);
    case Type::name_of:
      if (field.value < 1 || field.value > schema.names.size())
        throw ConfigError(place, std::to_string(field.value) + " is none of the " +
                                     std::to_string(schema.names.size()) + " choices, numbered from 1");
      return ConfigNode::scalar(schema.names[field.value - 1], place);
    case Type::message:
      break;
  }
  return decoded(field.content, *schema.message, place);
}

ConfigNode decoded(std::string_view bytes, const Message& message, const Place& place) {
  ConfigNode node = ConfigNode::map(place);
  ProtobufFields fields(bytes);
  while (!fields.at_end()) {
    const auto field = fields.next();
    if (!field || (field->type == 2 && field->content.size() != field->value))
      throw ConfigError(place, "the message is truncated or damaged here");
    const auto schema = std::find_if(message.fields.begin(), message.fields.end(),
                                     [&](const SchemaField& known) { return known.number == field->number; });
    if (schema == message.fields.end()) continue;
    ConfigNode& value = node.at_or_add(schema->name);
    const Place at = below(place, schema->name);
    if (!schema->repeated) {
      value = value_of(*field, *schema, at);
      continue;
    }
    if (value.is_null()) value = ConfigNode::sequence(at);
    value.push_back(value_of(*field, *schema, below(at, std::to_string(value.items().size()))));
  }
  return node;
}

// Recognises Infrastructure{name = 1; description = 2; repeated Device devices = 3} with Device{name = 1,
// ...}.
bool is_infragraph_message(const Excerpt& file) {
  if (file.is_text()) return false;
  ProtobufFields wire(file.bytes());
  for (std::uint64_t before = 0;;) {
    const auto field = wire.next();
    if (!field || field->type != 2 || field->number < before || field->number > 3) return false;
    before = field->number;
    if (field->number < 3 && find_not_name(field->content)) return false;
    if (field->number < 3) continue;
    const auto name = ProtobufFields(field->content).next();
    return name && name->number == 1 && name->type == 2 && !name->content.empty() &&
           !find_not_name(name->content);
  }
}

const FormatRegistration kInfragraphMessageFormat{{.name = "infragraph_pb",
                                                   .what = "an InfraGraph infrastructure (protobuf)",
                                                   .use = Format::Use::topology,
                                                   .matches = is_infragraph_message,
                                                   .component = "infragraph",
                                                   .advice = {},
                                                   .endings = {".pb"},
                                                   .groups = infragraph_groups}};

}  // namespace

ConfigNode parse_infragraph_message(std::string_view bytes, const std::string& file) {
  return decoded(bytes, infrastructure(), Place{file, 0, 0, ""});
}

}  // namespace netsim
