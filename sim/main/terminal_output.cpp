#include "sim/main/terminal_output.h"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <system_error>

#include "sim/core/errors.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

// Returns the text without its middle if it is too long to read; a message may quote a line of any length.
std::string shortened(const std::string& text) {
  constexpr std::size_t kBeginning = 600, kEnd = 300;
  if (text.size() <= kBeginning + kEnd) return text;
  const auto inside = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  std::size_t end = kBeginning, begin = text.size() - kEnd;
  while (inside(end)) --end;  // not within a character of UTF-8
  while (inside(begin)) ++begin;
  return text.substr(0, end) + " ... " + text.substr(begin);
}

}  // namespace

void print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) != EOF && std::fflush(stdout) != EOF) return;
  if (errno != EPIPE)
    throw IoError("stdout: cannot write the output: " + std::generic_category().message(errno));
}

void complain(const std::string& message) {
  std::fprintf(stderr, "netsim: error: %s\n", shortened(printable(message)).c_str());
}

int report_bug(const std::string& message, const std::string& command) {
  std::fprintf(stderr, "netsim: %s\nreproduce with: %s\n", shortened(printable(message)).c_str(),
               printable(command).c_str());
  return static_cast<int>(ExitCode::bug);
}

}  // namespace netsim
