#include "sim/report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "sim/report/summary.h"

namespace netsim {
namespace {

template <class T>
std::string optional_cell(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string jobs_csv(const Results& results) {
  std::string text =
      "job,ranks,done,jct_s,iterations,iterations_done,iteration_time_s,compute_s,communication_s,"
      "exposed_communication_s,idle_s,tflops_per_gpu,peak_tflops_per_gpu,exposed_tp_s,exposed_pp_s,exposed_"
      "dp_s,"
      "exposed_ep_s,exposed_cp_s,exposed_io_s,exposed_offload_s,begin_ps,end_ps,tasks_done,tasks,arrival_ps,"
      "priority\n";
  for (const JobResult& job : results.jobs) {
    const JobSummary s = summarise(job);
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},", csv_cell(job.name), job.gpus.size(), job.done,
                    optional_cell(s.jct_s), optional_cell(job.iterations), job.iteration_ends.size(),
                    optional_cell(s.iteration_time_s), s.compute_s, s.communication_s, s.exposed_s, s.idle_s,
                    optional_cell(s.tflops_per_gpu), job.peak_flops * 1e-12);
    for (const Stream stream : kCommunicationStreams) {
      text += fmt::format("{},", s.exposed_by_s[static_cast<std::size_t>(stream)]);
    }
    text += fmt::format("{},{},{},{},{},{}\n", job.begin, job.end, job.tasks_done,
                        optional_cell(job.tasks_total), job.arrival, job.priority);
  }
  return text;
}

std::string iterations_csv(const Results& results) {
  std::string text = "job,iteration,begin_ps,end_ps,duration_ps,iteration_time_s,tflops_per_gpu\n";
  for (const JobResult& job : results.jobs) {
    Time begin = job.begin;
    for (std::size_t i = 0; i < job.iteration_ends.size(); ++i) {
      const Time end = job.iteration_ends[i];
      const double seconds = to_seconds(end - begin);
      const double rank_seconds = seconds * static_cast<double>(job.gpus.size());
      text += fmt::format("{},{},{},{},{},{},{}\n", csv_cell(job.name), i, begin, end, end - begin, seconds,
                          rank_seconds > 0 ? job.model_flops / rank_seconds * 1e-12 : 0);
      begin = end;
    }
  }
  return text;
}

std::string ranks_csv(const Results& results, const std::vector<std::string>& nics) {
  std::string text =
      "job,rank,gpu,nic,compute_ps,communication_ps,exposed_ps,idle_ps,exposed_tp_ps,exposed_pp_ps,exposed_"
      "dp_ps,"
      "exposed_ep_ps,exposed_cp_ps,exposed_io_ps,exposed_offload_ps,peak_memory_bytes,peak_memory_ps\n";
  for (const JobResult& job : results.jobs) {
    for (std::size_t rank = 0; rank < job.rank_times.size(); ++rank) {
      const RankTimes& t = job.rank_times[rank];
      const std::uint32_t gpu = job.gpus[rank];
      text += fmt::format("{},{},{},{},{},{},{},{}", csv_cell(job.name), rank, gpu,
                          gpu < nics.size() ? nics[gpu] : "", t.compute, t.communication, t.exposed, t.idle);
      for (const Stream stream : kCommunicationStreams) {
        text += fmt::format(",{}", t.exposed_by[static_cast<std::size_t>(stream)]);
      }
      text += job.memory ? fmt::format(",{},{}\n", job.memory->rank_peak[rank], job.memory->rank_time[rank])
                         : std::string(",,\n");
    }
  }
  return text;
}

std::string links_csv(const Results& results) {
  std::string text =
      "link,kind,rate_bps,wire_bytes,utilisation,data_packets,ecn_marks,cnps,pauses,paused_ps,"
      "credit_stalls,credit_stalled_ps,drops,no_route,lost,max_queue_bytes,headroom_bytes,max_headroom_"
      "bytes\n";
  for (const LinkResult& link : results.links) {
    const PortCounters& c = link.counters;
    text += fmt::format("{},{},{},{},{:.6f},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_cell(link.name),
                        to_string(link.kind), link.rate, c.wire_bytes, utilisation(link, results.simulated),
                        c.data_packets, c.ecn_marks, c.cnps, c.pauses, c.paused, c.credit_stalls,
                        c.credit_stalled, c.drops, c.no_route, c.lost, c.max_queue, c.headroom,
                        c.max_headroom_used);
  }
  return text;
}

std::string bandwidths_csv(const Results& results) {
  std::string text =
      "collective,ranks,bytes,elements,type,redop,count,time_s,algbw_GBps,busbw_GBps,algorithm,protocol,"
      "channels,why\n";
  for (const CollectiveTimes& row : results.collectives) {
    text += fmt::format("{},{},{},{},float,{},{},{},{:.6g},{:.6g},{},{},{},{}\n", to_string(row.kind),
                        row.ranks, row.bytes, row.elements(), row.reduction(), row.count, row.mean_s(),
                        row.algorithm_bandwidth() * 1e-9, row.bus_bandwidth() * 1e-9,
                        csv_cell(row.choice.algorithm), to_string(row.choice.protocol), row.choice.channels,
                        csv_cell(row.choice.why));
  }
  return text;
}

constexpr const char* kTasksHeader =
    "job,iteration,rank,task,communication,name,kind,stream,collective,peer,bytes,posted_ps,start_ps,"
    "end_ps\n";
constexpr const char* kCollectivesHeader =
    "job,communication,name,kind,stream,ranks,first_rank,bytes,first_start_ps,last_start_ps,end_ps,wait_s,"
    "algbw_GBps,busbw_GBps,algorithm,protocol,channels,why\n";
constexpr const char* kFlowsHeader =
    "flow,job,communication,name,class,source,destination,source_gpu,destination_gpu,channel,queue_pair,"
    "bytes,start_ps,end_ps,fct_ps,acknowledged_ps,ideal_ps,slowdown\n";
constexpr const char* kMemoryHeader =
    "job,rank,time_ps,bytes,parameters_bytes,gradients_bytes,optimizer_bytes,activations_bytes,gathered_"
    "bytes,"
    "communication_bytes,host_bytes\n";
constexpr const char* kCriticalPathHeader =
    "job,iteration,begin_ps,end_ps,duration_ps,kind,stream,name,collective,rank,task,communication,"
    "source_gpu,destination_gpu,propagation_ps,transmission_ps,queueing_ps,paused_ps,at_sender_ps\n";
constexpr const char* kCriticalPathPortsHeader =
    "job,iteration,begin_ps,end_ps,stream,name,communication,source_gpu,destination_gpu,port,"
    "transmission_ps,queueing_ps,paused_ps\n";
constexpr const char* kQueueSamplesHeader = "time_ps,port,queue_bytes\n";
constexpr const char* kLinkSamplesHeader =
    "time_ps,link,wire_bytes,utilisation,pauses,credit_stalls,ecn_marks,drops,no_route\n";
constexpr const char* kFlowSamplesHeader =
    "time_ps,source_gpu,destination_gpu,queue_pair,delivered_bps,allowed_bps\n";

}  // namespace

