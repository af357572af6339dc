#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/workload/readers/ns3_flows.h"
#include "sim/workload/traffic/flow_source.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

namespace {

std::uint64_t lines_left(TextReader& reader) {
  std::uint64_t lines = 0;
  for (std::vector<Word> words; reader.next_line(words);) {
    const bool numbers =
        std::all_of(words.begin(), words.end(), [](const Word& word) { return is_number_word(word.text); });
    if (words.size() == 6 && numbers) ++lines;
  }
  return lines;
}

}  // namespace

std::uint64_t for_each_ns3_flow(const InputSet::File& file,
                                const std::function<void(const Ns3Flow&)>& visit) {
  constexpr Range<std::int64_t> kNodes{0, 65535};  // two bytes of its IP addresses
  TextReader reader(file);
  const Word count = reader.next("the number of flows");
  const std::int64_t flows = reader.integer(count, "the number of flows", {1, kMostNs3Flows});
  for (std::int64_t i = 0; i < flows; ++i) {
    Ns3Flow flow;
    const Word source = reader.next("the source of flow " + std::to_string(i));
    flow.source = static_cast<std::uint32_t>(reader.integer(source, "the source", kNodes));
    const Word destination = reader.next("a destination");
    flow.destination = static_cast<std::uint32_t>(reader.integer(destination, "the destination", kNodes));
    if (flow.source == flow.destination) reader.fail(destination, "a flow to its own source");
    const Word group = reader.next("a priority group");
    flow.priority_group = static_cast<std::uint32_t>(reader.integer(group, "the priority group", {0, 7}));
    flow.port = static_cast<std::uint16_t>(reader.integer(reader.next("a port"), "the port", {0, 65535}));
    flow.bytes = reader.integer(reader.next("a size"), "the size", {1, kMessageSizes.maximum});
    flow.start = reader.time_in(reader.next("a start"), "the start", kSecond, kStartTimes);
    flow.source_place = reader.place(source);
    flow.destination_place = reader.place(destination);
    flow.group_place = reader.place(group);
    visit(flow);
  }
  return lines_left(reader);
}

Ns3FlowSummary summarise_ns3_flows(const InputSet::File& file) {
  Ns3FlowSummary summary;
  std::set<std::uint32_t> groups;
  summary.left_over = for_each_ns3_flow(file, [&](const Ns3Flow& flow) {
    ++summary.flows;
    groups.insert(flow.priority_group);
  });
  summary.groups.assign(groups.begin(), groups.end());
  return summary;
}

namespace {

// Hosts: maps node numbers to ranks. It uses the topology's host numbers if there are any, otherwise the node
// numbers themselves.
class Hosts {
 public:
  Hosts(const WorkloadContext& context, std::string path) : path_(std::move(path)), gpus_(context.gpus) {
    own_numbers_ = context.host_numbers.empty();
    for (std::uint32_t i = 0; i < context.host_numbers.size(); ++i) ranks_[context.host_numbers[i]] = i;
    const bool several = !own_numbers_ && context.host_numbers.size() < gpus_;
    if (several) throw InputError(Place{path_, 0, 0, ""}, "a flow list needs hosts of one GPU");
  }
  RankId rank(std::uint32_t node, const Place& place) const {
    const auto it = ranks_.find(node);
    const bool known = own_numbers_ ? node < gpus_ : it != ranks_.end() && it->second < gpus_;
    if (!known) {
      throw InputError(place, "node " + std::to_string(node) + " is no host of this cluster of " +
                                  std::to_string(gpus_) + " GPUs");
    }
    return own_numbers_ ? node : it->second;
  }

