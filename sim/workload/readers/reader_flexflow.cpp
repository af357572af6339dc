// flexflow: task graphs of FlexFlow's simulator and TopoOpt (.fbuf), one iteration of a training job.
//
// Computations take their recorded time, one after the other on a GPU. Transfers between GPUs are messages,
// and the network that the file describes is not used: the configuration's is.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/workload/trace/task_graph_file.h"
#include "sim/workload/trace/trace_program.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

using FlexType = TaskGraphFile::Type;

bool is_transfer(FlexType type) { return type == FlexType::transfer || type == FlexType::nominal_transfer; }

// FlexGraph: a task graph with its tasks by index, and the order in which the simulator executes them.
class FlexGraph {
 public:
  FlexGraph(const InputSet::File& file, std::uint32_t most_ranks)
      : path_(file.path), graph_(read_task_graph(file)) {
    find_devices(most_ranks);
    find_edges();
    execute();
  }

  const std::string& path() const { return path_; }
  const TaskGraphFile& graph() const { return graph_; }
  const std::vector<TaskGraphFile::Task>& tasks() const { return graph_.tasks; }
  std::uint32_t ranks() const { return ranks_; }
  // Returns the rank on whose GPU or CPU a task runs, or nothing.
  const std::optional<RankId>& rank(std::uint32_t task) const { return ranks_of_[task]; }
  bool on_cpu(std::uint32_t task) const {
    return device(task) != nullptr && device(task)->type == TaskGraphFile::kCpu;
  }
  const std::vector<std::uint32_t>& before(std::uint32_t task) const { return before_[task]; }
  const std::vector<std::uint32_t>& behind(std::uint32_t task) const { return behind_[task]; }
  const std::vector<std::uint32_t>& order() const { return order_; }
  std::uint64_t dangling() const { return dangling_; }
  Time time(std::uint32_t task) const { return static_cast<Time>(tasks()[task].runtime * 1e9 + 0.5); }

  // Returns the ranks at both ends of a network device, which are the first ones of its nodes.
  std::optional<std::pair<RankId, RankId>> ends(std::uint32_t task) const {
    const TaskGraphFile::Device* found = device(task);
    const std::uint64_t points = std::uint64_t{graph_.nodes} + graph_.switches;
    if (found == nullptr || points == 0) return std::nullopt;
    if (found->type != TaskGraphFile::kNetwork && found->type != TaskGraphFile::kNominalNetwork)
      return std::nullopt;
    const std::uint64_t from = found->property / points * gpus_, to = found->property % points * gpus_;
    if (from >= ranks_ || to >= ranks_) return std::nullopt;
    return std::pair(RankId(static_cast<std::uint32_t>(from)), RankId(static_cast<std::uint32_t>(to)));
  }
  // Returns the ranks of an all-reduce that its list of nodes names, where a node has one GPU.
  std::vector<RankId> listed_ranks(std::uint32_t task) const {
    std::vector<RankId> ranks;
    if (gpus_ != 1) return ranks;
    for (std::uint64_t i = tasks()[task].first_next; i < tasks()[task].end_next; ++i) {
      if (graph_.next[i] >= ranks_)
        fail(task, fmt::format("node {} takes part, and there are {}", graph_.next[i], ranks_));
      ranks.emplace_back(static_cast<std::uint32_t>(graph_.next[i]));
    }
    return ranks;
  }
  [[noreturn]] void fail(std::uint32_t task, const std::string& message) const {
    fail_file(path_, fmt::format("task {}: {}", task, message));
  }

 private:
  const TaskGraphFile::Device* device(std::uint32_t task) const {
    const auto found = devices_.find(tasks()[task].device);
    return found == devices_.end() ? nullptr : &graph_.devices[found->second];
  }

