#include "sim/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "sim/report/fault_list.h"
#include "sim/report/result_sinks.h"

namespace netsim {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }
std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

Json fingerprint_json(const Fingerprints& prints) {
  return {{"results", hex(prints.results)}, {"packets", hex(prints.packets)}, {"events", hex(prints.events)}};
}

Json hops_json(const HopCounts& hops) {
  Json json = {{"total", std::accumulate(hops.begin(), hops.end(), std::uint64_t{0})}};
  for (int kind = 0; kind < kLinkKinds; ++kind)
    json[to_string(static_cast<LinkKind>(kind))] = hops[static_cast<std::size_t>(kind)];
  return json;
}

// Returns means over the iterations that ended, or null if critical paths are not enabled.
Json critical_path_json(const JobResult& job) {
  if (job.paths.empty()) return nullptr;
  const double iterations = static_cast<double>(job.paths.size());
  PathSummary sum;
  for (const PathSummary& path : job.paths) {
    sum.compute += path.compute;
    sum.held += path.held;
    sum.scheduler += path.scheduler;
    for (std::size_t s = 0; s < kStreams; ++s) sum.communication[s] += path.communication[s];
    sum.launch += path.launch;
    sum.propagation += path.propagation;
    sum.transmission += path.transmission;
    sum.queueing += path.queueing;
    sum.paused += path.paused;
    sum.at_sender += path.at_sender;
    sum.acknowledgement += path.acknowledgement;
    sum.circuits += path.circuits;
    sum.undivided += path.undivided;
  }
  const auto mean = [iterations](Time time) { return to_seconds(time) / iterations; };
  Json json = {{"compute_s", mean(sum.compute)}, {"held_s", mean(sum.held)}};
  for (const Stream stream : kCommunicationStreams)
    json[std::string(to_string(stream)) + "_s"] = mean(sum.communication[static_cast<std::size_t>(stream)]);
  if (!job.scheduling.scheduler.empty()) json["held_by_scheduler_s"] = mean(sum.scheduler);
  json["launch_s"] = mean(sum.launch);
  json["propagation_s"] = mean(sum.propagation);
  json["transmission_s"] = mean(sum.transmission);
  json["queueing_s"] = mean(sum.queueing);
  json["paused_s"] = mean(sum.paused);
  json["at_sender_s"] = mean(sum.at_sender);
  json["acknowledgement_s"] = mean(sum.acknowledgement);
  json["circuits_s"] = mean(sum.circuits);
  json["undivided_s"] = mean(sum.undivided);
  Json causes = Json::array();
  for (const PathShare& share : job.path_shares) {
    causes.push_back(
        {{"kind", to_string(share.kind)},
         {"stream", to_string(share.stream)},
         {"name", share.name},
         {"collective",
          share.kind == PathStep::Kind::communication ? Json(to_string(share.collective)) : Json(nullptr)},
         {"steps", share.steps},
         {"time_s", to_seconds(share.time) / iterations}});
  }
  json["causes"] = std::move(causes);
  constexpr std::size_t kMostEntries = 100;
  Json pairs = Json::array();
  for (std::size_t i = 0; i < std::min(kMostEntries, job.path_pairs.size()); ++i) {
    const PathPair& pair = job.path_pairs[i];
    pairs.push_back({{"source_gpu", pair.source},
                     {"destination_gpu", pair.destination},
                     {"steps", pair.steps},
                     {"time_s", to_seconds(pair.time) / iterations}});
  }
  json["ways"] = std::move(pairs);
  Json ports = Json::array();
  for (std::size_t i = 0; i < std::min(kMostEntries, job.path_ports.size()); ++i) {
    const auto& [name, steps, delay] = job.path_ports[i];
    ports.push_back({{"port", name},
                     {"steps", steps},
                     {"time_s", mean(delay.sum())},
                     {"transmission_s", mean(delay.transmission)},
                     {"queueing_s", mean(delay.queueing)},
                     {"paused_s", mean(delay.paused)}});
  }
  json["ports"] = std::move(ports);
  return json;
}

Json memory_json(const MemoryUse& use) {
  Json json = {{"bytes", use.total()}};
  for (std::size_t kind = 0; kind < kMemoryKinds; ++kind) {
    const auto of = static_cast<MemoryKind>(kind);
    json[std::string(to_string(of)) + "_bytes"] = use[of];
  }
  return json;
}

