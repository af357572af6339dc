// Files. Output files get their names when they are complete, so that no reader sees a partial file. Input
// files are regular files of limited size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/temporary_files.h"

struct stat;

namespace netsim {

// Descriptor: a file descriptor that is closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  int number() const { return number_; }
  int release();

 private:
  int number_;
};

class OutputDirectory;

// OutputFile: a file that gets its name only at commit(); destroyed without commit, it leaves nothing. Every
// failure (open, write, full disk, rename) throws an IoError with the path and the reason. Writes are
// buffered.
//
// Until commit() the bytes are in a file beside it, ".NAME.PROCESS-NUMBER.partial".
class OutputFile {
 public:
  // Opens a file that the user has named. It replaces an existing file, also through symbolic links; a device
  // or a pipe is written directly. Throws IoError if the file is an input, read while a ReadLog of this
  // thread lives.
  explicit OutputFile(std::string path);
  // Opens a file of a run in the directory that the run holds, which must outlive it. commit() replaces
  // nothing.
  OutputFile(const OutputDirectory& directory, const std::string& name);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void write(std::string_view text);
  void write_integer(std::int64_t value);
  // Writes out the buffer and returns the size in bytes. Afterwards only commit() is allowed.
  std::uint64_t complete();
  void commit();
  // Returns the file's name without its directory.
  const std::string& name() const { return name_; }

 private:
  void create_partial();
  void discard();
  std::string path_, name_;  // path_: for messages
  Descriptor parent_;        // directory of a file that the user has named
  int directory_ = -1;       // directory of name_
  bool replaces_ = true;
  std::string partial_;  // empty after the end, and if a device or pipe is written directly
  std::optional<TemporaryFile> registered_;
  std::FILE* file_ = nullptr;
};

// WrittenFile: a file that a manifest names as written by its run.
struct WrittenFile {
  std::string name;
  std::optional<std::uint64_t> bytes;  // empty: any size
};

// OutputNames: the files that runs write into their directories.
struct OutputNames {
  std::vector<std::string> all;
  std::string manifest;  // the name in `all` of the file that lists the files written by its run
  // Returns the files that a manifest with this text names, or nothing if no run wrote the manifest.
  std::function<std::optional<std::vector<WrittenFile>>(const std::string& text)> read_manifest;
};

// OutputDirectory: the directory of one run's files. While the object lives, any other run, of this process
// or another, is refused with an IoError. A lock of the file `.netsim.lock` in the directory ensures this,
// and ends with the process. On a file system without locks runs are not refused, and files are still never
// partial.
//
// The directory is kept open, so that files follow it when it is moved. If it is removed, and perhaps made
// anew by another run, nothing is written and an IoError is thrown.
class OutputDirectory {
 public:
  // Creates the directory (and parents) if needed and removes partial files that killed runs left. Throws
  // IoError if it cannot be written, belongs to another run, or require_own() refuses it.
  OutputDirectory(std::string path, OutputNames names);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  // Throws an IoError if a file that netsim did not write has one of the names. A file is netsim's if it is
  // regular and the manifest names it with its size. An input, read while a ReadLog of this thread lives, is
  // always refused.
  // Returns the files that the manifest there names, or nothing if there is no manifest of netsim.
  std::optional<std::vector<WrittenFile>> require_own() const;
  // Throws IoError unless the directory still exists and is still locked.
  void require_held() const;
  // Removes the files of earlier runs in the order of the names. Then it removes other files that the
  // manifest names, as plugins write them, if they are regular and have the size that the manifest says. The
  // manifest is the last one, and nothing else is removed. Later files are therefore of this run, and a
  // killed run leaves no summary.
  void clear() const;

  int descriptor() const { return directory_.number(); }
  // Returns the path of the file `name`, for messages.
  std::string file(const std::string& name) const;

 private:
  void claim();
  bool holds_lock() const;
  void remove_partial_files() const;
  void remove(const std::string& name) const;
  void remove_written(const WrittenFile& file) const;
  std::optional<std::vector<WrittenFile>> read_manifest() const;
  std::string path_;
  OutputNames names_;
  Descriptor directory_, lock_;
  std::optional<TemporaryFile> registered_;
};

// Returns a CSV cell, quoted if it holds a comma, a quote or a line break.
std::string csv_cell(std::string_view text);

// Largest size of an input file: 1 GiB.
inline constexpr std::uint64_t kMaxInputFile = std::uint64_t{1} << 30;

// Opens an input file and returns its `status`. Throws IoError if it cannot be opened or is not a regular
// file. Pipes and devices are refused: inputs are read more than once, and those might have no end.
Descriptor open_input(const std::string& path, struct ::stat& status);
// Reads `most` bytes into `to`, or fewer at the end of the file, and returns their number. Throws IoError,
// which names `path`.
std::size_t read_up_to(const Descriptor& file, const std::string& path, char* to, std::size_t most);
// Reads a whole input file. Throws IoError if open_input() does, or if it is larger than `limit` bytes.
std::string read_file(const std::string& path, std::uint64_t limit = kMaxInputFile);

// ContentHash: the 64-bit hash of a file's content, for manifests, computed piece by piece.
class ContentHash {
 public:
  explicit ContentHash(std::uint64_t size);  // bytes of the file
  // Adds the next piece. All pieces but the last one have a multiple of 8 bytes.
  void add(std::string_view piece);
  std::string hex() const;

 private:
  std::uint64_t hash_;
};
// Returns the hash of a whole content.
std::string content_hash(std::string_view bytes);

}  // namespace netsim
