#include "sim/report/summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

namespace netsim {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }
std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

Json fingerprint_json(const Fingerprints& prints) {
  return {{"results", hex(prints.results)}, {"packets", hex(prints.packets)}, {"events", hex(prints.events)}};
}

Json hops_json(const NetworkCounters& network) {
  std::uint64_t total = 0;
  for (const std::uint64_t hops : network.packet_hops) total += hops;
  Json json = {{"total", total}};
  for (int kind = 0; kind < kLinkKinds; ++kind) {
    json[to_string(static_cast<LinkKind>(kind))] = network.packet_hops[static_cast<std::size_t>(kind)];
  }
  return json;
}

Json job_json(const JobResult& job) {
  const JobSummary summary = summarise(job);
  Json exposed;
  for (const Stream stream : {Stream::tp, Stream::pp, Stream::dp, Stream::ep, Stream::cp}) {
    exposed[to_string(stream)] = summary.exposed_by_s[static_cast<std::size_t>(stream)];
  }
  return {{"name", job.name},
          {"ranks", job.gpus.size()},
          {"done", job.done},
          {"tasks_done", job.tasks_done},
          {"tasks", job.tasks_total},
          {"jct_s", or_null(summary.jct_s)},
          {"iterations", job.iterations},
          {"iterations_done", job.iteration_ends.size()},
          {"iteration_time_s", or_null(summary.iteration_time_s)},
          {"compute_s", summary.compute_s},
          {"communication_s", summary.communication_s},
          {"exposed_communication_s", summary.exposed_s},
          {"idle_s", summary.idle_s},
          {"tflops_per_gpu", or_null(summary.tflops_per_gpu)},
          {"exposed_by", exposed}};
}

Json network_json(const NetworkCounters& network) {
  return {{"drops", network.drops},
          {"ecn_marks", network.ecn_marks},
          {"cnps", network.cnps},
          {"pfc_pauses", network.pfc_pauses},
          {"max_queue_bytes", network.max_queue},
          {"pfc_resumes", network.pfc_resumes},
          {"retransmissions", network.retransmissions},
          {"bytes_delivered", network.bytes_delivered}};
}

Json flows_json(const FlowTimes& flows) {
  return {{"count", flows.count},
          {"fct_mean_s", flows.mean * 1e-12},
          {"fct_p50_s", to_seconds(flows.p50)},
          {"fct_p99_s", to_seconds(flows.p99)},
          {"fct_max_s", to_seconds(flows.maximum)}};
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
               {"packet_hops", hops_json(results.network)},
               {"jobs", jobs},
               {"network", network_json(results.network)},
               {"flows", flows_json(results.flows)},
               {"notes", results.notes}};
  if (!results.waiting.empty()) json["waiting"] = results.waiting;
  return text_of(json);
}

std::string manifest_json(const Manifest& manifest, const Results& results) {
  Json inputs = Json::array();
  for (const auto& input : manifest.inputs) inputs.push_back({{"path", input.path}, {"hash", input.hash}});
  return text_of({{"netsim", NETSIM_VERSION},
                  {"command", manifest.command},
                  {"seed", manifest.seed},
                  {"inputs", inputs},
                  {"configuration", manifest.configuration},
                  {"fingerprint", fingerprint_json(results.fingerprints)},
                  {"outcome", to_string(results.outcome)},
                  {"wall_time_s", results.wall_seconds}});
}

}  // namespace netsim
