#include "sim/workload/task_list/listed_task.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/collectives/collective_names.h"
#include "sim/core/text.h"
#include "sim/workload/program/program.h"
#include "sim/workload/traffic/counts.h"
#include "sim/workload/traffic/traffic.h"

namespace netsim {
namespace {

constexpr std::int64_t kMaxQueue = 1'000'000;
constexpr Bytes kMaxCollectiveBytes = 1000 * kGigabyte;
constexpr const char* kKindsDoc = "compute, collective, or from with to";

std::vector<std::pair<std::string, Stream>> communication_streams() {
  std::vector<std::pair<std::string, Stream>> names;
  names.reserve(kCommunicationStreams.size());
  for (const Stream stream : kCommunicationStreams) names.emplace_back(to_string(stream), stream);
  return names;
}

const Parameters<ListedTask>& listed_task_parameters() {
  using P = ListedTask;
  static const auto p =
      Parameters<P>()
          .text("name", &P::name, "name of the task in tables and in 'after' of other tasks")
          .required()
          .time("compute", &P::compute, {0, ProgramLimits::kKernelTime},
                "a computation: the time that it takes on an idle GPU")
          .choice("collective", &P::collective, collectives_by_name(),
                  "or a collective of the ranks that 'on' names")
          .list("from", &P::from, "or a message: the rank that sends, or a list of ranks")
          .list("to", &P::to,
                "the rank that receives; of two lists the i-th rank of 'from' sends to the i-th of 'to'")
          .list("on", &P::on,
                "ranks of a computation or collective: a rank, a range (0-7), a list of these, the name of "
                "a group, or all; default: all")
          .bytes("bytes", &P::bytes, {1, kMaxCollectiveBytes},
                 "size of the message, or of the collective's buffer (netsim --describe collective)")
          .integer("root", &P::root, {0, kMaxTrafficRanks - 1},
                   "root of the collective, counted in the group")
          .list("counts", &P::counts, kCountsDoc)
          .section("tokens", &P::tokens, token_section_parameters(), kTokensDoc)
          .flag("raw", &P::raw, "the message is one flow on a queue pair, without the collective library")
          .integer("channel", &P::channel, {0, kMaxChannel},
                   "raw messages between two ranks share a queue pair where their channels are equal")
          .choice("stream", &P::stream, communication_streams(), "stream of a communication")
          .integer("queue", &P::queue, {0, kMaxQueue},
                   "tasks of a rank with the same stream and queue run one after the other, as written")
          .flag("ordered", &P::ordered,
                "it waits for its turn in its stream and queue; of a message only the sending end does")
          .integer("class", &P::traffic_class, kTrafficClasses,
                   "data class in which a communication travels on the scale-out network")
          .integer("priority", &P::priority, {0, UINT8_MAX},
                   "priority among the messages of one queue pair; the highest goes first")
          .list("after", &P::after,
                "names of the tasks that it waits for at its rank; a message is waited for by its receiver "
                "until it is delivered, and by its sender until it is sent")
          .list("after_previous", &P::after_previous,
                "names of tasks of the previous iteration that it waits for at its rank")
          .time("earliest", &P::earliest, kStartTimes, "earliest start, from the start of the job")
          .time("deadline", &P::deadline, kFlowDeadlines, "none", kFlowDeadlineDoc);
  return p;
}

constexpr unsigned kForCompute = 1, kForCollective = 2, kForMessage = 4;

unsigned mask_of(ListedKind kind) {
  return kind == ListedKind::compute      ? kForCompute
         : kind == ListedKind::collective ? kForCollective
                                          : kForMessage;
}

// Refuses parameters that the kind of the task does not have.
void refuse_others(const ListedTask& task) {
  struct KeyOfKinds {
    const char* key;
    unsigned kinds;
    const char* whose;
  };
  constexpr KeyOfKinds kKeys[] = {
      {"on", kForCompute | kForCollective, "a message has 'from' and 'to' instead of 'on'"},
      {"bytes", kForCollective | kForMessage, "only a collective or message has 'bytes'"},
      {"root", kForCollective, "only a collective has 'root'"},
      {"counts", kForCollective, "only a collective has 'counts'"},
      {"tokens", kForCollective, "only a collective has 'tokens'"},
      {"raw", kForMessage, "only a message can be 'raw'"},
      {"channel", kForMessage, "only a raw message has 'channel'"},
      {"stream", kForCollective | kForMessage, "a computation runs in the stream compute"},
      {"class", kForCollective | kForMessage, "only a collective or message has 'class'"},
      {"priority", kForCollective | kForMessage, "only a collective or message has 'priority'"},
      {"deadline", kForCollective | kForMessage, "only a collective or message has 'deadline'"}};
  for (const KeyOfKinds& known : kKeys) {
    const ConfigNode* given = task.node.find(known.key);
    if (given != nullptr && (known.kinds & mask_of(task.kind)) == 0) given->fail(known.whose);
  }
}

ListedKind kind_of_entry(const ListedTask& task) {
  std::vector<std::string> given;
  for (const char* key : {"compute", "collective"}) {
    if (task.node.find(key) != nullptr) given.emplace_back(key);
  }
  const bool from = task.node.find("from") != nullptr, to = task.node.find("to") != nullptr;
  if (from || to) given.emplace_back(from && to ? "from with to" : from ? "from" : "to");
  if (given.size() != 1) {
    std::string words = given.empty() ? "nothing" : given.front();
    for (std::size_t i = 1; i < given.size(); ++i) words += " and " + given[i];
    task.node.fail("task '" + task.name + "' has " + words + "; a task has one of: " + kKindsDoc);
  }
  if (from != to)
    task.node.fail("task '" + task.name + "' has no '" + (from ? "to" : "from") +
                   "': a message has the rank that sends and the one that receives");
  return given[0] == "compute" ? ListedKind::compute : from ? ListedKind::message : ListedKind::collective;
}

void read_collective(ListedTask& task, const RankGroups& groups) {
  task.ranks = read_rank_list(task.on, groups);
  check_bytes(task.collective, task.node);
  const std::string name = to_string(task.collective);
  if (has_bytes(task.collective) && task.bytes == 0)
    task.node.fail("'bytes' is missing: the size of the buffer of " + name);
  if (task.root != 0 && !has_root(task.collective)) task.node.find("root")->fail(name + " has no root");
  if (task.ranks == nullptr) return;
  const std::size_t members = task.ranks->ranks().size();
  if (members < 2) task.on.fail("a collective needs at least 2 ranks");
  if (static_cast<std::size_t>(task.root) >= members)
    task.node.find("root")->fail("root " + std::to_string(task.root) + "; allowed: 0 to " +
                                 std::to_string(members - 1));
}

void read_message(ListedTask& task, const RankGroups& groups) {
  task.senders = read_named_ranks(task.from, groups);
  task.receivers = read_named_ranks(task.to, groups);
  const std::vector<RankId>&from = task.senders->ranks(), &to = task.receivers->ranks();
  if (from.size() != to.size())
    task.to.fail(counted(to.size(), "rank") + " for " + counted(from.size(), "sender") +
                 ": each sender has one receiver");
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[i])
      task.to.fail("rank " + std::to_string(to[i]) + " sends to itself; 'from' and 'to' must differ");
  }
  const ConfigNode* bytes = task.node.find("bytes");
  if (bytes == nullptr) task.node.fail("'bytes' is missing: the size of the message");
  if (task.bytes > kMessageSizes.maximum)
    out_of_range(*bytes, format_bytes(kMessageSizes.minimum), format_bytes(kMessageSizes.maximum));
  if (const ConfigNode* channel = task.node.find("channel"); channel != nullptr && !task.raw)
    channel->fail("only a raw message has 'channel': add raw: true");
}

