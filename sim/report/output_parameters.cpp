#include "sim/report/output_parameters.h"

namespace netsim {

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
                   "queues, links and flows over time")
          .component_list("sinks", &OutputParameters::sinks, "result_sink",
                          "result sinks besides those of every run: a list of names, or of {kind: NAME, its "
                          "parameters}");
  return parameters;
}

}  // namespace netsim
