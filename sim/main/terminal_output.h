// Writes what the program tells its user: results to stdout, errors to stderr.
#pragma once

#include <string>

namespace netsim {

// Writes to stdout. A reader that has closed the pipe has read enough, so that is no error. Throws IoError if
// the text cannot be written for another reason.
void print(const std::string& text);

// Prints an error message to stderr as one line, even if it quotes line breaks.
void complain(const std::string& message);

// Prints a bug of netsim and the command to reproduce it. Returns the exit code.
int report_bug(const std::string& message, const std::string& command);

}  // namespace netsim
