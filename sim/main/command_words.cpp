#include "sim/main/command_words.h"

#include <algorithm>
#include <sstream>

#include "sim/core/errors.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

namespace po = boost::program_options;

// Returns the message about an option with a wrong value.
std::string value_error(const po::invalid_command_line_syntax& error) {
  std::string option = error.get_option_name();
  if (option.empty()) option = error.what();
  switch (error.kind()) {
    case po::invalid_command_line_syntax::missing_parameter:
      return option + ": the value is missing";
    case po::invalid_command_line_syntax::empty_adjacent_parameter:
      return option + ": the value is empty";
    case po::invalid_command_line_syntax::extra_parameter:
      return option + " takes no value";
    default:
      return std::string("command line: ") + error.what();
  }
}

// Returns the message about a word such as "--name" or "--name=value" whose option `all` lacks.
std::string unknown_error(const std::string& word, const po::options_description& all,
                          const UnknownOption& unknown) {
  const std::string given = word.substr(0, word.find('='));
  const std::string name = given.substr(std::min(given.find_first_not_of('-'), given.size()));
  const std::string near = nearest(name, option_names(all));
  const std::string suggestion = near.empty() ? "" : ", did you mean '--" + near + "'?";
  return "unknown option '" + given + "'" + unknown.command + suggestion + " (" + unknown.help + ")";
}

}  // namespace

CommandWords parse_words(const std::vector<std::string>& arguments, const po::options_description& all,
                         const UnknownOption& unknown) {
  CommandWords parsed;
  try {
    const int style = po::command_line_style::allow_long | po::command_line_style::long_allow_adjacent |
                      po::command_line_style::long_allow_next;
    const po::parsed_options words =
        po::command_line_parser(arguments).options(all).style(style).allow_unregistered().run();
    for (const auto& option : words.options) {
      if (option.unregistered) throw ConfigError(unknown_error(option.original_tokens.front(), all, unknown));
      if (option.position_key != -1) parsed.operands.push_back(option.value.front());
    }
    po::parsed_options named(&all);
    for (const auto& option : words.options) {
      if (option.position_key == -1) named.options.push_back(option);
    }
    po::store(named, parsed.values);
  } catch (const po::invalid_command_line_syntax& error) {
    throw ConfigError(value_error(error));
  } catch (const po::multiple_occurrences& error) {
    const std::string option = error.get_option_name();
    throw ConfigError((option.starts_with("--") ? option : "--" + option) + " is given more than once");
  } catch (const po::error& error) {
    throw ConfigError(std::string("command line: ") + error.what());
  }
  return parsed;
}

std::string text_of(const po::variables_map& values, const char* name) {
  if (values.count(name) == 0) return {};
  std::string text = values[name].as<std::string>();
  if (text.empty()) throw ConfigError(std::string("--") + name + ": the value is empty");
  return text;
}

std::vector<std::string> option_names(const po::options_description& all) {
  std::vector<std::string> names;
  names.reserve(all.options().size());
  for (const auto& option : all.options()) names.push_back(option->long_name());
  return names;
}

std::string options_text(const po::options_description& all) {
  std::ostringstream table;
  table << all;
  std::istringstream lines(table.str());
  std::string text;
  for (std::string line; std::getline(lines, line);)
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  return text;
}

std::vector<OptionInfo> infos_of(const po::options_description& all) {
  std::vector<OptionInfo> infos;
  infos.reserve(all.options().size());
  for (const auto& option : all.options())
    infos.push_back({option->long_name(), option->format_parameter(), option->description(),
                     option->semantic()->is_composing()});
  return infos;
}

}  // namespace netsim
