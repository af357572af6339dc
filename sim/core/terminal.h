// Terminals: the width of a stream's lines.
#pragma once

#include <cstddef>
#include <cstdio>

namespace netsim {

// Returns the columns of the terminal `out`, at least 10. If `out` is no terminal, or its width is unknown,
// returns the environment's COLUMNS or kDefaultWidth. It is called for each text, because windows change.
std::size_t line_width(std::FILE* out);

// Returns whether `out` is a terminal whose lines can be redrawn (not with TERM=dumb).
bool redraws_lines(std::FILE* out);

}  // namespace netsim
