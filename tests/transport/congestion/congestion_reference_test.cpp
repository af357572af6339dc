// Is every congestion control the one that its paper describes? 1,000 random traces each against a reference
// in Python (tests/transport/congestion/reference/), written from the equations and fed the feedback recorded
// here.
//
// A component returns whole bit/s, rounded, and whole bytes, rounded down. So it may differ from the
// reference's unrounded number by 0.5 bit/s or 1 byte beyond the relative 1e-9. The latter is smaller for
// rates below 500 Mb/s and windows below 1 GB.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/core/random.h"
#include "tests/support/congestion_driver.h"
#include "tests/support/paths.h"
#include "tests/support/test_size.h"

namespace netsim::congestion_reference_test {
namespace {

using Json = nlohmann::json;

const int kTraces = test::by_size(1000, 100, 50);
constexpr int kRecords = 50;
constexpr double kTolerance = 1e-9;

struct Decision {
  BitRate rate;
  Bytes window;
};
struct Trace {
  std::string yaml;
  Json json;
  std::vector<Decision> decisions;  // after every record
};

// A control's parameters, for the component as YAML and for the reference as numbers. `shown` false: not in
// the YAML, because it is the component's default.
class Settings {
 public:
  explicit Settings(const std::string& kind) : yaml_("{kind: " + kind) {}
  void word(const std::string& name, const std::string& value) { add(name, value, value, true); }
  void flag(const std::string& name, bool value) { add(name, value, value ? "true" : "false", true); }
  void real(const std::string& name, double value) { add(name, value, format_real(value), true); }
  void integer(const std::string& name, std::int64_t value, bool shown = true) {
    add(name, value, std::to_string(value), shown);
  }
  void time(const std::string& name, Time value, bool shown = true) {
    add(name, value, std::to_string(value) + " ps", shown);
  }
  void bytes(const std::string& name, Bytes value, bool shown = true) {
    add(name, value, std::to_string(value) + " B", shown);
  }
  void rate(const std::string& name, BitRate value, bool shown = true) {
    add(name, value, std::to_string(value) + " bps", shown);
  }
  std::string yaml() const { return yaml_ + "}"; }
  const Json& json() const { return json_; }

 private:
  template <class Value>
  void add(const std::string& name, Value value, const std::string& text, bool shown) {
    json_[name] = value;
    if (shown) yaml_ += ", " + name + ": " + text;
  }
  std::string yaml_;
  Json json_ = Json::object();
};

class Source {
 public:
  Source(const std::string& control, int trace)
      : random_(static_cast<std::uint64_t>(trace), "traces of " + control) {}
  bool coin(double probability = 0.5) { return random_.uniform() < probability; }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  double real(double low, double high) { return low + (high - low) * random_.uniform(); }
  // Returns a number of any order of magnitude between `low` and `high`.
  std::int64_t scaled(std::int64_t low, std::int64_t high) {
    std::int64_t scale = low;
    while (scale < high && coin(0.7)) scale *= 3;
    return std::min(high, between(low, std::min(high, scale * 3)));
  }

  CongestionContext path() {
    static constexpr std::array<BitRate, 5> kLines{10 * kGbps, 25 * kGbps, 40 * kGbps, 100 * kGbps,
                                                   400 * kGbps};
    CongestionContext c;
    c.line_rate = c.rate = kLines[random_.below(kLines.size())];
    c.base_rtt = between(2'000'000, 30'000'000);
    c.mtu = between(256, 4096);
    c.hops = static_cast<std::uint32_t>(between(1, 6));
    return c;
  }

 private:
  RandomStream random_;
};

// Runs a component on records as they are made and notes its decisions.
class Recording {
 public:
  Recording(const Settings& settings, const CongestionContext& path)
      : driver_(settings.yaml(), path), line_(path.line_rate) {
    trace_.yaml = settings.yaml();
    trace_.json = {{"parameters", settings.json()},
                   {"line_rate", path.line_rate},
                   {"base_rtt", path.base_rtt},
                   {"mtu", path.mtu},
                   {"hops", path.hops},
                   {"feedback", Json::array()}};
  }
  void cnp(Time at) {
    driver_.cnp(at);
    add({{"kind", "cnp"}, {"time", at}});
  }
  void sent(Time at, Bytes bytes) {
    driver_.sent(at, bytes);
    add({{"kind", "sent"}, {"time", at}, {"bytes", bytes}});
  }
  void look(Time at) {
    driver_.advance(at);
    add({{"kind", "look"}, {"time", at}});
  }
  // `psn`, `next_psn` do not wrap here; the component sees them wrap, soon after the trace's beginning.
  void ack(Time at, std::int64_t psn, std::int64_t next_psn, Feedback f) {
    constexpr std::int64_t kStart = (std::int64_t{1} << 32) - 40;
    f.acknowledged_psn = static_cast<std::uint32_t>(kStart + psn);
    driver_.ack(at, f, static_cast<std::uint32_t>(kStart + next_psn));
    Json hops = Json::array();
    for (const TelemetryHop& hop : f.hops) hops.push_back({hop.time, hop.sent, hop.queue, hop.rate});
    add({{"time", at},
         {"psn", psn},
         {"next_psn", next_psn},
         {"packets", f.packets},
         {"marked", f.marked},
         {"rtt", f.rtt},
         {"hops", std::move(hops)}});
  }
  Trace take() { return std::move(trace_); }

