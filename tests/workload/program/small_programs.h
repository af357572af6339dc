// Small programs written by hand, and YAML descriptions read without a file.
#pragma once

#include <memory>
#include <string>

#include "sim/core/registry.h"
#include "sim/workload/program/program.h"
#include "sim/workload/program/role_program_source.h"
#include "sim/workload/workload.h"

namespace netsim::test {

inline Work fixed_work(const std::string& name, Time duration) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::fixed;
  kernel.name = name;
  kernel.duration = duration;
  return {name, {kernel}};
}

inline ProgramOp compute_op(std::uint32_t work = 0) {
  ProgramOp op;
  op.work = work;
  return op;
}

// Two ranks on one axis; each computes twice, rank 0 sends 100 bytes to rank 1, and they all-reduce 64 bytes.
inline Program two_ranks() {
  ProgramBuilder builder("two_ranks");
  const std::uint32_t axis = builder.axis("pp", 2);
  const std::uint32_t group = builder.group({{{axis, {}}}, {}, 0});
  for (const std::uint32_t rank : {0U, 1U}) {
    BlockBuilder main(builder, "rank");
    const auto first = main.compute(fixed_work("step", 10));
    auto moved = first;
    if (rank == 0)
      moved = main.send("send", {PeerExpression::Kind::offset, false, axis, 1, 0}, 7, 100, {first});
    if (rank == 1) moved = main.receive("receive", 1, {PeerExpression::Kind::rank, false, 0, 0, 0}, 7, 100);
    const auto second = main.compute(fixed_work("step", 10), {moved});
    main.collective("sum", CollectiveKind::all_reduce, Stream::dp, 0, group, 64, {second});
    builder.role({"rank_" + std::to_string(rank), {{axis, {rank}}}, main.finish()});
  }
  return builder.finish();
}

inline std::unique_ptr<WorkloadKind> parse_workload(const std::string& yaml) {
  return Registry<WorkloadKind>::instance().create(parse_config(yaml, "test.yaml"), "");
}

}  // namespace netsim::test