  void find_devices(std::uint32_t most_ranks) {
    gpus_ = std::max(graph_.gpus_per_node, 1U);
    std::uint64_t ranks = std::uint64_t{graph_.nodes} * gpus_;
    for (std::uint32_t i = 0; i < graph_.devices.size(); ++i) {
      const TaskGraphFile::Device& one = graph_.devices[i];
      devices_.try_emplace(one.id, i);
      if (one.type == TaskGraphFile::kGpu)
        ranks = std::max(ranks, std::min<std::uint64_t>(one.property, UINT32_MAX) + 1);
    }
    if (ranks == 0 || ranks > most_ranks)
      fail_file(path_, fmt::format("{} GPUs are needed, but the cluster has {}", ranks, most_ranks));
    ranks_ = static_cast<std::uint32_t>(ranks);
    ranks_of_.resize(tasks().size());
    for (std::uint32_t i = 0; i < tasks().size(); ++i) {
      const FlexType type = tasks()[i].type;
      if (is_transfer(type) || type == FlexType::all_reduce || type == FlexType::barrier) continue;
      const TaskGraphFile::Device* found = device(i);
      if (found == nullptr || (found->type != TaskGraphFile::kGpu && found->type != TaskGraphFile::kCpu))
        fail(i, "it computes, and its device is no GPU or CPU of the file");
      const bool gpu = found->type == TaskGraphFile::kGpu;
      const std::uint64_t rank =
          gpu ? found->property : std::min<std::uint64_t>(found->node, UINT32_MAX) * gpus_;
      if (rank >= ranks_)
        fail(i, fmt::format("it runs on node {}, and there are {}", found->node, graph_.nodes));
      ranks_of_[i] = RankId(static_cast<std::uint32_t>(rank));
      if (tasks()[i].runtime > static_cast<double>(ProgramLimits::kKernelTime) * 1e-9)
        fail(i, fmt::format("it takes {} ms; allowed: up to {}", tasks()[i].runtime,
                            ProgramLimits::kKernelTime / kMillisecond));
    }
  }

  void find_edges() {
    std::map<std::uint64_t, std::uint32_t> index;
    for (std::uint32_t i = 0; i < tasks().size(); ++i) {
      if (!index.try_emplace(tasks()[i].id, i).second)
        fail(i, fmt::format("it has the id of task {}", index.at(tasks()[i].id)));
    }
    before_.resize(tasks().size());
    behind_.resize(tasks().size());
    for (std::uint32_t i = 0; i < tasks().size(); ++i) {
      if (tasks()[i].type == FlexType::all_reduce) continue;
      for (std::uint64_t n = tasks()[i].first_next; n < tasks()[i].end_next; ++n) {
        const auto found = index.find(graph_.next[n]);
        if (found == index.end()) {
          ++dangling_;
          continue;
        }
        behind_[i].push_back(found->second);
        before_[found->second].push_back(i);
      }
    }
  }

  // Executes the graph with communication that takes no time. A device takes the task that is ready first.
  void execute() {
    using Ready = std::pair<Time, std::uint32_t>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    std::vector<std::size_t> waits(tasks().size());
    std::vector<Time> at(tasks().size(), 0);
    std::map<std::uint64_t, Time> free;  // by device
    for (std::uint32_t i = 0; i < tasks().size(); ++i) {
      waits[i] = before_[i].size();
      if (waits[i] == 0) ready.emplace(0, i);
    }
    order_.reserve(tasks().size());
    while (!ready.empty()) {
      const auto [when, task] = ready.top();
      ready.pop();
      order_.push_back(task);
      Time end = when;
      if (ranks_of_[task]) {
        Time& busy = free[tasks()[task].device];
        end = busy = std::min(std::max(when, busy) + time(task), kLastReady);
      }
      for (const std::uint32_t next : behind_[task]) {
        at[next] = std::max(at[next], end);
        if (--waits[next] == 0) ready.emplace(at[next], next);
      }
    }
    if (order_.size() == tasks().size()) return;
    const auto stuck = std::find_if(waits.begin(), waits.end(), [](std::size_t left) { return left > 0; });
    fail(static_cast<std::uint32_t>(stuck - waits.begin()),
         "it waits for itself: for tasks that wait for it");
  }

