// mlperf: a job of kind ptdp with the settings that a log of MLPerf Training has.
//
//   kind: mlperf
//   log: result_0.txt
//   job:                                      # keys of ptdp that the log does not have
//     parallel: {tensor: 8, context: 2, pipeline: 8}
//
// The log gives the model by its benchmark, the microbatches, the number of GPUs by its platform, and thus
// the number of data-parallel replicas. Only some logs have the degrees of the other parallelisms.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/workload/program/role_program_source.h"
#include "sim/workload/trace/mlperf_log.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

struct MlperfParameters {
  std::string log;
  std::int64_t gpus = 0;
  ConfigNode job;
};

const Parameters<MlperfParameters>& mlperf_parameters() {
  using P = MlperfParameters;
  static const auto parameters =
      Parameters<P>()
          .text("log", &P::log, "the log of MLPerf (result_0.txt)")
          .required()
          .integer("gpus", &P::gpus, {0, 1 << 20}, "number of GPUs; 0: by the log's submission_platform")
          .component("job", &P::job, "workload", "ptdp",
                     "keys of the job that the log does not have, such as parallel.tensor; they come before "
                     "those of the log");
  return parameters;
}

using MlperfKeys = std::vector<std::pair<const char*, const char*>>;

// Returns the keys of a benchmark's model, or null for benchmarks of other networks. Sources are the tables
// of arXiv 2407.21783 (Llama 3), 2005.14165 (GPT-3) and 1810.04805 (BERT), and MLPerf's reference models.
const MlperfKeys* mlperf_model(std::string_view benchmark) {
  static const std::map<std::string_view, MlperfKeys> models{{"llama31_405b",
                                                              {{"kind", "llama"},
                                                               {"layers", "126"},
                                                               {"hidden", "16384"},
                                                               {"heads", "128"},
                                                               {"groups", "8"},
                                                               {"inner", "53248"},
                                                               {"sequence", "8192"},
                                                               {"vocabulary", "128256"}}},
                                                             {"llama31_8b",
                                                              {{"kind", "llama"},
                                                               {"layers", "32"},
                                                               {"hidden", "4096"},
                                                               {"heads", "32"},
                                                               {"groups", "8"},
                                                               {"inner", "14336"},
                                                               {"sequence", "8192"},
                                                               {"vocabulary", "128256"}}},
                                                             {"gpt3",
                                                              {{"kind", "gpt"},
                                                               {"layers", "96"},
                                                               {"hidden", "12288"},
                                                               {"heads", "96"},
                                                               {"sequence", "2048"},
                                                               {"vocabulary", "51200"}}},
                                                             {"bert",
                                                              {{"kind", "bert"},
                                                               {"layers", "24"},
                                                               {"hidden", "1024"},
                                                               {"heads", "16"},
                                                               {"inner", "4096"},
                                                               {"sequence", "512"},
                                                               {"positions", "512"},
                                                               {"vocabulary", "30522"},
                                                               {"predictions", "76"}}}};
  const auto found = models.find(benchmark);
  return found == models.end() ? nullptr : &found->second;
}

// Returns the GPUs of a node of a platform ("64xNVIDIA HGX H100"), or 0 for an unknown one.
std::int64_t gpus_of_node(const std::string& platform) {
  const auto has = [&](std::string_view part) { return platform.find(part) != std::string::npos; };
  for (const char* tray : {"gb200", "gb300"}) {  // a compute tray of an NVL72 rack
    if (has(tray)) return 4;
  }
  for (const char* board :
       {"a100", "h100", "h200", "h800", "b200", "b300", "mi250", "mi300", "mi325", "mi350", "mi355"}) {
    if (has(board)) return 8;
  }
  return 0;
}

// MlperfJob: makes the description of the job.
class MlperfJob {
 public:
  MlperfJob(const MlperfLog& log, const MlperfParameters& parameters)
      : log_(log), gpus_(parameters.gpus), node_(parameters.job) {
    // A node without a place gets that of the log, so that errors name it.
    if (node_.is_null()) node_ = ConfigNode::map({log.path(), 1, 1, ""});
    const ConfigNode* kind = node_.find("kind");
    if (!node_.is_map() || (kind != nullptr && read_text(*kind) != "ptdp"))
      node_.fail("the keys of a job of kind ptdp are expected");
    set_model();
    set_degrees();
  }
  const ConfigNode& description() const { return node_; }

  std::vector<std::string> notes() const {
    std::vector<std::string> list;
    std::string taken;
    for (const std::string& setting : taken_) append_item(taken, setting);
    list.push_back("settings of the log: " + taken);
    list.emplace_back(
        "the log does not have the precision, recomputation, schedule of the pipeline and optimizer's "
        "division: they are those of the job's keys");
    if (log_.step_seconds() > 0)
      list.push_back(
          fmt::format("a step of the log takes {:.3f} s ({})", log_.step_seconds(), log_.step_source()));
    if (log_.damaged() > 0)
      list.push_back(fmt::format("lines of MLPerf that are damaged, which are not used: {}", log_.damaged()));
    return list;
  }

