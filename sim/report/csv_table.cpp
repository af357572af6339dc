#include "sim/report/csv_table.h"

#include <fmt/format.h>

namespace netsim {

CsvTable::CsvTable(OutputFile& file, std::string_view header, std::int64_t max_rows)
    : file_(file), limit_(static_cast<std::uint64_t>(max_rows)) {
  if (!header.empty()) line(header);
}

bool CsvTable::begin_row() {
  first_ = true;
  return ++rows_ <= limit_;
}

void CsvTable::separate() {
  if (!first_) file_.write(",");
  first_ = false;
}

void CsvTable::cell(std::int64_t value) {
  separate();
  file_.write_integer(value);
}

void CsvTable::cell(std::string_view text) {
  separate();
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    file_.write(text);
  } else {
    file_.write(csv_cell(text));
  }
}

void CsvTable::id(char letter, std::uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  char text[17] = {letter};
  for (std::size_t i = 0; i < 16; ++i) text[i + 1] = kDigits[(value >> (60 - 4 * i)) & 15];
  separate();
  file_.write(std::string_view(text, 17));
}

void CsvTable::task_id(RankId rank, std::uint32_t task) { cell(fmt::format("t{}.{}", rank, task)); }

void CsvTable::end_row() { file_.write("\n"); }

void CsvTable::line(std::string_view text) {
  file_.write(text);
  file_.write("\n");
}

std::vector<std::string> CsvTable::notes() const {
  if (rows_ <= limit_) return {};
  return {fmt::format("{} holds the first {} of {} rows; more with --set output.max_rows={}", file_.name(),
                      limit_, rows_, rows_)};
}

}  // namespace netsim