  static constexpr Time kLastReady = Time{1} << 61;
  std::string path_;
  TaskGraphFile graph_;
  std::uint32_t gpus_ = 1, ranks_ = 0;
  std::map<std::uint64_t, std::uint32_t> devices_;  // the first one with an id
  std::vector<std::optional<RankId>> ranks_of_;     // by task
  std::vector<std::vector<std::uint32_t>> before_, behind_;
  std::vector<std::uint32_t> order_;
  std::uint64_t dangling_ = 0;
};

// FlexTasks: makes the tasks of all ranks, in the order in which the graph executes.
class FlexTasks {
 public:
  explicit FlexTasks(const FlexGraph& graph)
      : graph_(graph),
        program_("task graph", graph.ranks(), graph.path()),
        tasks_(graph.ranks()),
        last_(graph.ranks()),
        ends_(graph.tasks().size()),
        heads_(graph.tasks().size()) {
    for (const std::uint32_t task : graph.order()) {
      switch (graph.tasks()[task].type) {
        case FlexType::transfer:
        case FlexType::nominal_transfer:
          transfer(task);
          break;
        case FlexType::all_reduce:
          collective(task, CollectiveKind::all_reduce);
          break;
        case FlexType::barrier:
          collective(task, CollectiveKind::barrier);
          break;
        default:
          compute(task);
      }
    }
  }

  std::unique_ptr<TaskSource> source() {
    for (std::uint32_t rank = 0; rank < program_.ranks(); ++rank)
      program_.add_rank(RankId(rank), std::move(tasks_[rank]), graph_.path());
    return program_.finish(notes());
  }

 private:
  // Head: the begin of a transfer, which is one message.
  struct Head {
    Bytes bytes = 0;
    RankId from = 0;
    std::vector<std::uint32_t> after;               // tasks of the sender
    std::map<RankId, std::uint32_t> received = {};  // receive by rank
  };

  // Returns the tasks of a rank that a task waits for there. Messages to it are added.
  std::vector<std::uint32_t> waited(std::uint32_t task, RankId rank) {
    std::vector<std::uint32_t> after;
    for (const std::uint32_t before : graph_.before(task)) {
      if (is_transfer(graph_.tasks()[before].type)) {
        for (const std::uint32_t head : heads_[before]) receive(head, rank, after);
      } else if (const auto own = ends_[before].find(rank); own != ends_[before].end()) {
        after.push_back(own->second);
      } else if (graph_.rank(before) && graph_.rank(task)) {
        // The graph has no transfer, and still one rank waits for another one.
        ++signals_;
        all_heads_.push_back({1, *graph_.rank(before), {ends_[before].begin()->second}});
        receive(static_cast<std::uint32_t>(all_heads_.size() - 1), rank, after);
      }
    }
    return after;
  }
  void receive(std::uint32_t number, RankId rank, std::vector<std::uint32_t>& after) {
    Head& head = all_heads_[number];
    if (head.from == rank) {
      after.insert(after.end(), head.after.begin(), head.after.end());
      return;
    }
    const auto [at, is_new] = head.received.try_emplace(rank, 0);
    if (is_new) {
      at->second = message(TaskKind::receive, rank, head.from, head.bytes, {});
      message(TaskKind::send, head.from, rank, head.bytes, head.after);
      ++tag_;
    }
    after.push_back(at->second);
  }
  std::uint32_t message(TaskKind kind, RankId rank, RankId peer, Bytes bytes,
                        std::vector<std::uint32_t> after) {
    TraceTask task;
    task.kind = kind;
    task.name = program_.name("transfer");
    task.peer = peer;
    task.tag = tag_;
    task.bytes = bytes;
    task.stream = Stream::pp;
    task.after = std::move(after);
    return add(rank, std::move(task), "");
  }
  std::uint32_t add(RankId rank, TraceTask task, std::string label) {
    task.order = next_order_++;
    task.label = std::move(label);
    tasks_[rank].push_back(std::move(task));
    return static_cast<std::uint32_t>(tasks_[rank].size() - 1);
  }

