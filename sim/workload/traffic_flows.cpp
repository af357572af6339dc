// flows: messages written down one by one.
//
//   kind: flows
//   flows:
//     - {from: 0, to: 1, bytes: 10 MB}
//     - {from: 2, to: 1, bytes: 64 KB, start: 30 us}
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/workload/simple_source.h"
#include "sim/workload/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

namespace {

struct Flow {
  std::int64_t from = 0;
  std::int64_t to = 0;
  Bytes bytes = 0;
  Time start = 0;
  Place place;
};

const Parameters<Flow>& flow_parameters() {
  static const auto p = Parameters<Flow>()
                            .integer("from", &Flow::from, {0, kMaxTrafficRanks - 1}, "the rank that sends")
                            .required()
                            .integer("to", &Flow::to, {0, kMaxTrafficRanks - 1}, "the rank that receives")
                            .required()
                            .bytes("bytes", &Flow::bytes, kMessageSizes, "size of the message")
                            .required()
                            .time("start", &Flow::start, kStartTimes, "when the sender starts");
  return p;
}

struct FlowsParameters {
  std::int64_t ranks = 0;
};

const Parameters<FlowsParameters>& parameters() {
  static const auto p =
      Parameters<FlowsParameters>().integer("ranks", &FlowsParameters::ranks, {0, kMaxTrafficRanks},
                                            "how many ranks there are; 0: all GPUs of the cluster");
  return p;
}

class Flows final : public WorkloadKind {
 public:
  Flows(std::int64_t ranks, Place ranks_place, std::vector<Flow> flows)
      : ranks_(ranks), ranks_place_(std::move(ranks_place)), flows_(std::move(flows)) {}

  std::unique_ptr<TaskSource> tasks(std::uint32_t cluster_gpus) const override {
    const std::uint32_t ranks = traffic_ranks(ranks_, cluster_gpus, ranks_place_);
    auto source = std::make_unique<SimpleSource>("flows", ranks);
    const std::uint32_t name = source->add_name("flow");
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> messages;  // so far, by (from, to)
    for (const Flow& flow : flows_) {
      const std::uint32_t from = rank(flow, flow.from, ranks), to = rank(flow, flow.to, ranks);
      source->add_message(from, to, messages[{from, to}]++, flow.bytes, flow.start, name);
    }
    return source;
  }

 private:
  static std::uint32_t rank(const Flow& flow, std::int64_t number, std::uint32_t ranks) {
    if (number >= std::int64_t{ranks}) {
      throw InputError(flow.place,
                       "rank " + std::to_string(number) + "; allowed: 0 to " + std::to_string(ranks - 1));
    }
    return static_cast<std::uint32_t>(number);
  }

  std::int64_t ranks_;
  Place ranks_place_;
  std::vector<Flow> flows_;
};

std::vector<Flow> read_flows(const ConfigNode& section) {
  const ConfigNode* list = section.find("flows");
  if (list == nullptr) section.fail("'flows' is missing: a sequence of {from, to, bytes, start}");
  if (!list->is_sequence() || list->items().empty())
    list->fail("a sequence of {from, to, bytes, start} is expected");
  std::vector<Flow> flows;
  for (const ConfigNode& item : list->items()) {
    flows.push_back(flow_parameters().parse(item));
    flows.back().place = item.place();
    if (flows.back().from == flows.back().to) {
      item.fail("rank " + std::to_string(flows.back().from) +
                " sends to itself; 'from' and 'to' must differ");
    }
  }
  return flows;
}

// By hand instead of with Registration<>: its parameters have no sequences.
const bool kRegistered = [] {
  ParameterInfo list;
  list.name = "flows";
  list.type = "list";
  list.doc = "the messages";
  list.children = flow_parameters().table();
  ParameterTable table = parameters().table();
  table.push_back(list);
  Catalogue::instance().add(
      {WorkloadKind::kComponentKind, "flows", "messages written down one by one", table});
  Registry<WorkloadKind>::instance().add(
      "flows", [](const ConfigNode& node) -> std::unique_ptr<WorkloadKind> {
        const FlowsParameters p =
            parameters().parse(node.is_scalar() ? ConfigNode() : node, {"kind", "flows"});
        return std::make_unique<Flows>(p.ranks, place_of(node, "ranks"), read_flows(node));
      });
  return true;
}();

}  // namespace

}  // namespace netsim
