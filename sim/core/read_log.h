// ReadLog: lists the files from which a run was made, with a hash of their content, for its manifest.
//
// It lists every file that read_file() has read, so that no reader can omit a file that another file names.
// InputSet::log() adds files that are read in pieces. It is the only thread-local state; results
// never depend on it.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace netsim {

// ReadLog: logs the files that its thread reads while it lives, each once per content, in the order of
// reading. Logs nest: a file is listed by the innermost one only.
class ReadLog {
 public:
  struct File {
    std::string path;  // path as it was opened
    std::string hash;  // content_hash() of the bytes that were read
  };

  // Identity: the file itself, independent of its name.
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
  // Add a file, with its bytes or their hash, to the log of this thread, if there is one. Called by
  // read_file() and InputSet::log().
  static void note(const std::string& path, std::string_view bytes, Identity identity);
  static void note(File file, Identity identity);
  // Returns whether there is a log and the innermost one does not list the path yet.
  static bool lacks(const std::string& path);
  // Returns whether a log of this thread, the innermost or one around it, contains the file.
  static bool has_read(Identity identity);

 private:
  std::vector<File> files_;
  std::vector<Identity> identities_;
  ReadLog* outer_;
};

}  // namespace netsim
