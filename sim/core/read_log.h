// ReadLog: which files a run was made of, with what was in them, for its manifest.
//
// It lists what read_file() has read, whoever asked for it, so that no reader can forget a file that a file
// names. This is the one thing that a thread knows beside its stack: results never depend on it.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace netsim {

// Logs what its thread reads while it lives: each file once per content, in the order of reading. Logs nest:
// a file is listed by the innermost one only.
class ReadLog {
 public:
  struct File {
    std::string path;  // as it was opened
    std::string hash;  // content_hash() of the bytes that were read, not of what lies there later
  };

  // The file itself, whatever its name.
  struct Identity {
    ::dev_t device = 0;
    ::ino_t inode = 0;
    bool operator==(const Identity&) const = default;
  };

  ReadLog();
  ~ReadLog();
  ReadLog(const ReadLog&) = delete;
  ReadLog& operator=(const ReadLog&) = delete;

  const std::vector<File>& files() const { return files_; }
  // For read_file(): tells the log of this thread, if there is one.
  static void note(const std::string& path, std::string_view bytes, Identity identity);
  // Whether a log of this thread, the innermost or one around it, knows that the file was read.
  static bool has_read(Identity identity);

 private:
  std::vector<File> files_;
  std::vector<Identity> identities_;
  ReadLog* outer_;
};

}  // namespace netsim
