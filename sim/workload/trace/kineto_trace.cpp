#include "sim/workload/trace/kineto_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/text.h"
#include "sim/workload/trace/kineto_bytes.h"

namespace netsim {
namespace {

// ---- Events

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
  dims,
  dim_types
};
constexpr std::size_t kKinetoFields = static_cast<std::size_t>(KinetoField::dim_types) + 1;

KinetoField field_of(std::string_view key, bool of_arguments) {
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
      {"Src Rank", F::source},
      {"Dst Rank", F::destination},
      {"Rank", F::root},
      {"Input Dims", F::dims},
      {"Input type", F::dim_types}};
  const auto& fields = of_arguments ? in_arguments : of_event;
  const auto found = fields.find(key);
  return found == fields.end() ? F::none : found->second;
}

// KinetoEvent: the fields of one event. Times are nanoseconds.
struct KinetoEvent {
  std::array<std::int64_t, kKinetoFields> numbers{};
  std::array<std::string, kKinetoFields> texts{};
  std::uint32_t has_number = 0, has_text = 0;  // a bit for each field

  static std::uint32_t bit(KinetoField field) { return 1U << static_cast<unsigned>(field); }
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

// Returns the numbers in a list such as "[0, 1, 2]".
std::vector<RankId> ranks_in(std::string_view text) {
  std::vector<RankId> ranks;
  for (std::size_t at = 0; at < text.size();) {
    std::uint32_t rank = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), rank);
    if (error == std::errc()) ranks.emplace_back(rank);
    at = error == std::errc() ? static_cast<std::size_t>(end - text.data()) : at + 1;
  }
  return ranks;
}

// Returns whether the parts of an all-to-all differ: "[3, 1]". An empty list is that of equal parts.
bool is_uneven(std::string_view splits) {
  const std::vector<RankId> parts = ranks_in(splits);
  return std::adjacent_find(parts.begin(), parts.end(), std::not_equal_to<>()) != parts.end();
}

