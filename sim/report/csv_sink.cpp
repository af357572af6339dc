#include "sim/report/csv_sink.h"

namespace netsim {

std::string csv_header(const std::vector<ColumnInfo>& columns) {
  std::string header;
  for (const ColumnInfo& column : columns) header += (header.empty() ? "" : ",") + column.name;
  return header;
}

bool StreamedCsv::open(SinkFiles& files, const RunView& run) {
  if (!wanted(run)) return false;
  run_ = &run;
  table_.emplace(files.open(file_), header_, run.output.max_rows);
  return true;
}

void FinalCsv::finish(const FinishedRun& run, SinkFiles& files) {
  files.open(file_).write(header_ + "\n" + rows(run.results));
}

}  // namespace netsim
