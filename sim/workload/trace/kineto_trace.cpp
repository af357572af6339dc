#include "sim/workload/trace/kineto_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/text.h"
#include "sim/workload/program/program.h"
#include "sim/workload/trace/kineto_bytes.h"
#include "sim/workload/trace/kineto_event.h"
#include "sim/workload/trace/kineto_launches.h"

namespace netsim {
namespace {

// KinetoParser: takes what nlohmann's parser finds, one value after the other.
class KinetoParser {
 public:
  KinetoParser(const InputSet::File& file, const KinetoBytes& bytes, bool with_shapes)
      : bytes_(bytes), with_shapes_(with_shapes) {
    trace_.path = file.path;
  }
  KinetoTrace take() { return std::move(trace_); }

  // ---- nlohmann's interface
  bool null() { return true; }
  bool boolean(bool value) {
    if (section_ == Section::own && depth_ == 2 && info_key_ == "waits") trace_.has_all_waits = value;
    return true;
  }
  bool number_integer(std::int64_t value) { return integer(value); }
  bool number_unsigned(std::uint64_t value) {
    return integer(static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX)));
  }
  bool number_float(double value, const std::string& text) {
    if (section_ != Section::events) return true;
    const KinetoField field = current();
    if (is_kineto_time(field)) {
      set_time(field, text);
    } else if (value > -1e18 && value < 1e18) {
      set(field, static_cast<std::int64_t>(value));
    }
    return true;
  }
  bool string(std::string& value) {
    if (section_ == Section::events) {
      if (is_input(KinetoField::dim_types, 0)) event_.shape.types.push_back(value);
      const KinetoField field = current();
      if (field == KinetoField::none) return true;
      event_.texts[static_cast<std::size_t>(field)].assign(value);
      event_.has_text |= KinetoEvent::bit(field);
      if (is_kineto_time(field)) {
        set_time(field, value);
      } else if (const auto number = kineto_number(field, value)) {
        set(field, *number);
      }
      return true;
    }
    if (section_ == Section::info) info_text(value);
    return true;
  }
  static bool binary(std::vector<std::uint8_t>&) { return true; }
  bool start_object(std::size_t) {
    ++depth_;
    if (section_ == Section::events && depth_ == event_depth_) {
      event_.clear();
      in_arguments_ = false;
    }
    if (section_ == Section::info && depth_ == kGroupDepth && info_key_ == "pg_config")
      trace_.groups.emplace_back();
    return true;
  }
  bool end_object() {
    if (section_ == Section::events && depth_ == event_depth_) finish_event();
    if (section_ == Section::events && depth_ == event_depth_ + 1) in_arguments_ = false;
    --depth_;
    return true;
  }
  bool start_array(std::size_t) {
    // Chrome also takes the events alone, without the object around them.
    if (++depth_ == 1) {
      section_ = Section::events;
      event_depth_ = 2;
    }
    if (is_input(KinetoField::dims, 1)) event_.shape.dims.emplace_back();
    // A list of tensors has no sides of its own.
    if (is_input(KinetoField::dims, 2)) event_.shape.dims.back().clear();
    if (is_list_element()) {
      event_.texts[static_cast<std::size_t>(field_)].clear();
      event_.has_text |= KinetoEvent::bit(field_);
    }
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }
  bool key(std::string& name) {
    if (depth_ == 1 && event_depth_ == 3) {
      section_ = name == "traceEvents"           ? Section::events
                 : name == "distributedInfo"     ? Section::info
                 : name == "baseTimeNanoseconds" ? Section::base
                 : name == "netsim"              ? Section::own
                                                 : Section::other;
      trace_.is_simulated = trace_.is_simulated || section_ == Section::own;
    } else if (section_ == Section::events && depth_ == event_depth_) {
      field_ = kineto_field(name, false);
      in_arguments_ = field_ == KinetoField::arguments;
    } else if (section_ == Section::events && depth_ == event_depth_ + 1) {
      field_ = in_arguments_ ? kineto_field(name, true) : KinetoField::none;
    } else if ((section_ == Section::info || section_ == Section::own) && depth_ == 2) {
      info_key_ = name;
    } else if (section_ == Section::info && depth_ == kGroupDepth) {
      group_key_ = name;
    }
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) {
    // The parser's text has the place: "... at line 3, column 5: syntax error ...".
    const std::string_view text = error.what();
    const std::size_t line = text.find("at line "), column = text.find(", column "), rest = text.find(": ");
    Place place{trace_.path, 0, 0, ""};
    if (line != std::string_view::npos && column != std::string_view::npos) {
      std::from_chars(text.data() + line + 8, text.data() + column, place.line);
      std::from_chars(text.data() + column + 9, text.data() + text.size(), place.column);
    }
    // The last byte may also be one too many, such as the bracket behind a comma.
    const bool cut = bytes_.at_end() && (text.find("unexpected end of input") != std::string_view::npos ||
                                         text.find("invalid ") != std::string_view::npos);
    throw InputError(place,
                     fmt::format("is no JSON{}: {}", cut ? ", because the file ends too early" : "",
                                 printable(rest == std::string_view::npos ? text : text.substr(rest + 2))));
  }

