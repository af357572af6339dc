#include "sim/training/checkpoint/checkpoint.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/time_limits.h"
#include "sim/workload/memory_plan.h"

namespace netsim {
namespace {

// Ids of tasks that the inner source does not have.
constexpr std::uint32_t kOwn = 1U << 31, kRead = 1U << 30;
constexpr std::uint32_t kReadTag = 1;
constexpr std::uint32_t kNoBoundary = UINT32_MAX, kReading = 0;
constexpr Bytes kWrittenBytes = 64;  // bytes of the message that tells a rank that its part is written

// TrainerMemory: the memory of the trainers. The drives have none.
class TrainerMemory final : public MemoryPlan {
 public:
  TrainerMemory(const MemoryPlan& inner, std::uint32_t trainers) : inner_(inner), trainers_(trainers) {}
  const MemoryUse& resident(RankId rank) const override {
    return rank < trainers_ ? inner_.resident(rank) : nothing_;
  }
  bool change(RankId rank, const Task& task, bool begins, MemoryUse& use) const override {
    return rank < trainers_ && task.id < kOwn && inner_.change(rank, task, begins, use);
  }
  std::uint32_t role(RankId rank) const override {
    return rank < trainers_ ? inner_.role(rank) : static_cast<std::uint32_t>(inner_.planned().size());
  }
  std::vector<MemoryPeak> planned() const override {
    std::vector<MemoryPeak> all = inner_.planned();
    all.push_back({trainers_, {}});
    return all;
  }

 private:
  const MemoryPlan& inner_;
  std::uint32_t trainers_;
  MemoryUse nothing_;
};

class CheckpointedSource final : public TaskSource, public Resumable {
 public:
  // `before` is the number of iterations that need not be done again.
  CheckpointedSource(std::shared_ptr<const CheckpointedJob> job, std::uint32_t before)
      : job_(std::move(job)),
        before_(before),
        iterations_(job_->iterations - before),
        inner_(job_->source(iterations_)),
        p_(job_->checkpoint),
        bytes_(job_->written),
        servers_(job_->servers),
        works_(inner_->works()),
        names_(inner_->names()),
        trainers_(inner_->ranks()),
        drives_(servers_) {
    NETSIM_CHECK(bytes_.size() == trainers_.size() && job_->read.size() == trainers_.size() && servers_ > 0,
                 "a part of a checkpoint for each rank");
    write_name_ = add_name("checkpoint_write");
    snapshot_name_ = add_name("checkpoint_snapshot");
    piece_name_ = add_name("checkpoint");
    written_name_ = add_name("checkpoint_written");
    read_name_ = add_name("checkpoint_read");
    for (RankId rank = 0; rank < trainers_.size(); ++rank) {
      if (bytes_[rank] == 0) continue;
      drives_[server_of(rank)].writers.push_back(rank);
      for (std::int64_t i : {std::int64_t{0}, pieces(rank) - 1})
        add_work(write_name_, piece_bytes(rank, i), p_.write_rate);
      if (p_.asynchronous) add_work(snapshot_name_, bytes_[rank], p_.snapshot_rate);
      trainers_[rank].boundary = boundary_of(0);
    }
    if (checkpoints() == 0) {
      for (Drives& drives : drives_) drives.writers.clear();
    }
    for (RankId rank = 0; before_ > 0 && rank < trainers_.size(); ++rank) {
      if (job_->read[rank] == 0) continue;
      trainers_[rank].boundary = kReading;
      drives_[server_of(rank)].readers.push_back(rank);
      ++drives_[server_of(rank)].reading;
    }
    if (inner_->memory() != nullptr)
      memory_ = std::make_unique<TrainerMemory>(*inner_->memory(), trainer_count());
  }

