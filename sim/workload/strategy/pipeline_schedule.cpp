#include "sim/workload/strategy/pipeline_schedule.h"

#include <charconv>
#include <string_view>

namespace netsim {
namespace {

constexpr std::string_view kLetters = "FBIW";  // by PipelineStepKind

std::string one_text(char letter, std::uint32_t microbatch, std::uint32_t chunk, bool always) {
  const std::string text = letter + std::to_string(microbatch);
  return chunk == 0 && !always ? text : text + "." + std::to_string(chunk);
}

bool read_number(std::string_view& text, std::uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// "F3" or "F3.1", and nothing behind it.
bool read_one(std::string_view text, PipelineStepKind& kind, std::uint32_t& microbatch,
              std::uint32_t& chunk) {
  const std::size_t letter = text.empty() ? std::string_view::npos : kLetters.find(text.front());
  if (letter == std::string_view::npos) return false;
  kind = static_cast<PipelineStepKind>(letter);
  text.remove_prefix(1);
  chunk = 0;
  if (!read_number(text, microbatch)) return false;
  if (text.empty()) return true;
  if (text.front() != '.') return false;
  text.remove_prefix(1);
  return read_number(text, chunk) && text.empty();
}

}  // namespace

std::string to_text(const PipelineStep& step) {
  if (step.kind == PipelineStepKind::overlapped) {
    return one_text('F', step.microbatch, step.chunk, true) + "&" +
           one_text('B', step.backward_microbatch, step.backward_chunk, true);
  }
  return one_text(kLetters[static_cast<std::size_t>(step.kind)], step.microbatch, step.chunk, false);
}

bool read_step(const std::string& text, PipelineStep& step) {
  step = {};
  const std::size_t both = text.find('&');
  if (both == std::string::npos) return read_one(text, step.kind, step.microbatch, step.chunk);
  PipelineStepKind second = PipelineStepKind::forward;
  const std::string_view view = text;
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