const Parameters<OutputParameters>& output_parameters() {
  static const auto parameters =
      Parameters<OutputParameters>()
          .integer("max_rows", &OutputParameters::max_rows, {0, 1'000'000'000'000},
                   "rows of each of tasks.csv, collectives.csv, flows.csv and the tables of samples; what "
                   "comes after is counted, not written")
          .flag("critical_path", &OutputParameters::critical_path,
                "find out what the end of each iteration waited for: a line on the screen and in "
                "critical_path.csv for each cause")
          .section("sample", &OutputParameters::sample, sample_parameters(),
                   "queues, links and flows over time");
  return parameters;
}

const std::vector<std::string>& output_files() {
  static const std::vector<std::string> names = {
      "summary.json",     "manifest.json",    "jobs.csv",          "iterations.csv",
      "ranks.csv",        "tasks.csv",        "collectives.csv",   "bandwidths.csv",
      "flows.csv",        "links.csv",        "memory.csv",        "queue_samples.csv",
      "link_samples.csv", "flow_samples.csv", "critical_path.csv", "critical_path_ports.csv",
      "fct.txt",          "run.log"};
  return names;
}

Tables::Rows::Rows(const OutputDirectory& directory, const char* name, const char* header,
                   std::uint64_t row_limit)
    : file(directory, name), limit(row_limit) {
  file.write(header);
}

bool Tables::Rows::begin_row() {
  first = true;
  return ++rows <= limit;
}

