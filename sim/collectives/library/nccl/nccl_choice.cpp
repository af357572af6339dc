#include "sim/collectives/library/nccl/nccl_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/collectives/library/candidates.h"
#include "sim/collectives/library/nccl/nccl_tuning.h"
#include "sim/collectives/library/nccl/nvls_kernels.h"
#include "sim/collectives/library/nccl/peer_channels.h"
#include "sim/core/errors.h"

namespace netsim {
namespace {

// Returns whether NCCL's cost model includes the kind. Users of NCCL build other kinds from sends and
// receives.
bool is_modelled(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return true;
    default:
      return false;
  }
}

// Candidate: an algorithm that may be chosen, and what NCCL knows of it.
struct Candidate {
  const CollectiveAlgorithm* algorithm = nullptr;
  NcclTraits traits;
};

// Chooser: chooses how a collective of a group runs.
class Chooser {
 public:
  Chooser(const NcclSettings& settings, const LibraryRequest& request, const CollectiveAlgorithm& named)
      : rules_(settings.rules),
        parameters_(request.context.parameters()),
        request_(request.communication),
        context_(request.context),
        kind_(plan_kind_of(named, request.communication.kind)),
        layout_(request.context.layout(*request.communication.members)),
        generation_(generation_in(parameters_, layout_)),
        named_{&named, nccl_traits_of(named)} {}

  NcclChoice choose() const {
    std::vector<Candidate> candidates;
    for (const CollectiveAlgorithm* one : candidates_of(*named_.algorithm, kind_))
      candidates.push_back({one, nccl_traits_of(*one)});
    NcclChoice choice = candidates.empty() ? only_one() : of_several(candidates);
    choice.chosen.kind = kind_;
    choice.reason.graph = layout_.given(choice.chosen.algorithm->traits().order).channels > 0;
    if (request_.grouped.all > 0) deal_channels(choice.chosen);
    return choice;
  }

 private:
  // Returns the configured number of channels: all channels of a group in one host, else those of a ring.
  std::size_t configured_channels() const {
    if (inside()) return parameters_.scale_up_channels_of(generation_);
    if (has_channels_of_search()) {
      const std::uint32_t given = layout_.given_rings.channels;
      return of_search().library / std::max<std::size_t>(1, given > 0 ? given : layout_.rings.size());
    }
    if (const std::uint32_t own = named_.traits.scale_out_channels; own != 0) return own;
    if (named_.traits.sends_and_receives)
      return peer_channels_of(request_.members->size(), parameters_, layout_).per_peer;
    return static_cast<std::size_t>(parameters_.scale_out_channels);
  }
  bool has_channels_of_search() const {
    return !inside() && named_.traits.scale_out_channels == NcclTraits::kChannelsOfSearch;
  }
  bool inside() const { return layout_.farthest != Reach::scale_out; }
  SearchChannels of_search() const { return search_channels(layout_, generation_); }

  std::uint32_t channels_of(const Candidate& candidate) const {
    return channels_on_orders(layout_, candidate.algorithm->traits().order, has_root(kind_),
                              configured_channels());
  }

  // Returns the protocols that may be chosen, from the lowest latency to the highest bandwidth.
  std::vector<Protocol> protocols() const {
    if (parameters_.protocol) return {*parameters_.protocol};
    std::vector<Protocol> allowed;
    for (const Protocol protocol : kProtocols) {
      if (rules_.allows(kind_, protocol)) allowed.push_back(protocol);
    }
    return allowed;
  }

  // Returns the choice where the configuration names the algorithm, or it is the default.
  NcclChoice only_one() const {
    NcclChoice choice;
    ChosenAlgorithm& chosen = choice.chosen;
    take(named_, choice);
    chosen.of_channels = chosen.channels = channels_of(named_);
    if (const auto own = named_.algorithm->traits().protocol) {
      chosen.protocol = *own;
    } else if (parameters_.protocol) {
      chosen.protocol = *parameters_.protocol;
    } else if (!is_modelled(kind_)) {
      chosen.protocol = request_.bytes / ranks() <= kPointToPointLl ? Protocol::ll : Protocol::simple;
    } else {
      ask_model({named_}, choice);
    }
    return choice;
  }