  const std::string& job_name() const override { return inner_->job_name(); }
  std::uint32_t ranks() const override { return trainer_count() + servers_; }
  std::uint32_t storage_ranks() const override { return servers_; }
  std::vector<RankAxis> axes() const override { return inner_->axes(); }
  const std::vector<Work>& works() const override { return works_; }
  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<AskedCircuits>& circuits() const override { return inner_->circuits(); }
  const std::vector<RankId>& group(GroupId id) const override { return inner_->group(id); }
  std::optional<std::uint32_t> iterations() const override { return inner_->iterations(); }
  std::uint32_t warm_up() const override { return inner_->warm_up(); }
  double model_flops() const override { return inner_->model_flops(); }
  std::vector<std::string> reader_notes() const override { return inner_->notes(); }
  bool uses_hosts() const override { return inner_->uses_hosts(); }
  bool uses_threads() const override { return inner_->uses_threads(); }
  const MemoryPlan* memory() const override { return memory_.get(); }
  void release_communications(AgreedLaunches agreed) override {
    inner_->release_communications(std::move(agreed));
  }

  const RecoveryParameters* recovery() const override { return job_->recovery ? &*job_->recovery : nullptr; }
  std::uint32_t all_iterations() const override { return job_->iterations; }
  std::uint32_t saved_iterations() const override {
    std::uint32_t saved = checkpoints();
    for (const Drives& drives : drives_) {
      for (const std::uint32_t writer : drives.writers) {
        const std::int64_t whole = pieces_written_[writer] / pieces(writer);
        saved = std::min(saved, static_cast<std::uint32_t>(whole));
      }
    }
    return before_ + saved * every();
  }
  std::uint32_t passed_iterations(RankId rank) const override {
    return rank < trainer_count() ? std::min(first_not_passed(rank), iterations_) : 0;
  }
  bool waits_for_storage(RankId rank) const override {
    if (rank >= trainer_count()) return false;
    const Trainer& trainer = trainers_[rank];
    if (trainer.boundary == kReading) return true;
    if (trainer.written == trainer.begun) return false;
    return !p_.asynchronous || (!trainer.snapshots && inner_->open_iteration(rank) >= trainer.boundary);
  }
  std::unique_ptr<TaskSource> rest() const override {
    return std::make_unique<CheckpointedSource>(job_, saved_iterations());
  }

  std::optional<std::uint64_t> total_tasks() const override {
    std::optional<std::uint64_t> total = inner_->total_tasks();
    for (const Drives& drives : drives_) {
      for (const std::uint32_t reader : drives.readers)
        if (total) *total += 2 * static_cast<std::uint64_t>(pieces_read(reader));
    }
    for (RankId rank = 0; total && rank < trainer_count(); ++rank) {
      if (bytes_[rank] == 0) continue;
      // Both ends have the pieces and the message that they are written; drives also have the writes,
      // trainers a snapshot.
      *total +=
          checkpoints() * (3 * static_cast<std::uint64_t>(pieces(rank)) + 2 + (p_.asynchronous ? 1 : 0));
    }
    return total;
  }
  bool for_each_task(RankId rank, const Visitor& visit) const override {
    if (rank < trainer_count()) {
      for (std::int64_t i = 0; before_ > 0 && i < pieces_read(rank); ++i)
        visit(read(rank, i, TaskKind::receive));
      if (!inner_->for_each_task(rank, visit)) return false;
      for (std::uint32_t c = 0; bytes_[rank] > 0 && c < checkpoints(); ++c) {
        if (p_.asynchronous) visit(snapshot(rank, c));
        for (std::int64_t i = 0; i < pieces(rank); ++i) visit(piece(rank, c, i, TaskKind::send));
        visit(written(rank, c, TaskKind::receive));
      }
      return true;
    }
    for (const std::uint32_t reader : drives_[rank - trainer_count()].readers) {
      for (std::int64_t i = 0; i < pieces_read(reader); ++i) visit(read(reader, i, TaskKind::send));
    }
    for (std::uint32_t c = 0; c < checkpoints(); ++c) {
      for (const std::uint32_t writer : drives_[rank - trainer_count()].writers) {
        for (std::int64_t i = 0; i < pieces(writer); ++i) {
          visit(piece(writer, c, i, TaskKind::receive));
          visit(write(writer, c, i));
        }
        visit(written(writer, c, TaskKind::send));
      }
    }
    return true;
  }

