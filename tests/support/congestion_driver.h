// Drives a congestion control alone: feedback at given times, its own timers in between.
#pragma once

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "sim/core/registry.h"
#include "sim/transport/congestion/congestion_control.h"

namespace netsim {

class CongestionDriver {
 public:
  // `yaml`: the control's parameters, its kind among them. `context`: line rate, base RTT, mtu, hops.
  CongestionDriver(const std::string& yaml, const CongestionContext& context) : context_(context) {
    control_ = Registry<CongestionControl>::instance().create(parse_config(yaml, "control.yaml"), "");
    std::memset(state_, 0, sizeof state_);
    context_.state = state_;
    call(0, [&] { control_->start(context_); });
  }
  CongestionDriver(const std::string& yaml, BitRate line) : CongestionDriver(yaml, idle_path(line)) {}
  CongestionDriver(const CongestionDriver&) = delete;
  CongestionDriver& operator=(const CongestionDriver&) = delete;

  static CongestionContext idle_path(BitRate line) {
    CongestionContext context;
    context.line_rate = context.rate = line;
    context.base_rtt = 8 * kMicrosecond;
    context.mtu = 1000;
    context.hops = 2;
    return context;
  }

  // Lets the timers up to `to` expire, in order of time. If two expire at the same time, the later number
  // comes first: a control must not rely on their order.
  void advance(Time to) {
    while (!timers_.empty() && timers_.begin()->first <= to) {
      const Time at = timers_.begin()->first;
      const unsigned timer = kCongestionTimers - 1 - timers_.begin()->second;
      timers_.erase(timers_.begin());
      call(at, [&] { control_->on_timer(context_, timer); });
    }
  }
  void cnp(Time at) {
    advance(at);
    call(at, [&] { control_->on_cnp(context_); });
  }
  void sent(Time at, Bytes bytes) {
    advance(at);
    if (!control_->needs().sent_bytes) return;
    call(at, [&] { control_->on_sent(context_, bytes); });
  }
  void ack(Time at, const Feedback& feedback, std::uint32_t next_psn) {
    advance(at);
    context_.next_psn = next_psn;
    call(at, [&] { control_->on_ack(context_, feedback); });
  }
  // One packet acknowledged, with `psn` the next expected; `marked` of it, its round-trip time.
  void ack(Time at, std::uint32_t psn, std::uint32_t next_psn, std::uint32_t marked = 0, Time rtt = 0) {
    Feedback feedback;
    feedback.acknowledged_psn = psn;
    feedback.packets = 1;
    feedback.bytes = context_.mtu;
    feedback.marked = marked;
    feedback.rtt = rtt;
    ack(at, feedback, next_psn);
  }

  BitRate rate() const { return context_.rate; }
  Bytes window() const { return context_.window; }
  std::size_t timers() const { return timers_.size(); }
  CongestionNeeds needs() const { return control_->needs(); }
  // To the path, if that is what an idle round trip takes.
  std::string objection(Time round_trip) const { return control_->objection(context_, round_trip); }

 private:
  template <class Call>
  void call(Time at, Call body) {
    context_.now = at;
    context_.timer.fill(kNever);
    body();
    for (unsigned i = 0; i < kCongestionTimers; ++i) {
      if (context_.timer[i] != kNever) timers_.insert({context_.timer[i], kCongestionTimers - 1 - i});
    }
  }
  std::unique_ptr<CongestionControl> control_;
  CongestionContext context_;
  alignas(16) std::byte state_[kMaxCongestionStateBytes];
  std::set<std::pair<Time, unsigned>> timers_;  // with their numbers from the end
};

}  // namespace netsim