  NcclChoice of_several(const std::vector<Candidate>& candidates) const {
    check_generation();
    NcclChoice choice;
    if (!ask_tuner(candidates, choice)) {
      ask_model(candidates, choice);
      ChosenAlgorithm& chosen = choice.chosen;
      const Candidate best{chosen.algorithm, choice.traits};
      chosen.of_channels = channels_of(best);
      chosen.channels = tuned_channels(as_tuned(best), chosen.protocol, chosen.of_channels);
    }
    for (const Candidate& candidate : candidates) {
      const CostFamily family = candidate.traits.family;
      if (family == family_of_switches()) choice.reason.without_nvls = without_nvls();
      if (by_fabric(family) && layout_.aggregates && layout_.domains > 1)
        choice.reason.without_collnet = without_collnet();
    }
    return choice;
  }

  static void take(const Candidate& candidate, NcclChoice& choice) {
    choice.chosen.algorithm = candidate.algorithm;
    choice.traits = candidate.traits;
  }

  // Deals out channels to the collectives of a grouped call. Each takes consecutive channels in proportion to
  // its traffic, at most one for each 32 KiB (scheduleCollTasksToPlan and MinTrafficPerChannel in
  // src/enqueue.cc). In NCCL two collectives may share a channel; here the larger one has it.
  void deal_channels(ChosenAlgorithm& choice) const {
    constexpr Bytes kLeastTraffic = 32 * kKibibyte;
    const Bytes each =
        std::max(kLeastTraffic, (request_.grouped.all + choice.of_channels - 1) / choice.of_channels);
    const auto channel_at = [&](Bytes traffic) {
      const Bytes channel = (2 * traffic + each) / (2 * each);
      return static_cast<std::uint32_t>(std::min<Bytes>(channel, choice.of_channels));
    };
    choice.first = std::min(channel_at(request_.grouped.before), choice.of_channels - 1);
    const std::uint32_t end = channel_at(request_.grouped.before + traffic_of(kind_, request_.bytes));
    choice.channels = std::min(choice.channels, std::max(end, choice.first + 1) - choice.first);
  }

  bool allows(const Candidate& candidate) const {
    const CostFamily family = candidate.traits.family;
    const bool right = by_fabric(family) || family == family_of_switches();
    if (by_switches(family) && (!right || without_nvls() != nullptr)) return false;
    if (by_fabric(family) && without_collnet() != nullptr) return false;
    return rules_.allows(kind_, nccl_algorithm(family));
  }

  // Returns whether the model does without a protocol that nobody asked for. Measured curves of B200 stay on
  // the line of Simple where the tables prefer LL128: AIConfigurator's all-reduces of 8 MiB on four GPUs.
  // NCCL 2.27.3, whose table has 73.4 GB/s for a channel of LL128, and 2.29.2, which has 40, are alike there.
  bool leaves_out(Protocol protocol) const {
    const bool asked = parameters_.protocol || rules_.lists_protocols();
    return !asked && protocol == Protocol::ll128 && generation_ == GpuGeneration::blackwell &&
           layout_.domains == 1 && layout_.nearest == Reach::scale_up;
  }

