#include <map>
#include <span>

#include "sim/core/errors.h"
#include "sim/workload/program/program_checks.h"
#include "sim/workload/program/program_message.h"
#include "sim/workload/program/workload.pb.h"

namespace netsim {
namespace {

template <class Ours>
int theirs(const EnumTable<Ours>& table, Ours value) {
  for (const auto& [ours, number] : table) {
    if (ours == value) return number;
  }
  check_failed("enum value", __FILE__, __LINE__, "value without a place in workload.proto");
}

// MessageEncoder: converts the parts of a program.
class MessageEncoder {
 public:
  explicit MessageEncoder(const Program& program) : program_(program) {
    for (std::size_t i = 0; i < program.names.size(); ++i) {
      name_index_.emplace(program.names[i], static_cast<std::uint32_t>(i));
    }
  }

  pb::Workload write() {
    pb::Workload message;
    message.set_magic(kProgramMagic);
    message.set_schema(kProgramSchema);
    message.set_producer(program_.producer);
    message.set_job(program_.job);
    for (const ProgramAxis& axis : program_.axes) {
      auto& out = *message.add_axes();
      out.set_name(axis.name);
      out.set_size(axis.size);
    }
    for (const std::string& name : program_.names) message.add_names(name);
    for (const Work& work : program_.works) write_work(work, *message.add_works());
    for (const auto& table : program_.tables) {
      message.add_tables()->mutable_values()->Add(table.begin(), table.end());
    }
    for (const BlockCounts& counts : program_.counts) {
      const std::span<const Bytes> rows = counts.rows();
      pb::Counts& out = *message.add_counts();
      out.mutable_values()->Add(rows.begin(), rows.end());
      if (!counts.has_tokens()) continue;
      const TokenBytes& tokens = counts.tokens();
      out.set_token(tokens.token);
      out.set_host(tokens.host);
      out.mutable_copies()->Add(tokens.copies.begin(), tokens.copies.end());
      out.mutable_to_hosts()->Add(tokens.to_hosts.begin(), tokens.to_hosts.end());
    }
    for (const GroupExpression& group : program_.groups) write_group(group, *message.add_groups());
    for (const ProgramBlock& block : program_.blocks) write_block(block, *message.add_blocks());
    for (const ProgramRole& role : program_.roles) write_role(role, *message.add_roles());
    message.set_iterations(program_.iterations);
    message.set_warm_up(program_.warm_up);
    message.set_model_flops(program_.model_flops);
    message.set_total_tasks(total_tasks(program_, "program"));
    return message;
  }

 private:
  std::uint32_t name(const std::string& text) const {
    const auto it = name_index_.find(text);
    NETSIM_CHECK(it != name_index_.end(), "name '" + text + "' is not among the program's names");
    return it->second;
  }

  void write_work(const Work& work, pb::Work& out) const {
    out.set_name(name(work.name));
    for (const Kernel& kernel : work.kernels) {
      pb::Kernel& k = *out.add_kernels();
      k.set_kind(static_cast<pb::Kernel::Kind>(theirs(kernel_kind_table(), kernel.kind)));
      k.set_name(name(kernel.name));
      if (kernel.kind == Kernel::Kind::gemm || kernel.kind == Kernel::Kind::attention) {
        k.set_m(kernel.m);
        k.set_n(kernel.n);
        k.set_k(kernel.k);
        k.set_batch(kernel.batch);
        k.set_element_bytes(kernel.element_bytes);
        k.set_precision(static_cast<pb::Kernel::Precision>(theirs(precision_table(), kernel.precision)));
        if (kernel.pieces > 1) k.set_pieces(kernel.pieces);
        if (kernel.backward) k.set_backward(true);
        if (kernel.weight_gradient) k.set_weight_gradient(true);
        if (kernel.accumulates) k.set_accumulates(true);
        if (kernel.held_multiprocessors > 0) k.set_held_multiprocessors(kernel.held_multiprocessors);
        if (kernel.slice.count > 1) write_slice(kernel.slice, k);
        k.set_bytes(kernel.bytes);
      } else if (kernel.kind == Kernel::Kind::memory) {
        k.set_bytes(kernel.bytes);
        if (kernel.atomic_adds > 0) k.set_atomic_adds(kernel.atomic_adds);
      } else {
        k.set_duration_ps(kernel.duration);
      }
    }
  }

