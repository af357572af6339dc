// Terminals: how wide the lines of a stream may be.
#pragma once

#include <cstddef>
#include <cstdio>

namespace netsim {

// Columns of the terminal that `out` is; of no terminal, or one that does not know: those of the
// environment's COLUMNS, or kDefaultWidth. At least 10. Asked anew for each text, since windows change.
std::size_t line_width(std::FILE* out);

// Whether `out` is a terminal whose lines can be drawn anew (TERM=dumb cannot).
bool redraws_lines(std::FILE* out);

}  // namespace netsim
