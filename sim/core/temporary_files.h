// Files that must not outlive the process: partial files and locks. A signal handler that ends the process
// removes them; otherwise their owners do.
#pragma once

#include <csignal>
#include <string>

namespace netsim {

// Returns the signals whose handlers end the process.
sigset_t ending_signals();

// SignalsDeferred: signals that end the process wait, in this thread, while the object lives. A thread that
// is started meanwhile never handles them, so that the first thread of the program handles all.
class SignalsDeferred {
 public:
  SignalsDeferred();
  ~SignalsDeferred();
  SignalsDeferred(const SignalsDeferred&) = delete;
  SignalsDeferred& operator=(const SignalsDeferred&) = delete;

 private:
  sigset_t before_{};
};

// TemporaryFile: registers a file while the object lives; its owner creates and removes the file. At most 64
// files are registered at a time. remove_temporary_files() does not remove any more than these.
class TemporaryFile {
 public:
  // `name` is relative to the open directory `directory`, which the owner keeps open as long as this lives.
  TemporaryFile(int directory, const std::string& name);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

 private:
  int slot_ = -1;
};

// Unlinks every registered file of the process. It may be called by a signal handler, on any thread.
void remove_temporary_files();

}  // namespace netsim