 private:
  enum class Section : std::uint8_t { other, events, info, base, own };
  static constexpr int kGroupDepth = 4;
  static constexpr std::int64_t kLatest = 3'000'000'000'000'000'000;

  // Returns the field of the event to which a value belongs.
  KinetoField current() const {
    const bool direct = depth_ == event_depth_ || (depth_ == event_depth_ + 1 && in_arguments_);
    return direct ? field_ : KinetoField::none;
  }
  // Returns whether a value belongs to the list of inputs of an operator whose shapes are wanted. `level` is
  // 0 for the inputs, 1 for the sides of one, and 2 for those of a list of tensors.
  bool is_input(KinetoField field, int level) const {
    return with_shapes_ && section_ == Section::events && in_arguments_ && field_ == field &&
           depth_ == event_depth_ + 2 + level;
  }
  // Returns whether a value belongs to a list of integers.
  bool is_list_element() const {
    return section_ == Section::events && in_arguments_ && is_kineto_list(field_) &&
           depth_ == event_depth_ + 2;
  }
  void set_time(KinetoField field, const std::string& text) {
    const auto time = kineto_number(field, text);
    if (text.empty()) return;
    if (!time || *time > kLatest || *time < -kLatest)
      fail(fmt::format("a time of {} us; allowed: numbers up to 3e15", printable(text.substr(0, 40))));
    set(field, *time);
  }
  void set(KinetoField field, std::int64_t value) {
    if (field == KinetoField::none) return;
    event_.numbers[static_cast<std::size_t>(field)] = value;
    event_.has_number |= KinetoEvent::bit(field);
  }
  bool integer(std::int64_t value) {
    if (section_ == Section::events) {
      if (is_input(KinetoField::dims, 1)) event_.shape.dims.back().push_back(value);
      if (is_list_element()) event_.texts[static_cast<std::size_t>(field_)] += fmt::format("{},", value);
      const KinetoField field = current();
      if (is_kineto_time(field) && (value > kLatest / 1000 || value < -kLatest / 1000))
        fail(fmt::format("a time of {} us; allowed: numbers up to 3e15", value));
      set(field, is_kineto_time(field) ? value * 1000 : value);
    } else if (section_ == Section::base && depth_ == 1) {
      trace_.base = std::clamp<std::int64_t>(value, 0, kLatest);
    } else if (section_ == Section::info) {
      info_number(value);
    }
    return true;
  }
  void info_number(std::int64_t value) {
    if (depth_ == 2 && value < 0 && (info_key_ == "rank" || info_key_ == "world_size"))
      fail_info(std::to_string(value));
    if (depth_ == 2 && info_key_ == "rank") trace_.rank = value;
    if (depth_ == 2 && info_key_ == "world_size") trace_.world = value;
    if (info_key_ != "pg_config" || trace_.groups.empty()) return;
    if (depth_ == kGroupDepth && group_key_ == "pg_name") trace_.groups.back().name = std::to_string(value);
    if (depth_ == kGroupDepth + 1 && group_key_ == "ranks" && value >= 0 && value <= UINT32_MAX)
      trace_.groups.back().ranks.emplace_back(static_cast<std::uint32_t>(value));
  }
  [[noreturn]] void fail_info(const std::string& given) const {
    fail(fmt::format("{} in distributedInfo is {}; allowed: integers from 0 on", info_key_, given));
  }
  void info_text(const std::string& value) {
    if (const auto number = kineto_number(KinetoField::root, value); number && depth_ == 2)
      return info_number(*number);
    if (depth_ == 2 && !value.empty() && (info_key_ == "rank" || info_key_ == "world_size"))
      fail_info("'" + printable(value.substr(0, 40)) + "'");
    if (info_key_ != "pg_config") return;
    if (depth_ == 2) return read_groups(value);
    if (depth_ != kGroupDepth || trace_.groups.empty()) return;
    if (group_key_ == "pg_name") trace_.groups.back().name = value;
    if (group_key_ == "pg_desc") trace_.groups.back().description = value;
    if (group_key_ == "ranks") trace_.groups.back().ranks = kineto_ranks_in(value);
  }
  // Reads a list of groups that is a text, as traces on demand have it.
  void read_groups(const std::string& text) {
    const nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
    if (!list.is_array()) return;
    for (const nlohmann::json& item : list) {
      const auto name = item.find("pg_name"), ranks = item.find("ranks");
      const auto description = item.find("pg_desc");
      if (name == item.end() || ranks == item.end()) continue;
      trace_.groups.push_back(
          {name->is_string() ? name->get<std::string>() : name->dump(),
           description != item.end() && description->is_string() ? description->get<std::string>() : "",
           kineto_ranks_in(ranks->is_string() ? ranks->get<std::string>() : ranks->dump())});
    }
  }

