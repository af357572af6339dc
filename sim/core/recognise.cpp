#include "sim/core/recognise.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {
namespace {

constexpr std::size_t kLines = 8;       // lines of an excerpt
constexpr std::size_t kMostKeys = 256;  // keys of an object

bool is_json_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_json_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_json_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b\x08"); }

// Unpacks as much as there is, up to kExcerpt bytes.
std::string unpack(std::string_view packed) {
  std::string result(kExcerpt, '\0');
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzip) != Z_OK) return {};
  std::string input(packed);  // zlib's interface takes no const
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  inflate(&stream, Z_SYNC_FLUSH);
  result.resize(result.size() - stream.avail_out);
  inflateEnd(&stream);
  return result;
}

std::string_view without_mark(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

// Returns whether the bytes have no control characters. Any other byte can occur in a text, because text may
// have any encoding that extends ASCII.
bool looks_like_text(std::string_view bytes) {
  return std::none_of(bytes.begin(), bytes.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && !is_json_blank(c) && c != '\f' && c != '\v') || c == 0x7f;
  });
}

// JsonKeys: finds the keys of the object with which a JSON text begins, alone or first in a list; also those
// of YAML's {key: value}. Brackets that are not closed end with the text.
class JsonKeys {
 public:
  explicit JsonKeys(std::string_view text) : text_(text) {}

  std::vector<std::string_view> find() {
    std::vector<std::string_view> keys;
    skip_space();
    if (take('[')) skip_space();
    if (!take('{')) return keys;
    while (at_ < text_.size() && keys.size() < kMostKeys) {
      skip_space();
      const std::string_view key = trimmed(word());
      skip_space();
      if (key.empty() || !take(':')) break;
      keys.push_back(key);
      skip_value();
      if (!take(',')) break;
    }
    return keys;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && is_json_blank(text_[at_])) ++at_;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // Reads a quoted or bare word.
  std::string_view word() {
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) return quoted();
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::string_view(":,{}[]").find(text_[at_]) == std::string_view::npos) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  std::string_view quoted() {
    const char quote = text_[at_];
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_, text_.size());
    const std::string_view inside = text_.substr(begin, at_ - begin);
    take(quote);
    return inside;
  }
  // Skips a value, up to the comma or bracket behind it.
  void skip_value() {
    for (int depth = 0; at_ < text_.size();) {
      const char c = text_[at_];
      if (c == '"') {
        quoted();
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}' || c == ']')) return;
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// Returns the key of "key: value" or "key:", or "".
std::string_view yaml_key(std::string_view line) {
  if (line.empty() || is_json_blank(line.front()) ||
      std::string_view("-#{[<").find(line.front()) != std::string_view::npos)
    return {};
  for (std::size_t at = line.find(':'); at != std::string_view::npos; at = line.find(':', at + 1)) {
    if (at + 1 < line.size() && !is_json_blank(line[at + 1])) continue;
    std::string_view key = trimmed(line.substr(0, at));
    const bool quoted =
        key.size() > 1 && key.front() == key.back() && (key.front() == '"' || key.front() == '\'');
    return quoted ? key.substr(1, key.size() - 2) : key;
  }
  return {};
}

// Returns the first element after a prolog, comments and a document type.
std::string_view outermost_element(std::string_view text) {
  while (true) {
    text = trimmed(text);
    if (!text.starts_with('<')) return {};
    const bool comment = text.starts_with("<!--");
    if (!comment && !text.starts_with("<?") && !text.starts_with("<!")) break;
    const std::size_t end = comment ? text.find("-->") : text.find('>');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + (comment ? 3 : 1));
  }
  text.remove_prefix(1);
  const std::size_t end = std::min(text.find_first_of(" \t\r\n/>"), text.size());
  return text.substr(0, end);
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::string beginning_of(const std::string& path, std::size_t bytes) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rbe"));
  if (!file) return {};
  std::string result(bytes, '\0');
  result.resize(std::fread(result.data(), 1, bytes, file.get()));
  return result;
}

bool is_regular(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

std::vector<Format>& table() {
  static std::vector<Format> formats;
  return formats;
}

const Format* best_format(const Excerpt& file, const std::string& path) {
  const std::vector<const Format*> found = matching_formats(file, path);
  return found.empty() ? nullptr : found.front();
}

}  // namespace

Excerpt::Excerpt(std::string_view beginning, std::uint64_t size) : size_(size) {
  packed_ = is_gzip(beginning);
  if (packed_) {
    unpacked_ = unpack(beginning.substr(0, kExcerpt));
    if (unpacked_.size() < kExcerpt) size_ = unpacked_.size();
  }
  const std::string_view all = packed_ ? std::string_view(unpacked_) : beginning;
  bytes_ = without_mark(all.substr(0, kExcerpt));
  is_text_ = looks_like_text(bytes_);
  if (!is_text_) return;
  find_lines();
  xml_root_ = outermost_element(bytes_);
  keys_ = JsonKeys(bytes_).find();
  if (keys_.empty()) find_yaml_keys();
}

