#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "sim/core/registry.h"
#include "sim/workload/flow_source.h"
#include "sim/workload/ns3_flows.h"
#include "sim/workload/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

void for_each_ns3_flow(std::string_view text, const std::string& path,
                       const std::function<void(const Ns3Flow&)>& visit) {
  constexpr Range<std::int64_t> kNodes{0, 65535};  // two bytes of its IP addresses
  TextReader reader(text, path);
  const Word count = reader.next("the number of flows");
  const std::int64_t flows = reader.integer(count, "the number of flows", {1, 1 << 26});
  for (std::int64_t i = 0; i < flows; ++i) {
    Ns3Flow flow;
    const Word source = reader.next("the source of flow " + std::to_string(i));
    flow.source = static_cast<std::uint32_t>(reader.integer(source, "the source", kNodes));
    const Word destination = reader.next("a destination");
    flow.destination = static_cast<std::uint32_t>(reader.integer(destination, "the destination", kNodes));
    if (flow.source == flow.destination) reader.fail(destination, "a flow to its own source");
    flow.priority_group = static_cast<std::uint32_t>(
        reader.integer(reader.next("a priority group"), "the priority group", {0, 7}));
    reader.integer(reader.next("a port"), "the port", {0, 65535});
    flow.bytes = reader.integer(reader.next("a size"), "the size", {1, kMessageSizes.maximum});
    flow.start = reader.time_in(reader.next("a start"), "the start", kSecond, kStartTimes);
    flow.source_place = reader.place(source);
    flow.destination_place = reader.place(destination);
    visit(flow);
  }
}

Ns3FlowSummary summarise_ns3_flows(std::string_view text, const std::string& path) {
  Ns3FlowSummary summary;
  std::set<std::uint32_t> groups;
  for_each_ns3_flow(text, path, [&](const Ns3Flow& flow) {
    ++summary.flows;
    groups.insert(flow.priority_group);
  });
  summary.groups.assign(groups.begin(), groups.end());
  return summary;
}

namespace {

// Node numbers to ranks: the topology's host numbers where it has any, else themselves.
class Hosts {
 public:
  Hosts(const WorkloadContext& context, std::string path) : path_(std::move(path)), gpus_(context.gpus) {
    own_numbers_ = context.host_numbers.empty();
    for (std::uint32_t i = 0; i < context.host_numbers.size(); ++i) ranks_[context.host_numbers[i]] = i;
    const bool several = !own_numbers_ && context.host_numbers.size() < gpus_;
    if (several) throw InputError(Place{path_, 0, 0, ""}, "a flow list needs hosts of one GPU");
  }
  std::uint32_t rank(std::uint32_t node, const Place& place) const {
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

struct Ns3FlowsParameters {};

class Ns3FlowsReader final : public WorkloadReader {
 public:
  // A number alone in its line, then a line that begins with a number, or none.
  bool recognises(std::string_view text) const override {
    TextReader reader(text, "");
    std::vector<Word> words;
    if (!reader.next_line(words) || words.size() != 1 || !is_number(words[0])) return false;
    return !reader.next_line(words) || is_number(words[0]);
  }

  std::unique_ptr<TaskSource> read(std::string_view text, const std::string& path,
                                   const WorkloadContext& context) const override {
    const Ns3FlowSummary summary = summarise_ns3_flows(text, path);
    const std::vector<std::uint32_t>& groups = summary.groups;
    if (static_cast<std::int64_t>(groups.size()) > kTrafficClasses.maximum + 1) {
      throw InputError(Place{path, 0, 0, ""},
                       std::to_string(groups.size()) + " priority groups are in use; at most " +
                           std::to_string(kTrafficClasses.maximum + 1) + " are allowed");
    }
    const Hosts hosts(context, path);
    auto source = std::make_unique<FlowSource>("flows", context.gpus);
    source->reserve(summary.flows);
    const std::uint32_t name = source->add_name("flow");
    for_each_ns3_flow(text, path, [&](const Ns3Flow& flow) {
      const auto group = std::lower_bound(groups.begin(), groups.end(), flow.priority_group);
      source->add({.from = hosts.rank(flow.source, flow.source_place),
                   .to = hosts.rank(flow.destination, flow.destination_place),
                   .bytes = flow.bytes,
                   .start = flow.start,
                   .name = name,
                   .traffic_class = static_cast<std::uint8_t>(group - groups.begin())});
    });
    source->seal();
    return source;
  }

 private:
  static bool is_number(const Word& word) {
    return word.text.find_first_not_of("0123456789") == std::string_view::npos;
  }
};

const Registration<WorkloadReader> kRegistration{
    "ns3_flows", "flow.txt of the HPCC family of ns-3 simulators: source destination group port bytes start",
    Parameters<Ns3FlowsParameters>(),
    [](const Ns3FlowsParameters&, const ConfigNode&) { return std::make_unique<Ns3FlowsReader>(); }};

}  // namespace

}  // namespace netsim