  // Returns the kind of an operation of the GPU by its category, or nothing for other events.
  static std::optional<KinetoOp::Kind> op_kind(std::string_view category) {
    if (category == "kernel" || category == "Kernel") return KinetoOp::Kind::kernel;
    if (category == "gpu_memcpy" || category == "Memcpy") return KinetoOp::Kind::copy;
    if (category == "gpu_memset" || category == "Memset") return KinetoOp::Kind::fill;
    return std::nullopt;
  }
  void finish_event() {
    const std::string_view category = event_.text(KinetoField::category),
                           phase = event_.text(KinetoField::phase);
    const auto kind = op_kind(category);
    if (phase == "B" && kind) {
      fail(fmt::format("the event '{}' has the phase B; allowed for operations of a GPU: X, with ts and dur",
                       printable(event_.text(KinetoField::name).substr(0, 60))));
    }
    if (phase != "X") return;
    if (kind) return add_op(*kind);
    if (category == "cuda_sync") return add_sync();
    // cuda_runtime, cuda_driver, xpu_runtime, privateuse1_runtime, and Runtime in old files.
    if (category.ends_with("_runtime") || category.ends_with("_driver") || category == "Runtime")
      return add_host_call();
    if (event_.text(KinetoField::name) == "record_param_comms") return add_operation();
    if (!event_.shape.dims.empty() && event_.has(KinetoField::operation)) {
      event_.shape.operation = event_.text(KinetoField::name);
      trace_.shapes.insert_or_assign(identifier(KinetoField::operation), event_.shape);
    }
    ++trace_.ignored;
  }
  void need_times() {
    if (!event_.has(KinetoField::begin) || !event_.has(KinetoField::duration)) {
      fail(fmt::format("the event '{}' has no number as its ts or dur; allowed: both, in microseconds",
                       printable(event_.text(KinetoField::name).substr(0, 60))));
    }
    // Kineto itself writes such durations as 0 since 2024.
    if (event_.number(KinetoField::duration, 0) < 0) {
      ++trace_.negative;
      set(KinetoField::duration, 0);
    }
  }
  std::int64_t begin() const { return event_.number(KinetoField::begin, 0); }
  std::int64_t end() const { return begin() + event_.number(KinetoField::duration, 0); }
  std::uint64_t identifier(KinetoField field) const {
    return static_cast<std::uint64_t>(event_.number(field, 0));
  }

