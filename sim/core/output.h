// Files: those we write appear under their names when they are complete, so that nobody ever sees half a
// file; those we read are regular files of a limited size.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace netsim {

// A file that appears under its name only at commit(); destroyed without commit it leaves nothing. Every
// failure (open, write, full disk, rename) is an IoError with the path and the reason. Buffered; write() is
// cheap. Until commit() the bytes are in a file of its own beside it, ".NAME.PROCESS-NUMBER.partial".
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void write(std::string_view text);
  void write_integer(std::int64_t value);
  void commit();
  const std::string& path() const { return path_; }

 private:
  void discard();
  std::string path_, target_, temporary_;  // temporary_ is empty where a device or pipe is written directly
  std::FILE* file_ = nullptr;
};

// The directory of one run's files, this run's while the object lives: another run (of this process or
// another) is refused with one IoError. The claim is a lock of the file `.netsim.lock` in it, which ends with
// the process, however it ends; on a file system without locks there is no claim, and files are still never
// torn.
class OutputDirectory {
 public:
  // Creates the directory (and parents) if needed and removes partial files that killed runs left. `names`:
  // of all files that runs ever write there. IoError if it cannot be written or belongs to another run.
  OutputDirectory(std::string path, std::vector<std::string> names);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  // Removes the files of earlier runs, in the order of the names, and nothing else: what lies there later is
  // of this run, and a run that is killed leaves nothing that says that it ended.
  void clear() const;
  // The path of the file `name`, which is one of the names.
  std::string file(const std::string& name) const;

 private:
  void remove_partial_files() const;
  std::string path_;
  std::vector<std::string> names_;
  int lock_ = -1;
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
