// incast: several ranks send one message each to the same receiver.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/workload/traffic/simple_source.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

namespace {

struct IncastParameters {
  std::int64_t senders = 0;
  std::int64_t receiver = 0;
  Bytes bytes = 10 * kMegabyte;
  Time stagger = 0;
};

const Parameters<IncastParameters>& traffic_incast_parameters() {
  using P = IncastParameters;
  static const auto p =
      Parameters<P>()
          .integer(
              "senders", &P::senders, {0, kMaxTrafficRanks - 1},
              "number of ranks that send: the first ones except the receiver; 0: all others of the cluster")
          .integer("receiver", &P::receiver, {0, kMaxTrafficRanks - 1}, "the rank to which they send")
          .bytes("bytes", &P::bytes, kMessageSizes, "size of each message")
          .time("stagger", &P::stagger, {0, 1 * kSecond},
                "time between the starts of one sender and the next");
  return p;
}

class Incast final : public WorkloadKind {
 public:
  Incast(const IncastParameters& p, const ConfigNode& where)
      : p_(p), senders_place_(place_of(where, "senders")), receiver_place_(place_of(where, "receiver")) {}

  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    const std::int64_t wanted = p_.senders == 0 ? 0 : p_.senders + 1;
    const std::uint32_t taking_part = traffic_ranks(wanted, context, senders_place_);
    if (p_.receiver >= std::int64_t{context.most_ranks}) {
      throw InputError(receiver_place_, "receiver " + std::to_string(p_.receiver) +
                                            ", but the cluster has GPUs 0 to " +
                                            std::to_string(context.most_ranks - 1));
    }
    const auto receiver = static_cast<std::uint32_t>(p_.receiver);
    auto source = std::make_unique<SimpleSource>("incast", std::max(taking_part, receiver + 1));
    const std::uint32_t name = source->add_name("incast");
    for (std::uint32_t i = 0; i + 1 < taking_part; ++i) {
      source->add_message(i < receiver ? i : i + 1, receiver, 0, p_.bytes, i * p_.stagger, name);
    }
    return source;
  }

 private:
  IncastParameters p_;
  Place senders_place_, receiver_place_;
};

const Registration<WorkloadKind> kTrafficIncast{
    "incast", "several ranks send one message each to the same receiver: for studies of congestion control",
    traffic_incast_parameters(),
    [](const IncastParameters& p, const ConfigNode& where) { return std::make_unique<Incast>(p, where); }};

}  // namespace

}  // namespace netsim