std::optional<KinetoHostCall::Kind> host_call_of(std::string_view name) {
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
    if (is_time(field)) {
      const bool negative = text.starts_with('-');
      const auto time = scaled_decimal(std::string_view(text).substr(negative ? 1 : 0), 1000);
      if (!time || *time > kLatest) fail(fmt::format("a time of {} us; allowed: up to 3e15", text));
      set(field, negative ? -*time : *time);
    } else if (value > -1e18 && value < 1e18) {
      set(field, static_cast<std::int64_t>(value));
    }
    return true;
  }
  bool string(std::string& value) {
    if (section_ == Section::events) {
      if (is_input(KinetoField::dim_types, kInputDepth)) event_.shape.types.push_back(value);
      const KinetoField field = current();
      if (field == KinetoField::none) return true;
      event_.texts[static_cast<std::size_t>(field)].assign(value);
      event_.has_text |= KinetoEvent::bit(field);
      return true;
    }
    if (section_ == Section::info) info_text(value);
    return true;
  }
  static bool binary(std::vector<std::uint8_t>&) { return true; }
  bool start_object(std::size_t) {
    ++depth_;
    if (section_ == Section::events && depth_ == kEventDepth) {
      event_.clear();
      in_arguments_ = false;
    }
    if (section_ == Section::info && depth_ == kGroupDepth && info_key_ == "pg_config")
      trace_.groups.emplace_back();
    return true;
  }
  bool end_object() {
    if (section_ == Section::events && depth_ == kEventDepth) finish_event();
    if (section_ == Section::events && depth_ == kEventDepth + 1) in_arguments_ = false;
    --depth_;
    return true;
  }
  bool start_array(std::size_t) {
    ++depth_;
    if (is_input(KinetoField::dims, kInputDepth + 1)) event_.shape.dims.emplace_back();
    // A list of tensors has no sides of its own.
    if (is_input(KinetoField::dims, kInputDepth + 2)) event_.shape.dims.back().clear();
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }
  bool key(std::string& name) {
    if (depth_ == 1) {
      section_ = name == "traceEvents"           ? Section::events
                 : name == "distributedInfo"     ? Section::info
                 : name == "baseTimeNanoseconds" ? Section::base
                 : name == "netsim"              ? Section::own
                                                 : Section::other;
      trace_.is_simulated = trace_.is_simulated || section_ == Section::own;
    } else if (section_ == Section::events && depth_ == kEventDepth) {
      field_ = field_of(name, false);
      in_arguments_ = field_ == KinetoField::arguments;
    } else if (section_ == Section::events && depth_ == kEventDepth + 1) {
      field_ = in_arguments_ ? field_of(name, true) : KinetoField::none;
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
    throw InputError(
        place, "is no JSON: " + printable(rest == std::string_view::npos ? text : text.substr(rest + 2)));
  }

 private:
  enum class Section : std::uint8_t { other, events, info, base, own };
  static constexpr int kEventDepth = 3, kGroupDepth = 4, kInputDepth = kEventDepth + 2;
  static constexpr std::int64_t kLatest = 3'000'000'000'000'000'000;

  // Returns the field of the event to which a value belongs.
  KinetoField current() const {
    const bool direct = depth_ == kEventDepth || (depth_ == kEventDepth + 1 && in_arguments_);
    return direct ? field_ : KinetoField::none;
  }
  // Returns whether a value belongs to the list of inputs of an operator whose shapes are wanted.
  bool is_input(KinetoField field, int depth) const {
    return with_shapes_ && section_ == Section::events && in_arguments_ && field_ == field && depth_ == depth;
  }
  static bool is_time(KinetoField field) {
    return field == KinetoField::begin || field == KinetoField::duration;
  }
  void set(KinetoField field, std::int64_t value) {
    if (field == KinetoField::none) return;
    event_.numbers[static_cast<std::size_t>(field)] = value;
    event_.has_number |= KinetoEvent::bit(field);
  }
  bool integer(std::int64_t value) {
    if (section_ == Section::events) {
      if (is_input(KinetoField::dims, kInputDepth + 1)) event_.shape.dims.back().push_back(value);
      const KinetoField field = current();
      if (is_time(field) && (value > kLatest / 1000 || value < -kLatest / 1000))
        fail(fmt::format("a time of {} us; allowed: up to 3e15", value));
      set(field, is_time(field) ? value * 1000 : value);
    } else if (section_ == Section::base && depth_ == 1) {
      trace_.base = std::clamp<std::int64_t>(value, 0, kLatest);
    } else if (section_ == Section::info) {
      info_number(value);
    }
    return true;
  }
  void info_number(std::int64_t value) {
    if (depth_ == 2 && info_key_ == "rank") trace_.rank = value;
    if (depth_ == 2 && info_key_ == "world_size") trace_.world = value;
    if (info_key_ != "pg_config" || trace_.groups.empty()) return;
    if (depth_ == kGroupDepth && group_key_ == "pg_name") trace_.groups.back().name = std::to_string(value);
    if (depth_ == kGroupDepth + 1 && group_key_ == "ranks" && value >= 0 && value <= UINT32_MAX)
      trace_.groups.back().ranks.emplace_back(static_cast<std::uint32_t>(value));
  }
  void info_text(const std::string& value) {
    if (info_key_ != "pg_config") return;
    if (depth_ == 2) return read_groups(value);
    if (depth_ != kGroupDepth || trace_.groups.empty()) return;
    if (group_key_ == "pg_name") trace_.groups.back().name = value;
    if (group_key_ == "pg_desc") trace_.groups.back().description = value;
    if (group_key_ == "ranks") trace_.groups.back().ranks = ranks_in(value);
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
           ranks_in(ranks->is_string() ? ranks->get<std::string>() : ranks->dump())});
    }
  }

  void finish_event() {
    if (event_.text(KinetoField::phase) != "X") return;
    const std::string_view category = event_.text(KinetoField::category);
    if (category == "kernel" || category == "Kernel") return add_op(KinetoOp::Kind::kernel);
    if (category == "gpu_memcpy" || category == "Memcpy") return add_op(KinetoOp::Kind::copy);
    if (category == "gpu_memset" || category == "Memset") return add_op(KinetoOp::Kind::fill);
    if (category == "cuda_sync") return add_sync();
    if (category == "cuda_runtime" || category == "cuda_driver" || category == "Runtime")
      return add_host_call();
    if (event_.text(KinetoField::name) == "record_param_comms") return add_operation();
    if (!event_.shape.dims.empty() && event_.has(KinetoField::operation)) {
      event_.shape.operation = event_.text(KinetoField::name);
      trace_.shapes.insert_or_assign(identifier(KinetoField::operation), event_.shape);
    }
    ++trace_.ignored;
  }
  void need_times() const {
    if (!event_.has(KinetoField::begin) || !event_.has(KinetoField::duration)) {
      fail(fmt::format("the event '{}' has no ts or dur; allowed: both, in microseconds",
                       printable(event_.text(KinetoField::name).substr(0, 60))));
    }
    if (event_.number(KinetoField::duration, 0) < 0) {
      fail(fmt::format("the event '{}' has a negative dur",
                       printable(event_.text(KinetoField::name).substr(0, 60))));
    }
  }
  std::int64_t begin() const { return event_.number(KinetoField::begin, 0); }
  std::int64_t end() const { return begin() + event_.number(KinetoField::duration, 0); }
  std::uint64_t identifier(KinetoField field) const {
    return static_cast<std::uint64_t>(event_.number(field, 0));
  }

  void add_op(KinetoOp::Kind kind) {
    need_times();
    KinetoOp op;
    op.kind = kind;
    op.name = name(event_.text(KinetoField::name));
    op.start = begin();
    op.duration = end() - begin();
    op.correlation = identifier(KinetoField::correlation);
    op.operation = identifier(KinetoField::operation);
    op.stream = {event_.number(KinetoField::process, 0), event_.number(KinetoField::thread, 0)};
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
    if (listed.find("...") == std::string_view::npos) call.listed_ranks = ranks_in(listed);
    call.type = event_.text(KinetoField::type);
    call.in_elements = event_.number(KinetoField::in_elements, -1);
    call.out_elements = event_.number(KinetoField::out_elements, -1);
    call.group_size = event_.number(KinetoField::group_size, -1);
    call.source = event_.number(KinetoField::source, -1);
    call.destination = event_.number(KinetoField::destination, -1);
    call.root = event_.number(KinetoField::root, -1);
    call.uneven =
        is_uneven(event_.text(KinetoField::in_split)) || is_uneven(event_.text(KinetoField::out_split));
    trace_.calls.push_back(std::move(call));
    return static_cast<std::uint32_t>(trace_.calls.size() - 1);
  }
  void add_operation() {
    need_times();
    if (event_.text(KinetoField::collective).empty()) return;
    trace_.operations.push_back(
        {begin(), end(), identifier(KinetoField::operation), event_.number(KinetoField::thread, 0), call()});
  }
  void add_host_call() {
    const auto kind = host_call_of(event_.text(KinetoField::name));
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
  int depth_ = 0;
};

