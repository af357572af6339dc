// nccl_inspector: logs of NCCL's inspector, a file for each process. They are replayed as what was
// communicated when: a communication begins as early as it was recorded, and behind those before it in its
// communicator.
//
// The recorded duration is not used, because it holds the wait for the other ranks. Ranks without a record
// take part in the communications of the others and are always ready.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/workload/trace/inspector_job.h"
#include "sim/workload/trace/trace_program.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

// InspectorTasks: makes the tasks of all ranks.
class InspectorTasks {
 public:
  InspectorTasks(const InspectorJob& job, std::string name)
      : job_(job), name_(std::move(name)), program_("inspector", job.ranks(), name_), tasks_(job.ranks()) {
    std::map<std::vector<RankId>, std::uint32_t> communicators;  // with these ranks so far
    for (const std::vector<RankId>& members : job.members())
      groups_.push_back(program_.group(members, communicators[members]++));
    for (const auto& members : job.members()) has_records_.emplace_back(members.size(), false);
    for (const InspectorRecord& record : job.log().records)
      has_records_[record.communicator][record.rank] = true;
    for (const InspectorJob::Instance& instance : job.instances())
      instance.message ? add_message(instance) : add_collective(instance);
  }

  std::unique_ptr<TaskSource> source() {
    for (std::uint32_t rank = 0; rank < program_.ranks(); ++rank)
      program_.add_rank(RankId(rank), std::move(tasks_[rank]), name_);
    return program_.finish(notes());
  }

 private:
  static constexpr std::int64_t kMicrosecondsOfRun = 1'000'000'000'000;

  // Order: what the next communication of a rank in a communicator waits for. Messages that overlap are one
  // group of calls and do not wait for each other.
  struct Order {
    std::vector<std::uint32_t> before, current;
    std::int64_t current_end = 0;
  };

  void add_collective(const InspectorJob::Instance& instance) {
    const std::vector<RankId>& members = job_.members()[instance.communicator];
    std::vector<std::uint32_t> record_of(members.size(), UINT32_MAX);
    for (const auto& [place, record] : instance.members) record_of[place] = record;
    const InspectorLog::Communicator& communicator = job_.log().communicators[instance.communicator];
    for (std::size_t place = 0; place < members.size(); ++place) {
      if (record_of[place] == UINT32_MAX && has_records_[instance.communicator][place]) ++missing_;
      TraceTask task = next(to_string(instance.collective), record_of[place]);
      task.kind = TaskKind::collective;
      task.collective = instance.collective;
      task.group = groups_[instance.communicator];
      task.bytes = instance.bytes;
      task.stream = named_stream(communicator.name, instance.collective);
      Order& order = orders_[{members[place] + 0U, instance.communicator}];
      close(members[place], order);
      task.after = order.before;
      order.before = {add(members[place], std::move(task))};
    }
    rooted_ += has_root(instance.collective) ? 1 : 0;
  }

  void add_message(const InspectorJob::Instance& instance) {
    const std::vector<RankId>& members = job_.members()[instance.communicator];
    for (const bool sends : {true, false}) {
      const std::uint32_t place = sends ? instance.from : instance.to;
      const auto recorded = std::find_if(instance.members.begin(), instance.members.end(),
                                         [&](const auto& member) { return member.first == place; });
      const std::uint32_t own = recorded == instance.members.end() ? UINT32_MAX : recorded->second;
      if (own == UINT32_MAX && has_records_[instance.communicator][place]) ++missing_;
      TraceTask task = next(sends ? "send" : "recv", own);
      task.kind = sends ? TaskKind::send : TaskKind::receive;
      task.peer = members[sends ? instance.to : instance.from];
      task.tag = tag_;
      task.bytes = instance.bytes;
      task.stream = Stream::pp;
      Order& order = orders_[{members[place] + 0U, instance.communicator}];
      const std::uint32_t span = own == UINT32_MAX ? instance.members.front().second : own;
      if (order.current.empty() || job_.start(span) >= order.current_end) {
        close(members[place], order);
        order.current_end = job_.end(span);
      }
      order.current_end = std::max(order.current_end, job_.end(span));
      task.after = order.before;
      order.current.push_back(add(members[place], std::move(task)));
    }
    ++tag_;
  }