Json memory_json(const std::optional<JobMemory>& memory) {
  if (!memory) return nullptr;
  return {{"capacity_bytes", memory->capacity > 0 ? Json(memory->capacity) : Json(nullptr)},
          {"planned", memory_json(memory->planned)},
          {"peak", memory_json(memory->use)},
          {"host_peak_bytes", memory->host},
          {"peak_rank", std::uint32_t{memory->rank}},
          {"peak_time_s", to_seconds(memory->time)}};
}

Json recovery_json(const std::optional<JobRecovery>& recovery) {
  if (!recovery) return nullptr;
  return {{"restarts", recovery->restarts},         {"repeated_iterations", recovery->repeated},
          {"whole_s", to_seconds(recovery->whole)}, {"useful_s", to_seconds(recovery->useful())},
          {"lost_s", to_seconds(recovery->lost)},   {"down_s", to_seconds(recovery->down)},
          {"storage_s", to_seconds(recovery->io)},  {"paused_s", to_seconds(recovery->paused)},
          {"goodput", recovery->goodput()}};
}

Json scheduling_json(const SchedulingSummary& scheduling) {
  if (scheduling.scheduler.empty()) return nullptr;
  return {{"scheduler", scheduling.scheduler},
          {"launches", scheduling.launches},
          {"parts", scheduling.parts},
          {"fused", scheduling.fused},
          {"reordered", scheduling.reordered},
          {"held", scheduling.held},
          {"held_by_scheduler_s", to_seconds(scheduling.held_by_scheduler)},
          {"held_by_agreement_s", to_seconds(scheduling.held_by_agreement)}};
}

Json flow_scheduling_json(const FlowSchedulingSummary& scheduling) {
  return {{"scheduler", scheduling.scheduler},
          {"flows", scheduling.flows},
          {"intervals", scheduling.intervals},
          {"decisions", scheduling.decisions},
          {"late", scheduling.late},
          {"held", scheduling.held},
          {"held_s", to_seconds(scheduling.held_time)}};
}

Json splits_json(const SplitSummary& splits) {
  return {{"splitter", splits.splitter}, {"messages", splits.messages},   {"split", splits.split},
          {"own_bytes", splits.own},     {"nvlink_bytes", splits.nvlink}, {"pcie_bytes", splits.pcie}};
}

Json aggregation_json(const Results& results) {
  const AggregatingSwitch all = all_aggregation(results);
  return {{"switches", results.aggregation.size()},
          {"packets", all.counters.packets},
          {"bytes", all.counters.bytes},
          {"sums", all.counters.sums},
          {"repeated", all.counters.repeated},
          {"discarded", all.counters.discarded},
          {"unfinished", all.counters.unfinished},
          {"memory_bytes", all.memory},
          {"trees", all.trees},
          {"messages_waited", all.waited},
          {"collided", all.counters.collided},
          {"flushed", all.counters.flushed},
          {"aggregators", all.aggregators}};
}

Json job_json(const JobResult& job) {
  const JobSummary summary = summarise(job);
  Json exposed;
  for (const Stream stream : kCommunicationStreams)
    exposed[to_string(stream)] = summary.exposed_by_s[static_cast<std::size_t>(stream)];
  return {{"name", job.name},
          {"ranks", job.gpu_count()},
          {"done", job.done},
          {"stopped", job.stopped},
          {"priority", job.priority},
          {"arrival_s", to_seconds(job.arrival)},
          {"start_s", job.begun ? Json(to_seconds(job.begin)) : Json(nullptr)},
          {"tasks_done", job.tasks_done},
          {"tasks", job.tasks_total ? Json(*job.tasks_total) : Json(nullptr)},
          {"jct_s", or_null(summary.jct_s)},
          {"iterations", job.iterations ? Json(*job.iterations) : Json(nullptr)},
          {"iterations_done", job.iteration_ends.size()},
          {"warm_up", job.warm_up},
          {"iteration_time_s", or_null(summary.iteration_time_s)},
          {"compute_s", summary.compute_s},
          {"communication_s", summary.communication_s},
          {"exposed_communication_s", summary.exposed_s},
          {"idle_s", summary.idle_s},
          {"tflops_per_gpu", or_null(summary.tflops_per_gpu)},
          {"exposed_by", exposed},
          {"memory", memory_json(job.memory)},
          {"recovery", recovery_json(job.recovery)},
          {"scheduling", scheduling_json(job.scheduling)},
          {"critical_path", critical_path_json(job)},
          {"queued_s", to_seconds(job.queued())},
          {"state", job.state()},
          {"slowdown", or_null(job.slowdown())},
          {"pauses", job.pauses},
          {"paused_s", to_seconds(job.paused)},
          {"moved_s", to_seconds(job.moved)}};
}

