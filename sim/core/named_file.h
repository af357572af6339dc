// The parameter `file` of components that read one: how the file is found, read and told from others.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sim/core/input_file.h"
#include "sim/core/output.h"
#include "sim/core/parameters.h"
#include "sim/core/recognise.h"

namespace netsim {

// Larger than any description that people write; of other files read_file() refuses to read more.
inline constexpr std::uint64_t kLargestDescription = 16 << 20;

struct InputText {
  std::string path;
  std::string text;
};

// The file that the entry `file` of a component's configuration names (find_input_file()).
inline InputText read_named_file(const ConfigNode& where, std::uint64_t largest = kLargestDescription) {
  const ConfigNode& named = *where.find("file");
  InputText input;
  input.path = find_input_file(read_text(named), named.place().file);
  input.text = read_file(input.path, largest);
  return input;
}
// The same; InputError where it is recognised as something else than `format`.
inline InputText read_named_file(const ConfigNode& where, const std::string& format,
                                 std::uint64_t largest = kLargestDescription) {
  InputText input = read_named_file(where, largest);
  require_format(input.text, input.path, format);
  return input;
}

// Adds `file`; `what` it is (P has the member).
template <class P>
Parameters<P>&& with_file(Parameters<P>&& parameters, const std::string& what) {
  parameters.text("file", &P::file, what + ", relative to this configuration").required();
  return std::move(parameters);
}

}  // namespace netsim
