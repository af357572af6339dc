#include "sim/core/input_set.h"

#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <system_error>

#include "sim/core/errors.h"
#include "sim/core/read_log.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

namespace fs = std::filesystem;

// Bytes of a piece of a pass over a file; a multiple of 8, as ContentHash asks for.
constexpr std::size_t kPiece = std::size_t{256} << 10;

// The first bytes of a gzip file (RFC 1952), with its only method of compression.
constexpr std::string_view kGzipBegin = "\x1f\x8b\x08";

InputSet::Version version_of(const struct stat& status) {
  return {status.st_dev, status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

[[noreturn]] void fail_reading(const std::string& path, const std::string& reason) {
  throw IoError("'" + path + "': cannot be read: " + reason);
}

// Calls `visit` for one piece of the file after the other.
void for_each_piece(const InputSet::File& file, const std::function<void(std::string_view)>& visit) {
  InputStream stream(file);
  std::string piece(kPiece, '\0');
  while (const std::size_t size = stream.read(piece.data(), piece.size()))
    visit(std::string_view(piece).substr(0, size));
}

// Returns the names in a folder that are not hidden, sorted by their bytes. Throws InputError for a folder
// among them.
std::vector<std::string> names_in_folder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.front() == '.') continue;
    std::error_code unknown;
    if (fs::is_directory(entry->path(), unknown)) {
      throw InputError(Place{path, 0, 0, ""},
                       "contains the folder '" + name + "': all files of an input lie in the folder itself");
    }
    names.push_back(std::move(name));
  }
  if (error) fail_reading(path, error.message());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string InputPaths::text() const {
  std::string text;
  for (const std::string& path : paths_) append_item(text, path);
  return text;
}

InputSet::InputSet(const InputPaths& paths) : name_(paths.text()) {
  NETSIM_CHECK(!paths.empty(), "an input has at least one path");
  for (const std::string& path : paths.all()) add(path);
}

InputSet InputSet::in_memory(std::vector<std::pair<std::string, std::string>> files) {
  InputSet input;
  std::vector<std::string> paths;
  for (auto& [path, content] : files) {
    paths.push_back(path);
    File& file = input.files_.emplace_back();
    file.path = std::move(path);
    file.size = content.size();
    file.content = std::make_shared<const std::string>(std::move(content));
  }
  input.name_ = InputPaths(std::move(paths)).text();
  return input;
}

void InputSet::add(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    add_folder(path);
  } else {
    add_file(path, false);
  }
}

void InputSet::add_folder(const std::string& path) {
  const std::vector<std::string> names = names_in_folder(path);
  if (names.empty()) throw InputError(Place{path, 0, 0, ""}, "the folder has no files");
  for (const std::string& name : names) add_file((fs::path(path) / name).string(), true);
}

void InputSet::add_file(const std::string& path, bool in_folder) {
  struct stat status {};
  const Descriptor opened = open_input(path, status);
  const Version version = version_of(status);
  const bool known =
      std::any_of(files_.begin(), files_.end(), [&](const File& file) { return file.version == version; });
  if (known) throw InputError(Place{path, 0, 0, ""}, "the file is given twice in one input");
  files_.push_back({path, static_cast<std::uint64_t>(status.st_size), version, nullptr, in_folder});
}

void InputSet::keep(const std::vector<bool>& keeps) {
  NETSIM_CHECK(keeps.size() == files_.size(), "an input keeps files that it does not have");
  std::vector<File> kept;
  kept.reserve(files_.size());
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (keeps[i]) kept.push_back(std::move(files_[i]));
  }
  NETSIM_CHECK(!kept.empty(), "an input has at least one file");
  files_ = std::move(kept);
}

const InputSet::File& InputSet::only(const std::string& what) const {
  if (files_.size() == 1) return files_.front();
  throw InputError(Place{name_, 0, 0, ""},
                   "has " + std::to_string(files_.size()) + " files, but " + what + " is one file");
}

std::uint64_t InputSet::count_lines() const {
  std::uint64_t lines = 0;
  for (const File& file : files_) {
    ++lines;  // the last one may end without a line break
    for_each_piece(file, [&](std::string_view piece) {
      lines += static_cast<std::uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
    });
  }
  return lines;
}

void InputSet::log() const {
  for (const File& file : files_) {
    if (file.content != nullptr || !ReadLog::lacks(file.path)) continue;
    ContentHash hash(file.size);
    for_each_piece(file, [&](std::string_view piece) { hash.add(piece); });
    ReadLog::note({file.path, hash.hex()}, {file.version.device, file.version.inode});
  }
}

