#include "sim/workload/trace/chakra_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/protobuf_fields.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr std::uint64_t kLongestRecord = std::uint64_t{256} << 20;

// The schemas differ in field numbers, in those of node types and in those of collectives.
enum class Schema : std::uint8_t {
  flat,      // 0.0.1: no attributes
  untyped,   // 0.0.2: node types as in 0.0.1
  typed,     // 0.0.3: attributes with a type
  one_value  // 0.0.4 and 1.0.0: attributes with one value, metadata first
};

// RecordReader: reads the records of a file, each of which follows its length as a varint.
class RecordReader {
 public:
  explicit RecordReader(const InputSet::File& file) : path_(file.path), stream_(file) {}

  // Returns the next record, valid until the next call; nothing at the end of the file.
  std::optional<std::string_view> next() {
    if (at_ == buffer_.size() && !fill(1)) return std::nullopt;
    ++number_;
    const std::uint64_t length = read_length();
    if (length > kLongestRecord)
      fail(fmt::format("a length of {} bytes; allowed: {}", length, kLongestRecord));
    if (buffer_.size() - at_ < length && !fill(length))
      fail(fmt::format("{} bytes, before which the file ends", length));
    const std::string_view record = std::string_view(buffer_).substr(at_, length);
    at_ += length;
    return record;
  }
  [[noreturn]] void fail(const std::string& message) const {
    fail_file(path_,
              fmt::format("record {} does not fit a Chakra execution trace: it has {}", number_, message));
  }

 private:
  std::uint64_t read_length() {
    std::uint64_t length = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == buffer_.size() && !fill(1)) fail("a length within which the file ends");
      const auto byte = static_cast<unsigned char>(buffer_[at_++]);
      length |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) return length;
    }
    fail("a length of more than 9 bytes");
  }
  // Reads on until `count` bytes are in the buffer. Returns false if the file has not as many.
  bool fill(std::uint64_t count) {
    constexpr std::size_t kPiece = std::size_t{64} << 10;
    buffer_.erase(0, at_);
    at_ = 0;
    while (buffer_.size() < count) {
      const std::size_t before = buffer_.size();
      buffer_.resize(before + kPiece);
      const std::size_t size = stream_.read(buffer_.data() + before, kPiece);
      buffer_.resize(before + size);
      if (size == 0) return false;
    }
    return true;
  }

  std::string path_;
  InputStream stream_;
  std::string buffer_;
  std::size_t at_ = 0;  // bytes of the buffer that were taken
  std::uint64_t number_ = 0;
};

// Returns the number of a fixed field. A damaged one may have any length; its first eight bytes count.
std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < std::min(bytes.size(), sizeof(value)); ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

std::int64_t zigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1U) ^ -static_cast<std::int64_t>(value & 1U);
}

// Appends the numbers of a repeated field, which may be packed.
template <class Number>
void append(const ProtobufFields::Field& field, std::vector<Number>& numbers) {
  if (field.type == 0) {
    numbers.push_back(static_cast<Number>(field.value));
    return;
  }
  ProtobufFields packed(field.content);
  while (const auto value = packed.varint()) numbers.push_back(static_cast<Number>(*value));
}

// Returns the number that a text is, or nothing.
std::optional<std::int64_t> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? integer_of(value) : std::nullopt;
}

// Returns a number's value in schema 1.0.0; the number itself if the table does not have it.
template <std::size_t size>
std::int64_t translated(const std::array<int, size>& table, std::int64_t number) {
  return number >= 0 && number < std::int64_t{size} ? table[static_cast<std::size_t>(number)] : -1;
}

RecordedNode::Kind kind_of(std::uint64_t type, Schema schema) {
  // Before 0.0.3 there was no metadata.
  if (type != 0 && (schema == Schema::flat || schema == Schema::untyped)) ++type;
  return chakra_kind(type);
}

std::int64_t collective_of(std::int64_t number, Schema schema) {
  static constexpr std::array kFlat{-1, 0, 6, 2, 7};
  static constexpr std::array kTyped{0, 6, 2, 7, 5};
  if (schema == Schema::flat) return translated(kFlat, number);
  if (schema == Schema::one_value) return number;
  return translated(kTyped, number);
}

