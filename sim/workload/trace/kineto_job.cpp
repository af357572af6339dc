#include "sim/workload/trace/kineto_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>

#include "sim/core/errors.h"
#include "sim/core/text.h"
#include "sim/workload/program/program.h"
#include "sim/workload/trace/kineto_ranks.h"

namespace netsim {
namespace {

// Kernels of communication libraries. Those of NCCL and RCCL describe their calls.
bool is_kineto_communication(const KinetoTrace& trace, const KinetoOp& op) {
  if (op.kind != KinetoOp::Kind::kernel) return false;
  const std::string name = lower_case(trace.names[op.name]);
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  return has("nccl") || has("rccl") || has("cross_device_reduce") || has("deep_ep::") || has("nvshmem") ||
         has("mscclpp") || has("oneccl") || has("mccl") || has("hccl") || has("allreduce") ||
         has("all_reduce");
}

// Returns the bytes of an element, or 0 for an unknown type.
std::int64_t element_bytes(std::string_view type) {
  static const std::map<std::string_view, std::int64_t> bytes_of{
      {"Float", 4},  {"Double", 8},      {"Half", 2},         {"BFloat16", 2},
      {"Byte", 1},   {"Char", 1},        {"Bool", 1},         {"Short", 2},
      {"Int", 4},    {"Long", 8},        {"UInt16", 2},       {"UInt32", 4},
      {"UInt64", 8}, {"ComplexHalf", 4}, {"ComplexFloat", 8}, {"ComplexDouble", 16}};
  const auto found = bytes_of.find(type);
  if (found != bytes_of.end()) return found->second;
  return type.starts_with("Float8") || type.starts_with("Float4") ? 1 : 0;
}

// All members end together, so that their ends tell how their clocks differ.
bool ends_together(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
         kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all || has_counts(kind) ||
         kind == CollectiveKind::barrier;
}

}  // namespace

KinetoJob::KinetoJob(const InputSet& input, bool with_shapes) {
  for (const InputSet::File& file : input.files()) {
    ranks_.emplace_back().trace = read_kineto(file, with_shapes);
    if (ranks_.back().trace.ops.empty()) {
      fail_file(
          file.path,
          "has no operation of a GPU (kernel, gpu_memcpy, gpu_memset); allowed: traces of ranks with GPUs, "
          "recorded with ProfilerActivity.CUDA");
    }
  }
  number_ranks(input);
  for (Rank& rank : ranks_) find_communications(rank);
  match();
  complete_parts();
  align();
}

void KinetoJob::number_ranks(const InputSet& input) {
  std::vector<KinetoTrace*> traces;
  traces.reserve(ranks_.size());
  for (Rank& rank : ranks_) traces.push_back(&rank.trace);
  named_ = number_kineto_ranks(traces);
  const std::int64_t world = kineto_world(traces);
  if (world > static_cast<std::int64_t>(ProgramLimits::kRanks))
    fail_file(input.name(), fmt::format("has {} ranks; allowed: 1 to {}", world, ProgramLimits::kRanks));
  world_ = static_cast<std::uint32_t>(world);
  std::stable_sort(ranks_.begin(), ranks_.end(),
                   [](const Rank& a, const Rank& b) { return a.trace.rank < b.trace.rank; });
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const KinetoTrace& trace = ranks_[i].trace;
    if (trace.rank >= world)
      fail_file(trace.path, fmt::format("is of rank {}; allowed: 0 to {}", trace.rank, world - 1));
    if (i > 0 && trace.rank == ranks_[i - 1].trace.rank)
      fail_file(trace.path, fmt::format("is of rank {}, as is {}; allowed: one trace of each rank",
                                        trace.rank, ranks_[i - 1].trace.path));
    ranks_[i].rank = RankId(static_cast<std::uint32_t>(trace.rank));
  }
}

void KinetoJob::find_communications(Rank& rank) {
  const KinetoTrace& trace = rank.trace;
  std::vector<bool> communicates(trace.ops.size(), false);
  for (std::uint32_t i = 0; i < trace.ops.size(); ++i) {
    communicates[i] = is_kineto_communication(trace, trace.ops[i]);
    if (communicates[i]) add_communications(rank, i);
  }
  count_devices(rank, communicates);
  rank.graph = connect_kineto(trace, communicates);
}