  static void write_slice(const KernelSlice& slice, pb::Kernel& out) {
    out.set_slices(slice.count);
    out.set_slice(slice.index);
    out.set_slice_awaits(slice.awaits);
    out.set_slice_starts_kernel(slice.starts_kernel);
  }

  static void write_group(const GroupExpression& group, pb::Group& out) {
    for (const auto& subset : group.axes) {
      auto& axis = *out.add_axes();
      axis.set_axis(subset.axis);
      axis.mutable_members()->Add(subset.members.begin(), subset.members.end());
    }
    out.mutable_ranks()->Add(group.ranks.begin(), group.ranks.end());
    out.set_communicator(group.communicator);
    for (const std::vector<RankId>& list : group.lists)
      out.add_lists()->mutable_ranks()->Add(list.begin(), list.end());
  }

  static void write_block(const ProgramBlock& block, pb::Block& out) {
    out.set_name(block.name);
    for (const auto& item : block.items) {
      if (const auto* op = std::get_if<ProgramOp>(&item)) {
        write_op(*op, *out.add_items()->mutable_op());
      } else {
        auto& repeat = *out.add_items()->mutable_repeat();
        repeat.set_block(std::get<ProgramRepeat>(item).block);
        repeat.set_count(std::get<ProgramRepeat>(item).count);
      }
    }
  }

  static void write_op(const ProgramOp& op, pb::Op& out) {
    out.set_kind(static_cast<pb::Op::Kind>(theirs(task_kind_table(), op.kind)));
    out.set_stream(static_cast<pb::Op::Stream>(theirs(stream_table(), op.stream)));
    out.set_queue(op.queue);
    out.set_unordered(op.unordered);
    out.set_raw(op.raw);
    out.set_joins(op.joins);
    out.set_name(op.name);
    out.set_table_plus_one(op.table_plus_one);
    out.set_choice_plus_one(op.choice_plus_one);
    out.mutable_after()->Add(op.after.begin(), op.after.end());
    out.mutable_after_previous()->Add(op.after_previous.begin(), op.after_previous.end());
    out.set_not_before_ps(op.not_before);
    if (has_work(op.kind)) {
      out.set_work(op.work);
      return;
    }
    if (op.kind == TaskKind::circuits) {
      out.set_circuits(op.circuits);
      out.set_group(op.group);
      return;
    }
    out.set_bytes(op.bytes);
    if (is_copy(op.kind)) return;
    out.set_traffic_class(op.traffic_class);
    out.set_priority(op.priority);
    out.set_channel(op.channel);
    out.set_deadline_ps(op.deadline);
    if (op.kind == TaskKind::collective) {
      out.set_collective(static_cast<pb::Op::Collective>(theirs(collective_table(), op.collective)));
      out.set_group(op.group);
      out.set_root(op.root);
      out.set_counts_plus_one(op.counts_plus_one);
      return;
    }
    out.set_tag(op.tag);
    if (op.peer.kind == PeerExpression::Kind::rank) {
      out.mutable_peer()->set_rank(op.peer.rank);
    } else if (op.peer.kind == PeerExpression::Kind::table) {
      out.mutable_peer()->set_table(op.peer.table);
    } else {
      auto& offset = *out.mutable_peer()->mutable_offset();
      offset.set_axis(op.peer.axis);
      offset.set_offset(op.peer.offset);
      offset.set_wrap(op.peer.wrap);
    }
  }

  static void write_role(const ProgramRole& role, pb::Role& out) {
    out.set_name(role.name);
    out.set_block(role.block);
    for (const auto& coordinate : role.where) {
      auto& where = *out.add_where();
      where.set_axis(coordinate.axis);
      where.mutable_values()->Add(coordinate.values.begin(), coordinate.values.end());
    }
  }

  const Program& program_;
  std::map<std::string, std::uint32_t> name_index_;
};

}  // namespace

pb::Workload message_of_program(const Program& program) { return MessageEncoder(program).write(); }

}  // namespace netsim
