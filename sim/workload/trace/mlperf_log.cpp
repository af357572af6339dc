#include "sim/workload/trace/mlperf_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/line_reader.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

using nlohmann::json;

constexpr std::string_view kMark = ":::MLLOG ";

// Returns the end of the JSON object at the beginning of a text, behind which other text may follow.
std::size_t end_of_object(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted) {
      if (text[i] == '\\') ++i;
      quoted = i >= text.size() || text[i] != '"';
    } else if (text[i] == '"') {
      quoted = true;
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return text.size();
}

double mlperf_number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

MlperfLog::MlperfLog(const InputSet::File& file) : path_(file.path) {
  LineReader lines(file);
  while (lines.next()) {
    const std::size_t at = lines.line().find(kMark);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = lines.line().substr(at + kMark.size());
    const json record = json::parse(rest.substr(0, end_of_object(rest)), nullptr, false);
    const auto key = record.is_object() ? record.find("key") : record.end();
    const auto value = record.is_object() ? record.find("value") : record.end();
    // Processes that write at the same time damage each other's lines.
    if (!record.is_object() || key == record.end() || !key->is_string() || value == record.end()) {
      ++damaged_;
      continue;
    }
    Entry entry;
    entry.place = {path_, lines.number(), static_cast<int>(at) + 1, ""};
    if (value->is_string()) entry.text = printable(value->get<std::string>().substr(0, 200));
    entry.is_number = value->is_number();
    if (entry.is_number) entry.number = value->get<double>();
    values_.try_emplace(key->get<std::string>(), std::move(entry));
    if (const auto metadata = record.find("metadata"); metadata != record.end() && metadata->is_object())
      take_block(key->get<std::string>(), mlperf_number(record, "time_ms"),
                 mlperf_number(*metadata, "samples_count"));
    if (key->get<std::string>() != "tracked_stats" || !value->is_object()) continue;
    const double step = mlperf_number(*value, "train_step_time"), rate = mlperf_number(*value, "throughput");
    // A step's own time comes with its loss; the mean of a block does not.
    if (step > 0) (value->contains("reduced_train_loss") ? step_times_ : block_step_times_).push_back(step);
    if (rate > 0) rates_.push_back(rate);
  }
  if (values_.empty()) fail_file(path_, "has no whole line of MLPerf (:::MLLOG {...})");
}

// A block of training lies between two evaluations. Its end counts the samples of the block, or of all so
// far.
void MlperfLog::take_block(const std::string& key, double time, double samples) {
  if (key == "block_start") {
    block_ = Block{time, samples};
  } else if (key == "block_stop" && block_) {
    const double count = samples > block_->samples ? samples - block_->samples : samples;
    if (count > 0 && time > block_->time) block_rates_.push_back(count / (time - block_->time) * 1000);
    block_.reset();
  }
}

const MlperfLog::Entry* MlperfLog::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

std::int64_t MlperfLog::count(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return 0;
  const double value = entry->number;
  if (!entry->is_number || value < 1 || value > 1e9 || value != std::floor(value))
    throw InputError(entry->place, fmt::format("'{}' is {}; allowed: an integer from 1 to 1,000,000,000", key,
                                               entry->is_number ? fmt::format("{}", value) : "no number"));
  return static_cast<std::int64_t>(value);
}

double MlperfLog::step_seconds() const {
  if (!step_times_.empty()) return median(step_times_);
  if (!block_step_times_.empty()) return median(block_step_times_);
  const Entry* batch = find("global_batch_size");
  const std::vector<double>& rates = rates_.empty() ? block_rates_ : rates_;
  return rates.empty() || batch == nullptr ? 0 : batch->number / median(rates);
}

std::string MlperfLog::step_source() const {
  if (!step_times_.empty()) return fmt::format("the median of {} steps", step_times_.size());
  if (!block_step_times_.empty()) return fmt::format("the median of {} blocks", block_step_times_.size());
  if (!rates_.empty())
    return fmt::format("the batch divided by the median throughput of {} records", rates_.size());
  return fmt::format("the batch divided by the median throughput of {} blocks", block_rates_.size());
}

}  // namespace netsim