  void start(RankId rank, std::vector<Task>& ready) override {
    if (rank < trainer_count()) {
      const std::size_t first = ready.size();
      inner_->start(rank, ready);
      hold_back(rank, first, ready);
      if (before_ > 0 && job_->read[rank] > 0) ready.push_back(read(rank, 0, TaskKind::receive));
      return;
    }
    for (const std::uint32_t reader : drives_[rank - trainer_count()].readers)
      ready.push_back(read(reader, 0, TaskKind::send));
    if (checkpoints() > 0) begin_drives(rank, ready);
  }

  void complete(RankId rank, TaskId id, std::vector<Task>& ready) override {
    if (rank >= trainer_count()) return complete_drives(rank, id, ready);
    if (id >= kOwn) return complete_own(rank, id, ready);
    const std::size_t first = ready.size();
    inner_->complete(rank, id, ready);
    hold_back(rank, first, ready);
    save(rank, ready);
  }
  void launched(RankId rank, TaskId id, std::vector<Task>& ready) override {
    if (rank < trainer_count() && id < kOwn) inner_->launched(rank, id, ready);
  }

  std::uint32_t open_iteration(RankId rank) const override {
    if (rank >= trainer_count()) {
      const Drives& drives = drives_[rank - trainer_count()];
      if (drives.reading > 0) return 0;
      return drives.writers.empty() || drives.checkpoint >= checkpoints() ? kNoIteration
                                                                          : label(drives.checkpoint);
    }
    const Trainer& trainer = trainers_[rank];
    const std::uint32_t open = first_not_passed(rank);
    return trainer.written < trainer.begun ? std::min(open, label(trainer.written)) : open;
  }
  std::vector<Task> held_back(RankId rank) const override {
    return rank < trainer_count() ? inner_->held_back(rank) : std::vector<Task>();
  }

 private:
  // Trainer: a rank of the job.
  struct Trainer {
    std::uint32_t boundary = kNoBoundary;  // tasks of this iteration and later ones are held back
    std::vector<Task> held;
    bool snapshots = false;
    std::uint32_t begun = 0, written = 0;  // number of checkpoints
    std::int64_t piece = 0;                // next piece of the checkpoint that is being written
  };
  struct Drives {
    std::vector<std::uint32_t> writers, readers;
    std::uint32_t reading = 0;     // number of readers that have not received everything
    std::uint32_t checkpoint = 0;  // the checkpoint that is being written, or comes next
    std::uint32_t over = 0;        // number of writers whose part of it is written
  };

  std::uint32_t trainer_count() const { return static_cast<std::uint32_t>(trainers_.size()); }
  std::uint32_t server_of(RankId rank) const { return rank % servers_; }
  std::uint32_t every() const { return static_cast<std::uint32_t>(p_.every); }
  std::uint32_t checkpoints() const { return every() > 0 ? iterations_ / every() : 0; }
  // Returns the first iteration after a checkpoint.
  std::uint32_t boundary_of(std::uint32_t checkpoint) const {
    return checkpoint < checkpoints() ? (checkpoint + 1) * every() : kNoBoundary;
  }
  // Returns the iteration with which a checkpoint has to be finished. That is the one before it, or, for an
  // asynchronous one, the last before the next checkpoint.
  std::uint32_t label(std::uint32_t checkpoint) const {
    if (!p_.asynchronous) return boundary_of(checkpoint) - 1;
    return std::min((checkpoint + 2) * every(), iterations_) - 1;
  }
  // Returns the first iteration of a rank that it has not passed; kNoIteration: there is none. The rank still
  // trains in it, or its next iteration waits for the checkpoint.
  std::uint32_t first_not_passed(RankId rank) const {
    const Trainer& trainer = trainers_[rank];
    std::uint32_t open = inner_->open_iteration(rank);
    // A checkpoint that waits for the one before, or is being copied to the host's memory, does not count as
    // finished.
    if (bytes_[rank] > 0 && trainer.begun < checkpoints())
      open = std::min(open, boundary_of(trainer.begun) - 1);
    if (!p_.asynchronous && trainer.written < trainer.begun) open = std::min(open, label(trainer.written));
    return open;
  }
  std::int64_t pieces(RankId rank) const { return (bytes_[rank] + p_.piece - 1) / p_.piece; }
  Bytes piece_bytes(RankId rank, std::int64_t i) const {
    return std::min(p_.piece, bytes_[rank] - i * p_.piece);
  }