  void add_op(KinetoOp::Kind kind) {
    need_times();
    constexpr std::int64_t kLongest = ProgramLimits::kKernelTime / kNanosecond;
    if (end() - begin() > kLongest)
      fail(fmt::format("the event '{}' has a dur of {} us; allowed: up to {}",
                       printable(event_.text(KinetoField::name).substr(0, 60)), (end() - begin()) / 1000,
                       kLongest / 1000));
    KinetoOp op;
    op.kind = kind;
    op.name = name(event_.text(KinetoField::name));
    op.start = begin();
    op.duration = end() - begin();
    op.correlation = identifier(KinetoField::correlation);
    op.operation = identifier(KinetoField::operation);
    op.bytes = std::clamp<Bytes>(event_.number(KinetoField::bytes, 0), 0, ProgramLimits::kBytes);
    const Time work = event_.number(KinetoField::work, -1);
    if (work <= ProgramLimits::kKernelTime) op.work = std::max<Time>(work, -1);
    op.stream = {event_.number(KinetoField::process, 0),
                 event_.number(KinetoField::thread, event_.number(KinetoField::stream, 0))};
    if (!event_.text(KinetoField::collective).empty()) op.call = call();
    trace_.ops.push_back(op);
  }
  // Returns the number of a name. Names of templates are cut.
  std::uint32_t name(std::string_view text) {
    std::string key = printable(text.substr(0, 100));
    const auto [at, is_new] = names_.try_emplace(key, static_cast<std::uint32_t>(trace_.names.size()));
    if (is_new) trace_.names.push_back(std::move(key));
    return at->second;
  }
  std::uint32_t call() {
    KinetoCall call;
    call.name = event_.text(KinetoField::collective);
    call.group = event_.text(KinetoField::group);
    const std::string_view listed = event_.text(KinetoField::listed_ranks);
    if (listed.find("...") == std::string_view::npos) call.listed_ranks = kineto_ranks_in(listed);
    if (call.listed_ranks.empty()) call.listed_ranks = regular_ranks();
    call.description = event_.text(KinetoField::description);
    call.type = event_.text(KinetoField::type);
    call.in_elements = event_.number(KinetoField::in_elements, -1);
    call.out_elements = event_.number(KinetoField::out_elements, -1);
    call.group_size = event_.number(KinetoField::group_size, -1);
    call.source = event_.number(KinetoField::source, -1);
    call.destination = event_.number(KinetoField::destination, -1);
    call.root = event_.number(KinetoField::root, -1);
    call.in_parts = split_sizes_in(event_.text(KinetoField::in_split));
    call.out_parts = split_sizes_in(event_.text(KinetoField::out_split));
    if (!event_.text(KinetoField::tokens_kind).empty()) call.tokens = tokens();
    trace_.calls.push_back(std::move(call));
    return static_cast<std::uint32_t>(trace_.calls.size() - 1);
  }
  std::shared_ptr<const TraceTokens> tokens() const {
    const auto list = [this](KinetoField field) {
      return split_sizes_in(event_.text(field)).value_or(std::vector<std::int64_t>());
    };
    return std::make_shared<TraceTokens>(TraceTokens{
        std::string(event_.text(KinetoField::tokens_kind)), event_.number(KinetoField::token, 0),
        event_.number(KinetoField::token_host, 0), list(KinetoField::copies), list(KinetoField::to_hosts)});
  }
  // Returns the ranks of a group that is described by its first rank and the distance of its ranks.
  std::vector<RankId> regular_ranks() const {
    const std::int64_t first = event_.number(KinetoField::first_rank, -1),
                       stride = event_.number(KinetoField::rank_stride, -1),
                       size = event_.number(KinetoField::group_size, -1);
    constexpr std::int64_t kMost = ProgramLimits::kRanks;
    if (first < 0 || stride < 1 || size < 1 || first > kMost || stride > kMost || size > kMost) return {};
    if (first + stride * (size - 1) >= kMost) return {};
    std::vector<RankId> ranks;
    ranks.reserve(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i)
      ranks.emplace_back(static_cast<std::uint32_t>(first + stride * i));
    return ranks;
  }
  void add_operation() {
    need_times();
    if (event_.text(KinetoField::collective).empty()) return;
    trace_.operations.push_back(
        {begin(), end(), identifier(KinetoField::operation), event_.number(KinetoField::thread, 0), call()});
  }
  void add_host_call() {
    const auto kind = kineto_host_call(event_.text(KinetoField::name));
    if (!kind) return;
    need_times();
    trace_.host_calls.push_back(
        {*kind, begin(), end(), identifier(KinetoField::correlation), event_.number(KinetoField::thread, 0)});
  }
  void add_sync() {
    need_times();
    const std::int64_t device = event_.number(KinetoField::process, 0);
    trace_.syncs.push_back(
        {identifier(KinetoField::correlation),
         event_.text(KinetoField::name) == "Stream Wait Event",
         begin(),
         {device, event_.number(KinetoField::stream, event_.number(KinetoField::thread, -1))},
         event_.number(KinetoField::waited_stream, -1),
         event_.number(KinetoField::record_correlation, -1)});
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(Place{trace_.path, bytes_.line(), 0, ""}, message);
  }

  const KinetoBytes& bytes_;
  bool with_shapes_;
  KinetoTrace trace_;
  std::unordered_map<std::string, std::uint32_t> names_;  // never iterated
  KinetoEvent event_;
  Section section_ = Section::other;
  KinetoField field_ = KinetoField::none;
  bool in_arguments_ = false;
  std::string info_key_, group_key_;
  int depth_ = 0, event_depth_ = 3;
};

}  // namespace

KinetoTrace read_kineto(const InputSet::File& file, bool with_shapes) {
  KinetoBytes bytes(file);
  KinetoParser parser(file, bytes, with_shapes);
  nlohmann::json::sax_parse(KinetoIterator(&bytes), KinetoIterator(nullptr), &parser);
  KinetoTrace trace = parser.take();
  const auto by_begin = [](const auto& a, const auto& b) { return a.begin < b.begin; };
  const auto by_moment = [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.correlation) < std::pair(b.begin, b.correlation);
  };
  std::stable_sort(trace.host_calls.begin(), trace.host_calls.end(), by_moment);
  std::stable_sort(trace.syncs.begin(), trace.syncs.end(), by_moment);
  std::stable_sort(trace.operations.begin(), trace.operations.end(), by_begin);
  find_kineto_launches(trace);
  find_kineto_calls(trace);
  // A run may post a receive long before its message begins. Begins have the order of messages.
  if (trace.is_simulated) {
    std::stable_sort(trace.ops.begin(), trace.ops.end(), [](const KinetoOp& a, const KinetoOp& b) {
      return std::pair(a.start, a.correlation) < std::pair(b.start, b.correlation);
    });
  }
  return trace;
}

}  // namespace netsim