// ---- What belongs together

// Finds the launch of each operation of the GPU, and sorts operations by their launches.
void find_launches(KinetoTrace& trace) {
  std::unordered_map<std::uint64_t, std::int64_t> begins;  // by correlation, never iterated
  begins.reserve(trace.host_calls.size());
  for (const KinetoHostCall& call : trace.host_calls) {
    if (call.kind == KinetoHostCall::Kind::launch || call.kind == KinetoHostCall::Kind::copy)
      begins.try_emplace(call.correlation, call.begin);
  }
  for (KinetoOp& op : trace.ops) {
    const auto found = begins.find(op.correlation);
    if (op.correlation != 0 && found != begins.end() && found->second <= op.start) op.launch = found->second;
  }
  // Correlations grow from call to call. They order launches of the same microsecond.
  const auto launched = [](const KinetoOp& op) {
    return std::tuple(op.launch, op.launch == kNoKinetoTime ? 0 : op.correlation, op.start);
  };
  std::stable_sort(trace.ops.begin(), trace.ops.end(),
                   [&](const KinetoOp& a, const KinetoOp& b) { return launched(a) < launched(b); });
}

// Finds the call of kernels that do not describe it: that with their External id, or that during which they
// were launched.
void find_calls(KinetoTrace& trace) {
  std::unordered_map<std::uint64_t, std::uint32_t> by_id;  // never iterated
  for (const KinetoOperation& operation : trace.operations) {
    if (operation.id != 0) by_id.try_emplace(operation.id, operation.call);
  }
  std::unordered_map<std::uint64_t, std::int64_t> threads;  // of launches, by correlation; never iterated
  for (const KinetoHostCall& call : trace.host_calls) threads.try_emplace(call.correlation, call.thread);
  for (KinetoOp& op : trace.ops) {
    if (op.call != kNoKineto || op.kind != KinetoOp::Kind::kernel ||
        trace.names[op.name].find("ccl") == std::string::npos)
      continue;
    if (const auto found = by_id.find(op.operation); op.operation != 0 && found != by_id.end()) {
      op.call = found->second;
      continue;
    }
    if (op.launch == kNoKinetoTime) continue;
    const auto thread = threads.find(op.correlation);
    auto at = std::upper_bound(trace.operations.begin(), trace.operations.end(), op.launch,
                               [](std::int64_t time, const KinetoOperation& o) { return time < o.begin; });
    for (int tries = 0; at != trace.operations.begin() && tries < 16; ++tries) {
      --at;
      if (at->thread == thread->second && at->end >= op.launch) {
        op.call = at->call;
        break;
      }
    }
  }
}

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
  find_launches(trace);
  find_calls(trace);
  return trace;
}

}  // namespace netsim
