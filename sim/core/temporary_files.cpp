#include "sim/core/temporary_files.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstring>

namespace netsim {
namespace {

enum State { unused, claimed, ready };

struct Slot {
  std::atomic<int> state{unused};
  int directory = -1;
  std::array<char, NAME_MAX + 1> name{};
};

// Static, because a signal handler can access globals only.
std::array<Slot, 64> slots;

}  // namespace

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGALRM}) sigaddset(&signals, signal);
  return signals;
}

SignalsDeferred::SignalsDeferred() {
  const sigset_t signals = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

SignalsDeferred::~SignalsDeferred() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

TemporaryFile::TemporaryFile(int directory, const std::string& name) {
  if (name.size() > NAME_MAX) return;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    int state = unused;
    if (!slots[i].state.compare_exchange_strong(state, claimed)) continue;
    slots[i].directory = directory;
    std::memcpy(slots[i].name.data(), name.c_str(), name.size() + 1);
    slots[i].state = ready;
    slot_ = static_cast<int>(i);
    return;
  }
}

TemporaryFile::~TemporaryFile() {
  if (slot_ >= 0) slots[static_cast<std::size_t>(slot_)].state = unused;
}

void remove_temporary_files() {
  for (const Slot& slot : slots) {
    if (slot.state == ready) ::unlinkat(slot.directory, slot.name.data(), 0);
  }
}

}  // namespace netsim
