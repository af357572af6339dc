// Pieces of text that several parts of the screen have.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>

#include "sim/core/units.h"

namespace netsim::screen {

// Text: the end of the text that is written.
using Text = std::back_insert_iterator<std::string>;

// Writes "  label     text", with the text wrapped beside the label, which takes `indent` columns.
void labelled(Text out, const char* label, const std::string& text, std::size_t width,
              std::size_t indent = 12);
// Returns " of 80 GiB", or "" where the capacity of a GPU's memory is unknown.
std::string of_capacity(Bytes capacity);

}  // namespace netsim::screen
