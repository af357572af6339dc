// tasks.csv: the tasks that ended.
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& task_columns() {
  static const std::vector<ColumnInfo> columns{
      {"job", "name of the job"},
      {"iteration", "number of the iteration, from 0"},
      {"rank", "rank in the job"},
      {"task", "id of the task"},
      {"communication", "id of the operation that it takes part in; empty for compute tasks"},
      {"name", "the workload's name for it"},
      {"kind",
       "compute, collective, send, receive, circuits, copy_to_host, copy_from_host, host_compute or "
       "host_thread"},
      {"stream", "compute, or the stream of a communication"},
      {"collective", "kind of collective; empty for other tasks"},
      {"peer", "other rank of a send or receive; empty for other tasks"},
      {"bytes", "bytes of the communication; 0 for compute tasks and circuits"},
      {"posted_ps", "time at which the rank reached the task"},
      {"start_ps", "time at which work or transfer began, or its first part"},
      {"end_ps", "time at which it ended"},
      {"parts", "parts in which a task scheduler launched it; 1: whole"},
      {"microbatch",
       "number of the microbatch that it works for, from 0; 3+1 in a step that computes the forward of 3 "
       "with "
       "the backward of 1; empty outside of pipelines and for .pb files, which do not contain it"},
      {"chunk", "model chunk of the stage, from 0, likewise"},
      {"layer",
       "number of the layer in the model's body that it works for, from 0; empty for the embedding and the "
       "loss, for traffic of replicas and between stages, and where `microbatch` is empty"},
  };
  return columns;
}

class TasksCsv : public StreamedCsv, public Receives<TaskRecord> {
 public:
  TasksCsv() : StreamedCsv("tasks.csv", task_columns()) {}

  void add(const TaskRecord& record) override {
    CsvTable& row = table();
    if (!row.begin_row()) return;
    const Task& task = record.task;
    job_cell(record.job);
    row.cell(std::int64_t{task.iteration});
    row.cell(std::int64_t{record.rank});
    row.task_id(record.rank, task.id);
    task.kind() == TaskKind::compute ? row.empty() : row.id('c', record.communication);
    task_name_cell(record.job, task.name);
    row.cell(to_string(task.kind()));
    row.cell(to_string(task.stream));
    task.kind() == TaskKind::collective ? row.cell(to_string(task.collective().collective)) : row.empty();
    is_point_to_point(task) ? row.cell(std::int64_t{task.message().peer}) : row.empty();
    row.cell(task.bytes());
    row.cell(record.posted);
    row.cell(record.start);
    row.cell(record.end);
    row.cell(std::int64_t{record.parts});
    const std::optional<PipelineMark> mark =
        run().jobs[record.job].source->pipeline_mark(record.rank, task.id);
    mark_cell(mark, &PipelineMark::microbatch, &PipelineMark::backward_microbatch);
    mark_cell(mark, &PipelineMark::chunk, &PipelineMark::backward_chunk);
    mark && mark->layer ? row.cell(std::int64_t{*mark->layer}) : row.empty();
    row.end_row();
  }

 private:
  // Writes a number of a mark, or those of both passes.
  void mark_cell(const std::optional<PipelineMark>& mark, std::uint32_t PipelineMark::*number,
                 std::uint32_t PipelineMark::*backward) {
    if (!mark) return table().empty();
    if (!mark->paired) return table().cell(std::int64_t{(*mark).*number});
    table().cell(fmt::format("{}+{}", (*mark).*number, (*mark).*backward));
  }
};

const Registration<ResultSink> kTasksCsvRegistration{
    "tasks_csv", "tasks.csv: a row is a task of a rank", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<TasksCsv>(); }, task_columns()};

}  // namespace
}  // namespace netsim
