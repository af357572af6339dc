#include "sim/workload/trace/chakra_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/protobuf_fields.h"
#include "sim/core/recognise.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJsonFormat = "chakra_json";
constexpr const char* kGroupsFormat = "chakra_groups";
constexpr const char* kDimensionsFormat = "astra_dimensions";

std::optional<ChakraInput::RankFile> rank_file(const InputSet::File& file) {
  fs::path path(file.path);
  if (path.extension() == ".gz") path = path.parent_path() / path.stem();
  const std::string ending = path.extension().string(), numbered = path.stem().string();
  // Tools write NAME.R.et, and users rename it to NAME_R.et or rankR.et.
  const std::size_t last = numbered.find_last_not_of("0123456789");
  const std::size_t begin = last == std::string::npos ? 0 : last + 1;
  std::string_view name = std::string_view(numbered).substr(0, begin);
  const bool parted = name.ends_with('.') || name.ends_with('_') || name.ends_with('-');
  if (begin == numbered.size() || (!parted && !lower_case(name).ends_with("rank"))) return std::nullopt;
  if (parted) name.remove_suffix(1);
  std::uint32_t rank = 0;
  const char* const end_of_number = numbered.data() + numbered.size();
  if (std::from_chars(numbered.data() + begin, end_of_number, rank).ec != std::errc()) return std::nullopt;
  return ChakraInput::RankFile{file, (path.parent_path() / name).string(), ending, rank, false};
}

bool is_groups(const std::string& path) {
  const InputSet one{InputPaths(path)};
  const Format* format = recognise(one.files().front());
  return format != nullptr && format->name == kGroupsFormat;
}

// Adds the other ranks' files, and the communicators, to an input of one file.
InputSet with_neighbours(const InputSet& input) {
  if (input.files().size() != 1 || input.files().front().content != nullptr) return input;
  const auto given = rank_file(input.files().front());
  if (!given) return input;
  fs::path folder = fs::path(given->stem).parent_path();
  if (folder.empty()) folder = ".";
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string path =
        given->stem.find('/') == std::string::npos ? at->path().filename().string() : at->path().string();
    const auto other = rank_file({path, 0, {}, nullptr});
    const bool same = other && other->stem == given->stem && other->ending == given->ending;
    const bool groups = path == given->stem + ".json";
    if (same || (groups && is_groups(path))) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths.empty() ? input : InputSet(InputPaths(paths));
}
bool is_text_of(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x20; });
}

// Returns the message after a length, which may be empty; nothing where there is none.
std::optional<std::string_view> after_length(ProtobufFields& wire, std::uint64_t size) {
  const auto length = wire.varint();
  if (!length || *length > size) return std::nullopt;
  return wire.take(*length);
}

// Matches GlobalMetadata{string version = 1; AttributeProto attr = 2}, AttributeProto{string name = 1; ...}.
bool is_chakra_metadata(std::string_view message) {
  ProtobufFields wire(message);
  const auto first = wire.next();
  if (!first || first->type != 2) return false;
  if (first->number == 1)
    return first->content.size() < 40 &&
           first->content.find_first_not_of("0123456789.") == std::string_view::npos;
  const auto name = ProtobufFields(first->content).next();
  return first->number == 2 && name && name->number == 1 && name->type == 2 && is_text_of(name->content);
}

// Matches Node{uint64 id = 1; string name = 2; NodeType type = 3; ...}; an id of 0 may be left out.
bool is_chakra_node(std::string_view message) {
  ProtobufFields wire(message);
  auto field = wire.next();
  if (field && field->number == 1 && field->type == 0) field = wire.next();
  if (!field || field->number != 2 || field->type != 2) return false;
  const auto type = wire.next();
  // A name may have any characters, so a node is known by its type.
  const bool typed = type && type->number == 3 && type->type == 0 && type->value < 16;
  return typed || (type && wire.at_end() && is_text_of(field->content));
}

// Matches pairs of length and message: metadata (since 0.0.4), then nodes.
bool is_chakra(const Excerpt& file) {
  ProtobufFields wire(file.bytes());
  const auto first = after_length(wire, file.size());
  if (!first) return false;
  if (is_chakra_node(*first)) return true;
  if (!first->empty() && !is_chakra_metadata(*first)) return false;
  if (wire.at_end()) return !first->empty();
  const auto second = after_length(wire, file.size());
  return second && is_chakra_node(*second);
}