  TraceTask next(const std::string& name, std::uint32_t record) {
    TraceTask task;
    task.name = program_.name(name);
    if (record == UINT32_MAX) return task;
    const InspectorRecord& from = job_.log().records[record];
    if (job_.start(record) > kMicrosecondsOfRun) refuse_late(record);
    task.not_before = job_.start(record) * kMicrosecond;
    task.label = fmt::format("{}:{}", job_.log().files[from.file], from.line);
    return task;
  }
  // Throws an InputError for a record that no run could reach. It is most likely one of another job.
  [[noreturn]] void refuse_late(std::uint32_t late) const {
    const std::vector<InspectorRecord>& records = job_.log().records;
    std::uint32_t first = 0;
    for (std::uint32_t i = 0; i < records.size(); ++i) {
      if (job_.start(i) < job_.start(first)) first = i;
    }
    const auto place = [&](std::uint32_t record) {
      return Place{job_.log().files[records[record].file], records[record].line, 1, ""};
    };
    const bool same = records[late].communicator == records[first].communicator;
    throw InputError(
        place(late),
        fmt::format("begins {} s after the communication of {}; allowed: up to 1,000,000 s{}",
                    job_.start(late) / 1'000'000, place(first).to_string(),
                    same ? ""
                         : ". The two are of different communicators, so they may be of two jobs: "
                           "name the records of one job only"));
  }
  std::uint32_t add(RankId rank, TraceTask task) {
    task.order = tasks_[rank].size();
    tasks_[rank].push_back(std::move(task));
    return static_cast<std::uint32_t>(tasks_[rank].size() - 1);
  }
  // Ends the group of messages. What follows waits for one task that waits for all of them.
  void close(RankId rank, Order& order) {
    if (order.current.empty()) return;
    if (order.current.size() > 1) {
      TraceTask join;
      join.kind = TaskKind::host_thread;
      join.name = program_.name("group end");
      join.work = program_.fixed_work("nothing", 0);
      join.after = std::move(order.current);
      order.current = {add(rank, std::move(join))};
    }
    order.before = std::move(order.current);
    order.current.clear();
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> list;
    const InspectorLog& log = job_.log();
    const auto note = [&](std::uint64_t count, const char* text) {
      if (count > 0) list.push_back(fmt::format("{}: {}", text, count));
    };
    list.push_back(
        fmt::format("records of {} GPUs: {}; each communication begins when it was recorded, or later",
                    job_.actors(), log.records.size()));
    note(static_cast<std::uint64_t>(std::count_if(log.records.begin(), log.records.end(),
                                                  [](const InspectorRecord& one) { return !one.timed; })),
         "records without event_trace_ts, which ended when they were written");
    note(job_.ranks() - job_.actors(),
         "ranks without a record, which take part in the communications of the others and are always ready");
    if (!job_.numbered())
      list.emplace_back("no communicator has all GPUs, so ranks are numbered by host and process");
    note(job_.filled(), "members of communicators that have no record");
    note(missing_, "ends of communications that a GPU with records did not record, which are always ready");
    note(rooted_, "collectives whose root is not recorded; it is the first member");
    note(job_.repeated(), "records that are there twice, which are not used");
    note(log.left_out, "calls of functions whose bytes are not recorded (PutSignal, AlltoAllv), left out");
    note(log.dropped, "communications that the inspector dropped (dump_stats), which are missing");
    note(log.ignored, "lines without a communication, which are not used");
    note(log.cut, "last lines of files that are cut, which are not used");
    if (job_.largest_offset() > 0)
      list.push_back(fmt::format("clocks are aligned by the ends of collectives; the largest offset is {}",
                                 human_seconds(static_cast<double>(job_.largest_offset()) * 1e-6)));
    note(job_.unaligned(), "GPUs whose clocks no collective aligns, which keep their own times");
    return list;
  }

  const InspectorJob& job_;
  std::string name_;
  TraceProgram program_;
  std::vector<std::vector<TraceTask>> tasks_;                        // by rank
  std::vector<std::vector<bool>> has_records_;                       // by communicator and rank in it
  std::vector<std::uint32_t> groups_;                                // by communicator
  std::map<std::pair<std::uint32_t, std::uint32_t>, Order> orders_;  // by rank and communicator
  std::uint32_t tag_ = 0;
  std::uint64_t rooted_ = 0, missing_ = 0;
};

bool is_inspector(const Excerpt& file) {
  if (file.has_keys({"header", "metadata"}) && file.contains("inspector_output_format_version")) return true;
  return file.contains("\"coll_msg_size_bytes\"") || file.contains("\"p2p_msg_size_bytes\"");
}

const FormatRegistration kInspectorFormat{{.name = "nccl_inspector",
                                           .what = "a log of NCCL's inspector",
                                           .use = Format::Use::workload,
                                           .matches = is_inspector,
                                           .component = "nccl_inspector",
                                           .advice = {},
                                           .endings = {".log", ".jsonl"}}};

class InspectorWorkload final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext& context) const override {
    const InspectorJob job(input, context.most_ranks);
    return InspectorTasks(job, input.name()).source();
  }
};

const Registration<WorkloadReader> kInspector{
    "nccl_inspector",
    "logs of NCCL's inspector (JSON lines), a file of each process: what was communicated when",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<InspectorWorkload>(); }};

}  // namespace
}  // namespace netsim