void Tables::Rows::cell(std::int64_t value) {
  if (!first) file.write(",");
  first = false;
  file.write_integer(value);
}

void Tables::Rows::cell(std::string_view text) {
  if (!first) file.write(",");
  first = false;
  file.write(text);
}

void Tables::Rows::cell_id(char letter, std::uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  char text[17] = {letter};
  for (std::size_t i = 0; i < 16; ++i) text[i + 1] = kDigits[(value >> (60 - 4 * i)) & 15];
  cell(std::string_view(text, 17));
}

void Tables::Rows::end_row() { file.write("\n"); }

Tables::Tables(const std::string& directory, const OutputParameters& parameters,
               const std::vector<NamedSource>& jobs, const std::vector<std::string>& nics,
               std::unique_ptr<Ns3Fct> fct)
    : directory_(directory, {output_files(), "manifest.json", files_in_manifest}), fct_(std::move(fct)) {
  for (const NamedSource& job : jobs) add_job(job);
  for (const std::string& name : nics) nics_.push_back(csv_cell(name));
  const auto open = [&](const char* name, const char* header) {
    return std::make_unique<Rows>(directory_, name, header, static_cast<std::uint64_t>(parameters.max_rows));
  };
  tasks_ = open("tasks.csv", kTasksHeader);
  collectives_ = open("collectives.csv", kCollectivesHeader);
  flows_ = open("flows.csv", kFlowsHeader);
  if (parameters.critical_path) {
    critical_path_ = open("critical_path.csv", kCriticalPathHeader);
    critical_path_ports_ = open("critical_path_ports.csv", kCriticalPathPortsHeader);
  }
  if (fct_ != nullptr) fct_lines_ = open("fct.txt", "");
  const bool memory = std::any_of(jobs.begin(), jobs.end(),
                                  [](const NamedSource& job) { return job.source->memory() != nullptr; });
  if (memory) memory_ = open("memory.csv", kMemoryHeader);
  const SampleParameters& sample = parameters.sample;
  if (sample.interval == 0) return;
  if (sample.queues) queue_samples_ = open("queue_samples.csv", kQueueSamplesHeader);
  if (sample.links) link_samples_ = open("link_samples.csv", kLinkSamplesHeader);
  if (sample.flows) flow_samples_ = open("flow_samples.csv", kFlowSamplesHeader);
}

void Tables::add_job(const NamedSource& job) {
  jobs_.push_back({job.source, csv_cell(job.name), {}});
  for (const std::string& name : job.source->names()) jobs_.back().names.push_back(csv_cell(name));
}

std::vector<Tables::Rows*> Tables::streamed() const {
  std::vector<Rows*> tables;
  for (const auto* table : {&tasks_, &collectives_, &flows_, &memory_, &critical_path_, &critical_path_ports_,
                            &fct_lines_, &queue_samples_, &link_samples_, &flow_samples_}) {
    if (*table != nullptr) tables.push_back(table->get());
  }
  return tables;
}

void Tables::name_cell(Rows& table, std::uint32_t job, std::uint32_t name) const {
  if (name < jobs_[job].names.size()) {
    table.cell(jobs_[job].names[name]);
  } else {
    table.cell(csv_cell(jobs_[job].source->name(name)));
  }
}

std::string_view Tables::nic(std::uint32_t gpu) const {
  return gpu < nics_.size() ? std::string_view(nics_[gpu]) : std::string_view();
}

void Tables::add(const TaskRecord& record) {
  if (!tasks_->begin_row()) return;
  const Task& task = record.task;
  const bool paired = task.kind == TaskKind::send || task.kind == TaskKind::receive;
  tasks_->cell(jobs_[record.job].name);
  tasks_->cell(std::int64_t{task.iteration});
  tasks_->cell(std::int64_t{record.rank});
  tasks_->cell(fmt::format("t{}.{}", record.rank, task.id));
  if (task.kind == TaskKind::compute) {
    tasks_->cell("");
  } else {
    tasks_->cell_id('c', record.communication);
  }
  name_cell(*tasks_, record.job, task.name);
  tasks_->cell(to_string(task.kind));
  tasks_->cell(to_string(task.stream));
  tasks_->cell(task.kind == TaskKind::collective ? to_string(task.collective) : "");
  if (paired) {
    tasks_->cell(std::int64_t{task.peer});
  } else {
    tasks_->cell("");
  }
  tasks_->cell(task.bytes);
  tasks_->cell(record.posted);
  tasks_->cell(record.start);
  tasks_->cell(record.end);
  tasks_->end_row();
}