// Matches a map from numbers to ranks.
bool is_communicator_groups(const Excerpt& file) {
  return file.bytes().starts_with('{') && !file.keys().empty() && file.contains("[") &&
         std::all_of(file.keys().begin(), file.keys().end(), is_integer_word);
}

Format chakra_format(const char* name, const char* what, bool (*matches)(const Excerpt&),
                     std::vector<std::string> endings) {
  return {.name = name,
          .what = what,
          .use = Format::Use::workload,
          .matches = matches,
          .component = "chakra",
          .advice = {},
          .endings = std::move(endings)};
}

const FormatRegistration kChakraFormats[] = {
    FormatRegistration(chakra_format("chakra_et", "a Chakra execution trace", is_chakra, {".et", ".eg"})),
    FormatRegistration(chakra_format(kJsonFormat, "a Chakra execution trace (JSON)",
                                     [](const Excerpt& f) { return f.has_key("workload_graph"); },
                                     {".json"})),
    FormatRegistration(chakra_format(kGroupsFormat, "a list of communicators for Chakra traces",
                                     is_communicator_groups, {".json"})),
    FormatRegistration(chakra_format(kDimensionsFormat, "the logical dimensions of ASTRA-sim's ns-3 backend",
                                     [](const Excerpt& f) { return f.has_key("logical-dims"); }, {".json"}))};

}  // namespace

ChakraInput::ChakraInput(const InputSet& input) {
  const InputSet all = with_neighbours(input);
  for (const InputSet::File& file : all.files()) add(file);
  if (ranks_.empty()) fail_file(input.name(), "has no trace of a rank; allowed: NAME.0.et, NAME.1.et, ...");
  std::sort(ranks_.begin(), ranks_.end(),
            [](const RankFile& a, const RankFile& b) { return a.rank < b.rank; });
  for (std::size_t i = 0; i < ranks_.size(); ++i) check(input, i);
}

std::string ChakraInput::name() const { return fs::path(ranks_.front().stem).filename().string(); }

void ChakraInput::add(const InputSet::File& file) {
  const Format* format = recognise(file);
  const std::string kind = format == nullptr ? "" : format->name;
  if (kind == kGroupsFormat) return read_groups(file);
  if (kind == kDimensionsFormat) return read_dimensions(file);
  auto one = rank_file(file);
  if (!one)
    fail_file(
        file.path,
        "is a trace of one rank, which its name does not tell; allowed: NAME.R.et, NAME_R.et, rankR.et");
  one->json = kind == kJsonFormat;
  ranks_.push_back(std::move(*one));
}

void ChakraInput::check(const InputSet& input, std::size_t i) const {
  const RankFile &first = ranks_.front(), &here = ranks_[i];
  if (here.stem != first.stem) {
    fail_file(here.file.path, "is of another trace than " + first.file.path +
                                  "; allowed: the ranks of one trace (give one of its files)");
  }
  if (here.rank == i) return;
  if (i > 0 && here.rank == ranks_[i - 1].rank)
    fail_file(here.file.path, "is of the rank of " + ranks_[i - 1].file.path);
  fail_file(input.name(),
            fmt::format("has no trace of rank {}, and one of rank {}; allowed: all ranks from 0", i,
                        here.rank + 0U));
}

void ChakraInput::read_groups(const InputSet::File& file) {
  const nlohmann::json document = nlohmann::json::parse(read_file(file), nullptr, false);
  if (!document.is_object()) fail_file(file.path, R"(is no list of communicators: {"1": [0, 1]})");
  for (const auto& [name, members] : document.items()) {
    std::vector<RankId>& ranks = groups_[name];
    for (const nlohmann::json& member : members) {
      if (!member.is_number_unsigned())
        fail_file(file.path, "communicator " + name + " has a member that is no rank");
      ranks.emplace_back(member.get<std::uint32_t>());
    }
  }
}

void ChakraInput::read_dimensions(const InputSet::File& file) {
  const nlohmann::json document = nlohmann::json::parse(read_file(file), nullptr, false);
  const auto list = document.is_object() ? document.find("logical-dims") : document.end();
  if (list == document.end() || !list->is_array())
    fail_file(file.path, R"(has no list of dimensions: {"logical-dims": ["8", "2"]})");
  for (const nlohmann::json& size : *list) {
    const std::string text = size.is_string() ? size.get<std::string>() : size.dump();
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value == 0)
      fail_file(file.path, "has a dimension '" + printable(text) + "'; allowed: sizes from 1");
    dimensions_.push_back(value);
  }
}

}  // namespace netsim