 private:
  void add(Json record) {
    trace_.json["feedback"].push_back(std::move(record));
    trace_.decisions.push_back({driver_.rate(), driver_.window()});
  }
  CongestionDriver driver_;
  BitRate line_;
  Trace trace_;
};

// A sender's sequence numbers as ACKs come in.
struct Sequence {
  std::int64_t acknowledged = 0, next = 8;
  std::uint32_t advance(Source& source, std::int64_t in_flight) {
    const std::int64_t packets = source.coin(0.1) ? 0 : source.between(1, 3);
    acknowledged += packets;
    next = std::max(next, acknowledged + source.between(0, in_flight));
    return static_cast<std::uint32_t>(packets);
  }
};

// ---- One generator for each control

Trace dcqcn(Source& source) {
  const CongestionContext path = source.path();
  const BitRate line = path.line_rate;
  const bool vendor = source.coin();
  const bool counters = vendor ? source.coin(0.2) : source.coin(0.8);
  Settings p("dcqcn");
  p.word("profile", vendor ? "vendor" : "sigcomm15");
  p.real("g", source.coin() ? 1.0 / 256 : source.real(0.001, 0.5));
  const auto own = [&] { return source.coin(0.3); };
  const auto time = [&](const char* name, Time standard, Time low, Time high) {
    const bool given = own();
    p.time(name, given ? source.between(low, high) : standard, given);
  };
  const auto rate = [&](const char* name, BitRate standard, BitRate high) {
    const bool given = own();
    p.rate(name, given ? source.between(0, high) : standard, given);
  };
  time("alpha_timer", (vendor ? 1 : 55) * kMicrosecond, kMicrosecond, 80 * kMicrosecond);
  time("decrease_interval", vendor ? 4 * kMicrosecond : 0, kMicrosecond, 60 * kMicrosecond);
  time("increase_timer", (vendor ? 300 : 55) * kMicrosecond, kMicrosecond, 400 * kMicrosecond);
  if (counters) {
    p.bytes("byte_counter", source.between(10'000, 10'000'000));
  } else {
    p.bytes("byte_counter", vendor ? 0 : 10 * kMegabyte, false);
  }
  const bool steps = own();
  p.integer("fast_recovery_steps", steps ? source.between(0, 7) : vendor ? 1 : 5, steps);
  rate("rate_ai", vendor ? line / 5000 : 40 * kMbps, kGbps);
  rate("rate_hai", vendor ? line / 500 : 400 * kMbps, 4 * kGbps);
  rate("minimum_rate", vendor ? line / 100 : line / 1000, line / 4);
  Recording recording(p, path);
  const Time grain = source.coin() ? 1 : kMicrosecond;  // on the vendor's grid: CNPs as its periods end
  Time now = 0;
  for (int i = 0; i < kRecords; ++i) {
    now += source.scaled(100'000, 300'000'000) / grain * grain + grain;
    const double kind = source.real(0, 1);
    if (kind < 0.4) {
      recording.cnp(now);
    } else if (kind < 0.7) {
      recording.sent(now, source.between(64, 4'000'000));
    } else {
      recording.look(now);
    }
  }
  return recording.take();
}

// Telemetry of paths of up to five links, which changes its length now and then.
Trace record_telemetry(Source& source, const Settings& p, const CongestionContext& path) {
  Recording recording(p, path);
  std::array<TelemetryHop, kTelemetryHops> hops;
  for (TelemetryHop& hop : hops) {
    hop.rate = source.coin() ? 100 * kGbps : 25 * kGbps * source.between(1, 16);
    hop.sent = source.between(0, kGigabyte);
    hop.time = source.between(0, kMillisecond);
  }
  std::size_t length = static_cast<std::size_t>(source.between(1, kTelemetryHops));
  const double mood = source.real(0.2, 1.4);  // how loaded the links are
  Sequence sequence;
  Time now = kMillisecond;
  for (int i = 0; i < kRecords; ++i) {
    const Time gap = source.scaled(20'000, 60'000'000);
    now += gap;
    for (TelemetryHop& hop : hops) {
      const Time gone = std::max<Time>(1'000, gap + source.between(-10'000, 10'000));
      hop.time += gone;
      const double use = std::min(1.0, source.real(0, 2) * mood);
      hop.sent +=
          64 + static_cast<Bytes>(use * static_cast<double>(hop.rate) * static_cast<double>(gone) / 8e12);
      hop.queue = source.coin() ? 0 : source.between(0, 300'000);
    }
    if (source.coin(0.03)) length = static_cast<std::size_t>(source.between(1, kTelemetryHops));
    auto seen = hops;
    if (source.coin(0.03)) seen[0].time -= gap + 30'000;  // overtaken by an earlier packet
    Feedback f;
    f.packets = sequence.advance(source, 12);
    f.hops = std::span<const TelemetryHop>(seen).first(length);
    recording.ack(now, sequence.acknowledged, sequence.next, f);
  }
  return recording.take();
}

Trace hpcc(Source& source) {
  CongestionContext path = source.path();
  const BitRate line = path.line_rate;
  Settings p("hpcc");
  p.real("eta", source.coin() ? 0.95 : source.real(0.5, 1));
  p.integer("max_stage", source.coin() ? 5 : source.between(0, 3));
  const bool ai = source.coin(), floor = source.coin(), base = source.coin(0.3);
  p.rate("rate_ai", ai ? source.between(0, kGbps) : line / 2500, ai);
  p.rate("minimum_rate", floor ? source.between(0, line / 10) : line / 1000, floor);
  p.flag("fast_reaction", source.coin(0.8));
  p.word("rates", source.coin() ? "single" : "per_hop");
  p.flag("quantise", source.coin());
  const bool multiplier = source.coin();
  p.integer("unit_multiplier", multiplier ? source.between(1, 20) : std::max<BitRate>(1, line / (25 * kGbps)),
            multiplier);
  p.time("base_rtt", base ? source.between(2'000'000, 30'000'000) : 0);
  return record_telemetry(source, p, path);
}

// Round-trip times that wander between the base and several times `far`.
class RoundTrips {
 public:
  RoundTrips(Source& source, Time base, Time far) : source_(source), base_(base), far_(far), rtt_(base) {}
  Time next() {
    if (source_.coin(0.1)) rtt_ = source_.between(base_, 3 * far_);
    if (!source_.coin(0.2)) rtt_ += source_.between(-far_ / 10, far_ / 10);
    rtt_ = std::max(rtt_, base_);
    return rtt_;
  }

 private:
  Source& source_;
  Time base_, far_, rtt_;
};

Trace record_round_trips(Source& source, const Settings& p, const CongestionContext& path, Time far) {
  Recording recording(p, path);
  RoundTrips round_trips(source, path.base_rtt, far);
  Sequence sequence;
  Time now = 0;
  for (int i = 0; i < kRecords; ++i) {
    now += source.scaled(20'000, 60'000'000);
    Feedback f;
    f.packets = sequence.advance(source, 2);
    f.rtt = source.coin(0.05) ? 0 : round_trips.next();
    recording.ack(now, sequence.acknowledged, sequence.next, f);
  }
  return recording.take();
}

Trace timely(Source& source) {
  const CongestionContext path = source.path();
  const BitRate line = path.line_rate;
  Settings p("timely");
  p.real("alpha", source.coin() ? 0.875 : source.coin() ? 1 : source.real(0.01, 1));
  p.real("beta", source.coin() ? 0.8 : source.real(0, 1));
  const Time low = source.coin() ? 50 * kMicrosecond : source.between(3, 60) * kMicrosecond;
  const Time high = source.coin() ? 500 * kMicrosecond : low + source.between(0, 200) * kMicrosecond;
  p.time("t_low", low);
  p.time("t_high", high);
  p.time("minimum_rtt", source.coin() ? 20 * kMicrosecond : source.between(1, 100) * kMicrosecond);
  const bool ai = source.coin(), hai = source.coin(), floor = source.coin();
  p.rate("rate_ai", ai ? source.between(0, kGbps) : line / 1000, ai);
  p.rate("rate_hai", hai ? source.between(0, 4 * kGbps) : line / 200, hai);
  p.integer("hai_after", source.coin() ? 5 : source.between(0, 3));
  p.rate("minimum_rate", floor ? source.between(0, line / 10) : line / 1000, floor);
  p.time("resolution", source.coin() ? kNanosecond : source.between(1, 100'000));
  return record_round_trips(source, p, path, high);
}

Trace powertcp(Source& source) {
  const CongestionContext path = source.path();
  const BitRate line = path.line_rate;
  const bool in_band = source.coin();
  Settings p("powertcp");
  p.word("form", in_band ? "int" : "delay");
  p.real("gamma", source.coin() ? 0.9 : source.real(0.01, 1));
  p.real("eta", source.coin() ? 0.95 : source.real(0.5, 1));
  p.real("rtt_margin", source.coin() ? 1.05 : source.real(1, 2));
  const bool ai = source.coin(), floor = source.coin(), base = source.coin(0.3);
  p.rate("rate_ai", ai ? source.between(0, kGbps) : line * 3 / 500, ai);
  p.rate("minimum_rate", floor ? source.between(0, line / 10) : line / 1000, floor);
  p.time("base_rtt", base ? source.between(2'000'000, 30'000'000) : 0);
  return in_band ? record_telemetry(source, p, path)
                 : record_round_trips(source, p, path, 10 * source.between(1, 10) * kMicrosecond);
}

Trace swift(Source& source) {
  const CongestionContext path = source.path();
  Settings p("swift");
  const Time target = source.coin() ? 20 * kMicrosecond : source.between(1, 100) * kMicrosecond;
  p.time("base_target", target);
  p.time("per_hop", source.coin() ? 3053 * kNanosecond : source.between(0, 5'000'000));
  p.time("fs_range", source.coin() ? 100 * kMicrosecond : source.between(0, 200) * kMicrosecond);
  p.real("fs_min_cwnd", source.coin() ? 0.1 : source.real(0.01, 1));
  p.real("fs_max_cwnd", source.coin() ? 100 : source.real(2, 200));
  p.real("ai", source.coin() ? 1 : source.real(0, 4));
  p.real("beta", source.coin() ? 0.8 : source.real(0, 1));
  p.real("max_mdf", source.coin() ? 0.5 : source.real(0, 1));
  p.real("min_cwnd", source.coin() ? 0.001 : source.real(0.01, 1));
  p.real("max_cwnd", source.coin() ? 1000 : source.real(1, 50));
  const bool initial = source.coin();
  p.bytes("initial_window", initial ? source.between(1, 1'000'000) : 0, initial);
  Recording recording(p, path);
  RoundTrips round_trips(source, path.base_rtt, 2 * target + 100 * kMicrosecond);
  Sequence sequence;
  Time now = 0;
  for (int i = 0; i < kRecords; ++i) {
    now += source.scaled(1'000'000, 900'000'000);
    Feedback f;
    f.packets = sequence.advance(source, 20);
    f.rtt = source.coin(0.05) ? 0 : round_trips.next();
    recording.ack(now, sequence.acknowledged, sequence.next, f);
  }
  return recording.take();
}

Trace dctcp(Source& source) {
  CongestionContext path = source.path();
  const bool window = source.coin();
  if (source.coin()) path.base_rtt /= 10;  // windows of a few packets
  const BitRate line = path.line_rate;
  Settings p("dctcp");
  p.word("form", window ? "window" : "rate");
  p.real("g", source.coin() ? 1.0 / 16 : source.real(0.01, 1));
  const bool initial = source.coin(), ai = source.coin(0.8), floor = source.coin();
  p.bytes("initial_window", initial ? source.between(1, 100'000) : 0, initial);
  if (!ai) path.base_rtt = path.mtu * 8000;  // so that the default, a packet per base RTT, is whole: 1 Gb/s
  p.rate("rate_ai", ai ? source.between(0, 10 * kGbps) : kGbps, ai);
  p.rate("minimum_rate", floor ? source.between(0, line / 10) : line / 1000, floor);
  Recording recording(p, path);
  const double marks = source.real(0, 1) * source.real(0, 1);
  Sequence sequence;
  Time now = 0;
  for (int i = 0; i < kRecords; ++i) {
    now += source.scaled(20'000, 60'000'000);
    Feedback f;
    f.packets = sequence.advance(source, 6);
    for (std::uint32_t k = 0; k <= f.packets; ++k) f.marked += source.coin(marks) ? 1 : 0;
    recording.ack(now, sequence.acknowledged, sequence.next, f);
  }
  return recording.take();
}

Trace ib_cct(Source& source) {
  const CongestionContext path = source.path();
  Settings p("ib_cct");
  p.integer("ccti_increase", source.coin() ? 1 : source.between(0, 20));
  const std::int64_t limit = source.coin() ? 127 : source.between(1, 300);
  p.integer("ccti_limit", limit);
  p.integer("ccti_min", source.coin() ? 0 : source.between(0, limit));
  p.time("ccti_timer", source.coin() ? 153'600 * kNanosecond : source.between(1'000, 300'000'000));
  static constexpr std::array<const char*, 3> kTables{"linear", "quadratic", "exponential"};
  p.word("table", kTables[static_cast<std::size_t>(source.between(0, 2))]);
  p.real("delay_step", source.coin() ? 0.00356 : source.real(0, 2));
  Recording recording(p, path);
  Time now = 0;
  for (int i = 0; i < kRecords; ++i) {
    now += source.scaled(100'000, 300'000'000);
    if (source.coin(0.7)) {
      recording.cnp(now);
    } else {
      recording.look(now);
    }
  }
  return recording.take();
}

// ---- The comparison

bool have_python() {
  static const bool found = std::system("python3 -c 'import json' >/dev/null 2>&1") == 0;
  return found;
}

// The reference's [rate, window] after every record of every trace.
std::vector<Json> ask_reference(const std::string& name, const std::vector<Trace>& traces) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("netsim_reference_" + name);
  std::filesystem::create_directories(folder);
  const std::string in = (folder / "traces").string(), out = (folder / "decisions").string();
  {
    std::ofstream file(in);
    for (const Trace& trace : traces) file << trace.json.dump() << '\n';
  }
  const std::string script = source_directory() + "/tests/transport/congestion/reference/" + name + ".py";
  const std::string command = "python3 '" + script + "' < '" + in + "' > '" + out + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::vector<Json> decisions;
  std::ifstream file(out);
  for (std::string line; std::getline(file, line);) decisions.push_back(Json::parse(line));
  file.close();
  std::filesystem::remove_all(folder);
  return decisions;
}

// Empty where the component's decision is the reference's.
std::string difference(const Decision& component, const Json& reference) {
  const double rate = reference[0].get<double>();
  if (std::abs(static_cast<double>(component.rate) - std::max(rate, 1.0)) > 0.5 + kTolerance * rate)
    return "rate " + std::to_string(component.rate) + ", the reference's " + reference[0].dump();
  const bool unlimited = reference[1].is_null();
  if (unlimited && component.window == kNoWindow) return "";
  const double window = unlimited ? 0 : reference[1].get<double>();
  if (unlimited ||
      std::abs(static_cast<double>(component.window) - std::max(window, 1.0)) > 1 + kTolerance * window)
    return "window " + std::to_string(component.window) + ", the reference's " + reference[1].dump();
  return "";
}

void compare(const std::string& name, Trace (*generate)(Source&)) {
  if (!have_python()) GTEST_SKIP() << "python3 runs the references, and is not here";
  std::vector<Trace> traces;
  for (int i = 0; i < kTraces; ++i) {
    Source source(name, i);
    traces.push_back(generate(source));
  }
  const std::vector<Json> references = ask_reference(name, traces);
  ASSERT_EQ(references.size(), traces.size());
  std::size_t changes = 0;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const Trace& trace = traces[i];
    ASSERT_EQ(references[i].size(), trace.decisions.size());
    for (std::size_t k = 0; k < trace.decisions.size(); ++k) {
      ASSERT_EQ(difference(trace.decisions[k], references[i][k]), "")
          << "trace " << i << " after record " << k << ": " << trace.yaml << "\n"
          << trace.json["feedback"][k].dump();
      changes += k > 0 && (trace.decisions[k].rate != trace.decisions[k - 1].rate ||
                           trace.decisions[k].window != trace.decisions[k - 1].window);
    }
  }
  EXPECT_GT(changes, static_cast<std::size_t>(kTraces) * kRecords / 10) << "traces that exercise little";
}

TEST(CongestionReference, Dcqcn) { compare("dcqcn", dcqcn); }
TEST(CongestionReference, Hpcc) { compare("hpcc", hpcc); }
TEST(CongestionReference, Timely) { compare("timely", timely); }
TEST(CongestionReference, Swift) { compare("swift", swift); }
TEST(CongestionReference, Dctcp) { compare("dctcp", dctcp); }
TEST(CongestionReference, IbCct) { compare("ib_cct", ib_cct); }
TEST(CongestionReference, PowerTcp) { compare("powertcp", powertcp); }

}  // namespace
}  // namespace netsim::congestion_reference_test
