#include "sim/report/csv_sink.h"

#include "sim/core/text.h"

namespace netsim {

std::string csv_header(const std::vector<ColumnInfo>& columns) {
  std::string header;
  for (const ColumnInfo& column : columns) append_item(header, column.name, ",");
  return header;
}

std::vector<ColumnInfo> exposed_columns(const std::string& unit) {
  std::vector<ColumnInfo> columns;
  for (const Stream stream : kCommunicationStreams) {
    const std::string name = to_string(stream);
    columns.push_back({"exposed_" + name + "_" + unit, "exposed communication of stream " + name});
  }
  return columns;
}

std::vector<ColumnInfo> joined(std::initializer_list<std::vector<ColumnInfo>> lists) {
  std::vector<ColumnInfo> all;
  for (const std::vector<ColumnInfo>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

bool StreamedCsv::open(SinkFiles& files, const RunView& run) {
  if (!wanted(run)) return false;
  set_run(run);
  table_.emplace(files.open(file()), header(), run.output.max_rows);
  return true;
}

void FinalCsv::finish(const FinishedRun& run, SinkFiles& files) {
  if (wanted(run.results)) files.open(file()).write(header() + "\n" + rows(run.results));
}

}  // namespace netsim
