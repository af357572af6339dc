// LogicalProcess: a logical process of the parallel simulation. It holds some of the topology's atoms (law
// 3), which share a clock, an event queue and arenas. Sets send each other events with their payload by value
// (`RemoteEvent`), so a cut can lie between threads or between processes. Records that concern several sets,
// such as a job's statistics, go into a journal. The engine reads it in the order of all events.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <type_traits>
#include <vector>

#include "sim/core/event.h"
#include "sim/core/event_loop.h"

namespace netsim {

// RemoteEvent: an event for another set with 32 bytes of payload. More payload may be attached
// (`LogicalProcess::attach`).
struct alignas(64) RemoteEvent {
  Event event;
  std::array<std::byte, 32> data;
};
static_assert(sizeof(RemoteEvent) == 64);

// The time of a `RemoteEvent` without an event. The receiving set reads it in the order of sending, together
// with the next event from the same sender. It is never read where no event follows.
inline constexpr Time kNoEvent = kNever - 1;

// Returns the first multiple of `interval` that is after `now` and not before `time`.
constexpr Time next_multiple(Time interval, Time now, Time time = 0) {
  return std::max(now / interval + 1, (time + interval - 1) / interval) * interval;
}

// JournalReader: reads the records of one kind of writer from all sets. The order is the one in which a
// single event loop would have executed the events that wrote them.
class JournalReader {
 public:
  virtual ~JournalReader() = default;
  virtual void read(std::span<const std::byte> record) = 0;
};

// JournalOf: passes records of type T to a method of `owner`.
template <class T, class Owner>
class JournalOf final : public JournalReader {
 public:
  using Method = void (Owner::*)(const T&);
  JournalOf(Owner& owner, Method method) : owner_(owner), method_(method) {}
  void read(std::span<const std::byte> record) override {
    T copy;
    std::memcpy(&copy, record.data(), sizeof(T));
    (owner_.*method_)(copy);
  }

 private:
  Owner& owner_;
  Method method_;
};

// JournalInParts: passes records that were written with parts to a method of `owner`.
template <class T, class Part, class Owner>
class JournalInParts final : public JournalReader {
 public:
  using Method = void (Owner::*)(const T&, std::span<const Part>);
  JournalInParts(Owner& owner, Method method) : owner_(owner), method_(method) {}
  void read(std::span<const std::byte> record) override {
    T copy;
    std::memcpy(&copy, record.data(), sizeof(T));
    const std::span<const std::byte> parts = record.subspan(sizeof(T));
    parts_.resize(parts.size() / sizeof(Part));
    if (!parts.empty()) std::memcpy(parts_.data(), parts.data(), parts.size());
    (owner_.*method_)(copy, parts_);
  }

 private:
  Owner& owner_;
  Method method_;
  std::vector<Part> parts_;
};

class alignas(64) LogicalProcess {
 public:
  // Accepts a remote event: copies its payload into the set's arenas and schedules it in the set's loop.
  // `attached` points to the attached payload, or is null if there is none.
  using RemoteEventHandler = void (*)(void* context, const RemoteEvent& remote_event,
                                      const std::byte* attached);

  explicit LogicalProcess(std::uint32_t id) : id_(id) {}
  LogicalProcess(const LogicalProcess&) = delete;
  LogicalProcess& operator=(const LogicalProcess&) = delete;

  std::uint32_t id() const { return id_; }
  EventLoop& loop() { return loop_; }
  const EventLoop& loop() const { return loop_; }

  // Registers the handler for remote events of `kind`. A remote event of a kind without a handler has no
  // payload.
  void set_remote_event_handler(EventKind kind, RemoteEventHandler handler, void* context) {
    remote_event_handlers_[static_cast<std::size_t>(kind)] = {handler, context};
  }
  // Returns a new entry of the outbox to set `to`, which the caller fills in at once. `time` is the time of
  // its event: at least now plus the lookahead between the two sets, or kNoEvent.
  RemoteEvent& post(std::uint32_t to, Time time) {
    Outbox::Box& box = out_->boxes[to];
    if (time < box.first) box.first = time;
    if (box.count == box.remote_events.size()) [[unlikely]]
      box.remote_events.resize(std::max<std::size_t>(64, 2 * box.count));
    return box.remote_events[box.count++];
  }
  // Attaches payload to the remote events for set `to`. Returns its offset, which goes into the event's
  // argument.
  template <class T>
  std::uint64_t attach(std::uint32_t to, const T& attachment) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<std::byte>& attached = out_->boxes[to].attached;
    const std::uint64_t at = attached.size();
    attached.resize(at + sizeof(T));
    std::memcpy(attached.data() + at, &attachment, sizeof(T));
    return at;
  }