  void compute(std::uint32_t number) {
    constexpr const char* kFlexNames[] = {"forward", "backward", "", "update"};
    const RankId rank = *graph_.rank(number);
    TraceTask task;
    const std::string name = kFlexNames[static_cast<std::size_t>(graph_.tasks()[number].type)];
    task.name = program_.name(name);
    task.after = waited(number, rank);
    if (graph_.on_cpu(number)) task.kind = TaskKind::host_thread;
    std::optional<std::uint32_t>& last = last_[rank][graph_.on_cpu(number) ? 1 : 0];
    if (last) task.after.push_back(*last);
    task.work = program_.fixed_work(name, graph_.time(number));
    last = add(rank, std::move(task), fmt::format("task {}", number));
    ends_[number][rank] = *last;
    ++computed_;
  }

  // A transfer passes several devices. It is one message from the GPU before them to the one behind them.
  void transfer(std::uint32_t number) {
    std::map<RankId, std::vector<std::uint32_t>> sources;
    for (const std::uint32_t before : graph_.before(number)) {
      if (is_transfer(graph_.tasks()[before].type)) {
        heads_[number].insert(heads_[number].end(), heads_[before].begin(), heads_[before].end());
      } else {
        for (const auto& [rank, end] : ends_[before]) sources[rank].push_back(end);
      }
    }
    const auto ends = graph_.ends(number);
    if (sources.empty() && heads_[number].empty()) {
      if (!ends) graph_.fail(number, "a transfer begins at no GPU, because nothing is before it");
      sources[ends->first] = {};
    }
    const std::uint64_t bytes = graph_.tasks()[number].bytes;
    if (bytes > static_cast<std::uint64_t>(ProgramLimits::kBytes))
      graph_.fail(number, fmt::format("it has {} B; allowed: 0 to {}", bytes, ProgramLimits::kBytes));
    for (auto& [rank, after] : sources) {
      heads_[number].push_back(static_cast<std::uint32_t>(all_heads_.size()));
      all_heads_.push_back({std::max<Bytes>(static_cast<Bytes>(bytes), 1), rank, std::move(after)});
    }
    auto& heads = heads_[number];
    std::sort(heads.begin(), heads.end());
    heads.erase(std::unique(heads.begin(), heads.end()), heads.end());
    transferred_ += sources.size();
    if (!graph_.behind(number).empty() || !ends) return;
    std::vector<std::uint32_t> after;  // nothing waits for the message
    for (const std::uint32_t head : heads) receive(head, ends->second, after);
  }

  void collective(std::uint32_t number, CollectiveKind kind) {
    std::set<RankId> ranks;
    const bool reduces = kind == CollectiveKind::all_reduce;
    if (reduces) {
      for (const RankId rank : graph_.listed_ranks(number)) ranks.insert(rank);
    }
    for (const auto* neighbours : {&graph_.before(number), &graph_.behind(number)}) {
      for (const std::uint32_t other : *neighbours) {
        if (graph_.rank(other)) ranks.insert(*graph_.rank(other));
      }
    }
    const std::uint64_t bytes = graph_.tasks()[number].bytes;
    if (bytes > static_cast<std::uint64_t>(ProgramLimits::kBytes))
      graph_.fail(number, fmt::format("it has {} B; allowed: 0 to {}", bytes, ProgramLimits::kBytes));
    if (ranks.empty() || (reduces && bytes == 0)) return;
    const std::uint32_t group = program_.group({ranks.begin(), ranks.end()});
    for (const RankId rank : ranks) {
      TraceTask task;
      task.kind = TaskKind::collective;
      task.collective = kind;
      task.name = program_.name(to_string(kind));
      task.group = group;
      task.bytes = reduces ? static_cast<Bytes>(bytes) : 0;
      task.stream = Stream::dp;
      task.after = waited(number, rank);
      ends_[number][rank] = add(rank, std::move(task), fmt::format("task {}", number));
    }
    collectives_ += reduces ? 1 : 0;
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> list;
    list.push_back(
        fmt::format("tasks of the graph: {} computations with their recorded times, {} transfers, {} "
                    "all-reduces; recorded times of communication are not used",
                    computed_, transferred_, collectives_));
    const auto note = [&](std::uint64_t count, const char* text) {
      if (count > 0) list.push_back(fmt::format("{}: {}", text, count));
    };
    note(graph_.graph().connections + graph_.graph().routes,
         "connections and routes of the file's own network, which are not used");
    note(signals_, "waits of a GPU for another one without a transfer, which are messages of 1 B");
    note(graph_.dangling(), "waits for tasks that the file does not have, left out");
    return list;
  }

