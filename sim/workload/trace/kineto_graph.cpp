#include "sim/workload/trace/kineto_graph.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>
#include <utility>

namespace netsim {
namespace {

// Old traces have whole microseconds, so an operation may seem to begin before its cause has ended.
constexpr std::int64_t kKinetoRounding = 2000;
// A delay that the GPU itself explains: that between two kernels.
constexpr std::int64_t kKinetoGap = 5000;

// Moment: when a call of the CUDA runtime was made. Correlations grow from call to call, so they order calls
// of the same microsecond.
struct Moment {
  std::int64_t time = kNoKinetoTime;
  std::uint64_t correlation = 0;
  auto operator<=>(const Moment&) const = default;
};
Moment launch_of(const KinetoOp& op) { return {op.launch, op.correlation}; }

class KinetoConnector {
 public:
  KinetoConnector(const KinetoTrace& trace, const std::vector<bool>& communicates)
      : trace_(trace), ops_(trace.ops), communicates_(communicates) {
    graph_.after.resize(ops_.size());
    graph_.gaps.assign(ops_.size(), 0);
    known_.assign(ops_.size(), INT64_MIN);
  }

  KinetoGraph connect() {
    if (ops_.empty()) return std::move(graph_);
    find_latency();
    chain_streams();
    const bool recorded =
        trace_.has_all_waits || std::any_of(trace_.syncs.begin(), trace_.syncs.end(),
                                            [](const KinetoSync& sync) { return sync.of_stream; });
    if (recorded) {
      read_waits();
    } else {
      infer_waits();
    }
    follow_the_cpu();
    count_delays();
    return std::move(graph_);
  }

 private:
  // Streams in the order of launches, and in that of begins.
  void chain_streams() {
    for (std::uint32_t i = 0; i < ops_.size(); ++i) streams_[ops_[i].stream].push_back(i);
    for (auto& [stream, launched] : streams_) {
      std::stable_sort(launched.begin(), launched.end(), [this](std::uint32_t a, std::uint32_t b) {
        return launch_of(ops_[a]) < launch_of(ops_[b]);
      });
      std::vector<std::uint32_t> begun = launched;
      std::stable_sort(begun.begin(), begun.end(),
                       [this](std::uint32_t a, std::uint32_t b) { return ops_[a].start < ops_[b].start; });
      for (std::size_t i = 1; i < begun.size(); ++i) add(begun[i - 1], begun[i]);
    }
  }
  void add(std::uint32_t before, std::uint32_t op) {
    graph_.after[op].push_back(before);
    known_[op] = std::max(known_[op], ops_[before].end());
  }
  // Adds a wait across streams where the times allow it. Waits follow the order of begins, so no operation
  // waits for itself. By the rounding alone, a short operation may seem to end before its cause begins.
  void add_wait(std::uint32_t before, std::uint32_t op) {
    const auto& after = graph_.after[op];
    if (before == op || std::find(after.begin(), after.end(), before) != after.end()) return;
    const bool began_later = std::pair(ops_[before].start, before) > std::pair(ops_[op].start, op);
    if (began_later || ops_[before].end() > ops_[op].start + kKinetoRounding) {
      ++graph_.contradicted;
      return;
    }
    add(before, op);
  }

  // The shortest time between a launch and its begin.
  void find_latency() {
    graph_.first = INT64_MAX;
    latency_ = INT64_MAX;
    for (const KinetoOp& op : ops_) {
      graph_.first = std::min(graph_.first, op.start);
      if (op.launch != kNoKinetoTime) latency_ = std::min(latency_, op.start - op.launch);
    }
    if (latency_ == INT64_MAX) latency_ = 0;
  }

  // ---- Waits of streams

  // Returns the last operation of a stream that was launched before a moment, or the first one from it on.
  std::uint32_t last_before(const KinetoStream& stream, const Moment& moment) const {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return kNoKineto;
    const auto at = first_at(found->second, moment);
    return at == found->second.begin() ? kNoKineto : *(at - 1);
  }
  std::uint32_t first_after(const KinetoStream& stream, const Moment& moment) const {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return kNoKineto;
    const auto at = first_at(found->second, moment);
    return at == found->second.end() ? kNoKineto : *at;
  }
  std::vector<std::uint32_t>::const_iterator first_at(const std::vector<std::uint32_t>& list,
                                                      const Moment& moment) const {
    return std::lower_bound(list.begin(), list.end(), moment,
                            [this](std::uint32_t op, const Moment& m) { return launch_of(ops_[op]) < m; });
  }

