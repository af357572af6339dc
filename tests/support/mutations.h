// Wrong versions of a right text, for parsers: whatever they are given, they say what is wrong or read it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "tests/support/test_size.h"

namespace netsim::test {

// Reads every prefix of `text`, and `count` copies with a few characters changed, removed or doubled. Outside
// full runs it reads a share of both. `read` may throw an Error other than a bug's, and nothing else.
inline void expect_sane(const std::string& text, const std::function<void(const std::string&)>& read,
                        int count = 3000) {
  const auto attempt = [&](const std::string& given) {
    try {
      read(given);
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ExitCode::bug) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\n" << given;
    }
  };
  const int share = by_size(1, 3, 5);
  for (std::size_t length = 0; length < text.size(); length += static_cast<std::size_t>(share))
    attempt(text.substr(0, length));
  constexpr std::string_view kCharacters = "0123456789 .-+eE,\n\t\"#>ax{}%";
  RandomStream random(1, "mutations");
  for (int i = 0; i < count / share; ++i) {
    std::string given = text;
    for (std::uint64_t changes = 1 + random.below(3); changes > 0 && !given.empty(); --changes) {
      const auto at = static_cast<std::size_t>(random.below(given.size()));
      const char character = kCharacters[static_cast<std::size_t>(random.below(kCharacters.size()))];
      switch (random.below(4)) {
        case 0:
          given[at] = character;
          break;
        case 1:
          given.erase(at, 1 + static_cast<std::size_t>(random.below(4)));
          break;
        case 2:
          given.insert(at, 1, character);
          break;
        default:
          given.insert(at, given.substr(at, static_cast<std::size_t>(random.below(12))));
      }
    }
    attempt(given);
  }
}

}  // namespace netsim::test
