#include "sim/workload/trace/kineto_event.h"

#include <charconv>
#include <unordered_map>

#include "sim/core/input_file.h"

namespace netsim {

KinetoField kineto_field(std::string_view key, bool of_arguments) {
  using F = KinetoField;
  static const std::unordered_map<std::string_view, F> of_event{
      {"ph", F::phase},   {"cat", F::category}, {"name", F::name},    {"pid", F::process},
      {"tid", F::thread}, {"ts", F::begin},     {"dur", F::duration}, {"args", F::arguments}};
  static const std::unordered_map<std::string_view, F> in_arguments{
      {"correlation", F::correlation},
      {"External id", F::operation},
      {"external id", F::operation},
      {"stream", F::stream},
      {"wait_on_stream", F::waited_stream},
      {"wait_on_cuda_event_record_corr_id", F::record_correlation},
      {"Collective name", F::collective},
      {"In msg nelems", F::in_elements},
      {"Out msg nelems", F::out_elements},
      {"Group size", F::group_size},
      {"dtype", F::type},
      {"In split size", F::in_split},
      {"Out split size", F::out_split},
      {"Process Group Name", F::group},
      {"Process Group Ranks", F::listed_ranks},
      {"Process Group Description", F::description},
      {"bytes", F::bytes},
      {"netsim_work_ps", F::work},
      {"netsim_collective", F::tokens_kind},
      {"netsim_token", F::token},
      {"netsim_host", F::token_host},
      {"netsim_copies", F::copies},
      {"netsim_to_hosts", F::to_hosts},
      {"Src Rank", F::source},
      {"Dst Rank", F::destination},
      {"Rank", F::root},
      {"Global rank start", F::first_rank},
      {"Global rank stride", F::rank_stride},
      {"Input Dims", F::dims},
      {"Input type", F::dim_types}};
  const auto& fields = of_arguments ? in_arguments : of_event;
  const auto found = fields.find(key);
  return found == fields.end() ? F::none : found->second;
}

std::optional<std::int64_t> kineto_number(KinetoField field, std::string_view text) {
  const bool negative = text.starts_with('-');
  if (is_kineto_time(field)) {
    const auto time = scaled_decimal(text.substr(negative ? 1 : 0), 1000);
    return !time || !negative ? time : std::optional(-*time);
  }
  if (field == KinetoField::thread || field == KinetoField::process)
    text.remove_prefix(text.find_last_not_of("0123456789") + 1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole ? std::optional(number) : std::nullopt;
}

std::vector<RankId> kineto_ranks_in(std::string_view text) {
  std::vector<RankId> ranks;
  for (std::size_t at = 0; at < text.size();) {
    std::uint32_t rank = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), rank);
    if (error == std::errc()) ranks.emplace_back(rank);
    at = error == std::errc() ? static_cast<std::size_t>(end - text.data()) : at + 1;
  }
  return ranks;
}

std::optional<KinetoHostCall::Kind> kineto_host_call(std::string_view name) {
  using Kind = KinetoHostCall::Kind;
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("EventRecord")) return Kind::record_event;
  if (has("StreamWaitEvent")) return Kind::wait_event;
  if (has("DeviceSynchronize") || has("CtxSynchronize")) return Kind::synchronize_device;
  if (has("Synchronize")) return Kind::synchronize;
  if (has("Memcpy")) return Kind::copy;
  if (has("Launch") || has("Memset")) return Kind::launch;
  return std::nullopt;
}

}  // namespace netsim
