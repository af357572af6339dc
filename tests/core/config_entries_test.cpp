// Is an error's place the entry where there is one, and are lists of sizes read and refused at their place?
#include "sim/core/config_entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace netsim::config_entries_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ConfigEntries, AreThePlaceWhereTheUserWroteThem) {
  const ConfigNode map = parse_config("{a: 1, b: {c: 2}}", "test.yaml");
  EXPECT_EQ(entry_or_self(map, "a").text(), "1");
  EXPECT_EQ(&entry_or_self(map, "d"), &map);
  const ConfigNode& scalar = entry_or_self(map, "a");
  EXPECT_EQ(&entry_or_self(scalar, "c"), &scalar);
  const ConfigNode none;
  EXPECT_EQ(&entry_or_self(none, "a"), &none);
}

TEST(ConfigEntries, ListsOfSizes) {
  const auto read = [](const std::string& text, std::size_t least = 1, std::size_t most = 3) {
    return read_sizes(parse_config(text, "test.yaml"), "sizes", least, most, 100);
  };
  EXPECT_THAT(read("[1, 100]"), ElementsAre(1, 100));
  const auto refuse = [&](const std::string& text, const std::string& message) {
    EXPECT_THAT([&] { read(text); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("test.yaml:1:"), HasSubstr(message))))
        << text;
  };
  for (const char* text : {"[]", "[1, 2, 3, 4]", "{a: 1}", "7"})
    refuse(text, "expected a list of 1 to 3 sizes");
  for (const char* text : {"[0]", "[1, 101]", "[-1]"}) refuse(text, "is out of range: 1 to 100 is allowed");
  refuse("[1, two]", "'two'");
  EXPECT_THAT([&] { read("[1]", 2, 2); },
              ThrowsMessage<ConfigError>(HasSubstr("expected a list of 2 sizes")));
}

}  // namespace
}  // namespace netsim::config_entries_test
