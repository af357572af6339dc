// htsim_cm: a connection matrix of htsim (.cm, .tm):
//
//   Nodes 16
//   Connections 2
//   Triggers 1
//   2->11 id 1 start 0 size 2000000 send_done_trigger 1
//   2->4 id 2 trigger 1 size 2000000
//   trigger id 1 oneshot
//
// Starts are picoseconds. A trigger fires when connections that name it are done. `oneshot` fires at the
// first and starts all that wait for it. `multishot` fires each time and starts the next one. `barrier count
// n` fires at the n-th and starts all. Connections that a trigger starts must send from the host where it
// fires, because nothing here acts at two hosts at once. That is the sender for send_done_trigger, the
// receiver for recv_done_trigger. Lines of one id with `msg` are messages of one connection. `prio` (of
// htsim's pull queues) is read and not used.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/input_file.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/workload/traffic/flow_source.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

namespace {

constexpr Range<std::int64_t> kIds{1, UINT32_MAX};
constexpr std::int64_t kMostConnections = 1 << 26;

enum class Shots : std::uint8_t { one, many, barrier };

struct Trigger {
  Shots shots = Shots::one;
  std::int64_t count = 1;
  bool declared = false;
  std::vector<std::uint32_t> targets;                             // flows, in file order
  std::vector<std::pair<std::uint32_t, FlowSource::End>> events;  // events that fire the trigger
  // Words without their text: the line may be gone when they appear in a message.
  std::vector<Word> event_places;
  Word first_use;
};

struct Connection {
  Flow flow;
  std::int64_t id = 0;
  int id_column = 0;
  bool started = false, message = false;  // has a start or a trigger; has `msg`
};

// KnownId: a connection with an id.
struct KnownId {
  std::uint32_t id = 0, flow = 0;
  int line = 0, column = 0;
  bool message = false;
};

class ConnectionMatrix {
 public:
  ConnectionMatrix(const InputSet::File& file, const WorkloadContext& context)
      : reader_(file), characters_(file.size), most_ranks_(context.most_ranks) {}

  std::unique_ptr<TaskSource> read() {
    std::vector<Word> words;
    while (reader_.next_line(words)) {
      if (!words[0].text.starts_with('#')) read_line(words);
    }
    check_counts();
    check_ids();
    return build();
  }

 private:
  void read_line(const std::vector<Word>& words) {
    const std::string_view key = words[0].text;
    if (key.find("->") != std::string_view::npos) return read_connection(words);
    if (key == "trigger") return read_trigger(words);
    if (key == "failure") {
      reader_.fail(words[0],
                   "failures belong to the network: write `network.faults` in the configuration instead");
    }
    for (const auto& [name, value] : {std::pair{"Nodes", &nodes_},
                                      {"Connections", &connections_expected_},
                                      {"Triggers", &triggers_expected_},
                                      {"Failures", &failures_expected_}}) {
      if (key != name) continue;
      if (words.size() != 2) reader_.fail(words[0], std::string(name) + " and one number are expected");
      *value = reader_.integer(words[1], name, {0, value == &nodes_ ? kMaxTrafficRanks : kMostConnections});
      if (value == &nodes_) check_nodes(words[1]);
      return;
    }
    reader_.fail(words[0], "'" + std::string(key.substr(0, 40)) +
                               "' is not known here (allowed: Nodes, Connections, Triggers, Failures, "
                               "source->destination, trigger)");
  }

  void check_nodes(const Word& word) const {
    if (source_ != nullptr) reader_.fail(word, "'Nodes' must come before the connections");
    if (nodes_ < 2) reader_.fail(word, "at least 2 nodes are needed");
    if (nodes_ > std::int64_t{most_ranks_}) {
      reader_.fail(
          word, fmt::format("{} nodes, but the cluster has {} GPUs", word.text, std::to_string(most_ranks_)));
    }
  }

  // Returns the value after words[i] and moves `i` to it.
  const Word& value(const std::vector<Word>& words, std::size_t& i) const {
    if (i + 1 >= words.size()) reader_.fail(words[i], "a value is missing behind '" + text(words[i]) + "'");
    return words[++i];
  }
  static Word place_of(const Word& word) { return {"", word.line, word.column}; }
  static std::string text(const Word& word) { return std::string(word.text.substr(0, 40)); }

  void read_connection(const std::vector<Word>& words) {
    if (nodes_ == 0) reader_.fail(words[0], "'Nodes' must come before the connections");
    if (source_ == nullptr) open_source();
    const auto number = static_cast<std::uint32_t>(source_->flow_count());
    if (number == kMostConnections)
      reader_.fail(words[0], fmt::format("more than {} connections are too many", kMostConnections));
    Connection connection;
    read_ends(words[0], connection.flow);
    for (std::size_t i = 1; i < words.size(); ++i) read_field(words, i, number, connection);
    if (connection.flow.bytes == 0) reader_.fail(words[0], "'size' is missing");
    if (!connection.started) reader_.fail(words[0], "'start' or 'trigger' is missing");
    connection.flow.name =
        connection.id == 0 ? unnumbered_
                           : source_->numbered_name("connection", static_cast<std::uint32_t>(connection.id));
    source_->add(connection.flow);
    if (connection.id == 0) return;
    ids_.push_back({static_cast<std::uint32_t>(connection.id), number, words[0].line, connection.id_column,
                    connection.message});
    // Messages of one id share the queue pair of the first of them.
    const Flow& flow = connection.flow;
    if (connection.message)
      source_->follow(number,
                      channels_.try_emplace({flow.from, flow.to, connection.id}, number).first->second);
  }