// A rank has one GPU. Kernels of several devices that ran at the same time would share it.
void KinetoJob::count_devices(Rank& rank, const std::vector<bool>& communicates) {
  const std::vector<KinetoOp>& ops = rank.trace.ops;
  std::vector<const KinetoOp*> kernels;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind == KinetoOp::Kind::kernel && !communicates[i]) kernels.push_back(&ops[i]);
  }
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const KinetoOp* a, const KinetoOp* b) { return a->start < b->start; });
  std::map<std::int64_t, const KinetoOp*> last;  // by device: the kernel that ends last
  for (const KinetoOp* kernel : kernels) {
    for (const auto& [device, other] : last) {
      if (device == kernel->stream.first || other->end() <= kernel->start || kernel->duration == 0) continue;
      fail_file(
          rank.trace.path,
          fmt::format("the kernels '{}' of device {} and '{}' of device {} ran at the same time; allowed: a "
                      "file for each GPU, because a rank has one (DistributedDataParallel, not DataParallel)",
                      rank.trace.names[other->name], device, rank.trace.names[kernel->name],
                      kernel->stream.first));
    }
    const KinetoOp*& latest = last[kernel->stream.first];
    if (latest == nullptr || latest->end() < kernel->end()) latest = kernel;
  }
  rank.devices = last.size();
}

// The calls of a group are simulated if all of them are known. Otherwise the kernel takes its recorded time.
void KinetoJob::add_communications(Rank& rank, std::uint32_t op) {
  using Kind = KinetoCommunication::Kind;
  const KinetoOp& kernel = rank.trace.ops[op];
  std::vector<KinetoCommunication> calls;
  calls.reserve(kernel.calls);
  for (std::uint32_t i = 0; i < kernel.calls; ++i)
    calls.push_back(communication(rank, op, kernel.call == kNoKineto ? kNoKineto : kernel.call + i));
  const bool known = std::all_of(calls.begin(), calls.end(),
                                 [](const KinetoCommunication& one) { return one.kind != Kind::unknown; });
  if (!known) calls = {KinetoCommunication{.op = op}};
  rank.communications.insert(rank.communications.end(), calls.begin(), calls.end());
}

KinetoCommunication KinetoJob::communication(Rank& rank, std::uint32_t op, std::uint32_t index) {
  KinetoCommunication to;
  to.op = op;
  to.call = index;
  if (index == kNoKineto) return to;
  const KinetoCall& call = rank.trace.calls[index];
  if (call.name == "send" || call.name == "recv") {
    if (set_message(rank, call, to))
      to.kind = call.name == "send" ? KinetoCommunication::Kind::send : KinetoCommunication::Kind::receive;
  } else if (set_collective(rank, call, to)) {
    to.kind = KinetoCommunication::Kind::collective;
  }
  return to;
}

// Returns false where the size or the group is not known.
bool KinetoJob::set_collective(Rank& rank, const KinetoCall& call, KinetoCommunication& to) {
  const auto kind = kineto_collective(call.name);
  if (!kind) return false;
  to.group = group_of(rank, call);
  if (to.group == kNoKineto) return false;
  to.collective = *kind;
  if (*kind == CollectiveKind::barrier) return true;
  if (*kind == CollectiveKind::all_to_all && (names_parts(call.in_parts) || names_parts(call.out_parts)))
    return set_parts(rank, call, groups_[to.group].ranks.size(), to);
  const auto size = static_cast<std::int64_t>(groups_[to.group].ranks.size());
  const bool of_output = *kind == CollectiveKind::all_gather;
  const bool of_one = *kind == CollectiveKind::gather || *kind == CollectiveKind::scatter;
  std::int64_t elements =
      of_output || *kind == CollectiveKind::scatter ? call.out_elements : call.in_elements;
  if (of_output && elements <= 0 && call.in_elements > 0) elements = call.in_elements * size;
  const std::int64_t each = element_bytes(call.type) * (of_one ? size : 1);
  if (elements <= 0 || each == 0 || elements > ProgramLimits::kBytes / each) return false;
  to.bytes = elements * each;
  if (has_root(*kind) && call.root > 0 && call.root < size) to.root = static_cast<std::uint32_t>(call.root);
  return true;
}