void Tables::add(const CommunicationRecord& record, const LibraryChoice& choice) {
  if (!collectives_->begin_row()) return;
  collectives_->cell(jobs_[record.job].name);
  collectives_->cell_id('c', record.id);
  name_cell(*collectives_, record.job, record.name);
  collectives_->cell(to_string(record.kind));
  collectives_->cell(to_string(record.stream));
  collectives_->cell(std::int64_t{record.ranks});
  collectives_->cell(std::int64_t{record.first_rank});
  collectives_->cell(record.bytes);
  collectives_->cell(record.first_start);
  collectives_->cell(record.last_start);
  collectives_->cell(record.end);
  collectives_->cell(fmt::format("{}", to_seconds(record.last_start - record.first_start)));
  const CollectiveTimes times = times_of(record);
  collectives_->cell(fmt::format("{:.3f}", times.algorithm_bandwidth() * 1e-9));
  collectives_->cell(fmt::format("{:.3f}", times.bus_bandwidth() * 1e-9));
  collectives_->cell(choice.algorithm);
  collectives_->cell(choice.algorithm.empty() ? "" : to_string(choice.protocol));
  if (choice.algorithm.empty()) {
    collectives_->cell("");
  } else {
    collectives_->cell(std::int64_t{choice.channels});
  }
  collectives_->cell(choice.why);
  collectives_->end_row();
}

void Tables::add(const FlowRecord& record) {
  if (fct_ != nullptr && fct_lines_->begin_row()) fct_lines_->file.write(fct_->line(record));
  if (!flows_->begin_row()) return;
  flows_->cell_id('f', record.id);
  flows_->cell(jobs_[record.request.traits.job].name);
  flows_->cell_id('c', record.request.communication);
  name_cell(*flows_, record.request.traits.job, record.request.name);
  flows_->cell(std::int64_t{record.request.traits.traffic_class});
  flows_->cell(nic(record.request.source));
  flows_->cell(nic(record.request.destination));
  flows_->cell(std::int64_t{record.request.source});
  flows_->cell(std::int64_t{record.request.destination});
  flows_->cell(std::int64_t{record.request.traits.channel});
  flows_->cell(std::int64_t{record.queue_pair});
  flows_->cell(record.request.bytes);
  flows_->cell(record.start);
  flows_->cell(record.end);
  flows_->cell(record.end - record.start);
  const auto known = [this](std::int64_t value) { value > 0 ? flows_->cell(value) : flows_->cell(""); };
  known(record.acknowledged);
  known(record.ideal);
  const std::int64_t slowdown = slowdown_millionths(record);
  flows_->cell(slowdown > 0 ? fmt::format("{}.{:06}", slowdown / 1'000'000, slowdown % 1'000'000) : "");
  flows_->end_row();
}

void Tables::add(const MemoryRecord& record) {
  if (!memory_->begin_row()) return;
  memory_->cell(jobs_[record.job].name);
  memory_->cell(std::int64_t{record.rank});
  memory_->cell(record.time);
  memory_->cell(record.use.total());
  for (std::size_t kind = 0; kind < kMemoryKinds; ++kind)
    memory_->cell(record.use[static_cast<MemoryKind>(kind)]);
  memory_->end_row();
}

void Tables::add(std::uint32_t job, std::uint32_t iteration, const PathStep& step) {
  Rows& rows = *critical_path_;
  if (!rows.begin_row()) return;
  const bool held = step.kind == PathStep::Kind::held;
  const bool communication = !held && step.kind != PathStep::Kind::compute;
  rows.cell(jobs_[job].name);
  rows.cell(std::int64_t{iteration});
  rows.cell(step.begin);
  rows.cell(step.end);
  rows.cell(step.end - step.begin);
  rows.cell(to_string(step.kind));
  rows.cell(held ? "" : to_string(step.stream));
  held ? rows.cell("") : name_cell(rows, job, step.name);
  rows.cell(communication && step.kind != PathStep::Kind::circuits ? to_string(step.collective) : "");
  rows.cell(std::int64_t{step.rank});
  rows.cell(held ? "" : fmt::format("t{}.{}", step.rank, step.task));
  communication ? rows.cell_id('c', step.id) : rows.cell("");
  for (const std::uint32_t gpu : {step.source, step.destination})
    rows.cell(gpu == kNoIndex ? "" : fmt::format("{}", gpu));
  for (const Time part : {step.propagation, step.transmission, step.queueing, step.paused, step.at_sender})
    step.kind == PathStep::Kind::transfer ? rows.cell(part) : rows.cell("");
  rows.end_row();
}

