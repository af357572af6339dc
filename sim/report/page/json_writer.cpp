#include "sim/report/page/json_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "sim/core/text.h"
#include "sim/report/timeline.h"

namespace netsim {

void JsonWriter::value(std::string_view text) {
  separate();
  for (const char c : json_text(std::string(text))) {
    if (c == '<') {
      text_ += "\\u003c";
    } else {
      text_ += c;
    }
  }
}

void JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  fmt::format_to(std::back_inserter(text_), "{}", number);
}

void JsonWriter::value(bool truth) {
  separate();
  text_ += truth ? "true" : "false";
}

void JsonWriter::integer(std::int64_t number) {
  separate();
  fmt::format_to(std::back_inserter(text_), "{}", number);
}

void JsonWriter::null() {
  separate();
  text_ += "null";
}

void JsonWriter::key(std::string_view name) {
  value(name);
  text_ += ':';
  first_ = true;
}

void JsonWriter::seconds(std::string_view name, double time) {
  object(name, [&] {
    field("s", time);
    field("text", human_seconds(time));
  });
}

void JsonWriter::separate() {
  if (!first_) text_ += ',';
  first_ = false;
}

void JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  first_ = true;
}

void JsonWriter::close(char bracket) {
  text_ += bracket;
  first_ = false;
}

}  // namespace netsim