  std::int64_t pieces_read(RankId rank) const { return (job_->read[rank] + p_.piece - 1) / p_.piece; }

  std::uint32_t add_name(const std::string& name) {
    names_.push_back(name);
    return static_cast<std::uint32_t>(names_.size() - 1);
  }
  void add_work(std::uint32_t name, Bytes bytes, BitRate rate) {
    const auto [it, added] = work_of_.try_emplace({name, bytes}, static_cast<std::uint32_t>(works_.size()));
    if (!added) return;
    Kernel kernel;
    kernel.kind = Kernel::Kind::fixed;
    kernel.name = names_[name];
    kernel.duration = bounded_time((static_cast<Int128>(bytes) * 8 * kSecond + rate - 1) / rate);
    works_.push_back({kernel.name, {kernel}});
  }

  // ---- Tasks. The ids of a trainer are, per checkpoint: the snapshot, its pieces, the message that they are
  // written. The ids of drives are, per writer: pieces and their writes in turn, then that message.

  Task own(std::uint32_t id, std::uint32_t iteration, std::uint32_t name) const {
    Task task;
    task.id = kOwn + id;
    task.iteration = iteration;
    task.name = name;
    task.stream = Stream::io;
    return task;
  }
  // Returns one end of a message between a trainer and drives.
  static TaskBody message(TaskKind kind, RankId peer, Bytes bytes, std::uint32_t tag = 0) {
    return message_body(kind, {{bytes, {}}, peer, tag, true, false});
  }
  RankId drive_of(RankId rank) const { return trainer_count() + server_of(rank); }
  std::uint32_t ids_of(RankId rank) const { return static_cast<std::uint32_t>(pieces(rank)) + 2; }
  std::uint32_t ids_at_drives(std::uint32_t writer) const {
    return static_cast<std::uint32_t>(2 * pieces(writer)) + 1;
  }
  // Returns the id of a writer's first task of a checkpoint at its drives.
  std::uint32_t first_at_drives(std::uint32_t writer, std::uint32_t checkpoint) const {
    std::uint32_t id = 0, all = 0;
    for (const std::uint32_t other : drives_[server_of(writer)].writers) {
      if (other < writer) id += ids_at_drives(other);
      all += ids_at_drives(other);
    }
    return checkpoint * all + id;
  }
  Task snapshot(RankId rank, std::uint32_t checkpoint) const {
    Task task = own(checkpoint * ids_of(rank), boundary_of(checkpoint) - 1, snapshot_name_);
    task.stream = Stream::compute;
    task.body = ComputeTask{work_of_.at({snapshot_name_, bytes_[rank]})};
    return task;
  }
  Task piece(RankId rank, std::uint32_t checkpoint, std::int64_t i, TaskKind kind) const {
    const bool sends = kind == TaskKind::send;
    const auto number = static_cast<std::uint32_t>(i);
    Task task =
        own(sends ? checkpoint * ids_of(rank) + 1 + number : first_at_drives(rank, checkpoint) + 2 * number,
            label(checkpoint), piece_name_);
    task.sequence = checkpoint * static_cast<std::uint32_t>(pieces(rank)) + number;
    task.body = message(kind, sends ? drive_of(rank) : rank, piece_bytes(rank, i));
    return task;
  }
  Task write(std::uint32_t writer, std::uint32_t checkpoint, std::int64_t i) const {
    Task task = own(first_at_drives(writer, checkpoint) + 2 * static_cast<std::uint32_t>(i) + 1,
                    label(checkpoint), write_name_);
    task.stream = Stream::compute;
    task.body = ComputeTask{work_of_.at({write_name_, piece_bytes(writer, i)})};
    return task;
  }
  Task written(RankId rank, std::uint32_t checkpoint, TaskKind kind) const {
    const bool sends = kind == TaskKind::send;
    Task task = own(sends ? first_at_drives(rank, checkpoint) + ids_at_drives(rank) - 1
                          : checkpoint * ids_of(rank) + 1 + static_cast<std::uint32_t>(pieces(rank)),
                    label(checkpoint), written_name_);
    task.sequence = checkpoint;
    task.body = message(kind, sends ? rank : drive_of(rank), kWrittenBytes);
    return task;
  }

