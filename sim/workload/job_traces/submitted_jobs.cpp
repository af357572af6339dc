#include "sim/workload/job_traces/submitted_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "sim/core/recognise.h"
#include "sim/core/text.h"
#include "sim/workload/job_list.h"

namespace netsim {
namespace {

constexpr Time kLastSubmission = 1'000'000 * kSecond;
constexpr std::int64_t kMostSeconds = 1'000'000'000'000;

bool is_earlier(const SubmittedJob& a, const SubmittedJob& b) { return a.submitted < b.submitted; }

// Reads a number of exactly `digits` digits; -1 for other text.
int digits_at(std::string_view text, std::size_t at, std::size_t digits) {
  if (text.size() < at + digits) return -1;
  int value = 0;
  for (std::size_t i = at; i < at + digits; ++i) {
    if (!is_digit(text[i])) return -1;
    value = 10 * value + (text[i] - '0');
  }
  return value;
}

}  // namespace

void SubmittedJobs::add(SubmittedJob job, bool succeeded, const std::string& file) {
  if (rules_.successful && !succeeded) return leave_out("that did not succeed");
  if (job.duration > kLastSubmission) return leave_out("that take more than 1,000,000 s");
  if (rules_.first == 0 && std::cmp_equal(jobs_.size(), kMostJobs)) {
    throw InputError(Place{file, job.place.line, 1, ""},
                     "more than 1,000,000 jobs are too many: the key jobs.first reads the first ones only");
  }
  jobs_.push_back(std::move(job));
  if (rules_.first > 0 && std::cmp_greater(jobs_.size(), 2 * rules_.first + 1000)) keep_first();
}

void SubmittedJobs::incomplete(const Place& place, const std::string& reason, bool succeeded) {
  if (rules_.successful && !succeeded) return leave_out("that did not succeed");
  if (!rules_.skip_incomplete)
    throw InputError(place, reason + ": with the key jobs.skip_incomplete such jobs are left out");
  leave_out("where " + reason);
}

void SubmittedJobs::keep_first() {
  std::stable_sort(jobs_.begin(), jobs_.end(), is_earlier);
  if (rules_.first > 0 && std::cmp_greater(jobs_.size(), rules_.first))
    jobs_.resize(static_cast<std::size_t>(rules_.first));
}

std::vector<SubmittedJob> SubmittedJobs::take() {
  keep_first();
  const Int128 begin = jobs_.empty() ? 0 : jobs_.front().submitted;
  for (SubmittedJob& job : jobs_) job.submitted -= begin;
  const std::size_t late =
      std::erase_if(jobs_, [](const SubmittedJob& job) { return job.submitted > kLastSubmission; });
  if (late > 0) left_out_["submitted more than 1,000,000 s after the first one"] += late;
  return std::move(jobs_);
}

std::vector<std::string> SubmittedJobs::notes() const {
  std::vector<std::string> notes;
  for (const auto& [reason, count] : left_out_)
    notes.push_back(fmt::format("jobs of the trace {}, left out: {}", reason, count));
  return notes;
}

bool is_missing_value(std::string_view text) {
  return is_one_of(text, {"", "None", "NaN", "nan", "NA", "null", "NULL", "\\N"});
}

std::int64_t date_microseconds(std::string_view text, const std::string& what, const Place& place) {
  using std::chrono::day, std::chrono::month, std::chrono::year;
  const int years = digits_at(text, 0, 4), months = digits_at(text, 5, 2), days = digits_at(text, 8, 2);
  const int hours = digits_at(text, 11, 2), minutes = digits_at(text, 14, 2),
            seconds = digits_at(text, 17, 2);
  const bool shape = text.size() >= 19 && text[4] == '-' && text[7] == '-' &&
                     (text[10] == ' ' || text[10] == 'T') && text[13] == ':' && text[16] == ':';
  const std::chrono::year_month_day date{year(years), month(static_cast<unsigned>(std::max(months, 0))),
                                         day(static_cast<unsigned>(std::max(days, 0)))};
  if (!shape || years < 0 || !date.ok() || hours < 0 || hours > 23 || minutes < 0 || minutes > 59 ||
      seconds < 0 || seconds > 60) {
    throw InputError(place, fmt::format("the {} '{}' is no time; allowed: YYYY-MM-DD hh:mm:ss", what,
                                        printable(text.substr(0, 40))));
  }
  const auto since = std::chrono::sys_days(date) - std::chrono::sys_days(std::chrono::year(2000) / 1 / 1);
  return ((since.count() * std::int64_t{24} + hours) * 3600 + minutes * std::int64_t{60} + seconds) *
         1'000'000;
}

JobTraceTable::JobTraceTable(const InputSet::File& file, std::uint32_t index,
                             std::vector<std::string> columns)
    : table_(file), path_(file.path), index_(index), names_(std::move(columns)) {}

bool JobTraceTable::next() {
  if (!table_.next()) return false;
  if (std::exchange(first_, false)) {
    const auto& cells = table_.cells();
    has_names_ =
        std::any_of(cells.begin(), cells.end(), [this](const Word& cell) { return cell.text == names_[0]; });
    if (has_names_) {
      take_names();
      if (!table_.next()) return false;
    }
  }
  if (table_.cells().size() != names_.size())
    table_.fail(fmt::format("{} cells; allowed: {}", table_.cells().size(), names_.size()));
  return true;
}

// Takes the names of the columns from the file's first line, which may have others than the known ones.
void JobTraceTable::take_names() {
  std::vector<std::string> names;
  for (const Word& cell : table_.cells()) names.emplace_back(cell.text);
  names_ = std::move(names);
}

const Word& JobTraceTable::word(const char* column) const {
  const auto found = std::find(names_.begin(), names_.end(), column);
  if (found == names_.end()) {
    std::string list;
    for (const std::string& name : names_) append_item(list, name);
    throw InputError(Place{path_, 1, 1, ""}, "there is no column '" + std::string(column) +
                                                 "'; the file has " + printable(list.substr(0, 300)));
  }
  return table_.cells()[static_cast<std::size_t>(found - names_.begin())];
}

std::string_view JobTraceTable::text(const char* column) const {
  const std::string_view text = word(column).text;
  return is_missing_value(text) ? std::string_view() : text;
}

Place JobTraceTable::place(const char* column) const { return table_.reader().place(word(column)); }

JobTraceCell JobTraceTable::cell(const char* column) const {
  return {index_, word(column).line, word(column).column};
}

std::int64_t JobTraceTable::whole(const char* column) const {
  Word number = word(column);
  // Tables of pandas have whole numbers as 3.0.
  if (const std::size_t point = number.text.find('.');
      point != std::string_view::npos &&
      number.text.find_first_not_of('0', point + 1) == std::string_view::npos)
    number.text = number.text.substr(0, point);
  return table_.reader().integer(number, std::string("the ") + column, {0, 1 << 20});
}

std::int64_t JobTraceTable::seconds(const char* column) const {
  const auto value = scaled_decimal(text(column), 1'000'000);
  if (!value || *value > kMostSeconds * 1'000'000)
    throw InputError(place(column), fmt::format("the {} is '{}'; allowed: a number of seconds from 0 to {}",
                                                column, printable(text(column).substr(0, 40)), kMostSeconds));
  return *value;
}

bool JobTraceTable::leaves_out(const std::vector<const char*>& columns, bool succeeded,
                               SubmittedJobs& jobs) const {
  for (const char* column : columns) {
    if (text(column).empty()) {
      jobs.incomplete(place(column), std::string("the ") + column + " is missing", succeeded);
      return true;
    }
    if (column == columns.front() && whole(column) == 0) {
      jobs.leave_out("without GPUs");
      return true;
    }
  }
  return false;
}

}  // namespace netsim