  // Takes the allowed algorithm and protocol with the lowest estimate; of equal ones the first.
  void ask_model(const std::vector<Candidate>& candidates, NcclChoice& choice) const {
    NcclReason& reason = choice.reason;
    const bool one = candidates.size() == 1 && candidates.front().algorithm == named_.algorithm;
    for (const Candidate& candidate : candidates) {
      if (!one && !allows(candidate)) continue;
      const CostFamily family = candidate.traits.family;
      const TuningCase tuned = as_tuned(candidate);
      for (const Protocol protocol : protocols()) {
        const auto estimate = estimated_time(tuned, protocol, parameters_);
        if (!estimate || leaves_out(protocol)) continue;
        const bool best = !reason.estimate || *estimate < *reason.estimate;
        if (best && reason.estimate)
          reason.next = {choice.traits.family, choice.chosen.protocol, *reason.estimate};
        if (!best && (!reason.next || *estimate < reason.next->estimate))
          reason.next = {family, protocol, *estimate};
        if (!best) continue;
        reason.estimate = estimate;
        reason.family = family;
        take(candidate, choice);
        choice.chosen.protocol = protocol;
      }
    }
    if (reason.estimate) return;
    const bool lists = rules_.lists_algorithms() || rules_.lists_protocols();
    if (!lists || (one && rules_.allows(kind_, Protocol::simple))) {  // NCCL would use none of them
      take(candidates.front(), choice);
      choice.chosen.protocol = parameters_.protocol.value_or(Protocol::simple);
      return;
    }
    refuse_all();
  }

  [[noreturn]] void refuse_all() const {
    std::string message =
        std::string(to_string(kind_)) + " of " + std::to_string(ranks()) +
        " ranks: the configuration excludes all algorithms and protocols that NCCL has for it";
    // A user who asks for PAT by name is informed of its limits.
    constexpr const char* kPat =
        "; PAT, which nccl_algo leaves, does all_gather and reduce_scatter by Simple, for groups with one "
        "GPU a "
        "host (collectives.all_gather: pat runs it for any group)";
    if (rules_.allows(kind_, NcclAlgorithm::pat) && rules_.lists_algorithms()) message += kPat;
    throw InputError(message);
  }

  // The configuration's choices were checked before the run; a workload's are only known now.
  void check_generation() const {
    if (generation_) return;
    throw InputError(
        std::string(to_string(kind_)) +
        " by 'nccl': NCCL's choice reads its tables by the generation of the GPUs, which their hosts do not "
        "give; set collectives.gpu_generation (allowed: volta, ampere, hopper, blackwell)");
  }