Json network_json(const Results& results) {
  const NetworkCounters& network = results.network;
  Json json;
  for (const NetworkCounterInfo& counter : network_counters()) {
    if (counter.key != nullptr) json[counter.key] = value_of(network, counter.field);
  }
  const auto sampled = [&](const char* key, auto value) {
    json[key] = results.sampled_queues ? Json(value) : Json(nullptr);
  };
  const QueueStatistics queues = results.sampled_queues.value_or(QueueStatistics{});
  sampled("queue_samples", queues.count);
  sampled("queue_mean_bytes", queues.mean);
  sampled("queue_p50_bytes", queues.p50);
  sampled("queue_p95_bytes", queues.p95);
  sampled("queue_p99_bytes", queues.p99);
  sampled("queue_max_bytes", queues.maximum);
  json["fabrics"] = Json::array();
  for (const FabricResult& fabric : results.fabrics) {
    json["fabrics"].push_back({{"name", fabric.name},
                               {"packet_hops", fabric.counters.data_packets},
                               {"drops", fabric.counters.drops},
                               {"ecn_marks", fabric.counters.ecn_marks},
                               {"pfc_pauses", fabric.counters.pauses},
                               {"credit_stalls", fabric.counters.credit_stalls}});
  }
  return json;
}

void add_slowdowns(Json& json, const Slowdowns& slowdowns) {
  const auto known = [&](double value) { return slowdowns.count > 0 ? Json(value) : Json(nullptr); };
  json["slowdown_mean"] = known(slowdowns.mean);
  json["slowdown_p50"] = known(slowdowns.p50);
  json["slowdown_p95"] = known(slowdowns.p95);
  json["slowdown_p99"] = known(slowdowns.p99);
}

Json flows_json(const Results& results) {
  const FlowTimes& flows = results.flows;
  Json json = {{"count", flows.count},
               {"fct_mean_s", flows.mean * 1e-12},
               {"fct_p50_s", to_seconds(flows.p50)},
               {"fct_p99_s", to_seconds(flows.p99)},
               {"fct_max_s", to_seconds(flows.maximum)}};
  add_slowdowns(json, results.slowdowns);
  Json bins = Json::array();
  for (std::size_t bin = 0; bin < kSizeBins.size(); ++bin) {
    const Slowdowns& slowdowns = results.slowdowns_by_size[bin];
    Json entry = {{"below_bytes", kSizeBins[bin] < INT64_MAX ? Json(kSizeBins[bin]) : Json(nullptr)},
                  {"count", slowdowns.count}};
    add_slowdowns(entry, slowdowns);
    bins.push_back(std::move(entry));
  }
  json["by_size"] = std::move(bins);
  return json;
}

Json plan_json(const Manifest& manifest) {
  const auto list = [](const auto& files) {
    Json json = Json::array();
    for (const auto& file : files) json.push_back({{"path", file.path}, {"hash", file.hash}});
    return json;
  };
  return {{"netsim", NETSIM_VERSION},
          {"commit", manifest.commit.empty() ? Json(nullptr) : Json(manifest.commit)},
          {"command", manifest.command},
          {"seed", manifest.seed},
          {"until_s", manifest.until == kNever ? Json(nullptr) : Json(to_seconds(manifest.until))},
          {"inputs", list(manifest.inputs)},
          {"plugins", list(manifest.plugins)},
          {"configuration", manifest.configuration}};
}

