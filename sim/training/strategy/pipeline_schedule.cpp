#include "sim/training/strategy/pipeline_schedule.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace netsim {
namespace {

// Names by PipelineStepKind. The name of an overlapped step is never read or written alone.
constexpr std::array<std::string_view, 11> kNames{"F", "B", "I", "W", "&", "SF", "RF", "SB", "RB", "G", "U"};

std::string_view name_of(PipelineStepKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::string one_text(PipelineStepKind kind, std::uint32_t microbatch, std::uint32_t chunk, bool always) {
  std::string text(name_of(kind));
  if (kind != PipelineStepKind::reduce) text += std::to_string(microbatch);
  return chunk == 0 && !always ? text : text + "." + std::to_string(chunk);
}

bool read_number(std::string_view& text, std::uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// Reads "F3" or "F3.1", "G" or "G.1". Returns false if the text is anything else.
bool read_one(std::string_view text, PipelineStepKind& kind, std::uint32_t& microbatch,
              std::uint32_t& chunk) {
  constexpr std::string_view kCapitals = "FBIWSRG";
  const std::size_t letters = std::min(text.find_first_not_of(kCapitals), text.size());
  const auto* const name = std::find(kNames.begin(), kNames.end(), text.substr(0, letters));
  if (name == kNames.end()) return false;
  kind = static_cast<PipelineStepKind>(name - kNames.begin());
  text.remove_prefix(letters);
  chunk = microbatch = 0;
  if (kind != PipelineStepKind::reduce && !read_number(text, microbatch)) return false;
  if (text.empty()) return true;
  if (text.front() != '.') return false;
  text.remove_prefix(1);
  return read_number(text, chunk) && text.empty();
}

}  // namespace

std::string to_text(const PipelineStep& step) {
  if (step.kind == PipelineStepKind::overlapped) {
    return one_text(PipelineStepKind::forward, step.microbatch, step.chunk, true) + "&" +
           one_text(PipelineStepKind::backward, step.backward_microbatch, step.backward_chunk, true);
  }
  return one_text(step.kind, step.microbatch, step.chunk, false) + (step.waits ? "!" : "");
}

bool read_step(const std::string& text, PipelineStep& step) {
  step = {};
  std::string_view view = text;
  const std::size_t both = view.find('&');
  if (both == std::string::npos) {
    step.waits = !view.empty() && view.back() == '!';
    if (step.waits) view.remove_suffix(1);
    return read_one(view, step.kind, step.microbatch, step.chunk) &&
           (!step.waits || is_communication(step.kind));
  }
  PipelineStepKind second = PipelineStepKind::forward;
  if (!read_one(view.substr(0, both), step.kind, step.microbatch, step.chunk)) return false;
  if (!read_one(view.substr(both + 1), second, step.backward_microbatch, step.backward_chunk)) return false;
  const bool fits = step.kind == PipelineStepKind::forward && second == PipelineStepKind::backward;
  step.kind = PipelineStepKind::overlapped;
  return fits;
}

std::string refuse_chunks(const char* schedule, const PipelineShape& shape) {
  if (shape.chunks == 1) return {};
  return std::string(schedule) + " has one model chunk per stage: virtual_stages has to be 1, not " +
         std::to_string(shape.chunks);
}

}  // namespace netsim
