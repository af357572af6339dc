#include "sim/workload/trace/inspector_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <tuple>

#include "sim/core/errors.h"
#include "sim/core/line_reader.h"
#include "sim/core/parameters.h"
#include "sim/core/text.h"
#include "sim/workload/program/program.h"

namespace netsim {
namespace {

using nlohmann::json;

constexpr std::int64_t kLatestStamp = 1'000'000'000'000'000'000;  // us since 1970

// Returns the kind of a function of NCCL by its name (ncclFuncToString), in any case.
const std::pair<const std::string_view, CollectiveKind>* inspector_function(std::string_view name) {
  static const std::map<std::string_view, CollectiveKind> kinds{
      {"allreduce", CollectiveKind::all_reduce},
      {"allgather", CollectiveKind::all_gather},
      {"reducescatter", CollectiveKind::reduce_scatter},
      {"broadcast", CollectiveKind::broadcast},
      {"reduce", CollectiveKind::reduce},
      {"alltoall", CollectiveKind::all_to_all},
      {"gather", CollectiveKind::gather},
      {"scatter", CollectiveKind::scatter}};
  const auto found = kinds.find(lower_case(name));
  return found == kinds.end() ? nullptr : &*found;
}

// Returns whether the call's count is one rank's part of what netsim counts.
bool counts_one_part(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::all_to_all || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter;
}

// Returns whether a function is one whose bytes the record does not tell: calls of one side, and an
// all-to-all of uneven parts (RCCL).
bool has_no_size(std::string_view name) {
  static const std::set<std::string_view> names{"putsignal", "signal",     "waitsignal",
                                                "alltoallv", "allgatherv", "invalid"};
  return names.count(lower_case(name)) > 0;
}

// InspectorReader: reads one file after the other.
class InspectorReader {
 public:
  explicit InspectorReader(std::uint32_t most_ranks) : most_ranks_(most_ranks) {}

  void read(const InputSet::File& file) {
    log_.files.push_back(file.path);
    dump_ = nullptr;
    LineReader lines(file);
    while (lines.next()) {
      line_ = lines.line();
      number_ = lines.number();
      if (line_.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      try {
        const json record = json::parse(line_);
        if (!record.is_object()) fail("", "a record, which is an object of JSON, is expected");
        take(record);
      } catch (const json::parse_error& error) {
        // A process that was ended while it wrote leaves a part of its last line.
        if (!lines.has_line_feed() && !log_.records.empty()) {
          ++log_.cut;
          return;
        }
        const std::string_view text = error.what();
        const std::size_t rest = text.find(": ");
        throw InputError(
            Place{log_.files.back(), number_, static_cast<int>(std::max<std::size_t>(error.byte, 1)), ""},
            "is no JSON: " + printable(rest == std::string_view::npos ? text : text.substr(rest + 2)));
      } catch (const json::out_of_range& error) {
        const std::string_view text = error.what();
        const std::size_t rest = text.find("] ");
        throw InputError(
            Place{log_.files.back(), number_, 1, ""},
            "is no JSON: " + printable(rest == std::string_view::npos ? text : text.substr(rest + 2)));
      }
    }
  }

  InspectorLog take() {
    if (log_.records.empty())
      fail_file(log_.files.front(), "has no communications with bytes (coll_perf, p2p_perf)");
    set_dumped_times();
    return std::move(log_);
  }

 private:
  // Throws an InputError at the key, or at the line's begin.
  [[noreturn]] void fail(const char* key, const std::string& message) const {
    const std::size_t at = *key == '\0' ? 0 : line_.find('"' + std::string(key) + '"');
    throw InputError(
        Place{log_.files.back(), number_, at == std::string_view::npos ? 1 : static_cast<int>(at) + 1, ""},
        message);
  }

  // Returns a part of the record, which must be an object. Since format v4.3 the header and metadata of a
  // dump are only in its first line, that with dump_stats.
  const json& part(const json& record, const char* key) const {
    const bool of_dump = !record.contains("header") && !record.contains("metadata");
    const std::string_view name = key;
    if (of_dump && dump_.is_null() && (name == "header" || name == "metadata"))
      fail("", "'header' is missing; allowed: in each line, or in a line with dump_stats before it");
    const json& holder = of_dump && (name == "header" || name == "metadata") ? dump_ : record;
    const auto found = holder.find(key);
    if (found == holder.end() || !found->is_object())
      fail(key,
           fmt::format("'{}' is missing; allowed: the objects header, metadata, and coll_perf or p2p_perf",
                       key));
    return *found;
  }
  std::int64_t integer(const json& object, const char* key, Range<std::int64_t> range) const {
    const auto found = object.find(key);
    if (found == object.end()) fail(key, fmt::format("'{}' is missing", key));
    std::int64_t value = -1;
    if (found->is_number_unsigned()) {
      value = static_cast<std::int64_t>(std::min<std::uint64_t>(found->get<std::uint64_t>(), INT64_MAX));
    } else if (found->is_number_integer()) {
      value = found->get<std::int64_t>();
    } else if (found->is_number_float() && found->get<double>() >= 0 && found->get<double>() < 9e18) {
      value = static_cast<std::int64_t>(found->get<double>());
    } else {
      fail(key,
           fmt::format("'{}' is {}; allowed: an integer from {} to {}", key,
                       printable(found->dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40)),
                       range.minimum, range.maximum));
    }
    if (value < range.minimum || value > range.maximum)
      fail(key, fmt::format("'{}' is {}; allowed: an integer from {} to {}", key, found->dump(),
                            range.minimum, range.maximum));
    return value;
  }
  static std::string text(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? printable(found->get<std::string>().substr(0, 100))
                                                       : std::string();
  }