// ---- Attributes

// AttributeValue: the value of an attribute: integers, or a text.
struct AttributeValue {
  std::string_view name, text;
  std::vector<std::int64_t> numbers;
  std::vector<std::string> texts;
  std::string unknown;  // a real number that is no integer: "nan"; "" for none
  std::optional<std::int64_t> number() const {
    return numbers.empty() ? std::nullopt : std::optional(numbers.front());
  }
  void add(double real) {
    if (const auto number = integer_of(real))
      numbers.push_back(*number);
    else
      unknown = fmt::format("{}", real);
  }
  // Returns the value as the file has it, for messages; "" where the file has none.
  std::string shown() const {
    if (!numbers.empty()) return std::to_string(numbers.front());
    return unknown.empty() && !text.empty() ? fmt::format("'{}'", printable(std::string(text))) : unknown;
  }
};

// Reads the value of schema 1.0.0, whose field number tells its type.
void read_one_value(const ProtobufFields::Field& field, AttributeValue& value) {
  switch (field.number) {
    case 7:
    case 9:
    case 11:
    case 13:
    case 27:
      value.numbers.push_back(static_cast<std::int64_t>(field.value));
      break;
    case 15:
    case 17:
      value.numbers.push_back(zigzag(field.value));
      break;
    case 19:
    case 21:
    case 25:
      value.numbers.push_back(static_cast<std::int64_t>(little_endian(field.content)));
      break;
    case 23:
      value.numbers.push_back(static_cast<std::int32_t>(little_endian(field.content)));
      break;
    case 3:
      value.add(std::bit_cast<double>(little_endian(field.content)));
      break;
    case 5:
      value.add(std::bit_cast<float>(static_cast<std::uint32_t>(little_endian(field.content))));
      break;
    case 29:
    case 31:
      value.text = field.content;
      break;
    case 30: {
      ProtobufFields list(field.content);
      while (const auto item = list.next()) value.texts.emplace_back(item->content);
      break;
    }
    case 10:
    case 28: {
      ProtobufFields list(field.content);
      while (const auto item = list.next()) append(*item, value.numbers);
      break;
    }
    default:
      break;  // other lists are not used
  }
}

AttributeValue read_attribute(std::string_view bytes, Schema schema) {
  AttributeValue value;
  ProtobufFields fields(bytes);
  while (const auto field = fields.next()) {
    if (field->number == 1) {
      value.name = field->content;
    } else if (schema == Schema::one_value) {
      read_one_value(*field, value);
    } else if (field->number >= 4) {
      // Older schemas have a field for each type. Booleans and integers are varints, alone or repeated.
      if (field->type == 0) value.numbers.push_back(static_cast<std::int64_t>(field->value));
      if (field->type == 2) value.text = field->content;
    }
  }
  return value;
}

// Takes an attribute that only netsim writes.
void apply_exact(AttributeValue& value, RecordedNode& node) {
  constexpr std::string_view kBeginning = "netsim_";
  const std::string_view name = value.name.substr(kBeginning.size());
  if (name == "kernels")
    node.kernels = std::move(value.numbers);
  else if (name == "kernel_names")
    node.kernel_names = std::move(value.texts);
  else if (name == "kind")
    node.exact_kind = value.text;
  else if (name == "stream")
    node.exact_stream = value.text;
  else if (name == "collective")
    node.tokens.collective = value.text;
  else if (name == "copies")
    node.tokens.copies = std::move(value.numbers);
  else if (name == "to_hosts")
    node.tokens.to_hosts = std::move(value.numbers);
  else if (name == "token")
    node.tokens.token = value.number().value_or(0);
  else if (name == "host")
    node.tokens.host = value.number().value_or(0);
  else if (const auto number = value.number())
    node.exact.emplace_back(name, *number);
}

// Returns the list of a text, or of integers.
SplitSizes split_sizes_of(AttributeValue& value) {
  return value.numbers.empty() ? split_sizes_in(value.text) : SplitSizes(std::move(value.numbers));
}

