// The sections about the run as a whole: what it was, how it ended, its headline, and how to repeat it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/page/page_sections.h"
#include "sim/report/screen/job_text.h"
#include "sim/report/screen/network_text.h"

namespace netsim {
namespace {

constexpr std::size_t kMostListedFiles = 64;

std::string title_of(const Results& results) {
  if (results.jobs.size() == 1) return results.jobs.front().name;
  return counted(results.jobs.size(), "job");
}

void write_meta(JsonWriter& json, const PageInput& input) {
  const Results& results = input.results();
  const Manifest& manifest = input.run.text->manifest;
  json.object("meta", [&] {
    json.field("title", title_of(results));
    json.field("version", NETSIM_VERSION);
    json.field("commit", manifest.commit);
    json.field("seed", manifest.seed);
    json.field("outcome", to_string(results.outcome));
    json.field("outcome_text", results.outcome == Outcome::done ? "" : explain(results));
    json.object("fingerprints", [&] {
      const auto hex = [](std::uint64_t value) { return fmt::format("{:016x}", value); };
      json.field("results", hex(results.fingerprints.results));
      json.field("packets", hex(results.fingerprints.packets));
      json.field("events", hex(results.fingerprints.events));
    });
    json.seconds("simulated", results.simulated);
    json.field("gpus", results.gpus);
  });
}

// Says which settings would add a section that this run could have.
void write_hints(JsonWriter& json, const PageInput& input) {
  const auto hint = [&](const char* text, const char* set) {
    json.object([&] {
      json.field("text", text);
      json.field("set", set);
    });
  };
  json.array("hints", [&] {
    if (!input.view.output.critical_path && !only_traffic(input.results())) {
      hint("The run did not record what the end of each iteration waited for.", "output.critical_path=true");
    }
    if (input.view.output.sample.interval == 0 && input.results().packet_network)
      hint("The run did not sample queues and links over time.", "output.sample.interval=10us");
  });
}

// Figure: an entry of the headline. `summary` is its path in summary.json.
struct Figure {
  std::string label;
  std::optional<double> value;
  std::string text, summary;
};

void write_figure(JsonWriter& json, const Figure& figure) {
  json.object([&] {
    json.field("label", figure.label);
    json.key("value");
    figure.value ? json.value(*figure.value) : json.null();
    json.field("text", figure.text);
    json.field("summary", figure.summary);
  });
}

Figure time_figure(const std::string& label, const std::optional<double>& seconds,
                   const std::string& summary) {
  return {label, seconds, seconds ? human_seconds(*seconds) : "-", summary};
}

std::vector<Figure> training_figures(const JobResult& job) {
  const JobSummary summary = summarise(job);
  std::vector<Figure> figures{
      time_figure("iteration time", summary.iteration_time_s, "jobs.0.iteration_time_s")};
  if (job.iterations != 1) figures.push_back(time_figure("job time", summary.jct_s, "jobs.0.jct_s"));
  if (const std::string text = screen::throughput_text(job, summary); !text.empty())
    figures.push_back({"throughput", summary.tflops_per_gpu, text, "jobs.0.tflops_per_gpu"});
  figures.push_back(time_figure("compute", summary.compute_s, "jobs.0.compute_s"));
  figures.push_back(
      time_figure("exposed communication", summary.exposed_s, "jobs.0.exposed_communication_s"));
  figures.push_back(time_figure("idle", summary.idle_s, "jobs.0.idle_s"));
  return figures;
}

void add_flow_figures(const Results& results, std::vector<Figure>& figures) {
  if (results.flows.count == 0) return;
  figures.push_back(
      {"flows", static_cast<double>(results.flows.count), screen::flows_done_text(results), "flows.count"});
  figures.push_back(time_figure("mean flow completion time", results.flows.mean * 1e-12, "flows.fct_mean_s"));
  figures.push_back(time_figure("99th percentile of the completion time", to_seconds(results.flows.p99),
                                "flows.fct_p99_s"));
  if (results.slowdowns.count == 0) return;
  const double slowdown = results.slowdowns.p99;
  figures.push_back(
      {"99th percentile of the slowdown", slowdown, fmt::format("{:.2f}", slowdown), "flows.slowdown_p99"});
}

// Adds the completion times of the first jobs, where there are several.
void add_job_figures(const Results& results, std::vector<Figure>& figures) {
  constexpr std::size_t kMostFigures = 4;
  if (results.jobs.size() == 1) return;
  for (std::size_t i = 0; i < std::min(results.jobs.size(), kMostFigures); ++i) {
    figures.push_back(time_figure("job time of " + results.jobs[i].name, summarise(results.jobs[i]).jct_s,
                                  fmt::format("jobs.{}.jct_s", i)));
  }
}

std::vector<Figure> headline(const Results& results) {
  const bool traffic = only_traffic(results);
  if (results.jobs.size() == 1 && !traffic) return training_figures(results.jobs.front());
  std::vector<Figure> figures{
      time_figure("simulated time", to_seconds(results.simulated), "simulated_time_s")};
  add_job_figures(results, figures);
  if (traffic) {
    add_flow_figures(results, figures);
    if (results.packet_network && results.simulated > 0) {
      const double rate =
          static_cast<double>(results.network.bytes_delivered) * 8 / to_seconds(results.simulated);
      figures.push_back({"throughput", rate, screen::throughput_text(results), ""});
    }
  }
  return figures;
}

}  // namespace

void write_run(JsonWriter& json, const PageInput& input) {
  const Results& results = input.results();
  write_meta(json, input);
  json.field("kind", only_traffic(results) ? "traffic" : "training");
  json.list("notes", results.notes);
  if (!results.waiting.empty()) json.list("waiting", results.waiting);
  write_hints(json, input);
  json.array("headline", [&] {
    for (const Figure& figure : headline(results)) write_figure(json, figure);
  });
}

void write_jobs(JsonWriter& json, const PageInput& input) {
  constexpr std::size_t kMostJobs = 1000;
  const Results& results = input.results();
  if (results.jobs.size() < 2) return;
  json.object("jobs", [&] {
    std::vector<TableColumn> table = screen::job_table(results, kMostJobs);
    table.back() = {"state", 0, true, {}};
    for (std::size_t i = 0; i < std::min(results.jobs.size(), kMostJobs); ++i)
      table.back().cells.emplace_back(results.jobs[i].state());
    write_table(json, table);
    json.list("text", screen::management_lines(results));
    if (results.jobs.size() > kMostJobs) {
      json.field("note", fmt::format("These are the first {} of {} jobs. jobs.csv has all.", kMostJobs,
                                     results.jobs.size()));
    }
  });
}

void write_scheduling(JsonWriter& json, const PageInput& input) {
  constexpr std::size_t kMostLines = 100;
  const Results& results = input.results();
  std::vector<std::string> tasks, flows;
  for (const JobResult& job : results.jobs) {
    const std::string text = screen::scheduling_text(job);
    if (!text.empty() && tasks.size() < kMostLines) tasks.push_back(job.name + ": " + text);
  }
  if (!results.flow_scheduling.scheduler.empty())
    flows.push_back(screen::flow_scheduling_text(results.flow_scheduling));
  if (!results.splits.splitter.empty()) flows.push_back(screen::splits_text(results.splits));
  const std::vector<std::string> jobs = screen::management_lines(results);
  if (tasks.empty() && flows.empty() && jobs.empty()) return;
  const auto layer = [&](const char* title, const std::vector<std::string>& text) {
    if (text.empty()) return;
    json.object([&] {
      json.field("title", title);
      json.list("text", text);
    });
  };
  json.array("scheduling", [&] {
    layer("Jobs", jobs);
    layer("Tasks", tasks);
    layer("Flows", flows);
  });
}

void write_memory(JsonWriter& json, const PageInput& input) {
  constexpr std::size_t kMostJobs = 32;
  std::vector<const JobResult*> jobs;
  for (const JobResult& job : input.results().jobs) {
    if (job.memory && jobs.size() < kMostJobs) jobs.push_back(&job);
  }
  if (jobs.empty()) return;
  const auto write_job = [&](const JobResult& job) {
    const JobMemory& memory = *job.memory;
    TableColumn kind{"kind", 0, true, {}}, peak{"at the peak", 0, false, {}},
        planned{"planned peak", 0, false, {}};
    for (std::size_t i = 0; i < kMemoryKinds; ++i) {
      const auto of = static_cast<MemoryKind>(i);
      if (memory.use[of] == 0 && memory.planned[of] == 0) continue;
      kind.cells.emplace_back(to_string(of));
      peak.cells.push_back(gibibytes(memory.use[of]));
      planned.cells.push_back(gibibytes(memory.planned[of]));
    }
    json.field("job", job.name);
    json.list("text", std::vector<std::string>{"Fullest GPU: " + screen::memory_text(job)});
    write_table(json, {kind, peak, planned});
  };
  json.array("memory", [&] {
    for (const JobResult* job : jobs) json.object([&] { write_job(*job); });
  });
}

void write_repeat(JsonWriter& json, const PageInput& input) {
  const Manifest& manifest = input.run.text->manifest;
  const auto write_files = [&](const char* name, const auto& files) {
    json.array(name, [&] {
      for (const auto& file : files) {
        json.object([&] {
          json.field("path", file.path);
          json.field("hash", file.hash);
        });
      }
    });
  };
  json.object("repeat", [&] {
    json.list("commands", std::vector<std::string>{manifest.command});
    write_files("inputs", manifest.inputs);
    write_files("plugins", manifest.plugins);
    json.field("configuration", manifest.configuration);
  });
  std::vector<std::string> files = input.run.files;
  if (files.size() > kMostListedFiles) files.resize(kMostListedFiles);
  json.list("files", files);
}

}  // namespace netsim
