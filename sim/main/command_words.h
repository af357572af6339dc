// CommandWords: the words of a command line, sorted into options and operands by Boost.Program_options. Only
// options.cpp and compare_command.cpp, which declare options, include this.
#pragma once

#include <boost/program_options.hpp>
#include <functional>
#include <string>
#include <vector>

#include "sim/main/options.h"

namespace netsim {

struct CommandWords {
  boost::program_options::variables_map values;
  std::vector<std::string> operands;  // words that belong to no option
};

// Reads the words of a command line (without the program's name). `unknown` returns the message about an
// option that `all` lacks, as it was given. Throws ConfigError for such an option, one that is given twice,
// and a value that is missing, empty or not taken.
CommandWords parse_words(const std::vector<std::string>& arguments,
                         const boost::program_options::options_description& all,
                         const std::function<std::string(const std::string& given)>& unknown);
// Returns the text of an option, or "" where it was not given. Throws ConfigError for an empty text.
std::string text_of(const boost::program_options::variables_map& values, const char* name);
// Returns the names of all options, without dashes.
std::vector<std::string> option_names(const boost::program_options::options_description& all);
// Returns the table of all options for --help, without blanks at the ends of lines.
std::string options_text(const boost::program_options::options_description& all);
// Returns the declarations of all options in their order.
std::vector<OptionInfo> infos_of(const boost::program_options::options_description& all);

}  // namespace netsim
