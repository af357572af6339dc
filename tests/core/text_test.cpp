// Do quantities read well, do lines fit, and does nothing raw reach a terminal?
#include "sim/core/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <sstream>
#include <string>

namespace netsim::text_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Text, LowersOnlyAsciiLetters) { EXPECT_EQ(lower_case("NVLink 4 \xc3\x89"), "nvlink 4 \xc3\x89"); }

TEST(Text, NearestFindsTyposOnly) {
  const std::vector<std::string> words = {"buffer", "alpha", "kmin", "kmax"};
  EXPECT_EQ(nearest("bufer", words), "buffer");
  EXPECT_EQ(nearest("bufefr", words), "buffer");
  EXPECT_EQ(did_you_mean("bufer", words), ", did you mean 'buffer'?");
  EXPECT_EQ(did_you_mean("speed", words), "");
  EXPECT_EQ(nearest("Kmax", words), "kmax");
  EXPECT_EQ(nearest("speed", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest(std::string(100'000, 'a'), words), "");
}

TEST(Text, NearestPrefersNamesThatContainTheWord) {
  const std::vector<std::string> gpus = {"b200", "a100_80gb_pcie", "a100_80gb", "h100_sxm"};
  EXPECT_EQ(nearest("a100", gpus), "a100_80gb");
  EXPECT_EQ(nearest("SXM", gpus), "h100_sxm");
  EXPECT_EQ(nearest("b20", gpus), "b200");
  // A slip of one letter goes before a longer name, and two letters are in too many names.
  EXPECT_EQ(nearest("rates", {"rates_of_links", "rate"}), "rate");
  EXPECT_EQ(nearest("mo", {"momentum", "rate"}), "");
}

TEST(Text, CountsInWords) {
  EXPECT_EQ(counted(0, "step"), "0 steps");
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(2, "step"), "2 steps");
}

TEST(Text, DurationsAreForPeople) {
  EXPECT_EQ(human_duration(0), "0 s");
  EXPECT_EQ(human_duration(0.478), "478 ms");
  EXPECT_EQ(human_duration(2.7), "2.7 s");
  EXPECT_EQ(human_duration(9.96), "10 s");
  EXPECT_EQ(human_duration(59.7), "1 min 00 s");
  EXPECT_EQ(human_duration(134), "2 min 14 s");
  EXPECT_EQ(human_duration(3 * 3600 + 7 * 60 + 12), "3 h 07 min");
}

TEST(Text, WrapsAtBlanksByCharacters) {
  EXPECT_EQ(wrapped("one two three", 0, 2, 7), "one two\n  three");
  EXPECT_EQ(wrapped("one two three", 4, 4, 9), "one\n    two\n    three");
  EXPECT_EQ(wrapped("\u00b5\u00b5\u00b5 \u00b5\u00b5\u00b5", 0, 0, 7),
            "\u00b5\u00b5\u00b5 \u00b5\u00b5\u00b5");
  EXPECT_EQ(wrapped("mean 7.76 M, p50 1 s", 0, 2, 7), "mean\n  7.76 M,\n  p50 1 s")
      << "units stay with their numbers";
  EXPECT_EQ(wrapped("unbreakable", 0, 0, 4), "unbreakable");
  EXPECT_EQ(wrapped("", 0, 0, 4), "");
}

TEST(Text, WrappedLinesFitAndHoldEveryWord) {
  EXPECT_TRUE(rc::check([](const std::vector<std::uint8_t>& lengths) {
    std::string text;
    for (const std::uint8_t length : lengths)
      text += (text.empty() ? "" : " ") + std::string(1 + length % 10, 'x');
    const std::string lines = wrapped(text, 5, 3, 20);
    std::istringstream stream(std::string(5, ' ') + lines);
    std::string joined;
    for (std::string line; std::getline(stream, line);) {
      RC_ASSERT(line.size() <= 20U);
      joined += (joined.empty() ? "" : " ") + line.substr(std::min(line.find_first_not_of(' '), line.size()));
    }
    RC_ASSERT(joined == text);
  }));
}

TEST(Text, TablesLeaveOutWhatMattersLeastBeforeTheyWrap) {
  const std::vector<TableColumn> table{{"name", 0, true, {"a", "long name"}},
                                       {"kind", 2, false, {"x", "y"}},
                                       {"busy", 0, false, {"1 %", "100 %"}},
                                       {"queue", 1, false, {"7 B", ""}}};
  EXPECT_EQ(text_table(table, 2, 80),
            "  name       kind   busy  queue\n"
            "  a             x    1 %    7 B\n"
            "  long name     y  100 %\n");
  EXPECT_EQ(text_table(table, 2, 31), text_table(table, 2, 80)) << "it just fits";
  EXPECT_THAT(text_table(table, 2, 30), Not(HasSubstr("kind")));
  EXPECT_THAT(text_table(table, 2, 30), HasSubstr("queue"));
  EXPECT_EQ(text_table(table, 0, 1), "name        busy\na            1 %\nlong name  100 %\n") << "never all";
}

TEST(Text, TablesSayOnceWhatIsTheSameInAllRowsBeforeTheyLeaveColumnsOut) {
  const std::vector<TableColumn> table{{"size", 0, false, {"1", "1"}},
                                       {"count", 1, false, {"7", "8"}, true},
                                       {"type", 3, false, {"float", "float"}, true},
                                       {"ranks", 2, false, {"16", "16"}, true},
                                       {"loss", 4, false, {"0", "0"}}};
  EXPECT_EQ(text_table(table, 2, 80),
            "  size  count   type  ranks  loss\n"
            "     1      7  float     16     0\n"
            "     1      8  float     16     0\n");
  EXPECT_EQ(text_table(table, 2, 28),
            "  ranks 16\n"
            "  size  count   type  loss\n"
            "     1      7  float     0\n"
            "     1      8  float     0\n")
      << "the one with the lower number";
  EXPECT_EQ(text_table(table, 2, 14),
            "  type float,\n  ranks 16\n"
            "  size  count\n"
            "     1      7\n"
            "     1      8\n")
      << "what came out so is left out, nothing else";
  EXPECT_THAT(text_table(table, 2, 10), Not(HasSubstr("count")));
}

TEST(Text, NamesAndTextAreUtf8WithoutControlCharacters) {
  EXPECT_FALSE(find_not_text("a\tb\r\n\u00e9\u20ac\U0001f600"));
  EXPECT_FALSE(find_not_name("a b \u00e9"));
  EXPECT_EQ(find_not_name("ab\tc")->offset, 2u);
  EXPECT_EQ(find_not_name("ab\nc")->offset, 2u);
  EXPECT_EQ(find_not_text("\u00e9\x1b[31m")->what, "control character 27: only text is allowed here");
  EXPECT_EQ(find_not_text("x\xc2\x9b")->what, "control character 155: only text is allowed here");
  EXPECT_EQ(find_not_text("x\x7f")->offset, 1u);
  for (const char* bytes :
       {"\xff", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3", "\x80", "\x9b"}) {
    EXPECT_EQ(find_not_text(bytes)->what, "this is not UTF-8 text");
  }
}

TEST(Text, PrintableTextIsTextWhateverItShows) {
  EXPECT_EQ(printable("caf\u00e9"), "caf\u00e9");
  EXPECT_EQ(printable("a\n\x1b[2J\xc2\x9b\xff"), "a\\n\\x1b[2J\\xc2\\x9b\\xff");
  EXPECT_TRUE(rc::check([](const std::string& any) {
    const std::string shown = printable(any);
    RC_ASSERT(!find_not_name(shown));
    RC_ASSERT(printable(shown) == shown);
    if (!find_not_name(any)) RC_ASSERT(shown == any);
  }));
}

}  // namespace
}  // namespace netsim::text_test
