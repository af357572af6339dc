// Output files: written beside their place and renamed when complete, so that nobody ever sees half a file.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace netsim {

// A file that appears under its name only at commit(); destroyed without commit it leaves nothing. Every
// failure (open, write, full disk, rename) is an IoError with the path and the reason. Buffered; write() is
// cheap.
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

// Creates the directory (and parents) if needed and proves that it can be written. IoError otherwise.
void prepare_directory(const std::string& path);

// A CSV cell: quoted when it holds a comma, a quote or a line break.
std::string csv_cell(std::string_view text);

// Reads a whole file. IoError if it cannot be read, or is larger than `limit` bytes.
std::string read_file(const std::string& path, std::uint64_t limit = 1ULL << 32);

// 64-bit content hash in hex, for manifests.
std::string content_hash(std::string_view bytes);

}  // namespace netsim