  // Writes a journal record for reader `reader` of the engine, ordered by the event that is running.
  template <class T>
  void write(std::uint32_t reader, const T& record) {
    static_assert(std::is_trivially_copyable_v<T>);
    entries_.push_back(
        {alone_ ? Order{} : order(), reader, static_cast<std::uint32_t>(sizeof(T)), records_.size()});
    const auto* bytes = reinterpret_cast<const std::byte*>(&record);
    records_.insert(records_.end(), bytes, bytes + sizeof(T));
  }
  // Writes a journal record followed by any number of parts.
  template <class T, class Part>
  void write(std::uint32_t reader, const T& record, std::span<const Part> parts) {
    static_assert(std::is_trivially_copyable_v<Part>);
    write(reader, record);
    const std::span<const std::byte> bytes = std::as_bytes(parts);
    entries_.back().size += static_cast<std::uint32_t>(bytes.size());
    records_.insert(records_.end(), bytes.begin(), bytes.end());
  }

  // Asks the engine to pass `record` to its reader `reader` at `time`, between events (Engine::call_at).
  // `time` is at least now plus the engine's call delay. Calls of one time are ordered by keys of `origin`,
  // the origin of the entity that asks.
  template <class T>
  void ask_call(Time time, Origin& origin, std::uint32_t reader, const T& record) {
    static_assert(std::is_trivially_copyable_v<T>);
    ask_call(time, origin, reader, std::as_bytes(std::span(&record, 1)));
  }
  // Asks for the engine's interval call at the first multiple of the interval after now
  // (Engine::set_interval). It only sets a flag, so an event may ask as often as it likes.
  void ask_interval() { ask_interval_at(0); }
  // Asks for the call at the first multiple that is after now and not before `time`.
  void ask_interval_at(Time time);

 private:
  friend class Engine;
  struct HandlerSlot {
    RemoteEventHandler call = nullptr;
    void* context = nullptr;
  };
  // Outbox: the remote events that all sets of one thread send in one window, grouped by receiving set.
  struct Outbox {
    struct alignas(64) Box {
      std::vector<RemoteEvent> remote_events;  // only the first `count` are valid
      std::size_t count = 0;
      std::vector<std::byte> attached;
      Time first = kNever;  // time of the earliest event in `remote_events`
    };
    explicit Outbox(std::uint32_t sets) : boxes(sets) {}
    std::vector<Box> boxes;  // by receiving set
  };
  // Order: the position of a journal record or of an exception in the order of all events
  // (EventLoop::order_key()).
  struct Order {
    Time time;
    std::uint64_t key;
    auto operator<=>(const Order&) const = default;
  };
  struct Entry {
    Order order;  // left at zero where the engine has one set
    std::uint32_t reader, size;
    std::size_t at;  // offset in records_, in bytes
  };

  struct Request {
    Time time;
    std::uint64_t key;
    std::uint32_t reader;
    std::vector<std::byte> record;
  };

  void ask_call(Time time, Origin& origin, std::uint32_t reader, std::span<const std::byte> record);
  Order order() const { return {loop_.now(), loop_.order_key()}; }
  // Returns the time of the earliest pending event. A set in which an event has thrown returns that event's
  // time.
  Time first() const { return error_ ? loop_.now() : loop_.next_time(); }
  void take_remote_events(Outbox& from);
  void forget_read();

  std::uint32_t id_;
  bool alone_ = false;     // the engine has one set, so its journal is in order as written
  Outbox* out_ = nullptr;  // outbox of the thread that runs this set
  EventLoop loop_;
  std::array<HandlerSlot, static_cast<std::size_t>(EventKind::count)> remote_event_handlers_{};
  std::vector<Entry> entries_;
  std::vector<std::byte> records_;
  std::size_t entries_read_ = 0;
  std::vector<Request> requests_;        // requested calls that the engine has not seen yet
  Time call_delay_ = kNever;             // minimum time from now to a requested call
  Time interval_ = 0;                    // of the engine; 0: there is none
  Time interval_asked_ = kNever;         // earliest multiple that an event has asked for
  Time next_ = kNever;                   // time of the earliest pending event, as of the last window
  Time horizon_ = 0;                     // events before this time may be executed in this window
  std::uint64_t load_ = 0;               // events executed since threads were last given their sets
  std::atomic<std::uint32_t> taken_{0};  // number of the last shared window in which a thread ran this set
  std::exception_ptr error_;             // exception thrown by an event; the set executes nothing afterwards
};

}  // namespace netsim