  void open_source() {
    source_ = std::make_unique<FlowSource>("connections", static_cast<std::uint32_t>(nodes_));
    constexpr std::int64_t kShortest = 10;  // characters of a line
    source_->reserve(static_cast<std::size_t>(
        std::min(connections_expected_, static_cast<std::int64_t>(characters_) / kShortest)));
    unnumbered_ = source_->add_name("connection");
  }

  // Checks that an id belongs to one connection; only messages of the connection share it.
  void check_ids() {
    std::sort(ids_.begin(), ids_.end(), [](const KnownId& a, const KnownId& b) {
      return std::pair(a.id, a.flow) < std::pair(b.id, b.flow);
    });
    const KnownId *wrong = nullptr, *first = nullptr, *known = nullptr;
    for (const KnownId& next : ids_) {
      if (known == nullptr || known->id != next.id) known = &next;
      if (known == &next || are_of_one(*known, next)) continue;
      if (wrong == nullptr || next.flow < wrong->flow) wrong = &next, first = known;
    }
    if (wrong == nullptr) return;
    const Flow flow = source_->flow(first->flow);
    reader_.fail({"", wrong->line, wrong->column},
                 fmt::format("id {} is that of {}->{} in line {}; only lines of the same connection with "
                             "'msg' share an id",
                             wrong->id, flow.from, flow.to, first->line));
  }
  bool are_of_one(const KnownId& a, const KnownId& b) const {
    const Flow one = source_->flow(a.flow), other = source_->flow(b.flow);
    return a.message && b.message && one.from == other.from && one.to == other.to;
  }

  void read_ends(const Word& word, Flow& flow) const {
    const std::size_t arrow = word.text.find("->");
    const Word from{word.text.substr(0, arrow), word.line, word.column};
    const Word to{word.text.substr(arrow + 2), word.line, word.column + static_cast<int>(arrow) + 2};
    const Range<std::int64_t> range{0, nodes_ - 1};
    flow.from = static_cast<std::uint32_t>(reader_.integer(from, "the source", range));
    flow.to = static_cast<std::uint32_t>(reader_.integer(to, "the destination", range));
    if (flow.from == flow.to) reader_.fail(to, "a connection to its own source");
  }

  void read_field(const std::vector<Word>& words, std::size_t& i, std::uint32_t number, Connection& c) {
    const Word& key = words[i];
    if (key.text == "id") {
      c.id = reader_.integer(value(words, i), "id", kIds);
      c.id_column = words[i].column;
    } else if (key.text == "msg") {
      c.message = true;
      const bool numbered =
          i + 1 < words.size() && words[i + 1].text.find_first_not_of("0123456789") == std::string_view::npos;
      if (numbered) ++i;
    } else if (key.text == "start" || key.text == "trigger") {
      if (c.started) reader_.fail(key, "a second 'start' or 'trigger'");
      c.started = true;
      if (key.text == "start") {
        c.flow.start = reader_.time_in(value(words, i), "start", kPicosecond, kStartTimes);
      } else {
        trigger(value(words, i)).targets.push_back(number);
        c.flow.needs = 1;
      }
    } else if (key.text == "size") {
      c.flow.bytes = reader_.integer(value(words, i), "size", {1, kMessageSizes.maximum});
    } else if (key.text == "send_done_trigger" || key.text == "recv_done_trigger") {
      const Word& id = value(words, i);
      const auto end = key.text == "send_done_trigger" ? FlowSource::End::sent : FlowSource::End::received;
      trigger(id).events.emplace_back(number, end);
      trigger(id).event_places.push_back(place_of(key));
    } else if (key.text == "prio") {
      reader_.integer(value(words, i), "prio", {0, INT64_MAX});
      ++priorities_;
    } else {
      reader_.fail(key, "'" + text(key) +
                            "' is not known here (allowed: id, msg, start, trigger, size, "
                            "send_done_trigger, recv_done_trigger, prio)");
    }
  }

  Trigger& trigger(const Word& id) {
    Trigger& found = triggers_[reader_.integer(id, "a trigger's id", kIds)];
    if (found.first_use.line == 0) found.first_use = place_of(id);
    return found;
  }

