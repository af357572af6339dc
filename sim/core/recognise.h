// Recognises the format of a file by its content, with one table of formats. Each reader adds its formats;
// sim/workload/readers/unread_formats.cpp adds those that netsim does not read yet. Code that reads a file
// recognises it first, and names the format when it refuses a wrong file.
//
// A format is matched with the beginning of the file only (kExcerpt bytes, unpacked if it is gzip). If
// several formats match, the file's name decides, then the order of the formats' names.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/input_set.h"

namespace netsim {

inline constexpr std::size_t kExcerpt = 256 << 10;

// Excerpt: the beginning of a file, with the facts that formats are recognised by.
class Excerpt {
 public:
  // `beginning` holds at least kExcerpt bytes of the file, or all of it; `size` is that of the whole file.
  // The bytes must outlive the excerpt.
  Excerpt(std::string_view beginning, std::uint64_t size);
  Excerpt(const Excerpt&) = delete;
  Excerpt& operator=(const Excerpt&) = delete;

  std::string_view bytes() const { return bytes_; }  // unpacked, without a byte order mark
  std::uint64_t size() const { return size_; }       // bytes of the file, unpacked as far as known
  bool packed() const { return packed_; }            // gzip
  // Returns whether it has no control characters but white space.
  bool is_text() const { return is_text_; }
  bool contains(std::string_view part) const { return bytes_.find(part) != std::string_view::npos; }

  // Return the first lines of a text that are neither empty nor comments (#, //), without white space around
  // them.
  std::size_t lines() const { return lines_.size(); }
  std::string_view line(std::size_t i) const;  // "" beyond them
  // Return the words of a line, and its cells between `separator`s.
  std::vector<std::string_view> words(std::size_t line) const;
  std::vector<std::string_view> cells(std::size_t line, char separator) const;

  // Return facts on the keys of a text. The keys are those of a JSON object (the first one of a JSON list),
  // or of a YAML map in block or flow notation.
  bool has_key(std::string_view key) const;
  bool has_keys(std::initializer_list<std::string_view> keys) const;
  bool has_any_key(std::initializer_list<std::string_view> keys) const;
  const std::vector<std::string_view>& keys() const { return keys_; }
  // Returns the name of the outermost XML element, or "" where it is no XML.
  std::string_view xml_root() const { return xml_root_; }

 private:
  void find_lines();
  void find_yaml_keys();

  std::string unpacked_;
  std::string_view bytes_;
  std::uint64_t size_;
  bool packed_ = false, is_text_ = false;
  std::vector<std::string_view> lines_, keys_;
  std::string_view xml_root_;
};

// Helpers for formats that are text.
bool is_integer_word(std::string_view word);  // decimal digits, at least one
bool is_number_word(std::string_view word);   // 1, 2.5, 1e-6, -1
bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words);

// HostsOfFile: a group of equal hosts that a file describes, with the parameters of its host component and
// its size.
struct HostsOfFile {
  std::vector<std::pair<std::string, std::string>> parameters;
  std::uint32_t count = 1;
};

struct Format {
  enum class Use : std::uint8_t {
    workload,       // --workload
    configuration,  // --config
    topology,       // --config, or topology.file
    part,           // a file that another one names
    none            // not read yet
  };
  std::string name;  // "chakra_et"
  std::string what;  // "a Chakra execution trace"
  Use use = Use::none;
  bool (*matches)(const Excerpt& file) = nullptr;
  std::string component;             // the reader's name ("" for netsim's own), or the topology's kind
  std::string advice;                // advice to the user on the file; "" for the advice of its use
  std::vector<std::string> endings;  // endings of file names, for the tie break
  // Topologies only: returns a group for each kind of host in the order of the fabric's ports, or nothing if
  // all hosts are alike. `component` is {kind: ..., file: ...}. Throws InputError for a wrong file.
  std::vector<HostsOfFile> (*groups)(const ConfigNode& component) = nullptr;
};

// Adds a format. It may only be called before main(), or while a plugin is loaded.
struct FormatRegistration {
  explicit FormatRegistration(Format format);
};

// Returns all formats, sorted by name.
const std::vector<Format>& formats();
// Returns the formats that match the content, the best first. recognise() takes the first.
std::vector<const Format*> matching_formats(const Excerpt& file, const std::string& path);

// Returns the format of a content, or null for none. `path` is for the tie break.
const Format* recognise(std::string_view content, const std::string& path);
// Returns the format of a file, of which it reads only the beginning. Returns null for a file that cannot be
// read or is not regular.
const Format* recognise_file(const std::string& path);

// Bytes by which a file of no known format is taken for text or for binary data.
inline constexpr std::size_t kFirstBytes = 64;
// Returns the format of a file of an input, from its beginning, or null for none. `first_bytes`, if given,
// receives the first kFirstBytes of the file, so that the caller need not open it again.
const Format* recognise(const InputSet::File& file, std::string* first_bytes = nullptr);

// Returns why a file of this format is refused: "is a Chakra execution trace; netsim does not read them yet".
std::string refusal(const Format& format);
// Throws InputError where the content is recognised as another format than the named one.
void require_format(std::string_view content, const std::string& path, const std::string& name);
// Returns true where the file at `path` begins as a gzip file does.
bool is_packed(const std::string& path);

}  // namespace netsim
