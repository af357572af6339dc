// AtomSet: some of the topology's atoms (law 3), which share a clock, an event queue and arenas. What two
// sets have to say to each other travels as mail: events with what they carry, by value, so that the same cut
// can lie between threads or between processes. What concerns more than one set (books of a job, tables) is
// written into a journal, which the engine reads in the order of all events.
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

// An event for another set, with 32 bytes of what it carries; more of it may be attached.
struct alignas(64) Mail {
  Event event;
  std::array<std::byte, 32> data;
};
static_assert(sizeof(Mail) == 64);

// The time of mail that is no event, but read with what is sent before and after it; where no event follows,
// not at all.
inline constexpr Time kNoEvent = kNever - 1;

// Reads the records of one kind of writer, from all sets, in the order in which one event loop would have
// executed the events that wrote them.
class JournalReader {
 public:
  virtual ~JournalReader() = default;
  virtual void read(std::span<const std::byte> record) = 0;
};

// Hands records of type T to a method of `owner`.
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

// The same of records that were written with parts.
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

class alignas(64) AtomSet {
 public:
  // Takes mail in: what it carries goes into the set's arenas, the event into its loop. `attached`: what was
  // attached, null if nothing.
  using MailHandler = void (*)(void* context, const Mail& mail, const std::byte* attached);

  explicit AtomSet(std::uint32_t id) : id_(id) {}
  AtomSet(const AtomSet&) = delete;
  AtomSet& operator=(const AtomSet&) = delete;

  std::uint32_t id() const { return id_; }
  EventLoop& loop() { return loop_; }
  const EventLoop& loop() const { return loop_; }

  // Mail of kinds without a handler is an event and nothing else.
  void set_mail_handler(EventKind kind, MailHandler handler, void* context) {
    mail_handlers_[static_cast<std::size_t>(kind)] = {handler, context};
  }
  // Mail to another set, to be filled in at once: `time`, that of its event, is at least the lookahead
  // between the two sets after now (kNoEvent: there is no event).
  Mail& post(std::uint32_t to, Time time) {
    Outbox::Box& box = out_->boxes[to];
    if (time < box.first) box.first = time;
    if (box.count == box.mails.size()) [[unlikely]]
      box.mails.resize(std::max<std::size_t>(64, 2 * box.count));
    return box.mails[box.count++];
  }
  // Puts something beside the mail for `to`; the result goes into its event's argument.
  template <class T>
  std::uint64_t attach(std::uint32_t to, const T& attachment) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<std::byte>& attached = out_->boxes[to].attached;
    const std::uint64_t at = attached.size();
    attached.resize(at + sizeof(T));
    std::memcpy(attached.data() + at, &attachment, sizeof(T));
    return at;
  }

  // Writes a record for reader `reader` of the engine, at the present event.
  template <class T>
  void write(std::uint32_t reader, const T& record) {
    static_assert(std::is_trivially_copyable_v<T>);
    entries_.push_back(
        {alone_ ? Order{} : order(), reader, static_cast<std::uint32_t>(sizeof(T)), records_.size()});
    const auto* bytes = reinterpret_cast<const std::byte*>(&record);
    records_.insert(records_.end(), bytes, bytes + sizeof(T));
  }
  // The same with what belongs to it, of which there may be any number.
  template <class T, class Part>
  void write(std::uint32_t reader, const T& record, std::span<const Part> parts) {
    static_assert(std::is_trivially_copyable_v<Part>);
    write(reader, record);
    const std::span<const std::byte> bytes = std::as_bytes(parts);
    entries_.back().size += static_cast<std::uint32_t>(bytes.size());
    records_.insert(records_.end(), bytes.begin(), bytes.end());
  }

  // Asks for a call: reader `reader` of the engine gets the record at `time`, between events
  // (Engine::call_at). `time` is at least the engine's call delay after now. `origin`: of who asks; calls of
  // one time come in the order of events with keys from there.
  template <class T>
  void ask_call(Time time, Origin& origin, std::uint32_t reader, const T& record) {
    static_assert(std::is_trivially_copyable_v<T>);
    ask_call(time, origin, reader, std::as_bytes(std::span(&record, 1)));
  }

 private:
  friend class Engine;
  struct HandlerSlot {
    MailHandler call = nullptr;
    void* context = nullptr;
  };
  // What the sets of one thread send in one window: sets send to few, so what one set gets lies together.
  struct Outbox {
    struct alignas(64) Box {
      std::vector<Mail> mails;  // the first `count` are used
      std::size_t count = 0;
      std::vector<std::byte> attached;
      Time first = kNever;  // earliest event
    };
    explicit Outbox(std::uint32_t sets) : boxes(sets) {}
    std::vector<Box> boxes;  // by receiving set
  };
  // Of what is written, and thrown, by any set: see EventLoop::order_key().
  struct Order {
    Time time;
    std::uint64_t key;
    auto operator<=>(const Order&) const = default;
  };
  struct Entry {
    Order order;  // nothing where the set is alone
    std::uint32_t reader, size;
    std::size_t at;  // in records_
  };

  struct Request {
    Time time;
    std::uint64_t key;
    std::uint32_t reader;
    std::vector<std::byte> record;
  };

  void ask_call(Time time, Origin& origin, std::uint32_t reader, std::span<const std::byte> record);
  Order order() const { return {loop_.now(), loop_.order_key()}; }
  // The earliest event to come; of a set in which one has thrown, that one.
  Time first() const { return error_ ? loop_.now() : loop_.next_time(); }
  void take_mail(Outbox& from);
  void forget_read();

  std::uint32_t id_;
  bool alone_ = false;     // the only one of its engine: what it writes is in order as it is
  Outbox* out_ = nullptr;  // of the thread that runs it
  EventLoop loop_;
  std::array<HandlerSlot, static_cast<std::size_t>(EventKind::count)> mail_handlers_{};
  std::vector<Entry> entries_;
  std::vector<std::byte> records_;
  std::size_t entries_read_ = 0;
  std::vector<Request> requests_;        // that the engine has not seen yet
  Time call_delay_ = kNever;             // least time from now to a call that is asked for
  Time next_ = kNever;                   // earliest of what is pending, as of the last window
  Time horizon_ = 0;                     // events before it may be executed in this window
  std::uint64_t load_ = 0;               // events executed since threads were last given their sets
  std::atomic<std::uint32_t> taken_{0};  // the last window that threads shared in which one took it
  std::exception_ptr error_;             // the set rests from then on
};

}  // namespace netsim
