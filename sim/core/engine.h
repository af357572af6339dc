// Engine: owns the sets of atoms, the threads that run them and the windows in which they run.
//
// It is a conservative parallel simulation (Chandy and Misra, CACM 1981) with windows (Lubachevsky, CACM
// 1989). A set executes its events up to a horizon before which no event of another set can reach it. The
// delay of the links between sets (lookahead) gives that horizon. Then the sets exchange remote events and
// the next window begins; a window starts at the earliest pending event.
//
// An event depends on its atom alone, and the order of events does not depend on the thread that executes
// them. Therefore any number of sets and threads gives the same run. Sets that fit into a core's cache also
// speed up a single thread, because the ports and packets of a window stay in the cache.
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "sim/core/logical_process.h"

namespace netsim {

class Engine {
 public:
  struct Options {
    std::uint32_t sets = 1;
    // Entry a * sets + b is the lookahead from set a to set b. An event of a causes no event in b within that
    // time. It is above 0, and kNever where no link joins them. The vector may be empty for one set.
    std::vector<Time> lookahead;
    std::uint32_t threads = 1;
  };
  // A check that the engine calls between events, at most once per interval while events are pending. It is
  // called once more, with `idle` set, when nothing is pending.
  using Monitor = std::function<void(Time time, bool idle)>;
  // A call at a multiple of the interval (set_interval). `idle`: no event and no other call is pending.
  using IntervalCall = std::function<void(Time time, bool idle)>;
  // Reads the state at a multiple of the interval, before and after the interval's call (watch_interval).
  enum class WatchPhase : std::uint8_t { before, after };
  using IntervalWatch = std::function<void(Time time, WatchPhase phase)>;

