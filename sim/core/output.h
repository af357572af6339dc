// Files: those we write appear under their names when they are complete, so that nobody ever sees half a
// file; those we read are regular files of a limited size.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/temporary_files.h"

namespace netsim {

// A file descriptor that is closed at the end.
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

// A file that appears under its name only at commit(); destroyed without commit it leaves nothing. Every
// failure (open, write, full disk, rename) is an IoError with the path and the reason. Buffered; write() is
// cheap. Until commit() the bytes are in a file of its own beside it, ".NAME.PROCESS-NUMBER.partial".
class OutputFile {
 public:
  // A file that the user has named: it replaces what has that name, through symbolic links; a device or a
  // pipe is written directly. IoError where the file is an input, read while a ReadLog of this thread lives.
  explicit OutputFile(std::string path);
  // A file of a run, in the directory that the run holds, which must outlive it. commit() replaces nothing.
  OutputFile(const OutputDirectory& directory, const std::string& name);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void write(std::string_view text);
  void write_integer(std::int64_t value);
  // Writes out what is buffered and returns the size in bytes. Afterwards only commit() is allowed.
  std::uint64_t complete();
  void commit();
  // The file's name without its directory.
  const std::string& name() const { return name_; }

 private:
  void create_partial();
  void discard();
  std::string path_, name_;  // path_: for messages
  Descriptor parent_;        // of a file that the user has named
  int directory_ = -1;       // where name_ is
  bool replaces_ = true;
  std::string partial_;  // empty where a device or pipe is written directly, and after the end
  std::optional<TemporaryFile> registered_;
  std::FILE* file_ = nullptr;
};

// A file that a manifest names as written by its run.
struct WrittenFile {
  std::string name;
  std::optional<std::uint64_t> bytes;  // nothing: of any size
};

// The files that runs write into their directories.
struct OutputNames {
  std::vector<std::string> all;
  std::string manifest;  // one of them, which names those that its run wrote
  // Returns the files that a manifest with this text names; nothing if no run wrote the manifest.
  std::function<std::optional<std::vector<WrittenFile>>(const std::string& text)> read_manifest;
};

// The directory of one run's files, this run's while the object lives: another run (of this process or
// another) is refused with one IoError. The claim is a lock of the file `.netsim.lock` in it, which ends with
// the process, however it ends; on a file system without locks there is no claim, and files are still never
// torn.
//
// The directory is kept open, so that files go with it where it is moved. Where it is removed, and perhaps
// made anew by another run, nothing is written, and an IoError says so.
class OutputDirectory {
 public:
  // Creates the directory (and parents) if needed and removes partial files that killed runs left. IoError if
  // it cannot be written or belongs to another run, or if require_own() refuses it.
  OutputDirectory(std::string path, OutputNames names);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  // Throws an IoError if something that netsim did not write has one of the names. A file is netsim's if it
  // is regular and the manifest names it with its size. An input, read while a ReadLog of this thread lives,
  // is refused in any case.
  void require_own() const;
  // IoError unless the directory is still there and still held.
  void require_held() const;
  // Removes the files of earlier runs in the order of the names, the manifest last, and nothing else. So what
  // lies there later is of this run, and a run that is killed leaves no summary.
  void clear() const;

  int descriptor() const { return directory_.number(); }
  // The path of the file `name`, for messages.
  std::string file(const std::string& name) const;

 private:
  void claim();
  bool holds_lock() const;
  void remove_partial_files() const;
  void remove(const std::string& name) const;
  std::optional<std::vector<WrittenFile>> read_manifest() const;
  std::string path_;
  OutputNames names_;
  Descriptor directory_, lock_;
  std::optional<TemporaryFile> registered_;
};

// A CSV cell: quoted when it holds a comma, a quote or a line break.
std::string csv_cell(std::string_view text);

// No input is larger: 1 GiB.
inline constexpr std::uint64_t kMaxInputFile = std::uint64_t{1} << 30;

// Reads a whole regular file. IoError, at once, if it cannot be read, is something else (a pipe, a device, a
// directory: inputs are read more than once, and would have no end) or is larger than `limit` bytes.
std::string read_file(const std::string& path, std::uint64_t limit = kMaxInputFile);

// 64-bit content hash in hex, for manifests.
std::string content_hash(std::string_view bytes);

}  // namespace netsim