ListedTask read_entry(const ConfigNode& node, const RankGroups& groups) {
  ListedTask task = listed_task_parameters().parse(node);
  task.node = node;
  if (const auto found = find_not_name(task.name); found)
    node.find("name")->fail("the name '" + task.name + "': " + found->what);
  task.kind = kind_of_entry(task);
  refuse_others(task);
  if (node.find("ordered") == nullptr) task.ordered = !task.raw;
  if (task.kind == ListedKind::compute) {
    task.ranks = read_rank_list(task.on, groups);
    return task;
  }
  const bool collective = task.kind == ListedKind::collective;
  if (node.find("stream") == nullptr) task.stream = collective ? Stream::dp : Stream::pp;
  if (collective) {
    read_collective(task, groups);
  } else {
    read_message(task, groups);
  }
  return task;
}

// Returns how many ranks an entry lists, which limits the memory that a description can take.
std::uint64_t listed_ranks(const ListedTask& task) {
  if (task.kind == ListedKind::message) return 2 * task.senders->ranks().size();
  return task.ranks == nullptr ? 0 : task.ranks->ranks().size();
}

// TaskNames: finds tasks by the names in `after` and `after_previous`.
class TaskNames {
 public:
  explicit TaskNames(const std::vector<ListedTask>& tasks) : tasks_(tasks) {
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
      names_.push_back(tasks[i].name);
      const auto [it, added] = index_.emplace(tasks[i].name, i);
      if (added) continue;
      const Place& first = tasks[it->second].node.place();
      tasks[i].node.find("name")->fail("a second task is called '" + tasks[i].name +
                                       "'; the first one is in line " + std::to_string(first.line));
    }
  }

  std::vector<std::uint32_t> read(const ConfigNode& list, const ListedTask& task) const {
    std::vector<std::uint32_t> found;
    if (list.is_null()) return found;
    for (const ConfigNode& item : read_names(list, "")) {
      found.push_back(find(item));
      check_shared_rank(task, tasks_[found.back()], item);
    }
    return found;
  }

 private:
  std::uint32_t find(const ConfigNode& item) const {
    const std::string name = read_text(item);
    const auto it = index_.find(name);
    if (it == index_.end()) item.fail("no task is called '" + name + "'" + did_you_mean(name, names_));
    return it->second;
  }

  // A task waits at its own ranks, so one of them must have the other task.
  static void check_shared_rank(const ListedTask& task, const ListedTask& other, const ConfigNode& item) {
    const SharedRanks& here = task.kind == ListedKind::message ? task.senders : task.ranks;
    const bool message = other.kind == ListedKind::message;
    const SharedRanks& there = message ? other.receivers : other.ranks;
    if (here == nullptr || there == nullptr || here->meets(*there)) return;
    if (message && here->meets(*other.senders)) return;
    item.fail("'" + task.name + "' begins on " + ranks_in_words(*here) + " and '" + other.name + "' is on " +
              (message ? ranks_in_words(*other.senders) + " and " : std::string()) + ranks_in_words(*there) +
              ": a task waits for tasks of its own ranks; for others, wait for a message from there");
  }
  static std::string ranks_in_words(const RankList& list) {
    constexpr std::size_t kShown = 4;
    const std::vector<RankId>& ranks = list.ranks();
    std::string words = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < std::min(ranks.size(), kShown); ++i)
      words += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    return ranks.size() > kShown ? words + ", ..." : words;
  }

  const std::vector<ListedTask>& tasks_;
  std::vector<std::string> names_;
  std::map<std::string, std::uint32_t> index_;
};

}  // namespace

