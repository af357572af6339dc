#include "sim/core/config.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>

#include "sim/core/output.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr std::size_t kMaxDocument = 4 << 20;
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxNodes = 100'000;
constexpr std::size_t kMaxKey = 128;    // bytes; YAML itself ends simple keys at 1024 characters
constexpr std::size_t kMaxPath = 1024;  // bytes; every node keeps its path
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_null_text(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

std::string joined_path(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

std::string shortened(std::string_view text) {
  constexpr std::size_t kMax = 60;
  if (text.size() <= kMax) return std::string(text);
  std::size_t end = kMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside a character
  return std::string(text.substr(0, end)) + "...";
}

// Returns the place of byte `offset` of a text.
Place place_of(const std::string& name, std::string_view text, std::size_t offset) {
  Place place{name, 1, 1, ""};
  for (std::size_t i = 0; i < offset; ++i) {
    if (text[i] == '\n') {
      ++place.line;
      place.column = 1;
    } else {
      ++place.column;
    }
  }
  return place;
}

// Refuses control characters and bytes that are not UTF-8. yaml-cpp takes byte 4 for the end of the file and
// silently replaces bytes that are not UTF-8.
void check_characters(std::string_view text, const std::string& name) {
  if (const auto found = find_not_text(text); found)
    throw ConfigError(place_of(name, text, found->offset), found->what);
}

// Refuses lines with '%' before the document, which yaml-cpp skips.
void check_directives(std::string_view text, const std::string& name) {
  std::string_view rest = text;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  while (true) {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
    if (!rest.starts_with('#')) break;
    rest.remove_prefix(std::min(rest.find('\n'), rest.size()));
  }
  if (rest.starts_with('%')) {
    throw ConfigError(place_of(name, text, text.size() - rest.size()), "a directive ('%...') is not allowed");
  }
}

// Returns line `line` (from 1) of a text, without its end.
std::string_view line_of(std::string_view text, int line) {
  for (; line > 1; --line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

bool tab_in_indentation(std::string_view line) {
  const std::size_t end = line.find_first_not_of(" \t");
  return line.substr(0, end).find('\t') != std::string_view::npos;
}

// Returns yaml-cpp's error in netsim's notation. yaml-cpp often reports a tab's consequence one or two lines
// later.
ConfigError syntax_error(const YAML::Exception& error, const std::string& text, const std::string& name) {
  Place place{name, error.mark.line + 1, error.mark.column + 1, ""};
  for (int line = place.line; line > 0 && line >= place.line - 1; --line) {
    if (!tab_in_indentation(line_of(text, line))) continue;
    place.line = line;
    place.column = static_cast<int>(line_of(text, line).find('\t')) + 1;
    return {place, "a tab in the indentation: YAML allows only spaces there"};
  }
  return {place, "this is not YAML: " + error.msg};
}

}  // namespace

// ConfigLoader: builds the tree from yaml-cpp's events. Content that config.h excludes is refused at the
// event that shows it.
class ConfigLoader : public YAML::EventHandler {
 public:
  // `base` is the dotted path of the root. Lines and columns are kept only for files.
  ConfigLoader(std::string name, std::string base, bool is_file)
      : name_(std::move(name)), base_(std::move(base)), is_file_(is_file) {}

  ConfigNode load(const std::string& text);

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ == 0) return;
    const bool marked = text_.substr(static_cast<std::size_t>(mark.pos)).starts_with("---");
    fail(mark,
         marked ? "a second document starts here: one is allowed" : "this follows the end of the document");
  }
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& mark, const std::string& anchor) override {
    fail(mark, "anchor '&" + shortened(anchor) + "': anchors and aliases are not allowed");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, "anchors and aliases are not allowed");
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    if (expects_key()) fail(mark, "a key is missing before ':'");
    add(start(ConfigNode::Kind::null, mark));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(ConfigNode::Kind::sequence, mark, tag);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    open(ConfigNode::Kind::map, mark, tag);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Key {
    std::string text;
    YAML::Mark mark;
  };
  struct Frame {
    ConfigNode node;
    std::optional<Key> key;                  // key whose value has not been read
    std::map<std::string, YAML::Mark> seen;  // keys so far
  };

  bool says_null(const YAML::Mark& mark) const {
    const std::string_view rest =
        std::string_view(text_).substr(std::min(static_cast<std::size_t>(mark.pos), text_.size()));
    const std::string_view word = rest.substr(0, rest.find_first_of(" \t\r\n,]}#"));
    return !word.empty() && is_null_text(word);
  }
  bool expects_key() const {
    return !frames_.empty() && frames_.back().node.is_map() && !frames_.back().key.has_value();
  }
  std::string next_path() const;
  Place place(const YAML::Mark& mark, std::string path) const {
    return is_file_ ? Place{name_, mark.line + 1, mark.column + 1, std::move(path)}
                    : Place{name_, 0, 0, std::move(path)};
  }
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const {
    throw ConfigError(place(mark, next_path()), message);
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if ((tag.empty() || tag == "?" || tag == "!") && text_[static_cast<std::size_t>(mark.pos)] != '!') return;
    fail(mark, "tag '" + shortened(tag) + "': tags are not allowed");
  }
  void check_closed(const YAML::Mark& mark) const;
  ConfigNode start(ConfigNode::Kind kind, const YAML::Mark& mark);
  void add(ConfigNode node);
  void take_key(const YAML::Mark& mark, const std::string& text, bool quoted);
  void open(ConfigNode::Kind kind, const YAML::Mark& mark, const std::string& tag);
  void close();

  std::string name_, base_;
  bool is_file_;
  std::string_view text_;  // yaml-cpp's marks count its bytes
  std::size_t documents_ = 0, nodes_ = 0;
  std::vector<Frame> frames_;
  ConfigNode root_;
};

