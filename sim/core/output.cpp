#include "sim/core/output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/fingerprint.h"
#include "sim/core/read_log.h"

namespace netsim {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kBufferSize = std::size_t{1} << 20;
constexpr const char* kLockFile = ".netsim.lock";

[[noreturn]] void fail(const std::string& path, const char* what, const std::string& reason) {
  throw IoError("'" + path + "': " + what + ": " + reason);
}
[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  fail(path, what, std::generic_category().message(error));
}

// Where the bytes of `path` really go: through symbolic links, so that renaming does not replace a link.
fs::path destination(const std::string& path) {
  constexpr int kLinks = 40;
  fs::path real = path;
  std::error_code error;
  for (int i = 0; i < kLinks && fs::is_symlink(real, error); ++i) {
    const fs::path target = fs::read_symlink(real, error);
    if (error) break;
    real = real.parent_path() / target;
  }
  return real;
}

// A device or a pipe cannot be replaced by renaming: it is written directly.
bool is_special(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

// A new file beside `target`, which no other OutputFile has, whoever made it.
std::FILE* create_beside(const fs::path& target, fs::path& partial) {
  static std::atomic<unsigned> made{0};
  const std::string prefix = "." + target.filename().string() + "." + std::to_string(::getpid()) + "-";
  int descriptor = -1;
  do {
    partial = target.parent_path() / (prefix + std::to_string(made++) + ".partial");
    descriptor = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EEXIST);
  return descriptor < 0 ? nullptr : ::fdopen(descriptor, "wb");
}

// A descriptor that is closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// What a file that is not regular is.
const char* kind_of(const struct stat& status) {
  if (S_ISFIFO(status.st_mode)) return "it is a pipe, and inputs are read more than once: save it as a file";
  if (S_ISSOCK(status.st_mode)) return "it is a socket, not a file";
  return "it is a device, not a file";
}

// The lock file, locked; -1 if another run has it. Whoever ends removes it: then it is another file than the
// one that has been locked, and the next try is for the new one.
int claim(const std::string& directory, const std::string& path) {
  while (true) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
    if (file.number() < 0) fail(directory, "the output directory cannot be written", errno);
    if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return -1;
      return file.release();  // the file system has no locks
    }
    struct stat locked {};
    struct stat there {};
    const bool same = ::fstat(file.number(), &locked) == 0 && ::lstat(path.c_str(), &there) == 0 &&
                      locked.st_ino == there.st_ino && locked.st_dev == there.st_dev;
    if (same) return file.release();
  }
}

// Whether `name` is that of a partial file of one of `names`.
bool is_partial_of(const std::vector<std::string>& names, const std::string& name) {
  return name.starts_with('.') && name.ends_with(".partial") &&
         std::any_of(names.begin(), names.end(),
                     [&](const std::string& of) { return name.compare(1, of.size() + 1, of + ".") == 0; });
}

void remove_regular(const fs::path& path) {
  std::error_code error;
  const fs::path real = destination(path.string());
  if (!fs::is_regular_file(fs::symlink_status(real, error))) return;
  if (::unlink(real.c_str()) != 0 && errno != ENOENT) fail(path.string(), "cannot be replaced", errno);
}

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
  fs::path opened = target;
  file_ = direct ? std::fopen(opened.c_str(), "wbe") : create_beside(target, opened);
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
  if (text.empty() || std::fwrite(text.data(), 1, text.size(), file_) == text.size()) return;
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

OutputDirectory::OutputDirectory(std::string path, std::vector<std::string> names)
    : path_(std::move(path)), names_(std::move(names)) {
  if (path_.empty()) fail(path_, "cannot be the output directory", "the name is empty");
  std::error_code error;
  fs::create_directories(path_, error);
  const bool there = fs::is_directory(path_);
  if (!there && fs::exists(path_)) fail(path_, "cannot be the output directory", ENOTDIR);
  if (!there) fail(path_, "the output directory cannot be created", error.message());
  lock_ = claim(path_, (fs::path(path_) / kLockFile).string());
  if (lock_ < 0)
    fail(path_, "cannot be the output directory", "another run writes there now; give each its own --out");
  remove_partial_files();
}

OutputDirectory::~OutputDirectory() {
  ::unlink((fs::path(path_) / kLockFile).c_str());
  ::close(lock_);
}

void OutputDirectory::clear() const {
  for (const std::string& name : names_) remove_regular(fs::path(path_) / name);
}

void OutputDirectory::remove_partial_files() const {
  std::error_code error;
  fs::directory_iterator entry(path_, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (is_partial_of(names_, entry->path().filename().string())) remove_regular(entry->path());
  }
}

std::string OutputDirectory::file(const std::string& name) const {
  NETSIM_CHECK(std::find(names_.begin(), names_.end(), name) != names_.end(), "no run writes " + name);
  return (fs::path(path_) / name).string();
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
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // a pipe may have no writer
  struct stat status {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) fail(path, "cannot be read", errno);
  if (S_ISDIR(status.st_mode)) fail(path, "cannot be read", EISDIR);
  if (!S_ISREG(status.st_mode)) fail(path, "cannot be read", kind_of(status));
  const auto too_large = [&] {
    fail(path, "cannot be read", "it is larger than the limit, " + std::to_string(limit) + " bytes");
  };
  const auto expected = static_cast<std::uint64_t>(status.st_size);  // 0 for files of /proc
  if (expected > limit) too_large();
  std::string result(expected + 1, '\0');
  std::size_t size = 0;
  while (true) {
    if (size == result.size()) result.resize(size + std::max(size, kBufferSize / 4));
    const ::ssize_t count = ::read(file.number(), result.data() + size, result.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, "cannot be read", errno);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
    if (size > limit) too_large();
  }
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
