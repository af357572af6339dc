#include "sim/workload/trace/kineto_launches.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/core/text.h"
#include "sim/workload/trace/kineto_ranks.h"

namespace netsim {
namespace {

// Returns whether a kernel of NCCL may run a call, by their names. NCCL composes some collectives of
// messages, and PyTorch those with uneven parts of others.
bool can_run(std::string_view kernel, std::string_view call) {
  const std::string name = kineto_call_name(call);
  const auto calls = [&](std::string_view word) { return name.starts_with(word); };
  const std::string lower = lower_case(kernel);
  const auto has = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
  if (calls("wait") || calls("init") || name.empty()) return false;
  if (has("sendrecv"))
    return calls("send") || calls("recv") || calls("alltoall") || calls("gather") || calls("scatter");
  if (has("allreduce")) return calls("allreduce") || calls("barrier");
  if (has("allgather")) return calls("allgather");
  if (has("reducescatter")) return calls("reducescatter");
  if (has("broadcast")) return calls("broadcast") || calls("allgather");
  if (has("_reduce")) return calls("reduce");
  return true;
}

// KinetoCallFinder: finds the calls of kernels that do not describe them.
class KinetoCallFinder {
 public:
  explicit KinetoCallFinder(KinetoTrace& trace) : trace_(trace), used_(trace.operations.size(), false) {
    for (std::uint32_t i = 0; i < trace.operations.size(); ++i) {
      const KinetoOperation& operation = trace.operations[i];
      if (operation.id != 0) by_id_.try_emplace(operation.id, i);
    }
    for (const KinetoHostCall& call : trace.host_calls) threads_.try_emplace(call.correlation, call.thread);
  }

  void find() {
    for (KinetoOp& op : trace_.ops) {
      if (op.kind == KinetoOp::Kind::kernel && name(op).find("ccl") != std::string::npos) find(op);
    }
  }

 private:
  const std::string& name(const KinetoOp& op) const { return trace_.names[op.name]; }
  const std::string& name(std::uint32_t operation) const {
    return trace_.calls[trace_.operations[operation].call].name;
  }

  void find(KinetoOp& op) {
    const auto same = by_id_.find(op.operation);
    std::uint32_t operation = kNoKineto;
    if (op.operation != 0 && same != by_id_.end() && can_run(name(op), name(same->second)))
      operation = same->second;
    const auto thread = threads_.find(op.correlation);
    const bool launched = op.launch != kNoKinetoTime && thread != threads_.end();
    if (operation == kNoKineto && launched) operation = during(op, thread->second);
    if (operation != kNoKineto) used_[operation] = true;
    if (op.call == kNoKineto && operation != kNoKineto) op.call = trace_.operations[operation].call;
    if (!launched) return;
    if (op.call == kNoKineto) take_group(op, thread->second);
    launches_[thread->second] = op.launch;
  }

  // Returns the operation during which a kernel was launched.
  std::uint32_t during(const KinetoOp& op, std::int64_t thread) const {
    auto at = first_from(op.launch + 1);
    for (int tries = 0; at > 0 && tries < 16; ++tries) {
      --at;
      const KinetoOperation& operation = trace_.operations[at];
      if (operation.thread == thread && operation.end >= op.launch && can_run(name(op), name(at))) return at;
    }
    return kNoKineto;
  }
  std::uint32_t first_from(std::int64_t time) const {
    const auto at = std::lower_bound(
        trace_.operations.begin(), trace_.operations.end(), time,
        [](const KinetoOperation& operation, std::int64_t t) { return operation.begin < t; });
    return static_cast<std::uint32_t>(at - trace_.operations.begin());
  }

  // A group of calls (batch_isend_irecv, coalesced collectives) is launched as one kernel when the group
  // ends. The kernel runs the calls of its thread since the kernel before it.
  void take_group(KinetoOp& op, std::int64_t thread) {
    const auto last = launches_.find(thread);
    std::vector<std::uint32_t> group;
    for (std::uint32_t at = last == launches_.end() ? 0 : first_from(last->second + 1);
         at < first_from(op.launch); ++at) {
      const KinetoOperation& operation = trace_.operations[at];
      if (operation.thread == thread && !used_[at] && can_run(name(op), name(at))) group.push_back(at);
    }
    if (group.empty()) return;
    op.call = static_cast<std::uint32_t>(trace_.calls.size());
    op.calls = static_cast<std::uint32_t>(group.size());
    for (const std::uint32_t operation : group) {
      used_[operation] = true;
      const KinetoCall call = trace_.calls[trace_.operations[operation].call];
      trace_.calls.push_back(call);
    }
  }

  KinetoTrace& trace_;
  std::vector<bool> used_;                                   // by operation: a kernel runs it
  std::unordered_map<std::uint64_t, std::uint32_t> by_id_;   // operations by External id, never iterated
  std::unordered_map<std::uint64_t, std::int64_t> threads_;  // of launches, by correlation; never iterated
  std::unordered_map<std::int64_t, std::int64_t> launches_;  // by thread: its last kernel; never iterated
};

}  // namespace

void find_kineto_launches(KinetoTrace& trace) {
  std::unordered_map<std::uint64_t, std::int64_t> begins;  // by correlation, never iterated
  begins.reserve(trace.host_calls.size());
  for (const KinetoHostCall& call : trace.host_calls) {
    if (call.kind == KinetoHostCall::Kind::launch || call.kind == KinetoHostCall::Kind::copy)
      begins.try_emplace(call.correlation, call.begin);
  }
  for (KinetoOp& op : trace.ops) {
    const auto found = begins.find(op.correlation);
    if (op.correlation != 0 && found != begins.end() && found->second <= op.start) op.launch = found->second;
  }
  // Correlations grow from call to call. They order launches of the same microsecond.
  const auto launched = [](const KinetoOp& op) {
    return std::tuple(op.launch, op.launch == kNoKinetoTime ? 0 : op.correlation, op.start);
  };
  std::stable_sort(trace.ops.begin(), trace.ops.end(),
                   [&](const KinetoOp& a, const KinetoOp& b) { return launched(a) < launched(b); });
}

void find_kineto_calls(KinetoTrace& trace) { KinetoCallFinder(trace).find(); }

}  // namespace netsim
