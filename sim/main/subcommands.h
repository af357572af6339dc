// Subcommands: the commands whose name is the first word of the command line, as `netsim compare A B`. All
// other command lines are those of options.h.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/main/options.h"

namespace netsim {

// PrintText: prints a text on stdout.
using PrintText = std::function<void(const std::string&)>;

// Subcommand: one command. Each has a file of its own, whose functions subcommands.cpp lists.
struct Subcommand {
  const char* name;
  const char* title;  // of its section in the manual page
  const char* what;   // first line of its --help
  // Returns its options, in the order of its usage.
  std::vector<OptionInfo> (*options)();
  // Returns the line of --help: "netsim compare DIR DIR [--json FILE] ...".
  std::string (*usage)();
  // Carries out a command line that begins with its name, and returns the exit code.
  int (*run)(const std::vector<std::string>& arguments, const PrintText& print);
  bool takes_folders = false;  // its operands are folders, for completions
};

std::span<const Subcommand> subcommands();
// Returns the command of a command line (without the program's name), or null.
const Subcommand* find_subcommand(const std::vector<std::string>& arguments);
// Returns the usage that its options give; `operands` is "netsim compare DIR DIR".
std::string usage_of(const std::string& operands, const std::vector<OptionInfo>& options);
// Returns its options as the message about an unknown one lists them: "allowed: --json FILE, ...".
std::string allowed_options(const std::vector<OptionInfo>& options);

}  // namespace netsim