  // Returns a task that reads a checkpoint. Its ids are, at a trainer, its pieces; at the drives, those of
  // reader after reader.
  Task read(RankId rank, std::int64_t i, TaskKind kind) const {
    const bool sends = kind == TaskKind::send;
    std::uint32_t first = 0;
    for (const std::uint32_t reader : drives_[server_of(rank)].readers) {
      if (sends && reader < rank) first += static_cast<std::uint32_t>(pieces_read(reader));
    }
    Task task = own((kRead | first) + static_cast<std::uint32_t>(i), 0, read_name_);
    task.sequence = static_cast<std::uint32_t>(i);
    task.body = message(kind, sends ? rank : drive_of(rank),
                        std::min(p_.piece, job_->read[rank] - i * p_.piece), kReadTag);
    return task;
  }
  void complete_read(RankId rank, std::uint32_t number, std::vector<Task>& ready) {
    const std::int64_t next = std::int64_t{number} + 1;
    if (next < pieces_read(rank)) {
      ready.push_back(read(rank, next, TaskKind::receive));
      return;
    }
    resume(rank, ready);
  }
  void complete_read_of(Drives& drives, std::uint32_t number, std::vector<Task>& ready) {
    for (const std::uint32_t reader : drives.readers) {
      const auto all = static_cast<std::uint32_t>(pieces_read(reader));
      if (number < all) {
        if (number + 1 == all) {
          --drives.reading;
        } else {
          ready.push_back(read(reader, std::int64_t{number} + 1, TaskKind::send));
        }
        return;
      }
      number -= all;
    }
  }

  // ---- A rank of the job

  void hold_back(RankId rank, std::size_t first, std::vector<Task>& ready) {
    Trainer& trainer = trainers_[rank];
    const auto later = [&](const Task& task) { return task.iteration >= trainer.boundary; };
    for (std::size_t i = first; i < ready.size(); ++i) {
      if (later(ready[i])) trainer.held.push_back(ready[i]);
    }
    ready.erase(std::remove_if(ready.begin() + static_cast<std::ptrdiff_t>(first), ready.end(), later),
                ready.end());
  }

  // Begins a checkpoint if its iterations are finished and the one before is written.
  void save(RankId rank, std::vector<Task>& ready) {
    Trainer& trainer = trainers_[rank];
    if (trainer.boundary == kNoBoundary || trainer.snapshots || trainer.written < trainer.begun) return;
    if (inner_->open_iteration(rank) < trainer.boundary) return;
    if (p_.asynchronous) {
      trainer.snapshots = true;
      ready.push_back(snapshot(rank, trainer.begun));
      return;
    }
    begin_writing(rank, ready);
  }
  void begin_writing(RankId rank, std::vector<Task>& ready) {
    Trainer& trainer = trainers_[rank];
    trainer.piece = 0;
    ready.push_back(piece(rank, trainer.begun, 0, TaskKind::send));
    ready.push_back(written(rank, trainer.begun, TaskKind::receive));
    ++trainer.begun;
  }
  void resume(RankId rank, std::vector<Task>& ready) {
    Trainer& trainer = trainers_[rank];
    trainer.boundary = bytes_[rank] > 0 ? boundary_of(trainer.begun) : kNoBoundary;
    std::vector<Task> held = std::exchange(trainer.held, {});
    const std::size_t first = ready.size();
    ready.insert(ready.end(), held.begin(), held.end());
    hold_back(rank, first, ready);
  }
  void complete_own(RankId rank, std::uint32_t id, std::vector<Task>& ready) {
    if ((id & kRead) != 0) return complete_read(rank, id & (kRead - 1), ready);
    Trainer& trainer = trainers_[rank];
    const std::uint32_t place = (id - kOwn) % ids_of(rank);
    if (place == 0) {
      trainer.snapshots = false;
      begin_writing(rank, ready);
      resume(rank, ready);
    } else if (place <= pieces(rank)) {
      if (++trainer.piece < pieces(rank))
        ready.push_back(piece(rank, trainer.begun - 1, trainer.piece, TaskKind::send));
    } else {
      ++trainer.written;
      if (!p_.asynchronous) resume(rank, ready);
      save(rank, ready);
    }
  }