  void read_waits() {
    const auto begins = begins_of_calls();
    for (const KinetoSync& sync : trace_.syncs) {
      if (!sync.of_stream || sync.record_correlation < 0) continue;
      const auto recorded = begins.find(static_cast<std::uint64_t>(sync.record_correlation));
      if (recorded == begins.end()) continue;
      const auto waited = begins.find(sync.correlation);
      const std::uint32_t before =
          last_before({sync.stream.first, sync.waited_stream}, {recorded->second, recorded->first});
      const std::uint32_t op =
          first_after(sync.stream, {waited == begins.end() ? sync.begin : waited->second, sync.correlation});
      if (before != kNoKineto && op != kNoKineto) add_wait(before, op);
    }
  }
  std::unordered_map<std::uint64_t, std::int64_t> begins_of_calls() const {
    std::unordered_map<std::uint64_t, std::int64_t> begins;  // never iterated
    begins.reserve(trace_.host_calls.size());
    for (const KinetoHostCall& call : trace_.host_calls) begins.try_emplace(call.correlation, call.begin);
    return begins;
  }

  // ---- Traces without records of waits

  void infer_waits() {
    std::vector<std::uint32_t> ends;  // communications by end
    std::uint32_t computation = kNoKineto;
    for (std::uint32_t i = 0; i < ops_.size(); ++i) {
      if (!communicates_[i]) {
        computation = i;
        continue;
      }
      ends.push_back(i);
      if (computation != kNoKineto) infer(computation, i);
    }
    std::stable_sort(ends.begin(), ends.end(),
                     [this](std::uint32_t a, std::uint32_t b) { return ops_[a].end() < ops_[b].end(); });
    join();
    for (std::uint32_t i = 0; i < ops_.size(); ++i) {
      if (!communicates_[i]) explain(ends, i);
    }
  }
  void infer(std::uint32_t before, std::uint32_t op) {
    const std::size_t count = graph_.after[op].size();
    add_wait(before, op);
    graph_.inferred += graph_.after[op].size() - count;
  }

  // After `wait`, the next computation waits for the last communication of each stream.
  void join() {
    std::size_t next = 0;
    std::map<KinetoStream, std::uint32_t> last;
    for (const KinetoOperation& operation : trace_.operations) {
      if (trace_.calls[operation.call].name != "wait") continue;
      for (; next < ops_.size() && ops_[next].launch < operation.begin; ++next) {
        if (communicates_[next]) last[ops_[next].stream] = static_cast<std::uint32_t>(next);
      }
      std::size_t op = next;
      while (op < ops_.size() && communicates_[op]) ++op;
      if (op == ops_.size()) return;
      for (const auto& [stream, before] : last) infer(before, static_cast<std::uint32_t>(op));
    }
  }

  // Explains a computation that began later than all that it is known to wait for. It waits for the
  // communication that ended last before it, if that end is near.
  void explain(const std::vector<std::uint32_t>& ends, std::uint32_t op) {
    const std::int64_t known = ready(op), start = ops_[op].start;
    if (known == INT64_MIN || start <= known + kKinetoGap) return;
    auto at = std::upper_bound(ends.begin(), ends.end(), start + kKinetoRounding,
                               [this](std::int64_t t, std::uint32_t o) { return t < ops_[o].end(); });
    if (at == ends.begin()) return;
    const std::uint32_t before = *--at;
    if (ops_[before].end() > known && start - ops_[before].end() <= 2 * kKinetoGap && before < op)
      infer(before, op);
  }

  // Returns when an operation could begin: after its launch and all that it waits for.
  std::int64_t ready(std::uint32_t op) const {
    return ops_[op].launch == kNoKinetoTime ? known_[op]
                                            : std::max(known_[op], launched(ops_[op]) + latency_);
  }

  // ---- The CPU

  void follow_the_cpu() {
    std::unordered_map<std::uint64_t, const KinetoSync*> syncs;  // by correlation, never iterated
    for (const KinetoSync& sync : trace_.syncs) {
      if (!sync.of_stream) syncs.try_emplace(sync.correlation, &sync);
    }
    at_ = graph_.first - latency_;
    std::size_t call = 0;
    for (std::uint32_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].launch == kNoKinetoTime) continue;
      for (; call < trace_.host_calls.size() && trace_.host_calls[call].end <= ops_[i].launch; ++call)
        synchronize(trace_.host_calls[call], syncs);
      if (launched(ops_[i]) + latency_ > known_[i]) go_to(launched(ops_[i]), i);
    }
  }
  // Returns when the CPU launched an operation that waited for it. A run's launch takes no time, and its
  // trace has the whole microsecond before it.
  std::int64_t launched(const KinetoOp& op) const {
    constexpr std::int64_t kWhole = 1000;
    return trace_.is_simulated && op.start - op.launch < kWhole ? op.start - latency_ : op.launch;
  }
  // Adds the work until a time. Several points may have the same time.
  void go_to(std::int64_t time, std::uint32_t op) {
    KinetoGraph::Point point;
    point.work = std::max<std::int64_t>(time - at_, 0);
    point.op = op;
    point.after = std::move(waited_);
    waited_.clear();
    at_ = std::max(at_, time);
    graph_.points.push_back(std::move(point));
  }