 private:
  [[noreturn]] void refuse(const MlperfLog::Entry* entry, const std::string& message) const {
    if (entry == nullptr) fail_file(log_.path(), message);
    throw InputError(entry->place, message);
  }
  Place place_of(const char* key) const {
    const MlperfLog::Entry* entry = log_.find(key);
    return entry == nullptr ? Place{log_.path(), 1, 1, ""} : entry->place;
  }
  void set(const char* section, const char* key, std::int64_t value, const char* from) {
    ConfigNode& node = *section == '\0' ? node_ : node_.at_or_add(section);
    node.at_or_add(key) = ConfigNode::scalar(std::to_string(value), place_of(from));
    taken_.push_back(fmt::format("{}{}{} {}", section, *section == '\0' ? "" : ".", key, value));
  }
  // Returns a number that the job gives, or nothing.
  std::optional<std::int64_t> given(const char* section, const char* key) const {
    const ConfigNode& node = *section == '\0' ? node_ : section_of(node_, section);
    const ConfigNode* value = node.find(key);
    if (value == nullptr) return std::nullopt;
    const std::int64_t number = read_integer(*value);
    if (number < 1 || number > 1'000'000) value->fail("at least 1 and at most 1,000,000 is allowed");
    return number;
  }

  void set_model() {
    if (node_.find("model") != nullptr) return;
    const MlperfLog::Entry* benchmark = log_.find("submission_benchmark");
    if (benchmark == nullptr) refuse(nullptr, "has no submission_benchmark: give the key job.model");
    const MlperfKeys* keys = mlperf_model(benchmark->text);
    if (keys == nullptr) {
      refuse(benchmark,
             fmt::format("benchmark {} {}: give the key job.model, or a log of llama31_405b, llama31_8b, "
                         "gpt3 or bert",
                         benchmark->text,
                         log_.find("lora_rank") != nullptr
                             ? "trains adapters of a frozen model, which a job of kind ptdp does not"
                             : "has a model that netsim does not know"));
    }
    ConfigNode& model = node_.at_or_add("model");
    for (const auto& [key, value] : *keys) model.at_or_add(key) = ConfigNode::scalar(value, benchmark->place);
    taken_.push_back(fmt::format("model {}", benchmark->text));
    if (const std::int64_t length = log_.count("max_sequence_length"); length > 0)
      set("model", "sequence", length, "max_sequence_length");
  }

