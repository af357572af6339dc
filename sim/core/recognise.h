// What a file is, by its content: one table of formats. netsim's own and those that it reads are added by the
// files that read them, those that it does not read yet by sim/workload/readers/unread_formats.cpp; a reader
// that comes takes its format from there. Whoever is given a file asks here what it is before reading it, and
// names it in the refusal where it is not what was wanted.
//
// A format looks at the beginning of the file only (kExcerpt bytes, unpacked where it is gzip). Several may
// say yes: then the file's name decides, and if it does not, the order of the formats' names.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/config.h"

namespace netsim {

inline constexpr std::size_t kExcerpt = 256 << 10;

// The beginning of a file, and what can be seen of it at a glance.
class Excerpt {
 public:
  // `beginning`: of the file as it is, at least kExcerpt bytes of it or all; `size`: of the whole file. The
  // bytes must outlive the excerpt.
  Excerpt(std::string_view beginning, std::uint64_t size);
  Excerpt(const Excerpt&) = delete;
  Excerpt& operator=(const Excerpt&) = delete;

  std::string_view bytes() const { return bytes_; }  // unpacked, without a byte order mark
  std::uint64_t size() const { return size_; }       // of the file; of what is unpacked, as far as known
  bool packed() const { return packed_; }            // gzip
  // No control characters but white space.
  bool is_text() const { return is_text_; }
  bool contains(std::string_view part) const { return bytes_.find(part) != std::string_view::npos; }

  // Text: the first lines that are neither empty nor comments (#, //), without white space around them.
  std::size_t lines() const { return lines_.size(); }
  std::string_view line(std::size_t i) const;  // "" beyond them
  // Words of a line; the cells between `separator`s.
  std::vector<std::string_view> words(std::size_t line) const;
  std::vector<std::string_view> cells(std::size_t line, char separator) const;

  // Text: the keys of a JSON object (of the first one in a JSON list), or of a YAML map of several lines or
  // one ({...}).
  bool has_key(std::string_view key) const;
  bool has_keys(std::initializer_list<std::string_view> keys) const;
  bool has_any_key(std::initializer_list<std::string_view> keys) const;
  const std::vector<std::string_view>& keys() const { return keys_; }
  // The outermost element's name, "" where it is no XML.
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

// Helpers of formats that are text.
bool is_integer_word(std::string_view word);  // decimal digits, at least one
bool is_number_word(std::string_view word);   // 1, 2.5, 1e-6, -1
bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words);

// Some of the hosts that a file describes: parameters of its host component, and how many there are.
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
  std::string component;  // workload: the reader's name ("": netsim's own); topology: the kind's name
  std::string advice;     // what to do with it; "": by its use
  std::vector<std::string> endings;  // of files' names, for the tie break
  // topology: where hosts of a file are of several kinds, a group of each, in the order of the fabric's
  // ports; else nothing. `component`: {kind: ..., file: ...}. InputError where the file is wrong.
  std::vector<HostsOfFile> (*groups)(const ConfigNode& component) = nullptr;
};

// Adds a format; before main() only.
struct FormatRegistration {
  explicit FormatRegistration(Format format);
};

// All of them, by name.
const std::vector<Format>& formats();
// Those that say yes to the content, the best first. For tests; recognise() takes the first.
std::vector<const Format*> matching_formats(const Excerpt& file, const std::string& path);

// Null for what no format knows. `path` is for the tie break.
const Format* recognise(std::string_view content, const std::string& path);
// The same for a file, of which no more than the beginning is read; null for what cannot be read and for what
// is no regular file.
const Format* recognise_file(const std::string& path);

// Why a file of this format is refused: "is a Chakra execution trace; netsim does not read them yet".
std::string refusal(const Format& format);
// InputError where the content is recognised as something else than the format of that name.
void require_format(std::string_view content, const std::string& path, const std::string& name);
// True where `path` begins as a gzip file does.
bool is_packed(const std::string& path);

}  // namespace netsim