Json collectives_json(const Results& results) {
  Json list = Json::array();
  for (const CollectiveTimes& row : results.collectives) {
    list.push_back({{"collective", to_string(row.kind)},
                    {"ranks", row.ranks},
                    {"bytes", row.bytes},
                    {"algorithm", row.choice.algorithm},
                    {"own_algorithm", row.choice.own.empty() ? Json(nullptr) : Json(row.choice.own)},
                    {"protocol", to_string(row.choice.protocol)},
                    {"channels", row.choice.channels},
                    {"count", row.count},
                    {"time_s", row.mean_s()},
                    {"algbw_GBps", row.algorithm_bandwidth() * 1e-9},
                    {"busbw_GBps", row.bus_bandwidth() * 1e-9},
                    {"job", results.jobs[row.job].name}});
  }
  return list;
}

Json faults_json(const Results& results) {
  Json list = Json::array();
  for (const FaultSpan& fault : fault_spans(results)) {
    const FaultyPart& part = results.faults[fault.part];
    const auto only = [&fault](FaultEvent::Kind kind, auto value) {
      return fault.event.kind == kind ? Json(value) : Json(nullptr);
    };
    Json hits = Json::array();
    for (const HitIterations& hit : fault.hits) {
      hits.push_back({{"job", results.jobs[hit.job].name},
                      {"first_iteration", hit.first},
                      {"last_iteration", hit.last}});
    }
    list.push_back({{"part", to_string(part.kind)},
                    {"name", part.name},
                    {"fault", to_string(fault.event.kind)},
                    {"from_s", to_seconds(fault.event.at)},
                    {"until_s", fault.end == kNever ? Json(nullptr) : Json(to_seconds(fault.end))},
                    {"rate_bps", only(FaultEvent::Kind::rate, fault.event.rate)},
                    {"loss", only(FaultEvent::Kind::loss, fault.event.probability)},
                    {"lost_packets", part.lost},
                    {"hits", std::move(hits)}});
  }
  return list;
}

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
}

}  // namespace

std::string summary_json(const Results& results) {
  Json jobs = Json::array();
  for (const JobResult& job : results.jobs) jobs.push_back(job_json(job));
  Json json = {{"netsim", NETSIM_VERSION},
               {"outcome", to_string(results.outcome)},
               {"fingerprint", fingerprint_json(results.fingerprints)},
               {"simulated_time_s", to_seconds(results.simulated)},
               {"events", results.events},
               {"packets", results.network.packets},
               {"packet_hops", hops_json(results.network.packet_hops)},
               {"jobs", jobs},
               {"collectives", collectives_json(results)},
               {"network", network_json(results)},
               {"flows", flows_json(results)},
               {"notes", results.notes}};
  if (!results.flow_scheduling.scheduler.empty())
    json["scheduling"]["flows"] = flow_scheduling_json(results.flow_scheduling);
  if (!results.splits.splitter.empty()) json["scheduling"]["splits"] = splits_json(results.splits);
  if (!results.aggregation.empty()) json["aggregation"] = aggregation_json(results);
  if (!results.faults.empty()) json["faults"] = faults_json(results);
  if (!results.waiting.empty()) json["waiting"] = results.waiting;
  return text_of(json);
}

namespace {

Json structure_json(const Structure& structure) {
  Json tiers = Json::array(), links = Json::array();
  for (const Structure::Tier& tier : structure.tiers) {
    tiers.push_back({{"tier", tier.tier},
                     {"switches", tier.switches},
                     {"radix", tier.radix},
                     {"down_bps", tier.down},
                     {"across_bps", tier.across},
                     {"up_bps", tier.up},
                     {"oversubscription", tier.oversubscription()}});
  }
  for (const Structure::Links& of : structure.links) {
    links.push_back(
        {{"kind", to_string(of.kind)}, {"rate_bps", of.rate}, {"in_host", of.in_host}, {"count", of.count}});
  }
  return {
      {"hosts", structure.hosts},
      {"gpus", structure.gpus},
      {"nics", structure.nics},
      {"tiers", tiers},
      {"links", links},
      {"diameter", structure.diameter},
      {"mean_hops", structure.mean_hops},
      {"sampled", structure.sampled},
      {"unreachable_pairs", structure.unreachable_pairs},
      {"injection_bps", structure.injection},
      {"bisection_bps", structure.bisection},
      {"failing_links", structure.failing_links},
      {"bisection_left_bps", structure.failing_links > 0 ? structure.bisection_left : structure.bisection},
      {"cables", structure.cables},
      {"transceivers", structure.transceivers()}};
}

}  // namespace

