// flows: messages that are listed one by one.
//
//   kind: flows
//   flows:
//     - {from: 0, to: 1, bytes: 10 MB}
//     - {from: 2, to: 1, bytes: 64 KB, start: 30 us}
//
// Each is a flow on a queue pair of its own (flow_source.h), unless it names a channel. CSV is better for
// long lists (reader_csv.cpp).
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/workload/traffic/flow_source.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

namespace {

struct Entry {
  std::int64_t from = 0;
  std::int64_t to = 0;
  Bytes bytes = 0;
  Time start = 0;
  std::int64_t traffic_class = 0;
  std::int64_t priority = 0;
  std::int64_t path = -1;
  std::int64_t channel = -1;
  std::optional<Time> deadline;
  std::string name = "flow";
  Place place, class_place;
};

const Parameters<Entry>& flow_parameters() {
  static const auto p =
      Parameters<Entry>()
          .integer("from", &Entry::from, {0, kMaxTrafficRanks - 1}, "the rank that sends")
          .required()
          .integer("to", &Entry::to, {0, kMaxTrafficRanks - 1}, "the rank that receives")
          .required()
          .bytes("bytes", &Entry::bytes, kMessageSizes, "size of the message")
          .required()
          .time("start", &Entry::start, kStartTimes, "time at which the sender starts")
          .integer("class", &Entry::traffic_class, kTrafficClasses, "data class that it travels in")
          .integer("priority", &Entry::priority, {0, UINT8_MAX},
                   "priority among the messages of its queue pair, and with transport.nic_priorities also "
                   "among the queue pairs of its NIC")
          .integer("path", &Entry::path, {-1, kMaxPathHint},
                   "path hint: the index of its path among those of equal cost; -1: routing chooses")
          .integer("channel", &Entry::channel, {-1, kMaxChannel},
                   "flows between two ranks with the same channel share a queue pair; -1: its own")
          .time("deadline", &Entry::deadline, kFlowDeadlines, "none", kFlowDeadlineDoc)
          .text("name", &Entry::name, "name of the flow in tables");
  return p;
}

struct FlowsParameters {
  std::int64_t ranks = 0;
};

const Parameters<FlowsParameters>& traffic_flows_parameters() {
  static const auto p = Parameters<FlowsParameters>().integer(
      "ranks", &FlowsParameters::ranks, {0, kMaxTrafficRanks}, "number of ranks; 0: all GPUs of the cluster");
  return p;
}

class Flows final : public WorkloadKind {
 public:
  Flows(std::int64_t ranks, Place ranks_place, std::vector<Entry> flows)
      : ranks_(ranks), ranks_place_(std::move(ranks_place)), flows_(std::move(flows)) {}

  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    const std::uint32_t ranks = traffic_ranks(ranks_, context, ranks_place_);
    auto source = std::make_unique<FlowSource>("flows", ranks);
    source->reserve(flows_.size());
    for (const Entry& entry : flows_) {
      const std::string problem = class_problem(entry.traffic_class, context.classes);
      if (!problem.empty()) throw InputError(entry.class_place, problem);
      Flow flow{.from = rank(entry, entry.from, ranks),
                .to = rank(entry, entry.to, ranks),
                .bytes = entry.bytes,
                .start = entry.start,
                .name = source->add_name(entry.name),
                .traffic_class = static_cast<std::uint8_t>(entry.traffic_class),
                .priority = static_cast<std::uint8_t>(entry.priority)};
      if (entry.path >= 0) flow.path_hint = static_cast<std::uint32_t>(entry.path);
      flow.deadline = entry.deadline.value_or(0);
      if (entry.channel >= 0) flow.channel = static_cast<std::uint32_t>(entry.channel);
      source->add(flow);
    }
    source->seal();
    return source;
  }

 private:
  static RankId rank(const Entry& flow, std::int64_t number, std::uint32_t ranks) {
    if (number >= std::int64_t{ranks}) {
      throw InputError(flow.place,
                       "rank " + std::to_string(number) + "; allowed: 0 to " + std::to_string(ranks - 1));
    }
    return static_cast<std::uint32_t>(number);
  }

  std::int64_t ranks_;
  Place ranks_place_;
  std::vector<Entry> flows_;
};

std::vector<Entry> read_flows(const ConfigNode& section) {
  const ConfigNode* list = section.find("flows");
  if (list == nullptr) section.fail("'flows' is missing: a sequence of {from, to, bytes, start}");
  if (!list->is_sequence() || list->items().empty())
    list->fail("a sequence of {from, to, bytes, start} is expected");
  std::vector<Entry> flows;
  for (const ConfigNode& item : list->items()) {
    flows.push_back(flow_parameters().parse(item));
    flows.back().place = item.place();
    flows.back().class_place = place_of(item, "class");
    if (flows.back().from == flows.back().to) {
      item.fail("rank " + std::to_string(flows.back().from) +
                " sends to itself; 'from' and 'to' must differ");
    }
  }
  return flows;
}

ParameterTable flows_table() {
  ParameterInfo list;
  list.name = "flows";
  list.type = "list";
  list.doc = "the messages";
  list.children = flow_parameters().table();
  ParameterTable table = traffic_flows_parameters().table();
  table.push_back(list);
  return table;
}

const Registration<WorkloadKind> kTrafficFlows{
    "flows", "messages listed one by one", flows_table(), [](const ConfigNode& node) {
      const FlowsParameters p =
          traffic_flows_parameters().parse(node.is_scalar() ? ConfigNode() : node, {"kind", "flows"});
      return std::make_unique<Flows>(p.ranks, place_of(node, "ranks"), read_flows(node));
    }};

}  // namespace

}  // namespace netsim
