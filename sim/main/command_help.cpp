#include "sim/main/command_help.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <vector>

#include "sim/configuration/configuration.h"
#include "sim/core/config.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/main/options.h"
#include "sim/main/subcommands.h"

namespace netsim {
namespace {

// Returns a text for man(7): its dashes may be copied, and no line of it is a request.
std::string roff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

std::string option_entry(const OptionInfo& option) {
  std::string entry = ".TP\n\\fB\\-\\-" + roff(option.name) + "\\fR";
  if (!option.value.empty()) entry += " \\fI" + roff(option.value) + "\\fR";
  return entry + "\n" + roff(option.doc) + "\n";
}

// Returns the names, each once, in the order of the alphabet.
std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

std::string kind_names() {
  const std::vector<std::string> kinds = Catalogue::instance().kinds();
  return joined({kinds.begin(), kinds.end()});
}

std::string component_kind_names(const std::string& kind) {
  std::set<std::string> names;
  for (const ComponentInfo* info : Catalogue::instance().all()) {
    if (info->kind == kind) names.insert(info->name);
  }
  return joined(names);
}

// Returns what --describe knows: kinds, components and keys.
std::string describable_names() {
  std::set<std::string> names;
  for (const ComponentInfo* info : Catalogue::instance().all()) {
    names.insert(info->kind);
    names.insert(info->name);
    names.insert(info->kind + "." + info->name);
  }
  for (const std::string& key : configuration_keys()) names.insert(key);
  return joined(names);
}

std::string keys_to_set() {
  std::set<std::string> keys;
  for (const std::string& key : configuration_keys()) keys.insert(key + "=");
  return joined(keys);
}

// Returns the words that may follow an option, separated by blanks, or "" for files and free values.
std::string words_after(const OptionInfo& option) {
  if (option.name == "list") return kind_names();
  if (option.name == "describe") return describable_names();
  if (option.name == "set") return keys_to_set();
  if (option.name == "log") return "trace debug info warn error off";
  if (option.name == "json") return "-";
  if (option.name == "schema") return "workload";
  if (option.name == "completion") return "bash zsh";
  if (option.name == "show-schedule" || option.name == "write-program")
    return component_kind_names("collective_algorithm");
  return "";
}

// Returns the options with their dashes, separated by blanks.
std::string dashed_names(const std::vector<OptionInfo>& options) {
  std::string names;
  for (const OptionInfo& option : options) append_item(names, "--" + option.name, " ");
  return names;
}

// Returns the names of all subcommands, separated by blanks.
std::string subcommand_names() {
  std::string names;
  for (const Subcommand& command : subcommands()) append_item(names, command.name, " ");
  return names;
}

std::string bash_completion() {
  const std::string options = dashed_names(option_infos());
  std::string cases;
  for (const OptionInfo& option : option_infos()) {
    const std::string words = words_after(option);
    if (!words.empty()) cases += fmt::format("    --{}) words='{}' ;;\n", option.name, words);
  }
  std::string files;
  for (const OptionInfo& option : option_infos()) {
    if (!option.value.empty() && words_after(option).empty())
      files += (files.empty() ? "--" : "|--") + option.name;
  }
  std::string of_subcommands;
  for (const Subcommand& command : subcommands()) {
    of_subcommands += fmt::format(
        "  if [[ ${{COMP_WORDS[1]}} == {} && $COMP_CWORD -gt 1 ]]; then\n"
        "    [[ $word == -* ]] && COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n"
        "    return 0  # files, by `complete -o default`\n"
        "  fi\n",
        command.name, dashed_names(command.options()));
  }
  return "# Completion of netsim for bash, by `netsim --completion bash`.\n"
         "_netsim() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words\n"
         "  COMPREPLY=()\n" +
         of_subcommands + "  case $before in\n" + cases + "    " + files +
         ") return ;;  # files, by `complete -o default`\n" + "    *) words='" + options +
         "' ;;\n"
         "  esac\n"
         "  [[ $word == -* && $before != --json ]] && words='" +
         options +
         "'\n"
         "  [[ $COMP_CWORD == 1 ]] && words+=' " +
         subcommand_names() +
         "'\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "  [[ $before == --set ]] && compopt -o nospace 2>/dev/null\n"
         "  return 0\n"
         "}\n"
         "complete -o default -F _netsim netsim\n";
}

// Returns a text for the description of an option in zsh, within single quotes and brackets.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (std::string_view("[]:\\").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

// Returns an argument of _arguments. `words` are those that may follow the option, as words_after() has them.
std::string zsh_option(const OptionInfo& option, const std::string& words) {
  std::string entry =
      fmt::format("'{}--{}[{}]", option.repeated ? "*" : "", option.name, zsh_text(option.doc));
  const bool optional = option.value.empty() && !words.empty();
  if (!option.value.empty() || optional) {
    entry += fmt::format("{}{}:{}", optional ? "::" : ":", zsh_text(optional ? "name" : option.value),
                         words.empty() ? "_files" : "(" + words + ")");
  }
  return entry + "'";
}

// Returns the lines that complete the options and operands of a subcommand.
std::string zsh_subcommand(const Subcommand& command) {
  std::string options;
  for (const OptionInfo& option : command.options()) options += " \\\n      " + zsh_option(option, "");
  return fmt::format(
      "  if [[ $words[2] == {} ]] && (( CURRENT > 2 )); then\n"
      "    shift words\n"
      "    (( CURRENT-- ))\n"
      "    _arguments{} \\\n      '*:{}'\n"
      "    return\n"
      "  fi\n",
      command.name, options, command.takes_folders ? "directory:_directories" : "file:_files");
}

std::string zsh_completion() {
  std::string options, of_subcommands;
  for (const OptionInfo& option : option_infos())
    options += " \\\n  " + zsh_option(option, words_after(option));
  for (const Subcommand& command : subcommands()) of_subcommands += zsh_subcommand(command);
  return "#compdef netsim\n"
         "# Completion of netsim for zsh, by `netsim --completion zsh`.\n"
         "_netsim() {\n" +
         of_subcommands + "  _arguments" + options + " \\\n  '1::command:(" + subcommand_names() +
         ")'\n}\n"
         "if [[ $funcstack[1] == _netsim ]]; then _netsim \"$@\"; else compdef _netsim netsim; fi\n";
}

}  // namespace

std::string manual_page() {
  std::string page = ".TH NETSIM 1 \"\" \"netsim " + roff(NETSIM_VERSION) +
                     "\" \"User Commands\"\n"
                     ".SH NAME\n"
                     "netsim \\- packet\\-level simulator of distributed DNN training\n"
                     ".SH SYNOPSIS\n"
                     "\\fBnetsim\\fR \\fB\\-\\-config\\fR \\fIC.yaml\\fR \\fB\\-\\-workload\\fR \\fIW\\fR "
                     "[\\fIoptions\\fR]\n";
  for (const Subcommand& command : subcommands()) page += ".br\n" + roff(command.usage()) + "\n";
  page +=
      ".SH DESCRIPTION\n"
      "netsim simulates every packet of a workload on a cluster. It reports how long an iteration\n"
      "takes, how much of the communication is exposed, and why.\n"
      ".SH OPTIONS\n";
  for (const OptionInfo& option : option_infos()) page += option_entry(option);
  for (const Subcommand& command : subcommands()) {
    page += fmt::format(".SH {}\n{}\n", command.title, roff(command.usage()));
    for (const OptionInfo& option : command.options())
      page += ".IP \"\\fB" + roff(form_of(option)) + "\\fR\"\n" + roff(option.doc) + "\n";
  }
  page += ".SH EXIT STATUS\n";
  for (const ExitCodeInfo& code : exit_code_infos())
    page += fmt::format(".TP\n.B {}\n{}\n", code.code, roff(code.meaning));
  page += ".SH EXAMPLES\n.nf\n" + roff(kExampleCommand) + "\n" + roff("netsim --describe dcqcn") + "\n.fi\n";
  return page;
}

std::string completion_script(const std::string& shell) {
  if (shell == "bash") return bash_completion();
  if (shell == "zsh") return zsh_completion();
  throw ConfigError("--completion: '" + shell + "' was given (allowed: bash, zsh)");
}

}  // namespace netsim
