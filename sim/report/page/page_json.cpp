#include <algorithm>
#include <string>
#include <vector>

#include "sim/report/page/page_sections.h"

namespace netsim {

void write_table(JsonWriter& json, const std::vector<TableColumn>& table) {
  std::size_t rows = 0;
  json.array("columns", [&] {
    for (const TableColumn& column : table) {
      json.value(column.title);
      rows = std::max(rows, column.cells.size());
    }
  });
  json.array("rows", [&] {
    for (std::size_t row = 0; row < rows; ++row) {
      json.array([&] {
        for (const TableColumn& column : table) json.value(column.cells[row]);
      });
    }
  });
}

std::string page_json(const PageInput& input) {
  JsonWriter json;
  json.object([&] {
    for (const auto& write : {write_run, write_jobs, write_breakdowns, write_timelines, write_paths,
                              write_links, write_flows, write_samples, write_aggregation, write_collectives,
                              write_scheduling, write_faults, write_memory, write_repeat}) {
      write(json, input);
    }
  });
  return json.text();
}

}  // namespace netsim