// A member of an all-to-all with parts may send nothing. Returns false where its size is not known.
bool KinetoJob::set_parts(const Rank& rank, const KinetoCall& call, std::size_t members,
                          KinetoCommunication& to) {
  const std::int64_t each = element_bytes(call.type);
  const auto is_size = [&](std::int64_t elements) {
    return each > 0 && elements >= 0 && elements <= ProgramLimits::kBytes / each;
  };
  if (!is_size(call.in_elements)) return false;
  to.collective = CollectiveKind::all_to_all_v;
  to.bytes = call.in_elements * each;
  const auto received = is_size(call.out_elements) ? std::optional(call.out_elements * each) : std::nullopt;
  TraceBlocks blocks = blocks_of_splits(call.in_parts, call.out_parts, members, to.bytes, received);
  if (call.tokens != nullptr) {
    const auto kind = call.tokens->add_to(blocks, members);
    if (!kind)
      fail_file(rank.trace.path,
                fmt::format("a call of group '{}' has a netsim_collective, netsim_token, netsim_host, "
                            "netsim_copies or netsim_to_hosts that does not fit its parts",
                            printable(call.group)));
    to.collective = *kind;
  }
  to.blocks = std::make_shared<TraceBlocks>(std::move(blocks));
  return true;
}

bool KinetoJob::set_message(Rank& rank, const KinetoCall& call, KinetoCommunication& to) {
  const bool sends = call.name == "send";
  std::int64_t peer = sends ? call.destination : call.source;
  if (peer < 0) {
    const std::uint32_t group = group_of(rank, call);
    if (group == kNoKineto || groups_[group].ranks.size() != 2) return false;
    const std::vector<RankId>& pair = groups_[group].ranks;
    peer = pair[pair[0] == rank.rank ? 1 : 0] + std::int64_t{0};
  }
  const std::int64_t elements = std::max(call.in_elements, call.out_elements);
  const std::int64_t each = element_bytes(call.type);
  if (peer >= world_ || peer == std::int64_t{rank.rank} || elements <= 0 || each == 0 ||
      elements > ProgramLimits::kBytes / each)
    return false;
  to.peer = RankId(static_cast<std::uint32_t>(peer));
  to.bytes = elements * each;
  return true;
}

// Returns the index of the group of a call, or kNoKineto where its ranks are not known.
std::uint32_t KinetoJob::group_of(Rank& rank, const KinetoCall& call) {
  const auto& known = rank.trace.groups;
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const KinetoTrace::Group& group) { return group.name == call.group; });
  const auto& listed = call.listed_ranks;
  const bool in_config = found != known.end() && !found->ranks.empty();
  const auto& counts = in_config ? found->ranks : listed;
  const bool other_size = call.group_size >= 0 && call.group_size != static_cast<std::int64_t>(counts.size());
  if (!counts.empty() && (other_size || (!listed.empty() && listed != counts))) ++rank.conflicts;
  if (in_config) {
    const auto before = std::count_if(
        known.begin(), found, [&](const KinetoTrace::Group& group) { return group.ranks == found->ranks; });
    return group(rank, {found->ranks, static_cast<std::uint32_t>(before), found->description});
  }
  if (!listed.empty()) return group(rank, {listed, 0});
  if (call.group_size == world_) {
    std::vector<RankId> all;
    all.reserve(world_);
    for (std::uint32_t member = 0; member < world_; ++member) all.emplace_back(member);
    return group(rank, {std::move(all), 0});
  }
  return kNoKineto;
}

std::uint32_t KinetoJob::group(const Rank& rank, Group group) {
  for (const RankId member : group.ranks) {
    if (member >= world_) {
      fail_file(rank.trace.path,
                fmt::format("rank {} is in a group, and the job has {} ranks", member + 0U, world_));
    }
  }
  if (std::find(group.ranks.begin(), group.ranks.end(), rank.rank) == group.ranks.end()) return kNoKineto;
  const auto [at, is_new] =
      group_index_.try_emplace({group.ranks, group.communicator}, static_cast<std::uint32_t>(groups_.size()));
  if (!is_new) return at->second;
  std::vector<RankId> sorted = group.ranks;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    fail_file(rank.trace.path,
              fmt::format("rank {} is twice in a group of {} ranks (pg_config or Process Group "
                          "Ranks); allowed: each rank once",
                          *twice + 0U, sorted.size()));
  groups_.push_back(std::move(group));
  return at->second;
}

