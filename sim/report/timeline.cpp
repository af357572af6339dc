#include "sim/report/timeline.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

namespace netsim {

std::uint32_t Lanes::take(Time start, Time end) {
  const auto after = ends_.upper_bound({start, UINT32_MAX});
  std::uint32_t lane = static_cast<std::uint32_t>(ends_.size());
  if (after != ends_.begin()) {
    const auto ended = std::prev(after);
    lane = ended->second;
    ends_.erase(ended);
  }
  ends_.emplace(end, lane);
  return lane;
}

std::vector<std::string> RecordLimit::notes(const std::string& file) const {
  if (count_ <= most_) return {};
  return {fmt::format("{} holds the first {} of {} {} (output.max_rows)", file, most_, count_, what_)};
}

HostAndPart host_and_part(std::string_view node) {
  const std::size_t slash = node.find('/');
  if (slash == std::string_view::npos) return {std::string(node), ""};
  return {std::string(node.substr(0, slash)), std::string(node.substr(slash + 1))};
}

std::string gpu_name(const RunView& run, GpuId gpu) {
  if (run.cluster == nullptr || gpu >= run.cluster->gpus.size()) return "";
  return run.cluster->graph.node(run.cluster->gpus[gpu].node).name;
}

const char* nccl_function(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::barrier:  // kBarrierBytes
      return "AllReduce";
    case CollectiveKind::all_gather:
      return "AllGather";
    case CollectiveKind::reduce_scatter:
      return "ReduceScatter";
    case CollectiveKind::all_to_all:
      return "AlltoAll";
    case CollectiveKind::broadcast:
      return "Broadcast";
    case CollectiveKind::reduce:
      return "Reduce";
    case CollectiveKind::gather:
      return "Gather";
    case CollectiveKind::scatter:
      return "Scatter";
    default:
      return "SendRecv";
  }
}

CallBytes call_bytes(CollectiveKind kind, Bytes bytes, std::uint32_t ranks) {
  switch (kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
      return {bytes / ranks, bytes};
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter:
      return {bytes, bytes / ranks};
    case CollectiveKind::barrier:
      return {kBarrierBytes, kBarrierBytes};
    default:
      return {bytes, bytes};
  }
}

std::string nccl_algorithm(const LibraryChoice* choice) {
  if (choice == nullptr || choice->algorithm.empty()) return "unknown";
  std::string name;
  for (const char c : choice->algorithm) {
    name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c == ' ' || c == '-' ? '_' : c;
  }
  return name;
}

std::string nccl_protocol(const LibraryChoice* choice) {
  if (choice == nullptr || choice->algorithm.empty()) return "unknown";
  return choice->protocol == Protocol::simple ? "SIMPLE" : to_string(choice->protocol);
}

std::vector<NamedNumber> mark_numbers(const RunView& run, const TaskRecord& record) {
  const std::optional<PipelineMark> mark =
      run.jobs[record.job].source->pipeline_mark(record.rank, record.task.id);
  if (!mark) return {};
  std::vector<NamedNumber> numbers{{"microbatch", mark->microbatch}, {"chunk", mark->chunk}};
  if (mark->paired) {
    numbers.push_back({"backward_microbatch", mark->backward_microbatch});
    numbers.push_back({"backward_chunk", mark->backward_chunk});
  }
  if (mark->layer) numbers.push_back({"layer", *mark->layer});
  return numbers;
}

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace netsim