// Returns the number of the collective of this name in schema 1.0.0, or nothing.
std::optional<std::int64_t> collective_named(std::string_view name) {
  static constexpr std::array<std::string_view, 10> kNames{
      "ALL_REDUCE", "REDUCE",         "ALL_GATHER",           "GATHER", "SCATTER", "BROADCAST",
      "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER"};
  const std::int64_t number = std::find(kNames.begin(), kNames.end(), name) - kNames.begin();
  return number < std::ssize(kNames) ? std::optional(number) : std::nullopt;
}

// Notes a value that is given and cannot be taken.
void check_value(const AttributeValue& value, std::optional<std::int64_t> number, RecordedNode& node) {
  const bool counts = value.name == "comm_size" || value.name == "tensor_size" || value.name == "num_ops";
  const std::string given = counts || value.name == "comm_type" ? value.shown() : "";
  if (given.empty() || number.value_or(-1) >= 0) return;
  node.problem = fmt::format("has {} {}; allowed: {}", value.name, given,
                             counts ? "0 to 9e18" : "0 to 9, or a name such as ALL_REDUCE");
}

void apply(AttributeValue value, Schema schema, RecordedNode& node) {
  if (value.name.starts_with("netsim_")) return apply_exact(value, node);
  // Sizes, kinds and peers may be texts.
  const bool of_communication =
      value.name.starts_with("comm_") || value.name == "tensor_size" || value.name == "num_ops";
  const auto number = of_communication && value.numbers.empty() ? number_in(value.text) : value.number();
  const auto named = value.name == "comm_type" ? collective_named(value.text) : std::nullopt;
  check_value(value, named ? named : number, node);
  if (value.name == "is_cpu_op") node.on_cpu = number.value_or(0) != 0;
  if (value.name == "runtime") node.duration_us = static_cast<std::uint64_t>(number.value_or(0));
  if (value.name == "num_ops") node.operations = number;
  if (value.name == "tensor_size") node.tensor_bytes = number;
  if (value.name == "comm_type" && number) node.collective = collective_of(*number, schema);
  if (named) node.collective = named;
  if (value.name == "comm_size") node.bytes = number;
  if (value.name == "comm_src" || value.name == "src") node.source = number;
  if (value.name == "comm_dst" || value.name == "dst") node.destination = number;
  if (value.name == "comm_tag") node.tag = number;
  if (value.name == "root") node.root = number;
  if (value.name == "stream") node.stream = number;
  if (value.name == "in_split_size") node.in_parts = split_sizes_of(value);
  if (value.name == "out_split_size") node.out_parts = split_sizes_of(value);
  if (value.name == "involved_dim") node.dimensions.assign(value.numbers.begin(), value.numbers.end());
  if (value.name == "pg_name" || value.name == "communicator_id")
    node.group = number ? std::to_string(*number) : std::string(value.text);
}

// ---- Nodes

void read_flat_field(const ProtobufFields::Field& field, RecordedNode& node) {
  const auto number = static_cast<std::int64_t>(field.value);
  switch (field.number) {
    case 6:
      node.tensor_bytes = number;
      break;
    case 7:
      node.duration_us = field.value;
      break;
    case 12:
      node.operations = number;
      break;
    case 13:
      node.collective = collective_of(number, Schema::flat);
      break;
    case 14:
      node.dimensions.push_back(number != 0);
      break;
    case 15:
      node.group = std::to_string(number);
      break;
    case 16:
      node.source = number;
      break;
    case 17:
      node.destination = number;
      break;
    case 18:
      node.bytes = number;
      break;
    case 19:
      node.tag = number;
      break;
    default:
      break;
  }
}

void read_new_field(const ProtobufFields::Field& field, RecordedNode& node) {
  if (field.number == 5) append(field, node.waits);
  if (field.number == 6) node.start_us = field.value;
  if (field.number == 7) node.duration_us = field.value;
  if (field.number == 8 && node.kind == RecordedNode::Kind::metadata) {
    if (const auto values = ProtobufFields(field.content).next(); values && values->number == 1)
      node.groups_text = std::string(values->content);
  }
  if (field.number == 8 && node.kind == RecordedNode::Kind::collective) {
    if (const auto values = ProtobufFields(field.content).next(); values && values->number == 1)
      find_split_sizes(values->content, node.in_parts, node.out_parts);
  }
  if (field.number == 10) apply(read_attribute(field.content, Schema::one_value), Schema::one_value, node);
}

