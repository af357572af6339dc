// Do words know where they stand, and are numbers of other tools' files read exactly?
#include "sim/core/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace netsim::input_file_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

TEST(ScaledDecimal, IsExact) {
  EXPECT_THAT(scaled_decimal("2", kSecond), Optional(2 * kSecond));
  EXPECT_THAT(scaled_decimal("0.001000000", kSecond), Optional(kMillisecond));
  EXPECT_THAT(scaled_decimal("2.5e-06", kSecond), Optional(2'500'000));
  EXPECT_THAT(scaled_decimal("1E3", 1), Optional(1000));
  EXPECT_THAT(scaled_decimal(".5", kSecond), Optional(kSecond / 2));
  EXPECT_THAT(scaled_decimal("0", kSecond), Optional(0));
  EXPECT_THAT(scaled_decimal("0.0e99999", kSecond), Optional(0));
  EXPECT_THAT(scaled_decimal("9223372036854775807", 1), Optional(INT64_MAX));
  EXPECT_THAT(scaled_decimal("1.00000000000000000000000000000001", kSecond), Optional(kSecond));
}

TEST(ScaledDecimal, RoundsToTheNearest) {
  EXPECT_THAT(scaled_decimal("0.4", 1), Optional(0));
  EXPECT_THAT(scaled_decimal("0.5", 1), Optional(1));
  EXPECT_THAT(scaled_decimal("1.0000000000004", kSecond), Optional(kSecond));
  EXPECT_THAT(scaled_decimal("1.0000000000006", kSecond), Optional(kSecond + 1));
  EXPECT_THAT(scaled_decimal("1e-30", kSecond), Optional(0));
  EXPECT_THAT(scaled_decimal("1e-2000000000", kSecond), Optional(0));
}

TEST(ScaledDecimal, RefusesWhatIsNoNumberOrTooLarge) {
  for (const char* text :
       {"", ".", "-1", "+1", "1x", "1e", "1e+", "e5", "1.2.3", "0x10", " 1", "1 ", "inf", "nan"}) {
    EXPECT_EQ(scaled_decimal(text, kSecond), std::nullopt) << text;
  }
  EXPECT_EQ(scaled_decimal("9223372036854775808", 1), std::nullopt);
  EXPECT_EQ(scaled_decimal("1e7", kSecond), std::nullopt);
  EXPECT_EQ(scaled_decimal("1e2000000000", kSecond), std::nullopt);
}

TEST(TextReader, WordsKnowTheirPlace) {
  TextReader reader("  a bc\n\n\td\r\n", "file");
  const Word a = reader.next("a"), bc = reader.next("bc"), d = reader.next("d");
  EXPECT_EQ(a.text, "a");
  EXPECT_EQ(reader.place(a).to_string(), "file:1:3");
  EXPECT_EQ(bc.text, "bc");
  EXPECT_EQ(reader.place(bc).to_string(), "file:1:5");
  EXPECT_EQ(d.text, "d");
  EXPECT_EQ(reader.place(d).to_string(), "file:3:2");
  EXPECT_TRUE(reader.at_end());
  try {
    reader.next("another word");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the file ends where another word is expected"));
  }
}

TEST(TextReader, LinesAreWhatIsNotEmpty) {
  TextReader reader("\n a b \n\n  \nc", "file");
  std::vector<Word> words;
  ASSERT_TRUE(reader.next_line(words));
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[1].text, "b");
  EXPECT_EQ(words[1].line, 2);
  ASSERT_TRUE(reader.next_line(words));
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0].line, 5);
  EXPECT_FALSE(reader.next_line(words));
}

// Returns the message about a file that does not exist.
std::string not_found(const std::string& name, const Place& where) {
  try {
    return "found " + find_input_file(name, where);
  } catch (const IoError& error) {
    return error.what();
  }
}

TEST(FindInputFile, LooksBesideTheFileThatNamesItThenAboveThenHere) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(::testing::TempDir()) / "netsim_find_input_file";
  fs::create_directories(root / "conf");
  std::ofstream(root / "above.txt") << "x";
  std::ofstream(root / "conf" / "beside.txt") << "x";
  const Place config{(root / "conf" / "c.txt").string(), 3, 7, "host.file"};
  EXPECT_EQ(find_input_file("beside.txt", config), (root / "conf" / "beside.txt").string());
  EXPECT_EQ(find_input_file("above.txt", config), (root / "above.txt").string());
  const std::string absolute = (root / "above.txt").string();
  EXPECT_EQ(find_input_file(absolute, config), absolute);
  EXPECT_EQ(not_found("nowhere.txt", config), config.to_string() + ": no file 'nowhere.txt' (looked for " +
                                                  (root / "conf/nowhere.txt").string() + ", " +
                                                  (root / "nowhere.txt").string() + ", nowhere.txt)");
  fs::remove_all(root);
}

TEST(FindInputFile, NamesTheKeyAndEachPathOnce) {
  EXPECT_EQ(not_found("nope.xml", {"c.yaml", 3, 7, "host.file"}),
            "c.yaml:3:7: host.file: no file 'nope.xml' (looked for nope.xml, ../nope.xml)");
  EXPECT_EQ(not_found("/no/such.xml", {"c.yaml", 3, 7, "host.file"}),
            "c.yaml:3:7: host.file: no file '/no/such.xml'");
  EXPECT_EQ(not_found("nope.xml", {"--set", 0, 0, "host.file"}),
            "--set: host.file: no file 'nope.xml' (looked for nope.xml)");
}

}  // namespace
}  // namespace netsim::input_file_test
