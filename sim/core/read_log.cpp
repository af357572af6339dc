#include "sim/core/read_log.h"

#include <algorithm>

#include "sim/core/output.h"

namespace netsim {
namespace {

thread_local ReadLog* innermost = nullptr;

}  // namespace

ReadLog::ReadLog() : outer_(innermost) { innermost = this; }
ReadLog::~ReadLog() { innermost = outer_; }

void ReadLog::note(const std::string& path, std::string_view bytes, Identity identity) {
  if (innermost != nullptr) note({path, content_hash(bytes)}, identity);
}

void ReadLog::note(File file, Identity identity) {
  if (innermost == nullptr) return;
  if (!has_read(identity)) innermost->identities_.push_back(identity);
  std::vector<File>& files = innermost->files_;
  const bool known = std::any_of(files.begin(), files.end(), [&](const File& other) {
    return other.path == file.path && other.hash == file.hash;
  });
  if (!known) files.push_back(std::move(file));
}

bool ReadLog::lacks(const std::string& path) {
  return innermost != nullptr && std::none_of(innermost->files_.begin(), innermost->files_.end(),
                                              [&](const File& file) { return file.path == path; });
}

bool ReadLog::has_read(Identity identity) {
  for (const ReadLog* log = innermost; log != nullptr; log = log->outer_) {
    const std::vector<Identity>& known = log->identities_;
    if (std::find(known.begin(), known.end(), identity) != known.end()) return true;
  }
  return false;
}

}  // namespace netsim