// Reads a node. Returns false if the bytes are none.
bool read_node(std::string_view record, Schema schema, RecordedNode& node) {
  ProtobufFields fields(record);
  while (!fields.at_end()) {
    const auto field = fields.next();
    if (!field || (field->type == 2 && field->content.size() != field->value)) return false;
    if (field->number == 1) {
      node.id = field->value;
    } else if (field->number == 2) {
      node.name = std::string(field->content);
    } else if (field->number == 3) {
      node.type = field->value;
      node.kind = kind_of(field->value, schema);
    } else if (field->number == 4) {
      append(*field, schema == Schema::one_value ? node.controls : node.waits);
    } else if (schema == Schema::one_value) {
      read_new_field(*field, node);
    } else if (schema == Schema::flat) {
      read_flat_field(*field, node);
    } else if (field->number == 11) {
      apply(read_attribute(field->content, schema), schema, node);
    }
  }
  return true;
}

// Returns whether the bytes are an attribute of schema 1.0.0: a name, then a value.
bool is_attribute(std::string_view bytes) {
  ProtobufFields fields(bytes);
  const auto name = fields.next(), value = fields.next();
  return name && name->number == 1 && name->type == 2 && value && value->number >= 3 && value->number <= 32;
}

// Returns the schema of a file by its first record, which is a node before 0.0.4. It is a node in later
// schemas, too, where a tool has left out the metadata.
Schema schema_of(std::string_view first) {
  if (!first.starts_with('\x08')) return Schema::one_value;
  ProtobufFields fields(first);
  bool has_attribute = false;
  while (const auto field = fields.next()) {
    has_attribute =
        has_attribute || (field->number == 10 && field->type == 2 && is_attribute(field->content));
    if (field->number != 11 || field->type != 2) continue;
    // 0.0.2 has INT 1 in field 5 and STRING 2 in field 6; 0.0.3 has FLOAT and an integer type there.
    std::uint64_t type = 0;
    ProtobufFields attribute(field->content);
    while (const auto part = attribute.next()) {
      if (part->number == 2) type = part->value;
      const bool untyped = (type == 1 && part->number == 5 && part->type == 0) ||
                           (type == 2 && part->number == 6 && part->type == 2);
      if (untyped) return Schema::untyped;
    }
    return Schema::typed;
  }
  return has_attribute ? Schema::one_value : Schema::flat;
}

}  // namespace

std::optional<std::int64_t> integer_of(double value) {
  constexpr double kMost = 9e18;
  if (!(value >= -kMost && value <= kMost)) return std::nullopt;
  return static_cast<std::int64_t>(value + (value < 0 ? -0.5 : 0.5));
}

RecordedNode::Kind chakra_kind(std::uint64_t type) {
  using Kind = RecordedNode::Kind;
  static constexpr std::array kKinds{Kind::invalid, Kind::metadata, Kind::memory_load, Kind::memory_store,
                                     Kind::compute, Kind::send,     Kind::receive,     Kind::collective};
  return type < kKinds.size() ? kKinds[type] : Kind::other;
}

std::string chakra_job_name(const InputSet::File& file) {
  RecordReader records(file);
  const auto first = records.next();
  if (!first || schema_of(*first) != Schema::one_value) return "";
  ProtobufFields fields(*first);
  while (const auto field = fields.next()) {
    if (field->number != 2 || field->type != 2) continue;
    const auto attribute = read_attribute(field->content, Schema::one_value);
    if (attribute.name == kChakraJob) return std::string(attribute.text);
  }
  return "";
}

void for_each_chakra_node(const InputSet::File& file, const std::function<void(RecordedNode&)>& visit) {
  RecordReader records(file);
  std::optional<Schema> schema;
  while (const auto record = records.next()) {
    if (!schema) {
      schema = schema_of(*record);
      const bool is_node = record->starts_with('\x08');
      if (*schema == Schema::one_value && !is_node) continue;  // the metadata of the file
    }
    if (record->empty()) continue;  // a node whose values are all 0
    RecordedNode node;
    if (!read_node(*record, *schema, node)) records.fail("fields that no node has");
    visit(node);
  }
}

}  // namespace netsim