std::string structure_json_text(const Structure& structure) {
  return text_of({{"netsim", NETSIM_VERSION}, {"cluster", structure_json(structure)}});
}

namespace {

Json planned_json(const Prediction& prediction) {
  Json json = Json::array();
  for (const PlannedMemory& planned : prediction.gpu_memory) {
    json.push_back({{"job", planned.job},
                    {"rank", std::uint32_t{planned.peak.rank}},
                    {"capacity_bytes", planned.capacity > 0 ? Json(planned.capacity) : Json(nullptr)},
                    {"planned", memory_json(planned.peak.use)}});
  }
  return json;
}

Json launches_json(const Prediction& prediction) {
  Json json = Json::array();
  for (const PlannedLaunches& planned : prediction.launches) {
    const auto count = [&](std::uint64_t LaunchCounts::*of) {
      return planned.counts ? Json((*planned.counts).*of) : Json(nullptr);
    };
    json.push_back({{"job", planned.job},
                    {"scheduler", planned.scheduler},
                    {"order", planned.agreed ? "agreed" : "local"},
                    {"checked", planned.checked},
                    {"launches", count(&LaunchCounts::launches)},
                    {"parts", count(&LaunchCounts::parts)},
                    {"cut", count(&LaunchCounts::cut)},
                    {"fused", count(&LaunchCounts::fused)}});
  }
  return json;
}

}  // namespace

std::string prediction_json(const Prediction& prediction, const Structure& structure) {
  const Volume& volume = prediction.volume;
  const Calibration& calibration = prediction.calibration;
  return text_of({{"netsim", NETSIM_VERSION},
                  {"cluster", structure_json(structure)},
                  {"ranks", prediction.ranks},
                  {"tasks", volume.tasks},
                  {"scale_out_bytes", volume.scale_out_bytes},
                  {"flows", volume.flows},
                  {"packets", volume.packets},
                  {"packet_hops", hops_json(volume.packet_hops)},
                  {"packet_hops_least", prediction.least_hops},
                  {"packet_hops_most", prediction.most_hops},
                  {"gpu_memory", planned_json(prediction)},
                  {"scheduling", launches_json(prediction)},
                  {"memory_bytes", prediction.memory},
                  {"minutes", prediction.minutes},
                  {"calibration",
                   {{"setup_s", calibration.setup_seconds},
                    {"run_s", calibration.end.seconds},
                    {"complete", calibration.complete},
                    {"share_of_work", prediction.share}}}});
}

namespace {

void add_files(Json& json, const Manifest& manifest) {
  json["files"] = Json::array();
  for (const WrittenFile& file : manifest.files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes.value_or(0)}});
}

}  // namespace

std::string manifest_json(const Manifest& manifest) {
  Json json = plan_json(manifest);
  if (!manifest.files.empty()) add_files(json, manifest);
  return text_of(json);
}

std::string manifest_json(const Manifest& manifest, const Results& results) {
  Json json = plan_json(manifest);
  json["fingerprint"] = fingerprint_json(results.fingerprints);
  json["outcome"] = to_string(results.outcome);
  json["wall_time_s"] = results.wall_seconds;
  add_files(json, manifest);
  return text_of(json);
}

std::optional<std::vector<WrittenFile>> files_in_manifest(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  const auto is_text = [&](const char* key) { return json.contains(key) && json[key].is_string(); };
  if (!json.is_object() || !is_text("netsim") || !is_text("command") || !is_text("configuration"))
    return std::nullopt;
  std::vector<WrittenFile> files;
  if (!json.contains("files")) {
    for (const std::string& name : output_files()) files.push_back({name, std::nullopt});
    return files;
  }
  if (!json["files"].is_array()) return std::nullopt;
  for (const Json& file : json["files"]) {
    const bool known = file.is_object() && file.contains("name") && file["name"].is_string() &&
                       file.contains("bytes") && file["bytes"].is_number_unsigned();
    if (known) files.push_back({file["name"].get<std::string>(), file["bytes"].get<std::uint64_t>()});
  }
  return files;
}

}  // namespace netsim