  // ---- Drives

  void begin_drives(RankId rank, std::vector<Task>& ready) {
    const Drives& drives = drives_[rank - trainer_count()];
    for (const std::uint32_t writer : drives.writers)
      ready.push_back(piece(writer, drives.checkpoint, 0, TaskKind::receive));
  }
  void complete_drives(RankId rank, std::uint32_t id, std::vector<Task>& ready) {
    Drives& drives = drives_[rank - trainer_count()];
    if ((id & kRead) != 0) return complete_read_of(drives, id & (kRead - 1), ready);
    const auto [writer, place] = find(drives, id - kOwn);
    const auto i = static_cast<std::int64_t>(place / 2);
    if (i < pieces(writer) && place % 2 == 0) {
      if (i + 1 < pieces(writer)) ready.push_back(piece(writer, drives.checkpoint, i + 1, TaskKind::receive));
      ready.push_back(write(writer, drives.checkpoint, i));
      return;
    }
    if (i < pieces(writer)) {
      if (++pieces_written_[writer] % pieces(writer) == 0)
        ready.push_back(written(writer, drives.checkpoint, TaskKind::send));
      return;
    }
    if (++drives.over < drives.writers.size()) return;
    drives.over = 0;
    if (++drives.checkpoint < checkpoints()) begin_drives(rank, ready);
  }
  // Returns the writer that a task of the drives concerns, and the task's index among that writer's.
  std::pair<std::uint32_t, std::uint32_t> find(const Drives& drives, std::uint32_t id) const {
    std::uint32_t all = 0;
    for (const std::uint32_t writer : drives.writers) all += ids_at_drives(writer);
    id %= all;
    for (const std::uint32_t writer : drives.writers) {
      if (id < ids_at_drives(writer)) return {writer, id};
      id -= ids_at_drives(writer);
    }
    return {drives.writers.front(), 0};
  }

  std::shared_ptr<const CheckpointedJob> job_;
  std::uint32_t before_, iterations_;
  std::unique_ptr<TaskSource> inner_;
  CheckpointParameters p_;
  std::vector<Bytes> bytes_;  // by rank
  std::uint32_t servers_;
  std::vector<Work> works_;
  std::vector<std::string> names_;
  std::uint32_t write_name_ = 0, snapshot_name_ = 0, piece_name_ = 0, written_name_ = 0, read_name_ = 0;
  std::map<std::pair<std::uint32_t, Bytes>, std::uint32_t> work_of_;  // by name and bytes
  std::vector<Trainer> trainers_;
  std::vector<Drives> drives_;
  std::vector<std::int64_t> pieces_written_ = std::vector<std::int64_t>(trainers_.size(), 0);  // by writer
  std::unique_ptr<MemoryPlan> memory_;
};

}  // namespace

std::unique_ptr<TaskSource> with_checkpoints(CheckpointedJob job) {
  return std::make_unique<CheckpointedSource>(std::make_shared<const CheckpointedJob>(std::move(job)), 0);
}

}  // namespace netsim
