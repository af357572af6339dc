// strict: flows of a more urgent level go first, and the others get what is left. Levels follow the job, the
// priority that jobs and tasks have in the workload, the size of the flow, or the stream of its task.
//
// With `act: classes` a level is a data class of the network, which NICs and switches serve in strict
// priority (network.switch.scheduler: strict). With `act: priorities` it is a priority of messages, which
// NICs follow (transport.nic_priorities). With `act: rates` the scheduler gives the flows of a level their
// max-min fair rates on what more urgent levels leave.
//
// `act: rates` cannot do without `topology`. `by: size` without `sizes` orders by what flows have sent, and
// gives all flows the first class or priority.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/rule_view.h"
#include "sim/scheduling/flow/rules/max_min.h"
#include "sim/scheduling/flow/rules/thresholds.h"

namespace netsim {
namespace {

enum class UrgentBy : std::uint8_t { job, priority, size, stream };
enum class ActBy : std::uint8_t { classes, priorities, rates };

struct StrictParameters : CentralParameters {
  UrgentBy by = UrgentBy::priority;
  ConfigNode streams;
  std::vector<std::uint32_t> stream_levels;  // by stream, found when `streams` was read
  ActBy act = ActBy::classes;
  std::int64_t levels = 2;
  Bytes first = kAaloFirst;
  std::int64_t factor = kAaloFactor;
};

const Parameters<StrictParameters>& strict_parameters() {
  using P = StrictParameters;
  static const auto parameters = add_central(
      Parameters<P>()
          .choice("by", &P::by,
                  {{"job", UrgentBy::job},
                   {"priority", UrgentBy::priority},
                   {"size", UrgentBy::size},
                   {"stream", UrgentBy::stream}},
                  "what makes a flow urgent: its `job` (the first job first), the `priority` of its job or "
                  "task (the highest first), its `size` (the smallest first), or the `stream` of its task in "
                  "the order of `streams`")
          .list(
              "streams", &P::streams,
              "by stream: streams from the most urgent on, such as [ep, dp]; those that are not listed come "
              "last. Each has a level of its own, and `by` and `levels` may be left out")
          .choice(
              "act", &P::act,
              {{"classes", ActBy::classes}, {"priorities", ActBy::priorities}, {"rates", ActBy::rates}},
              "levels are data `classes` of the network, `priorities` of messages, which NICs follow with "
              "transport.nic_priorities, or `rates` that are set at intervals")
          .integer("levels", &P::levels, {1, 256}, "levels of urgency; the last one takes all that remain")
          .bytes("first", &P::first, {1, 1000 * kGigabyte},
                 "by size: largest flow of the first level; the size is that of the first message")
          .integer("factor", &P::factor, {2, 1 << 20}, "by size: each level reaches so many times further"));
  return parameters;
}

Stream read_urgent_stream(const ConfigNode& node) {
  const std::string name = read_text(node);
  std::string allowed;
  for (const Stream stream : kCommunicationStreams) {
    if (name == to_string(stream)) return stream;
    allowed += (allowed.empty() ? "" : ", ") + std::string(to_string(stream));
  }
  node.fail(fmt::format("'{}' is no stream of communications; allowed: {}", name, allowed));
}

// Returns the level of each stream, by its number. The streams that are not listed have the last level.
std::vector<std::uint32_t> read_stream_levels(const ConfigNode& list) {
  if (!list.is_sequence() || list.items().empty()) list.fail("a list of streams, such as [ep, dp]");
  const auto count = static_cast<std::uint32_t>(list.items().size());
  std::vector<std::uint32_t> levels(kStreams, count);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t& level = levels[static_cast<std::size_t>(read_urgent_stream(list.items()[i]))];
    if (level != count) list.items()[i].fail(fmt::format("'{}' is listed twice", read_text(list.items()[i])));
    level = i;
  }
  return levels;
}

// Lets `streams` stand for `by: stream` and as many levels as there are. Throws ConfigError where keys do not
// go together.
StrictParameters with_streams(StrictParameters p, const ConfigNode& where) {
  const bool listed = !p.streams.is_null();
  if (!listed && p.by == UrgentBy::stream)
    where.find("by")->fail("`by: stream` needs `streams`, a list such as [ep, dp]");
  if (!listed) return p;
  if (const ConfigNode* by = where.find("by"); by != nullptr && p.by != UrgentBy::stream)
    by->fail("`streams` goes with `by: stream`, which may be left out");
  p.by = UrgentBy::stream;
  p.stream_levels = read_stream_levels(p.streams);
  if (where.find("levels") == nullptr) p.levels = static_cast<std::int64_t>(p.streams.items().size()) + 1;
  return p;
}

class Strict final : public FlowScheduler {
 public:
  explicit Strict(const StrictParameters& p)
      : p_(p),
        thresholds_(exponential_thresholds(p.first, static_cast<std::uint32_t>(p.factor),
                                           static_cast<std::uint32_t>(p.levels))) {}
  FlowNeeds needs() const override {
    if (p_.act == ActBy::rates)
      return {.central = true,
              .views = {ViewField::topology, ViewField::sizes},
              .required = {ViewField::topology}};
    const ViewFields sizes = p_.by == UrgentBy::size ? ViewFields{ViewField::sizes} : ViewFields();
    if (p_.act == ActBy::priorities) return {.views = sizes};
    return {.classes = static_cast<std::uint32_t>(p_.levels), .views = sizes};
  }
  FlowTreatment admit(const FlowView& flow) const override {
    if (p_.act == ActBy::rates) return admit_centrally(flow, p_.waits);
    FlowTreatment treatment = flow;
    const std::uint32_t level = level_of(flow);
    if (p_.act == ActBy::classes) {
      treatment.traffic_class = static_cast<std::uint8_t>(level);
    } else {
      treatment.priority = static_cast<std::uint8_t>(p_.levels - 1 - level);
    }
    return treatment;
  }
  void decide(const FlowsView& view, FlowDecisions& decisions) override {
    RuleView rule(view, p_.use);
    std::vector<std::uint32_t> levels;
    for (const FlowView& flow : view.flows) levels.push_back(level_of(flow));
    set_rates(view, rates_.strict(rule.capacity(), rule.flows(), levels), decisions);
  }

 private:
  std::uint32_t level_of(const FlowView& flow) const {
    const auto last = static_cast<std::uint32_t>(p_.levels - 1);
    switch (p_.by) {
      case UrgentBy::job:
        return std::min<std::uint32_t>(flow.job, last);
      case UrgentBy::priority:
        return last - std::min<std::uint32_t>(flow.priority, last);
      case UrgentBy::stream:
        return std::min(p_.stream_levels[static_cast<std::size_t>(flow.stream)], last);
      case UrgentBy::size:
        break;
    }
    return level_of_left(flow.bytes, thresholds_);
  }

  StrictParameters p_;
  std::vector<Bytes> thresholds_;
  MaxMin rates_;
};

const Registration<FlowScheduler> kStrict{
    "strict",
    "flows of a more urgent job, priority, size or stream go first, by data classes, priorities or rates. "
    "`act: rates` cannot do without the view `topology`; `by: size` without `sizes` goes by what flows have "
    "sent",
    strict_parameters(), [](const StrictParameters& p, const ConfigNode& where) {
      return std::make_unique<Strict>(with_streams(p, where));
    }};

}  // namespace
}  // namespace netsim