void Tables::add(std::uint32_t job, std::uint32_t iteration, const PathStep& step, std::string_view port,
                 const PortDelay& delay) {
  Rows& rows = *critical_path_ports_;
  if (!rows.begin_row()) return;
  rows.cell(jobs_[job].name);
  rows.cell(std::int64_t{iteration});
  rows.cell(step.begin);
  rows.cell(step.end);
  rows.cell(to_string(step.stream));
  name_cell(rows, job, step.name);
  rows.cell_id('c', step.id);
  rows.cell(std::int64_t{step.source});
  rows.cell(std::int64_t{step.destination});
  rows.cell(csv_cell(std::string(port)));
  for (const Time part : {delay.transmission, delay.queueing, delay.paused}) rows.cell(part);
  rows.end_row();
}

void Tables::add(const QueueSample& sample) {
  if (!queue_samples_->begin_row()) return;
  queue_samples_->cell(sample.time);
  queue_samples_->cell(sample.port);
  queue_samples_->cell(sample.bytes);
  queue_samples_->end_row();
}

void Tables::add(const LinkSample& sample) {
  if (!link_samples_->begin_row()) return;
  link_samples_->cell(sample.time);
  link_samples_->cell(sample.port);
  link_samples_->cell(sample.wire_bytes);
  link_samples_->cell(fmt::format("{:.6f}", sample.utilisation));
  for (const std::uint64_t count :
       {sample.pauses, sample.credit_stalls, sample.ecn_marks, sample.drops, sample.no_route})
    link_samples_->cell(static_cast<std::int64_t>(count));
  link_samples_->end_row();
}

void Tables::add(const FlowSample& sample) {
  if (!flow_samples_->begin_row()) return;
  flow_samples_->cell(sample.time);
  flow_samples_->cell(std::int64_t{sample.source});
  flow_samples_->cell(std::int64_t{sample.destination});
  flow_samples_->cell(std::int64_t{sample.queue_pair});
  flow_samples_->cell(sample.delivered);
  flow_samples_->cell(sample.allowed);
  flow_samples_->end_row();
}

void Tables::finish(const Results& results, const RunTexts& texts) {
  directory_.require_held();
  std::vector<std::unique_ptr<OutputFile>> made;
  const auto make = [&](const char* name, const std::string& text) {
    made.push_back(std::make_unique<OutputFile>(directory_, name));
    made.back()->write(text);
  };
  make("jobs.csv", jobs_csv(results));
  make("iterations.csv", iterations_csv(results));
  make("ranks.csv", ranks_csv(results, nics_));
  make("links.csv", links_csv(results));
  make("bandwidths.csv", bandwidths_csv(results));
  std::vector<OutputFile*> files;
  for (Rows* table : streamed()) files.push_back(&table->file);
  if (texts.manifest) {
    make("run.log", texts.log);
    make("summary.json", texts.summary);
  }
  for (const auto& file : made) files.push_back(file.get());
  std::vector<WrittenFile> written;
  written.reserve(files.size());
  for (OutputFile* file : files) written.push_back({file->name(), file->complete()});
  directory_.require_held();
  if (texts.manifest) {
    OutputFile manifest(directory_, "manifest.json");
    manifest.write(texts.manifest(written));
    manifest.commit();
  }
  for (OutputFile* file : files) file->commit();
}

std::vector<std::string> Tables::notes() const {
  std::vector<std::string> notes;
  for (const Rows* table : streamed()) {
    if (table->rows <= table->limit) continue;
    notes.push_back(fmt::format("{} holds the first {} of {} rows; more with --set output.max_rows={}",
                                table->file.name(), table->limit, table->rows, table->rows));
  }
  return notes;
}

}  // namespace netsim