  void read_trigger(const std::vector<Word>& words) {
    if (words.size() < 4 || words[1].text != "id") {
      reader_.fail(words[0], "'trigger id NUMBER oneshot | multishot | barrier count NUMBER' is expected");
    }
    Trigger& declared = trigger(words[2]);
    if (declared.declared) reader_.fail(words[2], "trigger " + text(words[2]) + " is declared twice");
    declared.declared = true;
    ++triggers_declared_;
    const std::string_view kind = words[3].text;
    if (kind == "barrier") {
      if (words.size() != 6 || words[4].text != "count")
        reader_.fail(words[3], "'barrier count NUMBER' is expected");
      declared.shots = Shots::barrier;
      declared.count = reader_.integer(words[5], "count", {1, kMaxTrafficRanks});
    } else if (kind == "oneshot" || kind == "multishot") {
      declared.shots = kind == "oneshot" ? Shots::one : Shots::many;
    } else {
      reader_.fail(words[3], "'" + text(words[3]) + "' is not one of: oneshot, multishot, barrier");
    }
  }

  void check_counts() const {
    const Word end{"", 0, 0};
    const auto check = [&](const char* what, std::int64_t said, std::size_t found) {
      if (said == static_cast<std::int64_t>(found)) return;
      reader_.fail(end, fmt::format("the header says {} {}, {} follow", what, said, found));
    };
    check("Connections", connections_expected_, source_ == nullptr ? 0 : source_->flow_count());
    check("Triggers", triggers_expected_, triggers_declared_);
    check("Failures", failures_expected_, 0);
    if (source_ == nullptr) reader_.fail(end, "there are no connections");
  }

  std::unique_ptr<TaskSource> build() {
    set_needs();
    for (const auto& [id, trigger] : triggers_) join(id, trigger);
    source_->seal();
    if (priorities_ > 0) {
      source_->add_note(
          fmt::format("{}: the 'prio' of {} connections is not used", reader_.file(), priorities_));
    }
    return std::move(source_);
  }

  // Sets, for each target of a trigger, which of its events starts the target.
  void set_needs() {
    for (const auto& [id, trigger] : triggers_) {
      std::uint32_t shot = 0;
      for (const std::uint32_t target : trigger.targets) {
        ++shot;
        source_->set_needs(target, trigger.shots == Shots::many  ? shot
                                   : trigger.shots == Shots::one ? 1
                                                                 : static_cast<std::uint32_t>(trigger.count));
      }
    }
  }

  void join(std::int64_t id, const Trigger& trigger) {
    if (!trigger.declared) {
      reader_.fail(trigger.first_use,
                   fmt::format("trigger {} is not declared: 'trigger id {} oneshot'", id, id));
    }
    const std::size_t needed = trigger.targets.empty()        ? 0
                               : trigger.shots == Shots::one  ? 1
                               : trigger.shots == Shots::many ? trigger.targets.size()
                                                              : static_cast<std::size_t>(trigger.count);
    if (trigger.events.size() < needed) {
      reader_.fail(trigger.first_use, fmt::format("trigger {} waits for {} connections, {} name it", id,
                                                  needed, trigger.events.size()));
    }
    for (std::size_t i = 0; i < trigger.events.size(); ++i) {
      const auto [number, end] = trigger.events[i];
      const Flow fires = source_->flow(number);
      const std::uint32_t at = end == FlowSource::End::sent ? fires.from : fires.to;
      for (const std::uint32_t target : trigger.targets) {
        const std::uint32_t from = source_->flow(target).from;
        if (from != at) {
          reader_.fail(trigger.event_places[i],
                       fmt::format("trigger {} fires at node {}, but starts a connection of node {}: only "
                                   "connections of the same node can be started",
                                   id, at, from));
        }
        source_->add_dependency(number, end, target);
      }
    }
  }

  TextReader reader_;
  std::uint64_t characters_;  // characters of the text
  std::uint32_t most_ranks_;
  std::int64_t nodes_ = 0, connections_expected_ = 0, triggers_expected_ = 0, failures_expected_ = 0;
  std::size_t triggers_declared_ = 0, priorities_ = 0;
  std::unique_ptr<FlowSource> source_;  // created at the first connection
  std::uint32_t unnumbered_ = 0;        // name of connections without an id
  std::vector<KnownId> ids_;
  std::map<std::int64_t, Trigger> triggers_;
  // The first message of an id.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, std::uint32_t> channels_;
};

// Returns whether the first line is "Nodes NUMBER", and the next one is not that of a .topo file.
bool is_connection_matrix(const Excerpt& file) {
  const auto first = file.words(0);
  if (first.size() != 2 || first[0] != "Nodes" || !is_integer_word(first[1])) return false;
  std::string second(file.words(1).empty() ? "" : file.words(1)[0]);
  for (char& c : second) c = to_lower(c);
  return !is_one_of(second, {"tiers", "podsize", "tier"});
}

const FormatRegistration kHtsimCmFormat{{.name = "htsim_cm",
                                         .what = "a connection matrix of htsim",
                                         .use = Format::Use::workload,
                                         .matches = is_connection_matrix,
                                         .component = "htsim_cm",
                                         .advice = {},
                                         .endings = {".cm", ".tm"}}};

class HtsimReader final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext& context) const override {
    return ConnectionMatrix(input.only("a connection matrix of htsim"), context).read();
  }
};

const Registration<WorkloadReader> kHtsimCm{
    "htsim_cm", "a connection matrix of htsim (.cm): connections with starts or triggers",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<HtsimReader>(); }};

}  // namespace

}  // namespace netsim
