// The sections of report.html as JSON. docs/how-to/report.md describes them for users; the scripts of assets/
// draw them. Every section but `meta` is left out where the run has nothing for it.
//
// Figures are those of Results, and their texts are made by the functions of the screen.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/core/text.h"
#include "sim/report/page/iteration_timeline.h"
#include "sim/report/page/json_writer.h"
#include "sim/report/page/sampled_series.h"
#include "sim/report/result_sink.h"
#include "sim/report/run_view.h"

namespace netsim {

// PageRecords: what the page keeps of the records while the run goes on.
struct PageRecords {
  std::map<JobId, IterationTimeline> timelines;
  bool further_jobs = false;                 // jobs without a timeline, because there were too many
  SampledSeries queues, utilisation, rates;  // bytes, shares of 1, bit/s
  SampledSeries aggregation;                 // bytes of switches' memory in use
};

struct PageInput {
  const FinishedRun& run;
  const RunView& view;
  const PageRecords& records;
  const Results& results() const { return run.results; }
};

// Write fields of the page's object.
void write_run(JsonWriter& json, const PageInput& input);  // meta, kind, notes, waiting, hints, headline
void write_jobs(JsonWriter& json, const PageInput& input);
void write_breakdowns(JsonWriter& json, const PageInput& input);
void write_timelines(JsonWriter& json, const PageInput& input);
void write_paths(JsonWriter& json, const PageInput& input);
void write_links(JsonWriter& json, const PageInput& input);
void write_flows(JsonWriter& json, const PageInput& input);
void write_samples(JsonWriter& json, const PageInput& input);
void write_aggregation(JsonWriter& json, const PageInput& input);
void write_collectives(JsonWriter& json, const PageInput& input);
void write_scheduling(JsonWriter& json, const PageInput& input);
void write_faults(JsonWriter& json, const PageInput& input);
void write_memory(JsonWriter& json, const PageInput& input);
void write_repeat(JsonWriter& json, const PageInput& input);

// Writes the fields `columns` and `rows` of a table.
void write_table(JsonWriter& json, const std::vector<TableColumn>& table);

// Returns the whole document.
std::string page_json(const PageInput& input);

}  // namespace netsim