  void take_dump(const json& record) {
    dump_ = record;
    ++log_.ignored;
    const json& stats = part(record, "dump_stats");
    for (const char* key : {"coll_dropped_since_last_dump", "p2p_dropped_since_last_dump"}) {
      if (stats.contains(key))
        log_.dropped += static_cast<std::uint64_t>(integer(stats, key, {0, UINT32_MAX}));
    }
  }

  void take(const json& record) {
    if (record.contains("dump_stats")) return take_dump(record);
    const bool message = record.contains("p2p_perf");
    if (!message && !record.contains("coll_perf")) {
      ++log_.ignored;
      return;
    }
    const json &header = part(record, "header"), &metadata = part(record, "metadata");
    const json& perf = part(record, message ? "p2p_perf" : "coll_perf");
    if (has_no_size(text(perf, message ? "p2p" : "coll"))) {
      ++log_.left_out;
      return;
    }
    InspectorRecord to;
    to.file = static_cast<std::uint32_t>(log_.files.size() - 1);
    to.line = number_;
    const std::int64_t ranks = ranks_of(header);
    to.rank = static_cast<std::uint32_t>(integer(header, "rank", {0, ranks - 1}));
    to.process = process(metadata);
    if (message) {
      take_message(perf, ranks, to);
    } else {
      take_collective(perf, ranks, to);
    }
    take_times(perf, metadata, message, to);
    if (to.bytes == 0) return;
    to.communicator = communicator(header, ranks);
    log_.records.push_back(to);
  }

  // Returns the number of ranks of the record's communicator.
  std::int64_t ranks_of(const json& header) const {
    if (text(header, "id").empty()) fail("id", "'id' is missing: the communicator");
    const std::int64_t ranks = integer(header, "n_ranks", {1, ProgramLimits::kRanks});
    if (ranks > most_ranks_)
      fail("n_ranks", fmt::format("{} GPUs are needed, but the cluster has {}", ranks, most_ranks_));
    return ranks;
  }

  // Returns the index of a record's communicator. Only communicators with a record that counts have one,
  // because their ranks are found by their records.
  std::uint32_t communicator(const json& header, std::int64_t ranks) {
    const std::string id = text(header, "id");
    const auto [at, is_new] =
        communicators_.try_emplace({id, ranks}, static_cast<std::uint32_t>(log_.communicators.size()));
    if (!is_new) return at->second;
    members_ += static_cast<std::uint64_t>(ranks);
    if (members_ > ProgramLimits::kGroupMembers)
      fail("n_ranks", fmt::format("the communicators have {} ranks together; allowed: up to {}", members_,
                                  ProgramLimits::kGroupMembers));
    std::string name = text(header, "comm_name");
    if (name == "unknown") name.clear();
    log_.communicators.push_back({id, std::move(name), static_cast<std::uint32_t>(ranks)});
    return at->second;
  }
  std::uint32_t process(const json& metadata) {
    InspectorLog::Process key{text(metadata, "hostname"), integer(metadata, "pid", {0, INT64_MAX})};
    const auto [at, is_new] = processes_.try_emplace(key, static_cast<std::uint32_t>(log_.processes.size()));
    if (is_new) log_.processes.push_back(std::move(key));
    return at->second;
  }