  // A call that blocks: the work before it ends where it begins, and what follows waits for the GPU.
  void synchronize(const KinetoHostCall& call,
                   const std::unordered_map<std::uint64_t, const KinetoSync*>& syncs) {
    using Kind = KinetoHostCall::Kind;
    if (call.kind != Kind::synchronize && call.kind != Kind::synchronize_device && call.kind != Kind::copy)
      return;
    const auto found = syncs.find(call.correlation);
    std::vector<std::uint32_t> waited =
        found != syncs.end() ? waited_of(*found->second, call) : waited_of(call);
    if (waited.empty()) return;
    std::int64_t end = call.begin;
    for (const std::uint32_t op : waited) end = std::max(end, std::min(ops_[op].end(), call.end));
    go_to(call.begin, kNoKineto);
    at_ = std::max(at_, end);
    waited_ = std::move(waited);
  }
  std::vector<std::uint32_t> waited_of(const KinetoSync& sync, const KinetoHostCall& call) const {
    if (sync.waited_stream < 0 && sync.stream.second < 0) return waited_of(call);
    const std::int64_t stream = sync.stream.second >= 0 ? sync.stream.second : sync.waited_stream;
    const std::uint32_t op = last_before({sync.stream.first, stream}, {call.begin, call.correlation});
    return op == kNoKineto || !has_ended(op, call) ? std::vector<std::uint32_t>()
                                                   : std::vector<std::uint32_t>{op};
  }
  bool has_ended(std::uint32_t op, const KinetoHostCall& call) const {
    return ops_[op].end() <= call.end + kKinetoRounding && ops_[op].start <= call.end;
  }
  // Without a record: the last operation of each stream, of those launched before, if they ended in time. A
  // copy is waited for if it ended before its own call did.
  std::vector<std::uint32_t> waited_of(const KinetoHostCall& call) const {
    std::vector<std::uint32_t> waited;
    for (const auto& [stream, list] : streams_) {
      const std::uint64_t own = call.kind == KinetoHostCall::Kind::copy ? 1 : 0;
      const std::uint32_t op = last_before(stream, {call.begin, call.correlation + own});
      if (op == kNoKineto || !has_ended(op, call)) continue;
      if (call.kind == KinetoHostCall::Kind::copy
              ? ops_[op].correlation == call.correlation
              : call.kind == KinetoHostCall::Kind::synchronize_device || ops_[op].end() > call.begin)
        waited.push_back(op);
    }
    return waited;
  }

  void count_delays() {
    for (std::uint32_t i = 0; i < ops_.size(); ++i) {
      const std::int64_t known = ready(i);
      if (known == INT64_MIN) continue;
      if (ops_[i].start <= known + kKinetoGap) {
        graph_.gaps[i] = std::max<std::int64_t>(ops_[i].start - known, 0);
        continue;
      }
      ++graph_.unexplained;
      graph_.unexplained_time += ops_[i].start - known;
    }
  }

  const KinetoTrace& trace_;
  const std::vector<KinetoOp>& ops_;
  const std::vector<bool>& communicates_;
  KinetoGraph graph_;
  std::map<KinetoStream, std::vector<std::uint32_t>> streams_;  // operations by launch
  std::vector<std::int64_t> known_;  // by operation: when the last of those that it waits for ended
  std::int64_t latency_ = 0;
  std::int64_t at_ = 0;                // the CPU's clock
  std::vector<std::uint32_t> waited_;  // operations that the CPU waits for next
};

}  // namespace

KinetoGraph connect_kineto(const KinetoTrace& trace, const std::vector<bool>& communicates) {
  return KinetoConnector(trace, communicates).connect();
}

std::vector<std::int64_t> kineto_work(const KinetoTrace& trace, const std::vector<bool>& computes) {
  std::vector<std::int64_t> work(trace.ops.size(), 0);
  std::vector<std::uint32_t> order;
  order.reserve(trace.ops.size());
  for (std::uint32_t i = 0; i < trace.ops.size(); ++i) {
    if (computes[i]) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return trace.ops[a].start < trace.ops[b].start; });
  std::vector<std::uint32_t> running;
  std::int64_t now = INT64_MIN;  // times before the trace's base are negative
  const auto run_until = [&](std::int64_t time) {
    while (!running.empty() && now < time) {
      const auto first = std::min_element(
          running.begin(), running.end(),
          [&](std::uint32_t a, std::uint32_t b) { return trace.ops[a].end() < trace.ops[b].end(); });
      const std::int64_t until = std::min(time, trace.ops[*first].end());
      for (const std::uint32_t op : running)
        work[op] += (until - now) / static_cast<std::int64_t>(running.size());
      now = until;
      running.erase(std::remove_if(running.begin(), running.end(),
                                   [&](std::uint32_t op) { return trace.ops[op].end() <= now; }),
                    running.end());
    }
    now = std::max(now, time);
  };
  for (const std::uint32_t op : order) {
    run_until(trace.ops[op].start);
    if (trace.ops[op].duration > 0) running.push_back(op);
  }
  run_until(INT64_MAX);
  return work;
}

}  // namespace netsim
