// Checks that texts fit a terminal.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <sstream>
#include <string>

#include "sim/core/text.h"

namespace netsim::test {

// Every line of `text` has at most `width` columns.
inline void expect_fits(const std::string& text, std::size_t width) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns(line), width) << line;
}

}  // namespace netsim::test