ConfigNode ConfigLoader::load(const std::string& text) {
  root_.place_ = Place{name_, 0, 0, base_};
  if (text.size() > kMaxDocument) {
    throw ConfigError(root_.place_, "the document has " + std::to_string(text.size()) + " bytes: at most " +
                                        std::to_string(kMaxDocument) + " (4 MiB) are allowed");
  }
  check_characters(text, name_);
  check_directives(text, name_);
  text_ = text;
  if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(*this)) {
    }
  } catch (const YAML::Exception& error) {
    throw syntax_error(error, text, name_);
  }
  return std::move(root_);
}

void ConfigLoader::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                            const std::string& value) {
  check_tag(mark, tag);
  const bool quoted = tag == "!";
  if (quoted) check_closed(mark);
  if (const auto escaped = find_not_text(value); escaped) fail(mark, escaped->what);
  if (expects_key()) return take_key(mark, value, quoted);
  ConfigNode node = start(ConfigNode::Kind::scalar, mark);
  node.text_ = value;
  node.quoted_ = quoted;
  add(std::move(node));
}

// Refuses a quote without its end. yaml-cpp lets it run to the end of the file, if that ends with a line
// break.
void ConfigLoader::check_closed(const YAML::Mark& mark) const {
  auto i = static_cast<std::size_t>(mark.pos);
  const char quote = i < text_.size() ? text_[i] : ' ';
  if (quote != '\'' && quote != '"') return;  // a block scalar
  for (++i; i < text_.size(); ++i) {
    if (quote == '"' && text_[i] == '\\') {
      ++i;
    } else if (text_[i] == quote) {
      const bool doubled = quote == '\'' && i + 1 < text_.size() && text_[i + 1] == quote;
      if (!doubled) return;
      ++i;
    }
  }
  fail(mark, "the quote that opens here is never closed");
}

std::string ConfigLoader::next_path() const {
  if (frames_.empty()) return base_;
  const Frame& frame = frames_.back();
  const std::string& path = frame.node.place_.path;
  if (frame.node.is_sequence()) return joined_path(path, std::to_string(frame.node.items_.size()));
  return frame.key.has_value() ? joined_path(path, frame.key->text) : path;
}

