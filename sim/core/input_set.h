// InputSet: the files of one input. An input is a file, several files, or a folder with its files. They are
// read in pieces of bytes (InputStream) or in lines (line_reader.h), so that their sizes have no limit.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/output.h"

namespace netsim {

// InputPaths: the files and folders that the user names as one input, in the user's order.
class InputPaths {
 public:
  InputPaths() = default;
  // NOLINTBEGIN(google-explicit-constructor): one path is an input
  InputPaths(std::vector<std::string> paths) : paths_(std::move(paths)) {}
  // An empty path means that no input is named.
  InputPaths(std::string path) {
    if (!path.empty()) paths_.push_back(std::move(path));
  }
  InputPaths(const char* path) : InputPaths(std::string(path)) {}
  // NOLINTEND
  bool operator==(const InputPaths&) const = default;

  bool empty() const { return paths_.empty(); }
  const std::vector<std::string>& all() const { return paths_; }
  // Returns the paths for messages: "a.csv" or "a.csv, b.csv".
  std::string text() const;

 private:
  std::vector<std::string> paths_;
};

// InputSet: the files of an input, which may be read several times. It is a value without open files.
class InputSet {
 public:
  // Version: tells whether a file is still the one that was found.
  struct Version {
    ::dev_t device = 0;
    ::ino_t inode = 0;
    std::int64_t modified_s = 0, modified_ns = 0;
    bool operator==(const Version&) const = default;
  };
  struct File {
    std::string path;        // path by which it is opened and named in messages
    std::uint64_t size = 0;  // bytes
    Version version;
    std::shared_ptr<const std::string> content;  // content of a file in memory; null for a file on the disk
    bool in_folder = false;                      // whether the user named its folder, and not the file
  };

  // Finds the files. Those of a folder are sorted by the bytes of their names; names that begin with a point
  // are left out. Throws IoError for a file that is missing, is not regular or cannot be opened. Throws
  // InputError for a folder without files, a folder within a folder, and a file that is given twice.
  explicit InputSet(const InputPaths& paths);
  // Makes an input of (path, content) pairs that are not on the disk.
  static InputSet in_memory(std::vector<std::pair<std::string, std::string>> files);

  // Returns the files; there is at least one.
  const std::vector<File>& files() const { return files_; }
  // Keeps the files for which `keeps` is true, in their order; there must be at least one. It has an entry
  // for each file.
  void keep(const std::vector<bool>& keeps);
  // Returns the only file. Throws InputError if there are several; `what` names the format, such as "a
  // connection matrix".
  const File& only(const std::string& what) const;
  // Returns the input as the user named it, for messages.
  const std::string& name() const { return name_; }

  // Returns an upper bound of the number of lines, from a pass over the files.
  std::uint64_t count_lines() const;
  // Adds the files to the ReadLog of this thread, except those that it lists already.
  void log() const;

 private:
  InputSet() = default;
  void add(const std::string& path);
  void add_folder(const std::string& path);
  void add_file(const std::string& path, bool in_folder);

  std::string name_;
  std::vector<File> files_;
};

// InputStream: reads a file from its beginning to its end. A gzip file is unpacked as it is read.
class InputStream {
 public:
  // Throws IoError if the file cannot be opened or is not the one that the InputSet found.
  explicit InputStream(const InputSet::File& file);
  ~InputStream();
  InputStream(InputStream&&) noexcept;
  InputStream& operator=(InputStream&&) = delete;
  // Reads the next bytes to `to` and returns their number, which is less than `most` only at the end. Throws
  // IoError if the file cannot be read or changed meanwhile, and InputError for a gzip file that is damaged.
  std::size_t read(char* to, std::size_t most);

 private:
  class Unpacker;
  std::size_t read_stored(char* to, std::size_t most);
  std::size_t read_stored_from_begin(char* to, std::size_t most);

  InputSet::File file_;
  Descriptor descriptor_;
  std::uint64_t at_ = 0;                // stored bytes read so far
  std::string begin_;                   // stored bytes that were read to see whether it is a gzip file
  std::unique_ptr<Unpacker> unpacker_;  // null for a file that is not packed
};

// Reads the whole file, and unpacks a gzip file. Throws InputError if it has more than `limit` bytes, stored
// or unpacked, and IoError as InputStream does. The ReadLog of this thread lists it afterwards.
std::string read_file(const InputSet::File& file, std::uint64_t limit = kMaxInputFile);

}  // namespace netsim