// Collectives are matched by their number among those of their group, messages by that among those of their
// sender and receiver.
void KinetoJob::match() {
  using Key = std::tuple<bool, std::uint32_t, std::uint32_t, std::uint32_t>;
  std::map<Key, std::uint32_t> known;
  for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, std::uint32_t> numbers;
    for (std::uint32_t c = 0; c < rank.communications.size(); ++c) {
      KinetoCommunication& one = rank.communications[c];
      if (one.kind == KinetoCommunication::Kind::unknown) continue;
      const bool message = one.kind != KinetoCommunication::Kind::collective;
      const bool sends = one.kind == KinetoCommunication::Kind::send;
      const std::uint32_t a = !message ? one.group : (sends ? rank.rank : one.peer) + 0U;
      const std::uint32_t b = !message ? 0 : (sends ? one.peer : rank.rank) + 0U;
      const std::uint32_t number = numbers[{message, a, b}]++;
      const auto [at, is_new] =
          known.try_emplace({message, a, b, number}, static_cast<std::uint32_t>(instances_.size()));
      const std::int64_t time = rank.trace.ops[one.op].duration;
      if (is_new) instances_.push_back({{}, time});
      one.instance = at->second;
      Instance& instance = instances_[one.instance];
      instance.members.emplace_back(i, c);
      instance.time = std::min(instance.time, time);
    }
  }
}

// Where one member of an all-to-all has parts, all have. They are known if all members have a trace.
void KinetoJob::complete_parts() {
  const auto kind_of = [this](const auto& member) -> CollectiveKind& {
    return ranks_[member.first].communications[member.second].collective;
  };
  for (const Instance& instance : instances_) {
    const auto has_parts = [&](const auto& member) { return has_counts(kind_of(member)); };
    if (std::none_of(instance.members.begin(), instance.members.end(), has_parts)) continue;
    for (const auto& member : instance.members) {
      KinetoCommunication& one = ranks_[member.first].communications[member.second];
      const std::size_t size = groups_[one.group].ranks.size();
      if (one.collective == CollectiveKind::all_to_all) {
        one.collective = CollectiveKind::all_to_all_v;
        const SplitSizes equal = std::vector<std::int64_t>();
        one.blocks =
            std::make_shared<TraceBlocks>(blocks_of_splits(equal, equal, size, one.bytes, one.bytes));
      }
      if (instance.members.size() == size || !has_parts(member)) continue;
      one.collective = CollectiveKind::all_to_all_v;
      one.blocks = nullptr;
    }
  }
}

// A rank's offset is the median of the differences of ends to ranks whose offsets are known.
void KinetoJob::align() {
  const bool one_clock =
      std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.trace.is_simulated; });
  for (Rank& rank : ranks_) rank.aligned = one_clock;
  ranks_.front().aligned = true;
  const auto end_of = [&](std::pair<std::uint32_t, std::uint32_t> member) {
    const KinetoTrace& trace = ranks_[member.first].trace;
    return trace.base + trace.ops[ranks_[member.first].communications[member.second].op].end();
  };
  for (bool changed = true; changed;) {
    std::map<std::uint32_t, std::vector<std::int64_t>> differences;  // by rank
    for (const Instance& instance : instances_) {
      const auto [first, c] = instance.members.front();
      const KinetoCommunication& one = ranks_[first].communications[c];
      if (one.kind != KinetoCommunication::Kind::collective || !ends_together(one.collective)) continue;
      const auto known = std::find_if(instance.members.begin(), instance.members.end(),
                                      [&](const auto& member) { return ranks_[member.first].aligned; });
      if (known == instance.members.end()) continue;
      const std::int64_t end = end_of(*known) - ranks_[known->first].offset;
      for (const auto& member : instance.members) {
        if (!ranks_[member.first].aligned) differences[member.first].push_back(end_of(member) - end);
      }
    }
    for (auto& [rank, list] : differences) {
      std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2), list.end());
      ranks_[rank].offset = list[list.size() / 2];
      ranks_[rank].aligned = true;
    }
    changed = !differences.empty();
  }
  const auto begin_of = [](const Rank& rank) { return rank.trace.base + rank.graph.first - rank.offset; };
  std::int64_t first = begin_of(ranks_.front());
  for (const Rank& rank : ranks_) {
    if (rank.aligned) first = std::min(first, begin_of(rank));
  }
  for (Rank& rank : ranks_) {
    if (rank.aligned) rank.delay = begin_of(rank) - first;
  }
}

}  // namespace netsim