ConfigNode ConfigLoader::start(ConfigNode::Kind kind, const YAML::Mark& mark) {
  if (++nodes_ > kMaxNodes) fail(mark, "more than " + std::to_string(kMaxNodes) + " values are not allowed");
  ConfigNode node;
  node.kind_ = kind;
  node.place_ = place(mark, next_path());
  if (node.place_.path.size() > kMaxPath) {
    fail(mark, "a path of more than " + std::to_string(kMaxPath) + " bytes is not allowed");
  }
  if (frames_.empty() || !frames_.back().key.has_value()) return node;
  const Place key = place(frames_.back().key->mark, "");
  node.key_line_ = key.line;
  node.key_column_ = key.column;
  if (kind == ConfigNode::Kind::null && !says_null(mark))
    node.place_ = node.key_place();  // an empty value, for which yaml-cpp reports the next token's place
  return node;
}

void ConfigLoader::add(ConfigNode node) {
  if (frames_.empty()) {
    root_ = std::move(node);
    return;
  }
  Frame& frame = frames_.back();
  if (frame.node.is_sequence()) {
    frame.node.items_.push_back(std::move(node));
  } else {
    frame.node.entries_.emplace_back(std::move(frame.key->text), std::move(node));
    frame.key.reset();
  }
}

void ConfigLoader::take_key(const YAML::Mark& mark, const std::string& text, bool quoted) {
  if (text.empty()) fail(mark, "an empty key is not allowed");
  if (text.size() > kMaxKey) {
    fail(mark, "key '" + shortened(text) + "' has " + std::to_string(text.size()) + " bytes: at most " +
                   std::to_string(kMaxKey) + " are allowed");
  }
  if (text == "<<" && !quoted) fail(mark, "merge key '<<': merging is not allowed, write the keys out");
  Frame& frame = frames_.back();
  const auto [first, is_new] = frame.seen.try_emplace(text, mark);
  if (!is_new) {
    const Place before = place(first->second, "");
    throw ConfigError(place(mark, joined_path(frame.node.place_.path, text)),
                      "key '" + text + "' is given twice" +
                          (is_file_ ? ", the first time at " + before.to_string() : std::string()));
  }
  frame.key = Key{text, mark};
}

void ConfigLoader::open(ConfigNode::Kind kind, const YAML::Mark& mark, const std::string& tag) {
  check_tag(mark, tag);
  if (expects_key())
    fail(mark, "a list or map as a key is not allowed: keys are plain text (or a bracket is not closed)");
  if (frames_.size() >= kMaxDepth) {
    fail(mark, "nested deeper than " + std::to_string(kMaxDepth) + " levels is not allowed");
  }
  Frame frame;
  frame.node = start(kind, mark);
  frames_.push_back(std::move(frame));
}

void ConfigLoader::close() {
  ConfigNode node = std::move(frames_.back().node);
  frames_.pop_back();
  add(std::move(node));
}

// ---- ConfigNode ----

ConfigNode ConfigNode::scalar(std::string text, Place place) {
  ConfigNode node;
  node.kind_ = Kind::scalar;
  node.text_ = std::move(text);
  node.place_ = std::move(place);
  return node;
}

ConfigNode ConfigNode::map(Place place) {
  ConfigNode node;
  node.kind_ = Kind::map;
  node.place_ = std::move(place);
  return node;
}

ConfigNode ConfigNode::sequence(Place place) {
  ConfigNode node;
  node.kind_ = Kind::sequence;
  node.place_ = std::move(place);
  return node;
}

Place ConfigNode::key_place() const {
  Place place = place_;
  if (key_line_ > 0) {
    place.line = key_line_;
    place.column = key_column_;
  }
  return place;
}

const ConfigNode& section_of(const ConfigNode& root, std::string_view name) {
  static const ConfigNode absent;
  const ConfigNode* node = root.find(name);
  return node != nullptr ? *node : absent;
}

const ConfigNode* ConfigNode::find(std::string_view key) const {
  for (const auto& [name, node] : entries_) {
    if (name == key) return &node;
  }
  return nullptr;
}

ConfigNode ConfigNode::without(std::string_view key) const {
  ConfigNode result = *this;
  std::erase_if(result.entries_, [&](const auto& entry) { return entry.first == key; });
  return result;
}

