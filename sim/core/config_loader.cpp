#include "sim/core/config_loader.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "sim/core/config_text.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr std::size_t kMaxNodes = 100'000;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

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
    throw ConfigError(text_place(name, text, text.size() - rest.size()),
                      "a directive ('%...') is not allowed");
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
  check_config_size(text.size(), root_.place_, "document");
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
  if (node.place_.path.size() > kMaxConfigPath) {
    fail(mark, "a path of more than " + std::to_string(kMaxConfigPath) + " bytes is not allowed");
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
  if (text.size() > kMaxConfigKey) {
    fail(mark, "key '" + shortened(text) + "' has " + std::to_string(text.size()) + " bytes: at most " +
                   std::to_string(kMaxConfigKey) + " are allowed");
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
  if (frames_.size() >= kMaxConfigDepth) {
    fail(mark, "nested deeper than " + std::to_string(kMaxConfigDepth) + " levels is not allowed");
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

ConfigNode load_yaml(const std::string& text, const std::string& name, const std::string& base,
                     bool is_file) {
  return ConfigLoader(name, base, is_file).load(text);
}

}  // namespace netsim
