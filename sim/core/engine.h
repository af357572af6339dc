// Engine: the sets of atoms, the threads that run them and the windows in which they may run.
//
// Conservative parallel simulation (Chandy and Misra, CACM 1981; windows as in Lubachevsky, CACM 1989): a set
// may execute its events up to a horizon that no other set's events can reach before, by the delay of the
// links between them (lookahead). Then mail is exchanged and the next window begins; where nothing is going
// on, windows are as long as the gap. What an event does depends on its atom alone, and events have an order
// that does not depend on who executes them, so every number of sets and threads gives the same run.
//
// Sets that fit into a core's cache make one thread faster too: a window's events find their ports and
// packets there.
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "sim/core/atom_set.h"

namespace netsim {

class Engine {
 public:
  struct Plan {
    std::uint32_t sets = 1;
    // Of set b by set a at a * sets + b: the least time from an event of a to one that it causes in b without
    // a third; kNever: they have no links. Above 0; may be empty for one set.
    std::vector<Time> lookahead;
    std::uint32_t threads = 1;
  };
  // What may happen at most every so often, between events, while anything is pending, and once more (`idle`)
  // when nothing is: looks for what is wrong.
  using Monitor = std::function<void(Time time, bool idle)>;

  Engine() : Engine(Plan()) {}
  explicit Engine(const Plan& plan);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::uint32_t sets() const { return static_cast<std::uint32_t>(sets_.size()); }
  std::uint32_t threads() const { return static_cast<std::uint32_t>(workers_.size()) + 1; }
  AtomSet& set(std::uint32_t id) { return *sets_[id]; }
  EventLoop& loop(std::uint32_t set = 0) { return sets_[set]->loop(); }

  // Of the last event executed, or what was called.
  Time now() const;
  std::uint64_t executed() const;
  // Events, mail and calls to come.
  std::size_t pending() const;
  // The earliest of them; kNever: none.
  Time next_time() const;

  // Executes all events up to `until`, in whole windows until about `count` are done, or stop(). Returns the
  // number executed; then all that was written into journals up to there has been read. With one set it is
  // not more than `count`. What an event throws comes out here, the first one in the order of all events.
  std::uint64_t run_some(std::uint64_t count, Time until = kNever);
  std::uint64_t run(Time until = kNever) { return run_some(UINT64_MAX, until); }
  // Only from a call, a monitor or outside of run().
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  void clear_stop() { stopped_ = false; }

  // Calls when all events before `time` are done and none at `time` or later is; several of one time in the
  // order of call_at(). now() is `time` then.
  void call_at(Time time, std::function<void()> call);
  // From now on events ask for calls (AtomSet::ask_call) no less than `delay` ahead, above 0; kNever, and so
  // at first: they do not. No window is longer, so that no set is beyond a call's time when it is asked for;
  // calls that are asked for go behind those of call_at() of their time. While nothing runs.
  void set_call_delay(Time delay);
  void set_monitor(Time interval, Monitor monitor);
  // The number under which AtomSet::write() reaches the reader, which must outlive the engine's last run.
  std::uint32_t add_reader(JournalReader& reader);

 private:
  struct Call {
    Time time;
    std::uint64_t order;  // among those of one time: 0 of call_at(), 1 + key of what events ask for
    std::function<void()> call;
  };

  // A journal's entry, in the order of all.
  struct Written {
    AtomSet::Order order;
    std::uint32_t set;
    std::size_t entry;
    auto operator<=>(const Written&) const = default;
  };

  bool step(std::uint64_t count, Time until);
  void insert(Call call);
  void take_requests();
  void call();
  bool look_around(Time first);
  void set_horizons(Time first, Time limit);
  void execute(std::uint64_t count);
  void run_set(AtomSet& set, AtomSet::Outbox& out, std::uint64_t count);
  void run_thread(std::uint32_t thread, std::uint32_t window);
  void begin_window();
  void work(std::uint32_t thread);
  void after_window();
  void read_journals(AtomSet::Order end);
  void read_entry(AtomSet& set, std::size_t number);
  const AtomSet* first_failed() const;
  void rethrow(const AtomSet& failed);
  void share_out();
  Time first_event() const;
  Time first_mail(const AtomSet& set) const;

  std::vector<std::unique_ptr<AtomSet>> sets_;
  // Of each thread: what is sent in the present window, and what was in the last one.
  std::vector<std::array<AtomSet::Outbox, 2>> outboxes_;
  unsigned parity_ = 0;
  std::vector<Time> reach_;  // like Plan::lookahead, by way of any sets; from a set to itself too
  Time least_reach_ = kNever;
  std::vector<Call> calls_;  // latest first
  Time call_delay_ = kNever;
  std::vector<JournalReader*> readers_;
  std::vector<Written> order_;  // scratch
  Monitor monitor_;
  Time monitor_interval_ = 0, monitor_next_ = kNever;
  Time called_ = 0;                // time of the last call or successful look
  std::uint64_t last_window_ = 0;  // events
  bool stopped_ = false;

  // Threads. The one that calls run() is number 0.
  std::vector<std::thread> workers_;
  std::vector<std::vector<std::uint32_t>> shares_;  // sets that each thread runs first, most loaded first
  std::uint64_t windows_ = 0;                       // since threads were last given their sets
  unsigned spins_ = 0;  // before a thread parks; with more threads than cores it parks at once
  bool leave_ = false;
  alignas(64) std::atomic<std::uint32_t> window_{0};  // workers begin when it rises
  std::atomic<std::uint32_t> parked_{0};              // workers that sleep until it does
  alignas(64) std::atomic<std::uint32_t> busy_{0};    // workers that have not finished the window
  std::atomic<std::uint32_t> waiting_{0};             // 1: thread 0 sleeps until it is 0
};

}  // namespace netsim