 private:
  std::string path_;
  std::uint32_t gpus_;
  bool own_numbers_ = false;
  std::map<std::uint32_t, std::uint32_t> ranks_;
};

// Returns whether the file is the tool's TRACE_FILE: a number alone in its line, then so many nodes. Six
// nodes could be a flow, if more lines follow.
bool is_node_list(const Excerpt& file) {
  const auto first = file.words(0), second = file.words(1);
  return first.size() == 1 && !second.empty() && std::to_string(second.size()) == first[0] &&
         std::all_of(second.begin(), second.end(), is_integer_word) &&
         (second.size() != 6 || file.lines() == 2);
}

// Returns whether the file has a number alone in its line, then a line that begins with a number, or none.
bool is_ns3_flows(const Excerpt& file) {
  const auto first = file.words(0), second = file.words(1);
  if (first.size() != 1 || !is_integer_word(first[0])) return false;
  return second.empty() || (is_integer_word(second[0]) && !is_node_list(file));
}

const FormatRegistration kNodes{{.name = "ns3_trace_nodes",
                                 .what = "a list of nodes to trace in ns-3 (TRACE_FILE)",
                                 .use = Format::Use::none,
                                 .matches = is_node_list,
                                 .component = {},
                                 .advice = "netsim samples queues and links instead (output.sample)",
                                 .endings = {"trace.txt"}}};

const FormatRegistration kNs3FlowsFormat{{.name = "ns3_flows",
                                          .what = "a flow.txt of the HPCC family of ns-3 simulators",
                                          .use = Format::Use::workload,
                                          .matches = is_ns3_flows,
                                          .component = "ns3_flows",
                                          .advice = {},
                                          .endings = {"flow.txt"}}};

// Classes: maps priority groups to data classes, in their order.
class Classes {
 public:
  Classes(std::vector<std::uint32_t> groups, std::int64_t classes)
      : groups_(std::move(groups)), classes_(classes) {}
  std::uint8_t of(const Ns3Flow& flow) const {
    const auto group = std::lower_bound(groups_.begin(), groups_.end(), flow.priority_group);
    const std::int64_t number = group - groups_.begin();
    if (const std::string problem = class_problem(number, classes_); !problem.empty()) {
      throw InputError(flow.group_place,
                       std::to_string(groups_.size()) +
                           " priority groups are in use, and become data classes: " + problem);
    }
    return static_cast<std::uint8_t>(number);
  }

 private:
  std::vector<std::uint32_t> groups_;
  std::int64_t classes_;
};

// Ns3FlowSource: the flows of a flow.txt with their ports.
class Ns3FlowSource final : public FlowSource, public Ns3FlowList {
 public:
  Ns3FlowSource(std::uint32_t ranks, std::size_t flows) : FlowSource("flows", ranks) {
    reserve(flows);
    ports_.reserve(flows);
  }
  void add_with_port(Flow flow, std::uint16_t port) {
    flow.name = numbered_name("flow", static_cast<std::uint32_t>(ports_.size()));
    add(flow);
    ports_.push_back(port);
  }
  const std::vector<std::uint16_t>& ports() const override { return ports_; }

 private:
  std::vector<std::uint16_t> ports_;  // by flow
};

class Ns3FlowsReader final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext& context) const override {
    const InputSet::File& file = input.only("a flow.txt");
    const Ns3FlowSummary summary = summarise_ns3_flows(file);
    const Hosts hosts(context, file.path);
    const Classes classes(summary.groups, context.classes);
    auto source = std::make_unique<Ns3FlowSource>(context.gpus, summary.flows);
    for_each_ns3_flow(file, [&](const Ns3Flow& flow) {
      source->add_with_port({.from = hosts.rank(flow.source, flow.source_place),
                             .to = hosts.rank(flow.destination, flow.destination_place),
                             .bytes = flow.bytes,
                             .start = flow.start,
                             .traffic_class = classes.of(flow)},
                            flow.port);
    });
    if (summary.left_over > 0) {
      source->add_note(file.path + ":1:1: the header counts " + std::to_string(summary.flows) + " flows, " +
                       std::to_string(summary.left_over) + " more follow: they are ignored, as in the tool");
    }
    source->seal();
    return source;
  }
};

const Registration<WorkloadReader> kNs3Flows{
    "ns3_flows", "flow.txt of the HPCC family of ns-3 simulators: source destination group port bytes start",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Ns3FlowsReader>(); }};

}  // namespace

}  // namespace netsim
