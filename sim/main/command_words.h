// CommandWords: the words of a command line, sorted into options and operands by Boost.Program_options. Only
// options.cpp and the subcommands, which declare options, include this.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "sim/main/options.h"

namespace netsim {

struct CommandWords {
  boost::program_options::variables_map values;
  std::vector<std::string> operands;  // words that belong to no option
};

// UnknownOption: the parts of the message about an unknown option that differ between commands.
struct UnknownOption {
  std::string command;  // whose options these are, with a blank before it: " of compare"
  std::string help;     // where the options are listed: "--help lists all"
};

// Reads the words of a command line (without the program's name). Throws ConfigError for an option that `all`
// lacks, and names the nearest one. Also throws it for an option that is given twice, and for a value that is
// missing, empty or not taken.
CommandWords parse_words(const std::vector<std::string>& arguments,
                         const boost::program_options::options_description& all,
                         const UnknownOption& unknown);
// Returns the text of an option, or "" where it was not given. Throws ConfigError for an empty text.
std::string text_of(const boost::program_options::variables_map& values, const char* name);
// Returns the names of all options, without dashes.
std::vector<std::string> option_names(const boost::program_options::options_description& all);
// Returns the table of all options for --help, without blanks at the ends of lines.
std::string options_text(const boost::program_options::options_description& all);
// Returns the declarations of all options in their order.
std::vector<OptionInfo> infos_of(const boost::program_options::options_description& all);

}  // namespace netsim