  // global_batch_size = microbatch x microbatches x replicas, and GPUs = replicas x the other degrees.
  void set_degrees() {
    const std::int64_t batch = log_.count("global_batch_size");
    if (batch == 0) refuse(nullptr, "has no global_batch_size");
    take_degrees();
    const std::int64_t microbatch = given("", "microbatch").value_or(1);
    std::int64_t microbatches = given("", "microbatches").value_or(log_.count("gradient_accumulation_steps"));
    std::optional<std::int64_t> replicas = given("parallel", "data");
    if (microbatches == 0 && replicas)
      microbatches = std::max<std::int64_t>(batch / microbatch / *replicas, 1);
    if (microbatches == 0)
      refuse(nullptr,
             "has no gradient_accumulation_steps: give the key job.microbatches or job.parallel.data");
    if (!replicas) replicas = batch / microbatch / microbatches;
    if (*replicas < 1 || microbatch * microbatches * *replicas != batch) {
      refuse(
          log_.find("global_batch_size"),
          fmt::format(
              "global_batch_size {} is no microbatch {} x {} microbatches x {} replicas: give other values "
              "of the keys job.microbatch, job.microbatches or job.parallel.data",
              batch, microbatch, microbatches, std::max<std::int64_t>(*replicas, 1)));
    }
    check_gpus(*replicas);
    if (!given("", "microbatches")) set("", "microbatches", microbatches, "gradient_accumulation_steps");
    if (!given("parallel", "data")) set("parallel", "data", *replicas, "global_batch_size");
    if (node_.find("name") == nullptr)
      node_.at_or_add("name") = ConfigNode::scalar("mlperf", {log_.path(), 1, 1, ""});
  }
  // Some logs (AMD's of v6.0) have the degrees of all parallelisms and the sequences of a microbatch.
  void take_degrees() {
    struct Key {
      const char *log, *section, *job;
    };
    for (const Key& key :
         {Key{"tensor_parallelism", "parallel", "tensor"}, Key{"context_parallelism", "parallel", "context"},
          Key{"pipeline_parallelism", "parallel", "pipeline"}, Key{"micro_batch_size", "", "microbatch"}}) {
      const std::int64_t value = log_.count(key.log);
      if (value > 0 && !given(key.section, key.job)) set(key.section, key.job, value, key.log);
    }
  }
  // Returns whether the log has the degrees of all parallelisms but the replicas.
  bool has_degrees() const {
    return log_.find("tensor_parallelism") != nullptr && log_.find("pipeline_parallelism") != nullptr &&
           log_.find("context_parallelism") != nullptr;
  }
  void check_gpus(std::int64_t replicas) {
    // Then the platform, which may lack the number of nodes, tells nothing more.
    if (gpus_ == 0 && has_degrees()) return;
    const std::int64_t gpus = gpus_ > 0 ? gpus_ : gpus_of_platform();
    const std::int64_t others = given("parallel", "tensor").value_or(1) *
                                given("parallel", "context").value_or(1) *
                                given("parallel", "pipeline").value_or(1);
    if (replicas * others == gpus) return;
    // The microbatch with which the GPUs that the log names are replicas of so many ranks.
    const std::int64_t samples = replicas * given("", "microbatch").value_or(1), fitting = gpus / others;
    std::string advice = "job.microbatch";
    if (fitting > 0 && gpus % others == 0 && samples % fitting == 0)
      advice += fmt::format(" ({} gives {} replicas)", samples / fitting, fitting);
    refuse(log_.find(gpus_ > 0 ? "global_batch_size" : "submission_platform"),
           fmt::format("{} GPUs are {} replicas of {} ranks, whose division the log does not have; "
                       "job.parallel gives {} "
                       "(tensor x context x pipeline): give these keys, or {}",
                       gpus, replicas,
                       gpus % replicas == 0
                           ? fmt::format("{}", gpus / replicas)
                           : fmt::format("{:.2f}", static_cast<double>(gpus) / static_cast<double>(replicas)),
                       others, advice));
  }
  std::int64_t gpus_of_platform() const {
    const MlperfLog::Entry* platform = log_.find("submission_platform");
    const std::string text = platform == nullptr ? "" : lower_case(platform->text);
    std::int64_t nodes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), nodes);
    const bool counted = error == std::errc() && end != text.data() + text.size() && *end == 'x';
    const std::int64_t each = gpus_of_node(text);
    if (!counted || nodes < 1 || nodes > 1 << 20 || each == 0)
      refuse(platform,
             "the number of GPUs is not known from the submission_platform: give the key gpus of a "
             "description {kind: mlperf, log: FILE, gpus: NUMBER}");
    return nodes * each;
  }

  const MlperfLog& log_;
  std::int64_t gpus_;
  ConfigNode node_;
  std::vector<std::string> taken_;
};

class MlperfWorkload final : public WorkloadKind {
 public:
  MlperfWorkload(const InputSet& input, const MlperfParameters& parameters) {
    const MlperfLog log(input.only("a log of MLPerf"));
    input.log();
    const MlperfJob job(log, parameters);
    notes_ = job.notes();
    file_ = log.path();
    job_ = Registry<WorkloadKind>::instance().create(job.description(), "ptdp");
  }
  std::string compile() const override { return job_->compile(); }
  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    std::unique_ptr<TaskSource> source = job_->tasks(context);
    const Program* program = source->program();
    if (program == nullptr) return source;
    std::vector<std::string> notes = notes_;
    for (std::string& note : source->notes()) notes.push_back(std::move(note));
    return make_role_program_source(*program, file_, {}, std::move(notes));
  }

 private:
  std::unique_ptr<WorkloadKind> job_;
  std::vector<std::string> notes_;
  std::string file_;
};

const Registration<WorkloadKind> kMlperf{
    "mlperf", "a job of kind ptdp with the model, batch and number of GPUs of a log of MLPerf Training",
    mlperf_parameters(), [](const MlperfParameters& parameters, const ConfigNode& node) {
      const std::string path = find_input_file(parameters.log, node.find("log")->place());
      return as_config(
          [&] { return std::make_unique<MlperfWorkload>(InputSet(InputPaths(path)), parameters); });
    }};

const FormatRegistration kMlperfFormat{
    {.name = "mlperf_log",
     .what = "a log of MLPerf",
     .use = Format::Use::workload,
     .matches = [](const Excerpt& file) { return file.contains(":::MLLOG {"); },
     .component = "mlperf_log",
     .advice = {},
     .endings = {".txt", ".log", ".out"}}};

class MlperfReader final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext& context) const override {
    return as_input([&] { return MlperfWorkload(input, {}).tasks(context); });
  }
};

const Registration<WorkloadReader> kMlperfReader{
    "mlperf_log",
    "logs of MLPerf Training: a job of kind ptdp; the workload kind mlperf adds what a log lacks",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<MlperfReader>(); }};

}  // namespace
}  // namespace netsim