ConfigNode& ConfigNode::at_or_add(const std::string& key) {
  if (is_null()) kind_ = Kind::map;
  if (!is_map()) fail("'" + key + "' cannot be set inside " + (is_scalar() ? "a single value" : "a list"));
  for (auto& [name, node] : entries_) {
    if (name == key) return node;
  }
  ConfigNode node;
  node.place_ = Place{place_.file, 0, 0, joined_path(place_.path, key)};
  return entries_.emplace_back(key, std::move(node)).second;
}

void ConfigNode::fail(const std::string& message) const { throw ConfigError(place_, message); }

void ConfigNode::allow_keys(const std::vector<std::string>& allowed) const {
  if (is_null()) return;
  std::string list;
  for (const std::string& key : allowed) list += (list.empty() ? "" : ", ") + key;
  if (is_scalar())
    fail("'" + shortened(text_) + "' stands where keys and values are expected (allowed: " + list + ")");
  if (is_sequence()) fail("a list stands where keys and values are expected (allowed: " + list + ")");
  for (const auto& [key, node] : entries_) {
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    const std::string near = nearest(key, allowed);
    throw ConfigError(node.key_place(), "unknown key '" + key + "'" +
                                            (near.empty() ? "" : ", did you mean '" + near + "'?") +
                                            " (allowed: " + (list.empty() ? "none" : list) + ")");
  }
}

// ---- loading ----

ConfigNode load_config(const std::string& path) {
  std::error_code error;
  const auto size =
      std::filesystem::is_regular_file(path, error) ? std::filesystem::file_size(path, error) : 0;
  if (!error && size > kMaxDocument) {
    throw ConfigError(Place{path, 0, 0, ""}, "the file has " + std::to_string(size) + " bytes: at most " +
                                                 std::to_string(kMaxDocument) + " (4 MiB) are allowed");
  }
  return parse_config(read_file(path, kMaxDocument), path);
}

ConfigNode parse_config(const std::string& text, const std::string& name) {
  return ConfigLoader(name, "", true).load(text);
}

// ---- --set ----

// ConfigOverlay: one assignment with its path and value.
class ConfigOverlay {
 public:
  explicit ConfigOverlay(const std::string& assignment) : assignment_(assignment) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos) fail("has no '='");
    path_ = assignment.substr(0, equals);
    split_path();
    value_ = parse_value(assignment.substr(equals + 1));
  }

  void apply(ConfigNode& root) {
    ConfigNode* node = &root;
    std::string path;
    for (const std::string& component : components_) {
      path = joined_path(path, component);
      node = node->is_sequence() ? &item(*node, component) : &entry(*node, component, path);
    }
    *node = std::move(value_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw ConfigError(Place{"--set", 0, 0, ""},
                      "'" + shortened(assignment_) + "' " + message + ": write path.to.key=value");
  }
  void split_path() {
    std::size_t begin = 0;
    while (true) {
      const std::size_t end = std::min(path_.find('.', begin), path_.size());
      components_.push_back(path_.substr(begin, end - begin));
      if (components_.back().empty()) fail("has an empty name in its path");
      if (components_.back().size() > kMaxKey) fail("has a too long name in its path");
      if (end == path_.size()) break;
      begin = end + 1;
    }
    if (components_.size() > kMaxDepth || path_.size() > kMaxPath) fail("has a too long path");
    check_characters(path_, "--set");
  }
  ConfigNode parse_value(const std::string& text) const {
    const std::size_t first = text.find_first_not_of(' ');
    if (first == std::string::npos) fail("has no value ('null' stands for the default)");
    ConfigNode value = ConfigLoader("--set", path_, false).load(text);
    const bool flow = text[first] == '{' || text[first] == '[';
    if (!flow && (value.is_map() || value.is_sequence())) {
      value.fail("'" + shortened(text) + "' is not one value: write {key: value} or [item, item]");
    }
    const std::size_t last = text.find_last_not_of(' ');
    if (value.is_null() && !is_null_text(text.substr(first, last + 1 - first))) {
      value.fail("'" + shortened(text) + "' is not a value");
    }
    return value;
  }
  ConfigNode& item(ConfigNode& sequence, const std::string& component) const {
    std::size_t index = 0;
    const char* end = component.data() + component.size();
    const auto result = std::from_chars(component.data(), end, index);
    if (result.ec != std::errc() || result.ptr != end || index >= sequence.items_.size()) {
      const std::size_t count = sequence.items_.size();
      throw ConfigError(Place{"--set", 0, 0, path_},
                        "'" + sequence.place_.path + "' is a list: '" + component +
                            "' is not one of its items (" +
                            (count == 0 ? "it is empty" : "0 to " + std::to_string(count - 1)) + ")");
    }
    return sequence.items_[index];
  }
  // Returns the entry of a node. A bare component name `dcqcn` becomes `{kind: dcqcn}`, so that parameters
  // can be added.
  ConfigNode& entry(ConfigNode& node, const std::string& component, const std::string& path) const {
    if (node.is_scalar()) {
      ConfigNode kind = node;
      kind.place_.path = joined_path(node.place_.path, "kind");
      node.kind_ = ConfigNode::Kind::map;
      node.text_.clear();
      node.quoted_ = false;
      node.entries_.emplace_back("kind", std::move(kind));
    }
    ConfigNode& child = node.at_or_add(component);
    if (child.is_null()) child.place_ = Place{"--set", 0, 0, path};
    return child;
  }

  std::string assignment_, path_;
  std::vector<std::string> components_;
  ConfigNode value_;
};