  void take_collective(const json& perf, std::int64_t ranks, InspectorRecord& to) const {
    const std::string name = text(perf, "coll");
    const auto* function = inspector_function(name);
    if (function == nullptr)
      fail("coll", fmt::format("'{}' is no collective; allowed: AllReduce, AllGather, ReduceScatter, "
                               "Broadcast, Reduce, AlltoAll, Gather, Scatter",
                               name.substr(0, 40)));
    to.collective = function->second;
    to.number = integer(perf, "coll_sn", {0, INT64_MAX});
    const std::int64_t parts = counts_one_part(to.collective) ? ranks : 1;
    to.bytes = parts * integer(perf, "coll_msg_size_bytes", {0, ProgramLimits::kBytes / parts});
  }
  void take_message(const json& perf, std::int64_t ranks, InspectorRecord& to) const {
    const std::string name = lower_case(text(perf, "p2p"));
    if (name != "send" && name != "recv")
      fail("p2p", fmt::format("'{}' is no message; allowed: Send, Recv", name.substr(0, 40)));
    to.kind = name == "send" ? InspectorRecord::Kind::send : InspectorRecord::Kind::receive;
    to.number = integer(perf, "p2p_sn", {0, INT64_MAX});
    to.peer = static_cast<std::uint32_t>(integer(perf, "p2p_peer", {0, ranks - 1}));
    to.bytes = integer(perf, "p2p_msg_size_bytes", {0, ProgramLimits::kBytes});
    if (to.peer == to.rank) to.bytes = 0;  // a copy within the GPU
  }

  // The time of a communication is that of its kernels where the record has it, or ends with the dump.
  void take_times(const json& perf, const json& metadata, bool message, InspectorRecord& to) const {
    const char* name = message ? "p2p_exec_time_us" : "coll_exec_time_us";
    const bool known = perf.contains(name) && perf[name].is_number();
    const std::int64_t duration = known ? integer(perf, name, {0, 1'000'000'000'000}) : 0;
    const auto trace = perf.find("event_trace_ts");
    if (trace == perf.end() || !trace->is_object()) {
      to.end = integer(metadata, "dump_timestamp_us", {0, kLatestStamp});
      to.start = to.end - duration;
      return;
    }
    // A callback that did not come has the time 0.
    std::int64_t first = kLatestStamp;
    const auto kernels = trace->find("kernel_events");
    if (kernels != trace->end() && kernels->is_array()) {
      for (const json& kernel : *kernels) {
        if (!kernel.is_object() || !kernel.contains("kernel_start_ts")) continue;
        const std::int64_t start = integer(kernel, "kernel_start_ts", {0, kLatestStamp});
        if (start > 0) first = std::min(first, start);
      }
    }
    const char* call = message ? "p2p_start_ts" : "coll_start_ts";
    to.start = first < kLatestStamp ? first : integer(*trace, call, {0, kLatestStamp});
    to.timed = to.start > 0;
    to.end = to.timed ? to.start + duration : integer(metadata, "dump_timestamp_us", {0, kLatestStamp});
    if (!to.timed) to.start = to.end - duration;
  }

  // Collectives of a communicator follow each other, and so do messages with the same ends. So one without a
  // time of its own ended before the next one began, and before it was written.
  void set_dumped_times() {
    const auto key = [](const InspectorRecord& r) { return std::tuple(r.process, r.communicator, r.rank); };
    std::stable_sort(log_.records.begin(), log_.records.end(),
                     [&](const InspectorRecord& a, const InspectorRecord& b) {
                       return std::pair(key(a), a.end) < std::pair(key(b), b.end);
                     });
    std::int64_t any = INT64_MAX, collective = INT64_MAX;  // earliest begins of those behind
    std::map<std::pair<InspectorRecord::Kind, std::uint32_t>, std::int64_t> messages;  // by peer
    for (std::size_t i = log_.records.size(); i-- > 0;) {
      InspectorRecord& one = log_.records[i];
      if (i + 1 < log_.records.size() && key(one) != key(log_.records[i + 1])) {
        any = collective = INT64_MAX;
        messages.clear();
      }
      const bool message = one.kind != InspectorRecord::Kind::collective;
      const auto [same, is_last] = messages.try_emplace({one.kind, one.peer}, INT64_MAX);
      const std::int64_t next = message ? std::min(collective, same->second) : any;
      if (!one.timed && one.end > next) {
        one.start -= one.end - next;
        one.end = next;
      }
      any = std::min(any, one.start);
      (message ? same->second : collective) = one.start;
    }
  }

  std::int64_t most_ranks_;
  InspectorLog log_;
  std::map<std::pair<std::string, std::int64_t>, std::uint32_t> communicators_;
  std::map<InspectorLog::Process, std::uint32_t> processes_;
  std::uint64_t members_ = 0;
  json dump_;  // line with dump_stats, to which the lines without a header belong; null: none
  std::string_view line_;
  int number_ = 0;
};

}  // namespace

InspectorLog read_inspector(const InputSet& input, std::uint32_t most_ranks) {
  InspectorReader reader(most_ranks);
  for (const InputSet::File& file : input.files()) reader.read(file);
  return reader.take();
}

}  // namespace netsim