// Unpacker: the state of unpacking a gzip file, which may have several members.
class InputStream::Unpacker {
 public:
  explicit Unpacker(std::string path) : path_(std::move(path)) {
    constexpr int kGzip = 16 + MAX_WBITS;
    NETSIM_CHECK(inflateInit2(&stream_, kGzip) == Z_OK, "zlib cannot be started");
  }
  ~Unpacker() { inflateEnd(&stream_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  // Unpacks up to `most` bytes. `read` fills a buffer with stored bytes and returns their number.
  template <class Read>
  std::size_t unpack(char* to, std::size_t most, Read read) {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(most);
    while (stream_.avail_out > 0 && !ended_) {
      if (stream_.avail_in == 0) {
        stream_.next_in = reinterpret_cast<Bytef*>(stored_.data());
        stream_.avail_in = static_cast<uInt>(read(stored_.data(), stored_.size()));
      }
      if (stream_.avail_in == 0) {
        if (inside_) fail("ends within its packed data");
        ended_ = true;
        break;
      }
      inside_ = true;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        fail(std::string("is a damaged gzip file: ") + (stream_.msg == nullptr ? "wrong data" : stream_.msg));
      if (result != Z_STREAM_END) continue;
      inside_ = false;
      inflateReset(&stream_);
    }
    return most - stream_.avail_out;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(Place{path_, 0, 0, ""}, message);
  }

  std::string path_;
  z_stream stream_{};
  std::string stored_ = std::string(std::size_t{64} << 10, '\0');
  bool inside_ = false;  // a member has begun and not ended
  bool ended_ = false;
};

InputStream::InputStream(const InputSet::File& file) : file_(file) {
  if (file_.content == nullptr) {
    struct stat status {};
    descriptor_ = open_input(file_.path, status);
    if (version_of(status) != file_.version || static_cast<std::uint64_t>(status.st_size) != file_.size)
      fail_reading(file_.path, "it has changed since the start of the program");
  }
  begin_.resize(3);
  begin_.resize(read_stored(begin_.data(), begin_.size()));
  if (begin_ == kGzipBegin) unpacker_ = std::make_unique<Unpacker>(file_.path);
}

InputStream::~InputStream() = default;
InputStream::InputStream(InputStream&&) noexcept = default;

std::size_t InputStream::read(char* to, std::size_t most) {
  // zlib counts in 32 bits.
  most = std::min<std::size_t>(most, std::size_t{1} << 30);
  return unpacker_ == nullptr ? read_stored_from_begin(to, most)
                              : unpacker_->unpack(to, most, [this](char* into, std::size_t size) {
                                  return read_stored_from_begin(into, size);
                                });
}

// Returns the stored bytes from the first one on.
std::size_t InputStream::read_stored_from_begin(char* to, std::size_t most) {
  const std::size_t known = std::min(most, begin_.size());
  std::memcpy(to, begin_.data(), known);
  begin_.erase(0, known);
  return known + read_stored(to + known, most - known);
}

std::size_t InputStream::read_stored(char* to, std::size_t most) {
  const std::uint64_t left = file_.size - at_;
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(most, left));
  if (wanted == 0) return 0;
  if (file_.content != nullptr) {
    std::memcpy(to, file_.content->data() + at_, wanted);
  } else if (read_up_to(descriptor_, file_.path, to, wanted) != wanted) {
    fail_reading(file_.path, "it became shorter meanwhile");
  }
  at_ += wanted;
  return wanted;
}

namespace {

[[noreturn]] void refuse_size(const std::string& path, const std::string& bytes, std::uint64_t limit) {
  const bool gibibytes = limit % (std::uint64_t{1} << 30) == 0;
  throw InputError(Place{path, 0, 0, ""}, bytes + " bytes are too many for such a file: at most " +
                                              (gibibytes ? std::to_string(limit >> 30) + " GiB"
                                                         : std::to_string(limit >> 20) + " MiB"));
}

}  // namespace

std::string read_file(const InputSet::File& file, std::uint64_t limit) {
  if (file.size > limit) refuse_size(file.path, std::to_string(file.size), limit);
  std::string stored = file.content != nullptr ? *file.content : read_file(file.path, limit);
  if (!stored.starts_with(kGzipBegin)) return stored;
  const InputSet packed = InputSet::in_memory({{file.path, std::move(stored)}});
  std::string unpacked;
  for_each_piece(packed.files().front(), [&](std::string_view piece) {
    if (piece.size() > limit - unpacked.size()) refuse_size(file.path, "its unpacked", limit);
    unpacked += piece;
  });
  return unpacked;
}

}  // namespace netsim