  Engine() : Engine(Options()) {}
  explicit Engine(const Options& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::uint32_t sets() const { return static_cast<std::uint32_t>(sets_.size()); }
  std::uint32_t threads() const { return static_cast<std::uint32_t>(workers_.size()) + 1; }
  LogicalProcess& set(std::uint32_t id) { return *sets_[id]; }
  EventLoop& loop(std::uint32_t set = 0) { return sets_[set]->loop(); }

  // Returns the time of the last event executed or of the last call, whichever is later.
  Time now() const;
  std::uint64_t executed() const;
  // Returns the number of pending events, remote events and calls.
  std::size_t pending() const;
  // Returns the time of the earliest of them, or kNever where nothing is pending.
  Time next_time() const;
  // Returns the number of pending calls.
  std::size_t pending_calls() const;
  // Returns whether an event of one of these kinds is pending, a bit for each kind. It looks at all events.
  bool has_pending(std::uint32_t kinds) const;

  // Executes events up to `until`, in whole windows, until about `count` are done or stop() is called.
  // Returns the number executed, which is at most `count` with one set. All journal records up to there have
  // been read. Rethrows the first exception of an event, in the order of all events.
  std::uint64_t run_some(std::uint64_t count, Time until = kNever);
  std::uint64_t run(Time until = kNever) { return run_some(UINT64_MAX, until); }
  // Ends run() after the present window. Only a call, a monitor or code outside of run() may call it.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  void clear_stop() { stopped_ = false; }

  // Calls `call` when all events before `time` are done and none at or after `time`; now() is `time` then.
  // Calls of one time are made in the order of call_at().
  void call_at(Time time, std::function<void()> call);
  // Allows events to ask for calls (LogicalProcess::ask_call) at least `delay` ahead. `delay` is above 0;
  // kNever, the initial value, forbids such calls. Windows are at most `delay` long, so no set is past the
  // time of a call when it is asked for. These calls come after those of call_at() at the same time. Must not
  // be called during run().
  void set_call_delay(Time delay);
  void set_monitor(Time interval, Monitor monitor);

  // Makes `call` at those multiples of `interval` that somebody has asked for. All events before that time
  // are done then, none at or after it, and now() is that time. All journal records up to there have been
  // read, and the calls of call_at() and ask_call() of that time have been made. Windows do not cross a
  // multiple, so the calls do not depend on sets and threads.
  //
  // A request made at time t is served at the first multiple after t. A call serves all requests made
  // before it, also those for later multiples; who wants to be called later asks again in the call.
  //
  // These calls are not pending, so the run can end. When nothing is pending, the call is made once more, at
  // the first multiple asked for or else the next one. What it asks for then holds only if it also schedules
  // an event or a call. Must be called at most once and not during run(); `interval` is above 0.
  void set_interval(Time interval, IntervalCall call);
  // Asks for the interval's call, from code between events. Events use LogicalProcess::ask_interval().
  void ask_interval() { ask_interval_at(0); }
  // Asks for the call at the first multiple that is after now() and not before `time`.
  void ask_interval_at(Time time);
  // Returns the time of the interval's next call, including the one for an idle engine, or kNever. Events
  // that are still to come may ask for an earlier one.
  Time next_interval() const;
  // Calls `watch` before and after each call of the interval, and at the multiples that it asks for in
  // watch_interval_at(). There the interval's call is not made, and requests for it stay. A watch only reads,
  // so the run is the same without it. Must be called after set_interval(), and at most once.
  void watch_interval(IntervalWatch watch);
  // Asks for the watch at the first multiple that is after now() and not before `time`. The latest request
  // counts. While nothing is pending it is put off.
  void watch_interval_at(Time time);
  // Registers a journal reader and returns its number for LogicalProcess::write(). The reader must outlive
  // the last run().
  std::uint32_t add_reader(JournalReader& reader);

 private:
  struct Call {
    Time time;
    std::uint64_t order;  // order among calls of one time: 0 from call_at(), 1 + event key from ask_call()
    std::function<void()> call;
  };

  // A journal entry with its position in the order of all events.
  struct Written {
    LogicalProcess::Order order;
    std::uint32_t set;
    std::size_t entry;
    auto operator<=>(const Written&) const = default;
  };

  bool step(std::uint64_t count, Time until);
  void insert(Call call);
  void take_requests();
  void call();
  void call_interval(Time time, bool idle);
  void watch_interval_now(Time time, WatchPhase phase);
  Time interval_wanted(bool idle) const;
  // Returns the time of the watch's next call, which was asked for.
  Time watched() const { return watch_asked_ >= now() ? watch_asked_ : next_multiple(interval_, now()); }
  void forget_interval_requests();
  bool look_around(Time first);
  void set_horizons(Time first, Time limit);
  void execute(std::uint64_t count);
  void run_set(LogicalProcess& set, LogicalProcess::Outbox& out, std::uint64_t count);
  void run_thread(std::uint32_t thread, std::uint32_t window);
  void begin_window();
  void work(std::uint32_t thread);
  void after_window();
  void read_journals(LogicalProcess::Order end);
  void read_entry(LogicalProcess& set, std::size_t number);
  const LogicalProcess* first_failed() const;
  void rethrow(const LogicalProcess& failed);
  void share_out();
  Time first_event() const;
  Time first_remote_event(const LogicalProcess& set) const;

  std::vector<std::unique_ptr<LogicalProcess>> sets_;
  // For each thread, the outbox of the present window and that of the last one, by `parity_`.
  std::vector<std::array<LogicalProcess::Outbox, 2>> outboxes_;
  unsigned parity_ = 0;
  std::vector<Time> reach_;  // like Options::lookahead, but over any path of sets, also from a set to itself
  Time least_reach_ = kNever;
  std::vector<Call> calls_;  // sorted, the latest first
  Time call_delay_ = kNever;
  std::vector<JournalReader*> readers_;
  std::vector<Written> order_;  // buffer of read_journals()
  Monitor monitor_;
  Time monitor_interval_ = 0, monitor_next_ = kNever;
  IntervalCall interval_call_;
  IntervalWatch interval_watch_;
  Time interval_ = 0;              // 0: there is no interval
  Time watch_asked_ = kNever;      // multiple at which the watch is called
  Time interval_asked_ = kNever;   // earliest multiple that code between events has asked for
  bool idle_called_ = false;       // the interval was called for the present idle state
  Time called_ = 0;                // time of the last call, interval's call or monitor call
  std::uint64_t last_window_ = 0;  // events executed in the last window
  bool stopped_ = false;

  // Threads: the one that calls run() is number 0.
  std::vector<std::thread> workers_;
  std::vector<std::vector<std::uint32_t>> shares_;  // sets that each thread runs first, most loaded first
  std::uint64_t windows_ = 0;                       // windows since the sets were last dealt to threads
  unsigned spins_ = 0;  // iterations before a thread parks; 0 with more threads than cores
  bool leave_ = false;
  alignas(64) std::atomic<std::uint32_t> window_{0};  // window number; workers begin when it rises
  std::atomic<std::uint32_t> parked_{0};              // number of workers that sleep until window_ rises
  alignas(64) std::atomic<std::uint32_t> busy_{0};    // number of workers that have not finished the window
  std::atomic<std::uint32_t> waiting_{0};             // 1 while thread 0 sleeps until busy_ is 0
};

}  // namespace netsim
