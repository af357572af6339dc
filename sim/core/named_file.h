// The parameter `file` of components that read a file: how the file is found, read and recognised.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sim/core/input_file.h"
#include "sim/core/output.h"
#include "sim/core/parameters.h"
#include "sim/core/recognise.h"

namespace netsim {

// Limit of a description file, larger than any that people write. read_file() refuses larger files.
inline constexpr std::uint64_t kLargestDescription = 16 << 20;

struct InputText {
  std::string path;
  std::string text;
};

// Reads the file that the entry `file` of a component's configuration names (find_input_file()).
inline InputText read_named_file(const ConfigNode& where, std::uint64_t largest = kLargestDescription) {
  const ConfigNode& named = *where.find("file");
  InputText input;
  input.path = find_input_file(read_text(named), named.place());
  input.text = read_file(input.path, largest);
  return input;
}
// Reads the file. Throws InputError if it is recognised as another format than `format`.
inline InputText read_named_file(const ConfigNode& where, const std::string& format,
                                 std::uint64_t largest = kLargestDescription) {
  InputText input = read_named_file(where, largest);
  require_format(input.text, input.path, format);
  return input;
}

// Adds the parameter `file` to P, which must have the member. `what` describes the file.
template <class P>
Parameters<P>&& with_file(Parameters<P>&& parameters, const std::string& what) {
  parameters.text("file", &P::file, what + ", relative to this configuration").required();
  return std::move(parameters);
}

}  // namespace netsim
