#include "sim/core/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/fingerprint.h"
#include "sim/core/read_log.h"

namespace netsim {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kBufferSize = std::size_t{1} << 20;

[[noreturn]] void fail(const std::string& path, const char* what, const std::string& reason) {
  throw IoError("'" + path + "': " + what + ": " + reason);
}
[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  fail(path, what, std::generic_category().message(error));
}

// Where the bytes of `path` really go: through a symbolic link, so that renaming does not replace the link.
fs::path destination(const std::string& path) {
  std::error_code error;
  if (fs::is_symlink(fs::path(path), error)) {
    fs::path real = fs::canonical(path, error);
    if (!error) return real;
  }
  return path;
}

// A device or a pipe cannot be replaced by renaming: it is written directly.
bool is_special(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::uint64_t load_little_endian(const char* bytes, std::size_t count) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < count; ++i) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return word;
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) fail(path_, "cannot be written", "the name is empty");
  const fs::path target = destination(path_);
  std::error_code error;
  if (fs::is_directory(target, error)) fail(path_, "cannot be written", EISDIR);
  const bool direct = is_special(target);
  const fs::path opened =
      direct ? target : target.parent_path() / ("." + target.filename().string() + ".partial");
  file_ = std::fopen(opened.c_str(), "wbe");
  if (file_ == nullptr) fail(path_, "cannot be written", errno);
  if (!direct) temporary_ = opened.string();
  target_ = target.string();
  std::setvbuf(file_, nullptr, _IOFBF, kBufferSize);
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::discard() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  file_ = nullptr;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::write(std::string_view text) {
  NETSIM_CHECK(file_ != nullptr, "write to " + path_ + " after its end");
  if (std::fwrite(text.data(), 1, text.size(), file_) == text.size()) return;
  const int error = errno;
  discard();
  fail(path_, "cannot be written", error);
}

void OutputFile::write_integer(std::int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  write({digits, static_cast<std::size_t>(end - digits)});
}

void OutputFile::commit() {
  NETSIM_CHECK(file_ != nullptr, "commit of " + path_ + " after its end");
  if (std::fflush(file_) != 0) {
    const int error = errno;
    discard();
    fail(path_, "cannot be written", error);
  }
  std::FILE* file = std::exchange(file_, nullptr);
  int error = std::fclose(file) != 0 ? errno : 0;
  if (temporary_.empty() && error == 0) return;
  if (error == 0 && std::rename(temporary_.c_str(), target_.c_str()) != 0) error = errno;
  if (error == 0) return;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  fail(path_, "cannot be written", error);
}

void prepare_directory(const std::string& path) {
  if (path.empty()) fail(path, "cannot be the output directory", "the name is empty");
  std::error_code error;
  fs::create_directories(path, error);
  const bool there = fs::is_directory(path);
  if (!there && fs::exists(path)) fail(path, "cannot be the output directory", ENOTDIR);
  if (!there) fail(path, "the output directory cannot be created", error.message());
  std::string probe = (fs::path(path) / ".netsim-XXXXXX").string();
  const int descriptor = ::mkstemp(probe.data());
  if (descriptor < 0) fail(path, "the output directory cannot be written", errno);
  ::close(descriptor);
  ::unlink(probe.c_str());
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + "\"";
}

std::string read_file(const std::string& path, std::uint64_t limit) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rbe"));
  if (!file) fail(path, "cannot be read", errno);
  std::string result;
  std::size_t size = 0;
  std::error_code unknown;
  const std::uintmax_t expected = fs::file_size(path, unknown);  // of a regular file
  const std::size_t first = unknown ? kBufferSize / 4 : static_cast<std::size_t>(std::min<std::uintmax_t>(expected, limit)) + 1;
  do {
    result.resize(size + (size == 0 ? first : size));
    const std::size_t count = std::fread(result.data() + size, 1, result.size() - size, file.get());
    if (std::ferror(file.get()) != 0) fail(path, "cannot be read", errno);
    size += count;
    if (size > limit)
      fail(path, "cannot be read", "it is larger than the limit, " + std::to_string(limit) + " bytes");
  } while (size == result.size());
  result.resize(size);
  ReadLog::note(path, result);
  return result;
}

std::string content_hash(std::string_view bytes) {
  std::uint64_t hash = hash_combine(hash_name("content"), bytes.size());
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    hash =
        hash_combine(hash, load_little_endian(bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i)));
  }
  Fingerprint fingerprint;
  fingerprint.add(hash);
  return fingerprint.hex();
}

}  // namespace netsim