void Excerpt::find_lines() {
  std::string_view rest = bytes_;
  while (!rest.empty() && lines_.size() < kLines) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(rest.substr(0, end));
    if (!line.empty() && line.front() != '#' && !line.starts_with("//")) lines_.push_back(line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

void Excerpt::find_yaml_keys() {
  std::string_view rest = bytes_;
  while (!rest.empty() && keys_.size() < kMostKeys) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view key = yaml_key(rest.substr(0, end));
    if (!key.empty()) keys_.push_back(key);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

std::string_view Excerpt::line(std::size_t i) const {
  return i < lines_.size() ? lines_[i] : std::string_view();
}

std::vector<std::string_view> Excerpt::words(std::size_t i) const {
  std::vector<std::string_view> result;
  std::string_view rest = line(i);
  while (!rest.empty()) {
    const auto end =
        static_cast<std::size_t>(std::find_if(rest.begin(), rest.end(), is_json_blank) - rest.begin());
    result.push_back(rest.substr(0, end));
    rest = trimmed(rest.substr(end));
  }
  return result;
}

std::vector<std::string_view> Excerpt::cells(std::size_t i, char separator) const {
  std::vector<std::string_view> result;
  const std::string_view whole = line(i);
  for (std::size_t at = 0; at <= whole.size() && !whole.empty();) {
    const std::size_t end = std::min(whole.find(separator, at), whole.size());
    result.push_back(trimmed(whole.substr(at, end - at)));
    at = end + 1;
  }
  return result;
}

bool Excerpt::has_key(std::string_view key) const {
  return std::find(keys_.begin(), keys_.end(), key) != keys_.end();
}

bool Excerpt::has_keys(std::initializer_list<std::string_view> keys) const {
  return std::all_of(keys.begin(), keys.end(), [this](std::string_view key) { return has_key(key); });
}

bool Excerpt::has_any_key(std::initializer_list<std::string_view> keys) const {
  return std::any_of(keys.begin(), keys.end(), [this](std::string_view key) { return has_key(key); });
}

bool is_integer_word(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_number_word(std::string_view word) {
  double value = 0;
  const auto result = std::from_chars(word.data(), word.data() + word.size(), value);
  return result.ec == std::errc() && result.ptr == word.data() + word.size() && std::isfinite(value);
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

FormatRegistration::FormatRegistration(Format format) {
  std::vector<Format>& all = table();
  const auto before = [](const Format& a, const Format& b) { return a.name < b.name; };
  all.insert(std::upper_bound(all.begin(), all.end(), format, before), std::move(format));
}

const std::vector<Format>& formats() { return table(); }

std::vector<const Format*> matching_formats(const Excerpt& file, const std::string& path) {
  std::vector<const Format*> found;
  for (const Format& format : table()) {
    if (format.matches(file)) found.push_back(&format);
  }
  std::stable_partition(found.begin(), found.end(), [&](const Format* format) {
    return std::any_of(format->endings.begin(), format->endings.end(),
                       [&](const std::string& ending) { return path.ends_with(ending); });
  });
  return found;
}

const Format* recognise(std::string_view content, const std::string& path) {
  return best_format(Excerpt(content, content.size()), path);
}

const Format* recognise(const InputSet::File& file, std::string* first_bytes) {
  std::string beginning(kExcerpt, '\0');
  InputStream stream(file);
  beginning.resize(stream.read(beginning.data(), beginning.size()));
  if (first_bytes != nullptr) *first_bytes = beginning.substr(0, kFirstBytes);
  return best_format(Excerpt(beginning, file.size), file.path);
}

const Format* recognise_file(const std::string& path) {
  if (!is_regular(path)) return nullptr;
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  const std::string beginning = beginning_of(path, kExcerpt);
  return best_format(Excerpt(beginning, error ? beginning.size() : size), path);
}

std::string refusal(const Format& format) {
  if (!format.advice.empty()) return "is " + format.what + ": " + format.advice;
  switch (format.use) {
    case Format::Use::workload:
      return "is " + format.what + ": give it as --workload";
    case Format::Use::configuration:
      return "is " + format.what + ": give it as --config";
    case Format::Use::topology:
      return "is " + format.what +
             ": give it as --config, or name it in a configuration: `topology: {kind: " + format.component +
             ", file: ...}`";
    case Format::Use::part:
    case Format::Use::none:
      break;
  }
  return "is " + format.what + "; netsim does not read them yet";
}

void require_format(std::string_view content, const std::string& path, const std::string& name) {
  const Format* found = recognise(content, path);
  if (found != nullptr && found->name != name) throw InputError(Place{path, 0, 0, ""}, refusal(*found));
}

bool is_packed(const std::string& path) { return is_regular(path) && is_gzip(beginning_of(path, 3)); }

}  // namespace netsim