  // Applies the first rule of the tuner that matches and can be done. Returns false if there is none.
  bool ask_tuner(const std::vector<Candidate>& candidates, NcclChoice& choice) const {
    for (const NcclRules::Line& rule : rules_.tuner()) {
      if (!rule.fits(kind_, request_.bytes, layout_.domains, ranks())) continue;
      const auto candidate = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& one) {
        return nccl_algorithm(one.traits.family) == rule.algorithm && allows(one);
      });
      if (candidate == candidates.end()) continue;
      const auto allowed = protocols();
      const TuningCase tuned = as_tuned(*candidate);
      if (std::find(allowed.begin(), allowed.end(), rule.protocol) == allowed.end() ||
          !estimated_time(tuned, rule.protocol, parameters_))
        continue;
      take(*candidate, choice);
      ChosenAlgorithm& chosen = choice.chosen;
      chosen.protocol = rule.protocol;
      chosen.of_channels = channels_of(*candidate);
      chosen.channels = rule.channels ? std::min(*rule.channels, chosen.of_channels)
                                      : tuned_channels(tuned, rule.protocol, chosen.of_channels);
      choice.reason.rule = &rule;
      return true;
    }
    return false;
  }

  CostFamily family_of_switches() const {
    return layout_.domains == 1 ? CostFamily::nvls : CostFamily::nvls_tree;
  }
  // Returns why NVLS cannot be used, or null if it can. A communicator that could use it takes groups.
  const char* without_nvls() const {
    if (const char* why = unfit_for_nvls()) return why;
    return context_.has_nvls_groups(request_) ? nullptr : kNoNvlsGroups;
  }
  // Returns why NVLS does not fit the group, or null if it does. Switches support kinds other than all-reduce
  // for a limited number of GPUs (NCCL_MAX_NVLS_ARITY). Trees need the same number of heads in each host.
  const char* unfit_for_nvls() const {
    const bool several = layout_.domains > 1;
    if (!layout_.switches_reduce)
      return several ? "no switches that add up join the GPUs of each host"
                     : "no switch that adds up joins the group";
    if (several) return without_even_hosts();
    if (kind_ == CollectiveKind::all_reduce || ranks() <= kMostNvlsHeads) return nullptr;
    return "more than 32 GPUs";
  }

  // Returns null if all hosts have the same number of consecutive GPUs of the group; otherwise the reason.
  const char* without_even_hosts() const {
    if (layout_.sizes.size() > 1) return "not as many GPUs of each host";
    return layout_.by_domain ? nullptr : "the GPUs of a host do not follow each other";
  }

  // Returns why CollNet cannot be used, or null if it can. A host may have as many GPUs as there may be heads
  // (NCCL_MAX_DIRECT_ARITY + 1).
  const char* without_collnet() const {
    constexpr std::uint32_t kMostMembers = 8;
    if (!layout_.aggregates) return "no switches of a fabric add up";
    if (layout_.domains == 1) return "a single host";
    if (const char* why = without_even_hosts()) return why;
    if (!layout_.trees_join) return "no switches that add up join the hosts";
    return layout_.sizes.front() > kMostMembers ? "more than 8 GPUs of a host" : nullptr;
  }

  TuningCase as_tuned(const Candidate& candidate) const {
    TuningCase one{kind_, candidate.traits.family, request_.bytes, ranks()};
    one.nodes = layout_.domains;
    one.nvlink = layout_.nearest == Reach::scale_up;
    // check_generation() has checked that it is known.
    one.generation = generation_.value();
    one.grace = layout_.gpu_model.rfind("gb", 0) == 0;
    one.bandwidth = model_bandwidth(layout_, one.family, one.generation);
    one.channels = by_switches(one.family)    ? nvls_heads(layout_)
                   : has_channels_of_search() ? of_search().search
                                              : std::max(1U, channels_of(candidate) / 2);
    if (one.family == CostFamily::nvls_tree || one.family == CostFamily::nvls_collnet)
      one.bandwidth_between = nvls_tree_bandwidth_between(layout_, one.generation);
    const bool direct = one.family == CostFamily::collnet_direct;
    if (!direct && one.family != CostFamily::nvls_collnet) return one;
    const CollnetGraph graph = collnet_direct_graph(layout_, one.generation);
    one.heads = graph.heads;
    if (direct) {
      one.channels = graph.channels;
      one.nvswitches = layout_.nvswitches;
      one.bandwidth = graph.channels * graph.inside;
      one.bandwidth_between = graph.channels * graph.between;
    }
    return one;
  }

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(request_.members->size()); }

  const NcclRules& rules_;
  const CollectivesParameters& parameters_;
  const CommunicationRequest& request_;
  LibraryContext& context_;
  const CollectiveKind kind_;  // kind of the plan
  const CommunicatorLayout& layout_;
  const std::optional<GpuGeneration> generation_;
  const Candidate named_;
};

}  // namespace

NcclChoice nccl_choice(const NcclSettings& settings, const LibraryRequest& request,
                       const CollectiveAlgorithm& named) {
  return Chooser(settings, request, named).choose();
}

std::string text_of(const NcclReason& reason, std::string text) {
  if (reason.rule != nullptr) {
    text = fmt::format("tuner {}:{}", reason.rule->place.file, reason.rule->place.line);
  } else if (reason.estimate) {
    // The algorithm's name does not tell which kind of CollNet it is.
    const char* name = by_fabric(reason.family) ? to_string(nccl_algorithm(reason.family)) : "";
    text +=
        fmt::format("; NCCL's cost model: {}{}{:.1f} us", name, *name == '\0' ? "" : " ", *reason.estimate);
    if (reason.next) {
      text += fmt::format("; next {} {} {:.1f} us", to_string(nccl_algorithm(reason.next->family)),
                          to_string(reason.next->protocol), reason.next->estimate);
    }
  }
  if (reason.graph) text += "; along the graph of the configuration";
  if (reason.without_nvls != nullptr) text += fmt::format("; no NVLS: {}", reason.without_nvls);
  if (reason.without_collnet != nullptr) text += fmt::format("; no CollNet: {}", reason.without_collnet);
  return text;
}

}  // namespace netsim
