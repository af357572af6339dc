#include "sim/core/engine.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <span>
#include <tuple>

#include "sim/core/errors.h"
#include "sim/core/temporary_files.h"
#include "sim/core/time_limits.h"

namespace netsim {
namespace {

// Least number of events in a window for which other threads are woken. Fewer take no longer than a barrier.
constexpr std::uint64_t kWorthSharing = 200;
constexpr std::uint64_t kShareOutEvery = 512;  // windows
// Number of checks before a waiting thread sleeps: about 40 us. It never yields. If other programs use the
// cores, each yield gives them a whole time slice (milliseconds a window). A sleeping thread is scheduled
// soon after it is woken.
constexpr unsigned kSpins = 2000;

Time add(Time a, Time b) { return a >= kNever - b ? kNever : a + b; }

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Sleeps while `word` is `value`; it may return without a reason. std::atomic's wait() yields several times
// before it sleeps, so this uses Linux's futex.
void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  static_assert(sizeof(word) == sizeof(value));
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake_all(const std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// Waits until done(word). `sleepers` counts sleeping threads, so that writers of the word wake only if
// needed. It is raised before the last check of the word, and writers read it after the change.
template <class Done>
void wait(const std::atomic<std::uint32_t>& word, std::atomic<std::uint32_t>& sleepers, unsigned spins,
          Done done) {
  for (unsigned i = 0; i < spins && !done(word.load(std::memory_order_acquire)); ++i) relax();
  if (done(word.load(std::memory_order_acquire))) return;
  sleepers.fetch_add(1);
  for (std::uint32_t value = word.load(); !done(value); value = word.load()) sleep_while(word, value);
  sleepers.fetch_sub(1);
}

// Throws an error if the next event is later than kLastTime, beyond which sums of times could overflow.
void refuse_late(Time next, Time until) {
  if (next <= kLastTime || next > until || next >= kNoEvent) return;
  throw InputError(
      "simulated time exceeds its limit of 40 days (3456000 s): shorten the workload, repeat it less often, "
      "or end the run earlier (--until)");
}

// Returns the lookahead by way of any other sets (Floyd and Warshall), and from a set back to itself.
std::vector<Time> closure(std::vector<Time> reach, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) reach[i * n + i] = kNever;
  for (std::size_t via = 0; via < n; ++via) {
    for (std::size_t a = 0; a < n; ++a) {
      const Time first = reach[a * n + via];
      if (first == kNever) continue;
      for (std::size_t b = 0; b < n; ++b)
        reach[a * n + b] = std::min(reach[a * n + b], add(first, reach[via * n + b]));
    }
  }
  return reach;
}

}  // namespace

Engine::Engine(const Options& options) {
  const std::size_t n = options.sets;
  NETSIM_CHECK(n > 0 && (n == 1 || options.lookahead.size() == n * n),
               "an engine's lookahead does not fit its sets");
  for (std::uint32_t id = 0; id < n; ++id) sets_.push_back(std::make_unique<LogicalProcess>(id));
  sets_.front()->alone_ = n == 1;
  if (n > 1) reach_ = closure(options.lookahead, n);
  for (const Time reach : reach_) least_reach_ = std::min(least_reach_, reach);
  const std::uint32_t threads = std::clamp<std::uint32_t>(options.threads, 1, options.sets);
  shares_.resize(threads);
  for (std::uint32_t id = 0; id < n; ++id) shares_[std::size_t{id} * threads / n].push_back(id);
  for (std::uint32_t thread = 0; thread < threads; ++thread)
    outboxes_.push_back({LogicalProcess::Outbox(options.sets), LogicalProcess::Outbox(options.sets)});
  for (auto& set : sets_) set->out_ = &outboxes_[0][parity_];
  if (threads <= std::thread::hardware_concurrency()) spins_ = kSpins;
  workers_.reserve(threads);
  const SignalsDeferred in_workers;  // the thread that claims an output directory handles signals
  try {
    for (std::uint32_t thread = 1; thread < threads; ++thread)
      workers_.emplace_back([this, thread] { work(thread); });
  } catch (...) {  // the system has no more threads; the existing ones wait
    leave_ = true;
    begin_window();
    for (std::thread& worker : workers_) worker.join();
    throw;
  }
}

Engine::~Engine() {
  leave_ = true;
  begin_window();
  for (std::thread& worker : workers_) worker.join();
}

// ---- Clock

Time Engine::now() const {
  Time now = called_;
  for (const auto& set : sets_) now = std::max(now, set->loop_.now());
  return now;
}

std::uint64_t Engine::executed() const {
  std::uint64_t sum = 0;
  for (const auto& set : sets_) sum += set->loop_.executed();
  return sum;
}

std::size_t Engine::pending() const {
  std::size_t sum = calls_.size();
  for (const auto& set : sets_) {
    sum += set->loop_.pending() + set->requests_.size();
    for (const auto& thread : outboxes_) {
      const LogicalProcess::Outbox::Box& box = thread[parity_].boxes[set->id_];
      if (box.first < kNoEvent) sum += box.count;
    }
  }
  return sum;
}

std::size_t Engine::pending_calls() const {
  std::size_t sum = calls_.size();
  for (const auto& set : sets_) sum += set->requests_.size();
  return sum;
}

bool Engine::has_pending(std::uint32_t kinds) const {
  return std::any_of(sets_.begin(), sets_.end(), [&](const auto& set) {
    if (set->loop_.has_pending(kinds)) return true;
    for (const auto& thread : outboxes_) {
      const LogicalProcess::Outbox::Box& box = thread[parity_].boxes[set->id_];
      for (const RemoteEvent& one : std::span(box.remote_events.data(), box.count)) {
        if ((kinds >> static_cast<unsigned>(one.event.kind) & 1U) != 0) return true;
      }
    }
    return false;
  });
}

Time Engine::first_event() const {
  Time first = kNever;
  for (const auto& set : sets_) first = std::min({first, set->first(), first_remote_event(*set)});
  return first < kNoEvent ? first : kNever;
}

// Returns the time of the earliest remote event on its way to `set`; kNoEvent: notices only.
Time Engine::first_remote_event(const LogicalProcess& set) const {
  Time first = kNever;
  for (const auto& thread : outboxes_) first = std::min(first, thread[parity_].boxes[set.id_].first);
  return first;
}

Time Engine::next_time() const {
  Time next = calls_.empty() ? first_event() : std::min(first_event(), calls_.back().time);
  for (const auto& set : sets_) {
    for (const LogicalProcess::Request& request : set->requests_) next = std::min(next, request.time);
  }
  return next;
}

// ---- Windows

std::uint64_t Engine::run_some(std::uint64_t count, Time until) {
  const std::uint64_t before = executed();
  for (auto& set : sets_) set->next_ = set->first();  // events may have been scheduled since the last run
  for (std::uint64_t done = 0; done < count && !stopped_; done = executed() - before) {
    if (!step(count - done, until)) break;
  }
  return executed() - before;
}

// Executes a window, a call or the interval's call. Returns false if nothing is left up to `until`.
bool Engine::step(std::uint64_t count, Time until) {
  if (call_delay_ != kNever) take_requests();
  Time first = kNever;
  for (auto& set : sets_) {
    set->next_ = std::min(set->next_, first_remote_event(*set));
    first = std::min(first, set->next_);
  }
  refuse_late(calls_.empty() ? first : std::min(first, calls_.back().time), until);
  const bool idle = first >= kNoEvent && calls_.empty();
  Time wanted = interval_ > 0 ? interval_wanted(idle) : kNever;
  if (watch_asked_ != kNever && !idle) wanted = std::min(wanted, watched());
  if (!calls_.empty() && calls_.back().time <= std::min({first, until, wanted})) {
    call();
    return true;
  }
  if (wanted != kNever && wanted <= std::min(first, until)) {
    call_interval(wanted, idle);
    return true;
  }
  if (first >= kNoEvent || first > until) {
    if (first >= kNoEvent && wanted == kNever && monitor_) monitor_(now(), true);
    return false;
  }
  if (look_around(first)) return false;
  idle_called_ = false;
  Time limit = std::min(until, kLastTime) + 1;
  if (const LogicalProcess* failed = first_failed(); failed != nullptr)
    limit = std::min(limit, failed->order().time + 1);
  if (!calls_.empty()) limit = std::min(limit, calls_.back().time);
  limit = std::min(limit, add(first, call_delay_));
  if (interval_ > 0) limit = std::min(limit, next_multiple(interval_, first));
  set_horizons(first, std::min(limit, monitor_next_));
  execute(count);
  after_window();
  return true;
}

// Sets the horizons of the next window. If several sets have work, no set goes beyond the shortest lookahead.
// Otherwise they would take turns, each waiting for times that the other has not reached yet.
void Engine::set_horizons(Time first, Time limit) {
  const std::size_t n = sets_.size();
  const Time together = add(first, least_reach_);
  const auto busy =
      std::count_if(sets_.begin(), sets_.end(), [&](const auto& s) { return s->next_ < together; });
  if (busy > 1) limit = std::min(limit, together);
  for (std::size_t to = 0; to < n; ++to) {
    Time horizon = limit;
    for (std::size_t from = 0; n > 1 && from < n; ++from)
      horizon = std::min(horizon, add(sets_[from]->next_, reach_[from * n + to]));
    sets_[to]->horizon_ = horizon;
  }
}

void Engine::execute(std::uint64_t count) {
  const std::uint64_t before = executed();
  parity_ ^= 1U;
  if (workers_.empty() || last_window_ < kWorthSharing) {
    for (auto& set : sets_) run_set(*set, outboxes_[0][parity_], count);
  } else {
    busy_.store(static_cast<std::uint32_t>(workers_.size()), std::memory_order_relaxed);
    begin_window();
    run_thread(0, window_.load(std::memory_order_relaxed));
    wait(busy_, waiting_, spins_, [](std::uint32_t busy) { return busy == 0; });
  }
  for (auto& set : sets_) set->out_ = &outboxes_[0][parity_];
  last_window_ = executed() - before;
}

void Engine::begin_window() {
  window_.fetch_add(1);
  if (parked_.load() != 0) wake_all(window_);
}

void Engine::work(std::uint32_t thread) {
  for (std::uint32_t seen = 0;; ++seen) {
    wait(window_, parked_, spins_, [seen](std::uint32_t window) { return window != seen; });
    if (leave_) return;
    run_thread(thread, seen + 1);
    if (busy_.fetch_sub(1) == 1 && waiting_.load() != 0) wake_all(busy_);
  }
}

// Runs the thread's own sets first, then sets that other threads have not taken. The sets with work change
// from window to window, faster than sets are redistributed.
void Engine::run_thread(std::uint32_t thread, std::uint32_t window) {
  const std::size_t threads = shares_.size();
  for (std::size_t i = 0; i < threads; ++i) {
    for (const std::uint32_t id : shares_[(thread + i) % threads]) {
      if (sets_[id]->taken_.load(std::memory_order_relaxed) == window) continue;
      if (sets_[id]->taken_.exchange(window, std::memory_order_relaxed) == window) continue;
      run_set(*sets_[id], outboxes_[thread][parity_], UINT64_MAX);
    }
  }
}

void Engine::run_set(LogicalProcess& set, LogicalProcess::Outbox& out, std::uint64_t count) {
  try {
    set.out_ = &out;
    for (auto& thread : outboxes_) set.take_remote_events(thread[parity_ ^ 1U]);
    if (set.next_ < set.horizon_ && !set.error_) set.load_ += set.loop_.run_some(count, set.horizon_ - 1);
  } catch (...) {
    set.error_ = std::current_exception();
  }
  set.next_ = set.first();
}

void LogicalProcess::take_remote_events(Outbox& from) {
  Outbox::Box& box = from.boxes[id_];
  if (box.first == kNever) return;
  box.first = kNever;
  for (const RemoteEvent& remote_event : std::span(box.remote_events.data(), box.count)) {
    const HandlerSlot& slot = remote_event_handlers_[static_cast<std::size_t>(remote_event.event.kind)];
    if (slot.call == nullptr) {
      loop_.insert(remote_event.event);
    } else {
      slot.call(slot.context, remote_event, box.attached.data());
    }
  }
  box.count = 0;
  box.attached.clear();
}

void Engine::after_window() {
  if (const LogicalProcess* failed = first_failed(); failed != nullptr) rethrow(*failed);
  const bool written =
      std::any_of(sets_.begin(), sets_.end(), [](const auto& set) { return !set->entries_.empty(); });
  if (written) read_journals({first_event(), 0});
  if (!workers_.empty() && ++windows_ == kShareOutEvery) share_out();
}

const LogicalProcess* Engine::first_failed() const {
  const LogicalProcess* first = nullptr;
  for (const auto& set : sets_) {
    if (set->error_ && (first == nullptr || set->order() < first->order())) first = set.get();
  }
  return first;
}

// Throws the exception of `failed`, after all earlier journal records were read. It returns if another set
// has pending work up to that time, because that set may throw an earlier one.
void Engine::rethrow(const LogicalProcess& failed) {
  for (const auto& set : sets_) {
    if (set->error_) continue;
    if (std::min(set->first(), first_remote_event(*set)) <= failed.order().time) return;
  }
  const LogicalProcess::Order last = failed.order();
  const std::exception_ptr error = failed.error_;
  for (auto& set : sets_) set->error_ = nullptr;
  read_journals({last.time, last.key + 1});
  std::rethrow_exception(error);
}

// Gives each set to the thread that had it, unless that thread has more than its share of the work. A set's
// state is in its thread's cache.
void Engine::share_out() {
  windows_ = 0;
  std::uint64_t total = 0;
  std::vector<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>> sets;  // load, set, thread
  for (std::uint32_t thread = 0; thread < shares_.size(); ++thread) {
    for (const std::uint32_t id : shares_[thread]) {
      sets.emplace_back(sets_[id]->load_, id, thread);
      total += sets_[id]->load_;
      sets_[id]->load_ = 0;
    }
    shares_[thread].clear();
  }
  std::sort(sets.rbegin(), sets.rend());
  const std::uint64_t part = total / shares_.size() + total / shares_.size() / 32;
  std::vector<std::uint64_t> loads(shares_.size(), 0);
  for (auto [load, id, thread] : sets) {
    const auto idlest = std::min_element(loads.begin(), loads.end());
    if (loads[thread] + load > part && *idlest < loads[thread])
      thread = static_cast<std::uint32_t>(idlest - loads.begin());
    loads[thread] += load;
    shares_[thread].push_back(id);
  }
}

// ---- Between events

void Engine::call_at(Time time, std::function<void()> call) { insert({time, 0, std::move(call)}); }

void Engine::insert(Call call) {
  const auto place = std::find_if(calls_.begin(), calls_.end(), [&](const Call& c) {
    return c.time < call.time || (c.time == call.time && c.order <= call.order);
  });
  calls_.insert(place, std::move(call));
}

void Engine::set_call_delay(Time delay) {
  NETSIM_CHECK(delay > 0, "events cannot ask for calls at once");
  call_delay_ = delay;
  for (auto& set : sets_) set->call_delay_ = delay;
}

void LogicalProcess::ask_call(Time time, Origin& origin, std::uint32_t reader,
                              std::span<const std::byte> record) {
  NETSIM_CHECK(call_delay_ != kNever && time - loop_.now() >= call_delay_,
               "a call is asked for earlier than the engine allows");
  requests_.push_back({time, origin.next_key(), reader, {record.begin(), record.end()}});
}

// Inserts the calls that sets have requested since the last call of this function, in windows, calls or from
// outside.
void Engine::take_requests() {
  for (auto& set : sets_) {
    for (LogicalProcess::Request& request : set->requests_) {
      JournalReader& reader = *readers_[request.reader];
      insert({request.time, 1 + request.key,
              [&reader, record = std::move(request.record)] { reader.read(record); }});
    }
    set->requests_.clear();
  }
}

void Engine::call() {
  const Call next = std::move(calls_.back());
  calls_.pop_back();
  called_ = next.time;
  idle_called_ = false;
  for (auto& set : sets_) set->loop_.advance(next.time);
  next.call();
  for (auto& set : sets_) set->next_ = set->first();
}

void Engine::set_monitor(Time interval, Monitor monitor) {
  monitor_ = std::move(monitor);
  monitor_interval_ = monitor_next_ = interval;
}

// Calls the monitor for times up to `first`, at which nothing is executed. Returns true if it stopped the
// engine.
bool Engine::look_around(Time first) {
  while (first < kNoEvent && monitor_next_ <= first) {
    const Time time = monitor_next_;
    monitor_next_ += monitor_interval_;
    monitor_(time, false);
    if (!stopped_) continue;
    called_ = time;
    return true;
  }
  return false;
}

// ---- Journals

std::uint32_t Engine::add_reader(JournalReader& reader) {
  readers_.push_back(&reader);
  return static_cast<std::uint32_t>(readers_.size() - 1);
}

// Reads the journal records before `end`. With one set it reads all, which are in order.
void Engine::read_journals(LogicalProcess::Order end) {
  if (sets_.size() == 1) {
    LogicalProcess& set = *sets_.front();
    while (set.entries_read_ < set.entries_.size()) read_entry(set, set.entries_read_);
    set.forget_read();
    return;
  }
  order_.clear();
  for (auto& set : sets_) {
    for (std::size_t i = set->entries_read_; i < set->entries_.size(); ++i) {
      const LogicalProcess::Order order = set->entries_[i].order;
      if (order >= end) break;
      order_.push_back({order, set->id_, i});
    }
  }
  std::sort(order_.begin(), order_.end());
  for (const Written& written : order_) read_entry(*sets_[written.set], written.entry);
  for (auto& set : sets_) set->forget_read();
}

void Engine::read_entry(LogicalProcess& set, std::size_t number) {
  const LogicalProcess::Entry& entry = set.entries_[number];
  set.entries_read_ = number + 1;
  readers_[entry.reader]->read({set.records_.data() + entry.at, entry.size});
}

void LogicalProcess::forget_read() {
  constexpr std::size_t kMany = 1024;
  if (entries_read_ < entries_.size() && entries_read_ < kMany) return;
  const std::size_t bytes = entries_read_ < entries_.size() ? entries_[entries_read_].at : records_.size();
  records_.erase(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(bytes));
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(entries_read_));
  for (Entry& entry : entries_) entry.at -= bytes;
  entries_read_ = 0;
}

}  // namespace netsim
