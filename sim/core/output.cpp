#include "sim/core/output.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
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

// Returns the path after all symbolic links, so that renaming does not replace a link.
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

// Creates a file `partial` beside `name` that no other OutputFile of any process has. It is registered before
// it exists, so that it is removed at any signal.
std::FILE* create_beside(int directory, const std::string& name, std::string& partial,
                         std::optional<TemporaryFile>& registered) {
  static std::atomic<unsigned> made{0};
  constexpr std::size_t kLongest = 200;  // bytes of the name; the rest must fit into NAME_MAX, too
  const std::string prefix = "." + name.substr(0, kLongest) + "." + std::to_string(::getpid()) + "-";
  int descriptor = -1;
  do {
    partial = prefix + std::to_string(made++) + ".partial";
    registered.emplace(directory, partial);
    descriptor =
        ::openat(directory, partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  } while (descriptor < 0 && errno == EEXIST);
  if (descriptor >= 0) return ::fdopen(descriptor, "wb");
  const int error = errno;
  registered.reset();
  errno = error;
  return nullptr;
}

// Renames without replacing anything. Returns false with errno set where it cannot be done.
bool rename_new(int directory, const char* from, const char* to) {
  if (::renameat2(directory, from, directory, to, RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  struct stat there {};  // a file system without support for the flag
  if (::fstatat(directory, to, &there, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return false;
  }
  return ::renameat(directory, from, directory, to) == 0;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns whether `file` is the name of a partial file of `name`: ".NAME.PROCESS-NUMBER.partial".
bool is_partial_of(const std::string& name, std::string_view file) {
  const std::string prefix = "." + name + ".";
  constexpr std::string_view kEnding = ".partial";
  if (!file.starts_with(prefix) || !file.ends_with(kEnding)) return false;
  if (file.size() < prefix.size() + kEnding.size()) return false;
  const std::string_view numbers = file.substr(prefix.size(), file.size() - prefix.size() - kEnding.size());
  const std::size_t dash = numbers.find('-');
  return dash != std::string_view::npos && is_number(numbers.substr(0, dash)) &&
         is_number(numbers.substr(dash + 1));
}

// Names the kind of something that is no regular file.
const char* kind_of(const struct stat& status) {
  if (S_ISLNK(status.st_mode)) return "a symbolic link";
  if (S_ISDIR(status.st_mode)) return "a directory";
  if (S_ISFIFO(status.st_mode)) return "a pipe";
  if (S_ISSOCK(status.st_mode)) return "a socket";
  return "a device";
}

// Returns why an input that is no regular file is refused.
std::string refusal(const struct stat& status) {
  const std::string what = std::string("it is ") + kind_of(status);
  return what + (S_ISFIFO(status.st_mode) ? ", and inputs are read more than once: save it as a file"
                                          : ", not a file");
}

constexpr const char* kIsInput = "it is an input of this run, which would be replaced: name another";

bool is_input(const struct stat& status) {
  return S_ISREG(status.st_mode) && ReadLog::has_read({status.st_dev, status.st_ino});
}

// Reads a whole file; `path` names it in messages.
std::string read_descriptor(const Descriptor& file, const std::string& path, std::uint64_t limit,
                            const struct stat& status) {
  const auto too_large = [&] {
    fail(path, "cannot be read", "it is larger than the limit, " + std::to_string(limit) + " bytes");
  };
  const auto expected = static_cast<std::uint64_t>(status.st_size);  // 0 for files of /proc
  if (expected > limit) too_large();
  std::string result(expected + 1, '\0');
  std::size_t size = 0;
  while (true) {
    if (size == result.size()) result.resize(size + std::max(size, kBufferSize / 4));
    const std::size_t room = result.size() - size;
    const std::size_t count = read_up_to(file, path, result.data() + size, room);
    size += count;
    if (size > limit) too_large();
    if (count < room) break;
  }
  result.resize(size);
  return result;
}

std::uint64_t load_little_endian(const char* bytes, std::size_t count) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < count; ++i) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return word;
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

int Descriptor::release() { return std::exchange(number_, -1); }

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) fail(path_, "cannot be written", "the name is empty");
  const fs::path target = destination(path_);
  name_ = target.filename().string();
  struct stat status {};
  const bool there = ::stat(target.c_str(), &status) == 0;
  if (!there && errno != ENOENT) fail(path_, "cannot be written", errno);
  if (there && S_ISDIR(status.st_mode)) fail(path_, "cannot be written", EISDIR);
  if (there && is_input(status)) fail(path_, "cannot be written", kIsInput);
  if (there && !S_ISREG(status.st_mode)) {
    file_ = std::fopen(target.c_str(), "wbe");
    if (file_ == nullptr) fail(path_, "cannot be written", errno);
  } else {
    const std::string parent = target.parent_path().string();
    parent_ = Descriptor(::open(parent.empty() ? "." : parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (parent_.number() < 0) fail(path_, "cannot be written", errno);
    directory_ = parent_.number();
    create_partial();
  }
  std::setvbuf(file_, nullptr, _IOFBF, kBufferSize);
}

OutputFile::OutputFile(const OutputDirectory& directory, const std::string& name)
    : path_(directory.file(name)), name_(name), directory_(directory.descriptor()), replaces_(false) {
  create_partial();
  std::setvbuf(file_, nullptr, _IOFBF, kBufferSize);
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::create_partial() {
  file_ = create_beside(directory_, name_, partial_, registered_);
  if (file_ == nullptr) {
    const int error = errno;
    partial_.clear();
    fail(path_, "cannot be written", error);
  }
}

void OutputFile::discard() {
  if (file_ != nullptr) std::fclose(std::exchange(file_, nullptr));
  if (!partial_.empty()) ::unlinkat(directory_, partial_.c_str(), 0);
  partial_.clear();
  registered_.reset();
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

std::uint64_t OutputFile::complete() {
  NETSIM_CHECK(file_ != nullptr, "end of " + path_ + " after its end");
  struct stat status {};
  int error = std::fflush(file_) != 0 || ::fstat(::fileno(file_), &status) != 0 ? errno : 0;
  if (std::fclose(std::exchange(file_, nullptr)) != 0 && error == 0) error = errno;
  if (error == 0) return static_cast<std::uint64_t>(status.st_size);
  discard();
  fail(path_, "cannot be written", error);
}

void OutputFile::commit() {
  if (file_ != nullptr) {
    complete();
    if (partial_.empty()) return;
  }
  NETSIM_CHECK(!partial_.empty(), "commit of " + path_ + " after its end");
  const bool done = replaces_ ? ::renameat(directory_, partial_.c_str(), directory_, name_.c_str()) == 0
                              : rename_new(directory_, partial_.c_str(), name_.c_str());
  const int error = errno;
  if (done) {
    partial_.clear();
    registered_.reset();
    return;
  }
  discard();
  if (error == EEXIST)
    fail(path_, "cannot be written", "it appeared during the run, and netsim did not write it");
  fail(path_, "cannot be written", error);
}

OutputDirectory::OutputDirectory(std::string path, OutputNames names)
    : path_(std::move(path)), names_(std::move(names)) {
  if (path_.empty()) fail(path_, "cannot be the output directory", "the name is empty");
  std::error_code error, ignored;
  fs::create_directories(path_, error);
  directory_ = Descriptor(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const int reason = errno;
  if (directory_.number() < 0 && fs::exists(path_, ignored))
    fail(path_, "cannot be the output directory", reason);
  if (directory_.number() < 0)
    fail(path_, "the output directory cannot be created", error ? error.message() : "it was removed");
  claim();
  try {
    remove_partial_files();
    require_own();
  } catch (...) {  // no destructor follows
    ::unlinkat(directory_.number(), kLockFile, 0);
    throw;
  }
}

OutputDirectory::~OutputDirectory() {
  if (holds_lock()) ::unlinkat(directory_.number(), kLockFile, 0);
}

// Locks the lock file. A run that ends removes the file, which makes the lock useless. Then the loop tries
// the file that has the name now. A signal waits until the file is registered, so that its handler removes
// it; registered earlier, the file could be another run's.
void OutputDirectory::claim() {
  const SignalsDeferred until_registered;
  do {
    lock_ = Descriptor(::openat(directory_.number(), kLockFile,
                                O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
    struct stat status {};
    if (lock_.number() < 0 && errno == ELOOP)
      fail(file(kLockFile), "cannot be locked", "it is a symbolic link");
    if (lock_.number() < 0 || ::fstat(lock_.number(), &status) != 0)
      fail(path_, "the output directory cannot be written", errno);
    if (!S_ISREG(status.st_mode) || status.st_size != 0)
      fail(file(kLockFile), "cannot be locked",
           "netsim did not write it: remove it, or name another directory");
    while (::flock(lock_.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) break;  // the file system has no locks
      fail(path_, "cannot be the output directory", "another run writes there now; give each its own --out");
    }
  } while (!holds_lock());
  registered_.emplace(directory_.number(), kLockFile);
}

bool OutputDirectory::holds_lock() const {
  struct stat locked {};
  struct stat there {};
  return ::fstat(lock_.number(), &locked) == 0 &&
         ::fstatat(directory_.number(), kLockFile, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         locked.st_ino == there.st_ino && locked.st_dev == there.st_dev;
}

void OutputDirectory::require_held() const {
  if (!holds_lock())
    fail(path_, "the output directory or its lock was removed during the run",
         "nothing can be written there");
}

std::optional<std::vector<WrittenFile>> OutputDirectory::read_manifest() const {
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 28;
  const Descriptor manifest(
      ::openat(directory_.number(), names_.manifest.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  const bool readable = manifest.number() >= 0 && ::fstat(manifest.number(), &status) == 0 &&
                        S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) <= kLargest;
  if (!readable) return std::nullopt;
  return names_.read_manifest(read_descriptor(manifest, file(names_.manifest), kLargest, status));
}

std::optional<std::vector<WrittenFile>> OutputDirectory::require_own() const {
  std::optional<std::vector<WrittenFile>> written = read_manifest();
  for (const std::string& name : names_.all) {
    struct stat status {};
    if (::fstatat(directory_.number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;
      fail(file(name), "cannot be replaced", errno);
    }
    const auto refuse = [&](const std::string& why) {
      fail(file(name), "is not replaced",
           why + "; --out another directory, or move the file away if it is not needed");
    };
    if (!S_ISREG(status.st_mode)) refuse(std::string("netsim did not write it: it is ") + kind_of(status));
    if (is_input(status)) refuse("it is an input of this run");
    if (!written) refuse("netsim did not write it: no " + names_.manifest + " of netsim is there");
    if (name == names_.manifest) continue;
    const auto of = std::find_if(written->begin(), written->end(),
                                 [&](const WrittenFile& each) { return each.name == name; });
    if (of == written->end()) refuse("netsim did not write it: " + names_.manifest + " does not name it");
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (of->bytes && *of->bytes != size)
      refuse("it changed since netsim wrote it: " + std::to_string(size) + " bytes, " + names_.manifest +
             " says " + std::to_string(*of->bytes));
  }
  return written;
}

void OutputDirectory::clear() const {
  require_held();
  const std::optional<std::vector<WrittenFile>> written = require_own();
  for (const std::string& name : names_.all) {
    if (name != names_.manifest) remove(name);
  }
  if (written) {
    for (const WrittenFile& file : *written) remove_written(file);
  }
  remove(names_.manifest);
}

// Removes a file that the manifest names, if it is still as it was written. Its name has no directory.
void OutputDirectory::remove_written(const WrittenFile& file) const {
  if (!file.bytes || file.name.empty() || file.name.front() == '.' ||
      file.name.find('/') != std::string::npos)
    return;
  struct stat status {};
  if (::fstatat(directory_.number(), file.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (S_ISREG(status.st_mode) && !is_input(status) &&
      static_cast<std::uint64_t>(status.st_size) == *file.bytes)
    remove(file.name);
}

void OutputDirectory::remove(const std::string& name) const {
  if (::unlinkat(directory_.number(), name.c_str(), 0) != 0 && errno != ENOENT)
    fail(file(name), "cannot be replaced", errno);
}

void OutputDirectory::remove_partial_files() const {
  const int copy = ::openat(directory_.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(copy < 0 ? nullptr : ::fdopendir(copy), &::closedir);
  if (entries == nullptr) return;  // a directory may be writable but not readable
  while (const dirent* entry = ::readdir(entries.get())) {
    struct stat status {};
    const bool partial = std::any_of(names_.all.begin(), names_.all.end(), [&](const std::string& name) {
      return is_partial_of(name, entry->d_name);
    });
    if (partial && ::fstatat(directory_.number(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode))
      remove(entry->d_name);
  }
}

std::string OutputDirectory::file(const std::string& name) const { return (fs::path(path_) / name).string(); }

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + "\"";
}

Descriptor open_input(const std::string& path, struct ::stat& status) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // a pipe may have no writer
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) fail(path, "cannot be read", errno);
  if (S_ISDIR(status.st_mode)) fail(path, "cannot be read", EISDIR);
  if (!S_ISREG(status.st_mode)) fail(path, "cannot be read", refusal(status));
  return file;
}

std::size_t read_up_to(const Descriptor& file, const std::string& path, char* to, std::size_t most) {
  std::size_t size = 0;
  while (size < most) {
    const ::ssize_t got = ::read(file.number(), to + size, most - size);
    if (got == 0) break;
    if (got > 0) size += static_cast<std::size_t>(got);
    if (got < 0 && errno != EINTR) fail(path, "cannot be read", errno);
  }
  return size;
}

std::string read_file(const std::string& path, std::uint64_t limit) {
  struct stat status {};
  const Descriptor file = open_input(path, status);
  std::string result = read_descriptor(file, path, limit, status);
  ReadLog::note(path, result, {status.st_dev, status.st_ino});
  return result;
}

ContentHash::ContentHash(std::uint64_t size) : hash_(hash_combine(hash_name("content"), size)) {}

void ContentHash::add(std::string_view piece) {
  for (std::size_t i = 0; i < piece.size(); i += 8) {
    hash_ =
        hash_combine(hash_, load_little_endian(piece.data() + i, std::min<std::size_t>(8, piece.size() - i)));
  }
}

std::string ContentHash::hex() const {
  Fingerprint fingerprint;
  fingerprint.add(hash_);
  return fingerprint.hex();
}

std::string content_hash(std::string_view bytes) {
  ContentHash hash(bytes.size());
  hash.add(bytes);
  return hash.hex();
}

}  // namespace netsim
