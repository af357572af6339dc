// KinetoEvent: the fields of an event of a Kineto trace that a replay needs. KinetoParser collects them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/ids.h"
#include "sim/workload/trace/kineto_shape.h"
#include "sim/workload/trace/kineto_trace.h"

namespace netsim {

enum class KinetoField : std::uint8_t {
  none,
  phase,
  category,
  name,
  process,
  thread,
  begin,
  duration,
  arguments,
  correlation,
  operation,
  stream,
  waited_stream,
  record_correlation,
  collective,
  in_elements,
  out_elements,
  group_size,
  type,
  in_split,
  out_split,
  group,
  listed_ranks,
  source,
  destination,
  root,
  first_rank,
  rank_stride,
  description,
  bytes,
  work,
  tokens_kind,
  token,
  token_host,
  copies,
  to_hosts,
  dims,
  dim_types
};
constexpr std::size_t kKinetoFields = static_cast<std::size_t>(KinetoField::dim_types) + 1;

// Returns the field that a key of an event, or of its `args`, stands for.
KinetoField kineto_field(std::string_view key, bool of_arguments);

// KinetoEvent: the fields of one event. Times are nanoseconds.
struct KinetoEvent {
  std::array<std::int64_t, kKinetoFields> numbers{};
  std::array<std::string, kKinetoFields> texts{};
  std::uint64_t has_number = 0, has_text = 0;  // a bit for each field

  static_assert(kKinetoFields <= 64, "each field has a bit");
  static std::uint64_t bit(KinetoField field) { return std::uint64_t{1} << static_cast<unsigned>(field); }
  KinetoShape shape;  // dims and types of its inputs
  void clear() {
    has_number = has_text = 0;
    shape.dims.clear();
    shape.types.clear();
  }
  bool has(KinetoField field) const { return (has_number & bit(field)) != 0; }
  std::int64_t number(KinetoField field, std::int64_t otherwise) const {
    return has(field) ? numbers[static_cast<std::size_t>(field)] : otherwise;
  }
  std::string_view text(KinetoField field) const {
    return (has_text & bit(field)) == 0 ? std::string_view()
                                        : std::string_view(texts[static_cast<std::size_t>(field)]);
  }
};

// Returns whether a field is a list of integers, as a text "[0, 1]" or as a list of JSON.
constexpr bool is_kineto_list(KinetoField field) {
  return field == KinetoField::listed_ranks || field == KinetoField::in_split ||
         field == KinetoField::out_split || field == KinetoField::copies || field == KinetoField::to_hosts;
}
// Returns the number that a text stands for: "12", or "stream 7" for streams and processes. Some writers use
// texts instead of numbers. Times are nanoseconds.
std::optional<std::int64_t> kineto_number(KinetoField field, std::string_view text);
// Returns whether a field is a time in microseconds.
constexpr bool is_kineto_time(KinetoField field) {
  return field == KinetoField::begin || field == KinetoField::duration;
}

// Returns the numbers in a list such as "[0, 1, 2]".
std::vector<RankId> kineto_ranks_in(std::string_view text);
// Returns the kind of a call of the runtime by its name, or nothing for calls that no replay needs.
std::optional<KinetoHostCall::Kind> kineto_host_call(std::string_view name);

}  // namespace netsim