  const FlexGraph& graph_;
  TraceProgram program_;
  std::vector<std::vector<TraceTask>> tasks_;                      // by rank
  std::vector<std::array<std::optional<std::uint32_t>, 2>> last_;  // by rank: on the GPU, on the CPU
  std::vector<std::map<RankId, std::uint32_t>> ends_;              // by task: its task of a rank
  std::vector<std::vector<std::uint32_t>> heads_;                  // by task: begins of transfers
  std::vector<Head> all_heads_;
  std::uint32_t tag_ = 0;
  std::uint64_t next_order_ = 0, computed_ = 0, transferred_ = 0, collectives_ = 0, signals_ = 0;
};

// ---- The format

std::optional<std::uint64_t> little_endian_at(std::string_view bytes, std::uint64_t at, std::size_t count) {
  if (at > bytes.size() || bytes.size() - at < count) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

// Matches a FlatBuffer without an identifier. The root's table of fields must fit TaskGraph's, which has six
// numbers and then vectors. Writers may leave out the last fields. Each vector must fit the file.
bool is_task_graph(const Excerpt& file) {
  if (file.is_text()) return false;
  const std::string_view bytes = file.bytes();
  const auto root = little_endian_at(bytes, 0, 4);
  const auto back = root ? little_endian_at(bytes, *root, 4) : std::nullopt;
  if (!back || *back > *root) return false;  // the table of fields is before the root
  const std::uint64_t fields = *root - *back;
  const auto size = little_endian_at(bytes, fields, 2), object = little_endian_at(bytes, fields + 2, 2);
  constexpr std::uint64_t kFewest = 10, kMost = 12;  // up to devices, up to rings
  if (!size || !object || *size < 4 + 2 * kFewest || *size > 4 + 2 * kMost || *size % 2 != 0) return false;
  for (std::uint64_t i = 0; i < (*size - 4) / 2; ++i) {
    const auto at = little_endian_at(bytes, fields + 4 + 2 * i, 2);
    if (!at || *at + 4 > *object) return false;
    if (i < 6 || *at == 0) continue;
    const auto vector = little_endian_at(bytes, *root + *at, 4);
    if (!vector || *vector == 0) return false;
    if (!file.packed() && *root + *at + *vector + 4 > file.size()) return false;
  }
  return true;
}

const FormatRegistration kFlexFormat{{.name = "flexflow",
                                      .what = "a task graph of FlexFlow or TopoOpt",
                                      .use = Format::Use::workload,
                                      .matches = is_task_graph,
                                      .component = "flexflow",
                                      .advice = {},
                                      .endings = {".fbuf"}}};

class FlexReader final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext& context) const override {
    const FlexGraph graph(input.only("a task graph of FlexFlow"), context.most_ranks);
    return FlexTasks(graph).source();
  }
};

const Registration<WorkloadReader> kFlex{
    "flexflow",
    "task graphs of FlexFlow and TopoOpt (.fbuf): an iteration with its times, transfers, all-reduces",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<FlexReader>(); }};

}  // namespace
}  // namespace netsim