ParameterTable listed_task_table() {
  ParameterTable table = listed_task_parameters().table();
  const auto computed = [&table](const char* name, const char* value) {
    for (ParameterInfo& info : table.edit()) {
      if (info.name != name) continue;
      info.default_text.clear();
      info.computed = value;
    }
  };
  computed("collective", "none");
  computed("compute", "none");
  computed("bytes", "none");
  computed("stream", "compute; dp for a collective, pp for a message");
  computed("ordered", "true; false for a raw message");
  return table;
}

std::vector<ListedTask> read_listed_tasks(const ConfigNode& list, const RankGroups& groups) {
  std::vector<ListedTask> tasks;
  std::uint64_t listed = 0;
  for (const ConfigNode& item : list.items()) {
    tasks.push_back(read_entry(item, groups));
    listed += listed_ranks(tasks.back());
    if (listed > ProgramLimits::kGroupMembers)
      item.fail("the tasks so far list " + std::to_string(listed) + " ranks together; allowed: " +
                std::to_string(ProgramLimits::kGroupMembers) + " ('all' counts none)");
  }
  const TaskNames names(tasks);
  for (ListedTask& task : tasks) {
    task.waits = names.read(task.after, task);
    task.earlier = names.read(task.after_previous, task);
  }
  return tasks;
}

}  // namespace netsim
