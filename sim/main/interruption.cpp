#include "sim/main/interruption.h"

#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string_view>

#include "sim/core/errors.h"
#include "sim/core/temporary_files.h"
#include "sim/main/allocation.h"

namespace netsim {
namespace {

// Time in which a call of interrupted() must follow a signal. A run calls it about every 25 ms, but a proof
// between two calls may take minutes. The process then ends without a report, so that the user waits at most
// a second.
constexpr ::suseconds_t kPatience = 700'000;  // microseconds

// State of the signal handlers, which can access globals only.
std::atomic<bool> watched{false}, pending{false}, on_terminal{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void say(std::string_view text) { static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size())); }

[[noreturn]] void end_now() {
  remove_temporary_files();
  if (on_terminal) say("\r\x1b[K");  // a line of progress
  say("netsim: error: interrupted before any results\n");
  ::_exit(static_cast<int>(ExitCode::interrupted));
}

void set_alarm(::suseconds_t microseconds) {
  const itimerval alarm{{0, 0}, {0, microseconds}};
  ::setitimer(ITIMER_REAL, &alarm, nullptr);
}

void on_interruption(int) {
  const int error = errno;
  if (!watched || pending) end_now();
  pending = true;
  set_alarm(kPatience);
  errno = error;
}

void on_alarm(int) { end_now(); }

// std::terminate() and libraries print why they abort, but not that memory was short.
void on_abort(int) {
  remove_temporary_files();
  if (refused_request() == 0) ::_exit(static_cast<int>(ExitCode::bug));
  say("netsim: error: out of memory, without enough left for details (ulimit -v sets a higher limit)\n");
  ::_exit(static_cast<int>(ExitCode::io));
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

}  // namespace

void catch_signals() {
  on_terminal = ::isatty(STDERR_FILENO) == 1;
  handle(SIGALRM, on_alarm);
  handle(SIGINT, on_interruption);
  handle(SIGTERM, on_interruption);
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) handle(SIGHUP, on_interruption);  // nohup wants it ignored
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);
  handle(SIGABRT, on_abort);
  const sigset_t signals = ending_signals();  // the parent process may have blocked them
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

void end_interrupted() {
  std::fflush(nullptr);
  remove_temporary_files();
  ::_exit(static_cast<int>(ExitCode::interrupted));
}

bool interrupted() {
  watched = true;
  if (!pending) return false;
  set_alarm(0);
  return true;
}

}  // namespace netsim