void overlay_config(ConfigNode& root, const std::string& assignment) {
  ConfigOverlay(assignment).apply(root);
}

// ---- writing ----

namespace {

// Returns whether the text certainly reads back as the same text without quotes.
bool plain(const std::string& text) {
  constexpr std::string_view kInside =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-% ()";
  constexpr std::string_view kFirst = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+";
  if (is_null_text(text) || text.find_first_not_of(kInside) != std::string::npos) return false;
  const bool number = text.size() > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9';
  if (kFirst.find(text[0]) == std::string_view::npos && !number) return false;
  return text.back() != ' ' && text != "..." && !text.starts_with("... ");
}

std::string quoted(const std::string& text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      result += std::string("\\x") + kHex[byte >> 4] + kHex[byte & 15];
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

void write_yaml(const ConfigNode& node, std::size_t indent, bool in_line, std::string& out);

// Writes the value after "key:" or "-": on the same line, or below, indented.
void write_value(const ConfigNode& node, std::size_t indent, bool after_dash, std::string& out) {
  const bool block = !node.entries().empty() || !node.items().empty();
  if (block && !after_dash) {
    out += '\n';
    write_yaml(node, indent, false, out);
  } else {
    out += ' ';
    write_yaml(node, indent, true, out);
  }
}

// `in_line` means that the first line's indentation is already written.
void write_yaml(const ConfigNode& node, std::size_t indent, bool in_line, std::string& out) {
  if (node.entries().empty() && node.items().empty()) {
    if (node.is_null()) out += "null";
    if (node.is_scalar()) out += !node.quoted() && plain(node.text()) ? node.text() : quoted(node.text());
    if (node.is_map()) out += "{}";
    if (node.is_sequence()) out += "[]";
    out += '\n';
    return;
  }
  for (const auto& [key, value] : node.entries()) {
    if (!in_line) out.append(indent, ' ');
    in_line = false;
    out += (plain(key) ? key : quoted(key)) + ":";
    write_value(value, indent + 2, false, out);
  }
  for (const ConfigNode& value : node.items()) {
    if (!in_line) out.append(indent, ' ');
    in_line = false;
    out += '-';
    write_value(value, indent + 2, true, out);
  }
}

}  // namespace

std::string to_yaml(const ConfigNode& node) {
  std::string out;
  write_yaml(node, 0, false, out);
  return out;
}

// ---- nearest ----

namespace {

// Returns the edit distance with swaps of neighbours (optimal string alignment), ignoring case.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = to_lower(a[i - 1]) == to_lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0U : 1U)});
      const bool swapped = i > 1 && j > 1 && to_lower(a[i - 1]) == to_lower(b[j - 2]) &&
                           to_lower(a[i - 2]) == to_lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > kMaxKey) return "";
  std::string best;
  std::size_t best_distance = word.size() / 2 + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

}  // namespace netsim
