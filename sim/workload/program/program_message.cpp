#include "sim/workload/program/program_message.h"
#include "sim/workload/program/workload.pb.h"

namespace netsim {

const EnumTable<Kernel::Kind>& kernel_kind_table() {
  static const EnumTable<Kernel::Kind> table = {{Kernel::Kind::gemm, pb::Kernel::GEMM},
                                                {Kernel::Kind::memory, pb::Kernel::MEMORY},
                                                {Kernel::Kind::fixed, pb::Kernel::FIXED},
                                                {Kernel::Kind::attention, pb::Kernel::ATTENTION}};
  return table;
}

const EnumTable<Precision>& precision_table() {
  static const EnumTable<Precision> table = {{Precision::half, pb::Kernel::HALF},
                                             {Precision::fp32, pb::Kernel::FP32},
                                             {Precision::tf32, pb::Kernel::TF32},
                                             {Precision::fp8, pb::Kernel::FP8},
                                             {Precision::fp4, pb::Kernel::FP4}};
  return table;
}

const EnumTable<TaskKind>& task_kind_table() {
  static const EnumTable<TaskKind> table = {{TaskKind::compute, pb::Op::COMPUTE},
                                            {TaskKind::collective, pb::Op::COLLECTIVE},
                                            {TaskKind::send, pb::Op::SEND},
                                            {TaskKind::receive, pb::Op::RECEIVE},
                                            {TaskKind::circuits, pb::Op::CIRCUITS},
                                            {TaskKind::copy_to_host, pb::Op::COPY_TO_HOST},
                                            {TaskKind::copy_from_host, pb::Op::COPY_FROM_HOST},
                                            {TaskKind::host_compute, pb::Op::HOST_COMPUTE},
                                            {TaskKind::host_thread, pb::Op::HOST_THREAD}};
  return table;
}

const EnumTable<Stream>& stream_table() {
  static const EnumTable<Stream> table = {
      {Stream::compute, pb::Op::STREAM_COMPUTE}, {Stream::tp, pb::Op::STREAM_TP},
      {Stream::pp, pb::Op::STREAM_PP},           {Stream::dp, pb::Op::STREAM_DP},
      {Stream::ep, pb::Op::STREAM_EP},           {Stream::cp, pb::Op::STREAM_CP},
      {Stream::io, pb::Op::STREAM_IO},           {Stream::offload, pb::Op::STREAM_OFFLOAD}};
  return table;
}

const EnumTable<CollectiveKind>& collective_table() {
  static const EnumTable<CollectiveKind> table = [] {
    EnumTable<CollectiveKind> pairs;
    for (const CollectiveKindInfo& info : kCollectiveKinds) {
      if (info.protobuf != 0) pairs.emplace_back(info.kind, info.protobuf);
    }
    return pairs;
  }();
  return table;
}

std::string count_of(std::size_t count, const char* what) { return std::to_string(count) + " " + what; }

}  // namespace netsim
