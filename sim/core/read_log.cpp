#include "sim/core/read_log.h"

#include <algorithm>

#include "sim/core/output.h"

namespace netsim {
namespace {

thread_local ReadLog* innermost = nullptr;

}  // namespace

ReadLog::ReadLog() : outer_(innermost) { innermost = this; }
ReadLog::~ReadLog() { innermost = outer_; }

void ReadLog::note(const std::string& path, std::string_view bytes) {
  if (innermost == nullptr) return;
  File file{path, content_hash(bytes)};
  std::vector<File>& files = innermost->files_;
  const bool known = std::any_of(files.begin(), files.end(), [&](const File& other) {
    return other.path == file.path && other.hash == file.hash;
  });
  if (!known) files.push_back(std::move(file));
}

}  // namespace netsim
