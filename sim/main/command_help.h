// The manual page and the completions of shells, made from the same declarations as --help and --describe.
#pragma once

#include <string>

namespace netsim {

// Returns the manual page netsim(1), in the macros of man(7).
std::string manual_page();

// Returns the script by which a shell completes options, keys of --set, names of components and files. Throws
// ConfigError for a shell other than bash and zsh.
std::string completion_script(const std::string& shell);

}  // namespace netsim
