// Tables of comma-separated values: cells, their places, and what is wrong with a table.
#include "sim/core/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/errors.h"

namespace netsim::csv_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Csv, CellsStandInTheOrderOfTheHeaderWithTheirPlaces) {
  CsvReader table("\xef\xbb\xbf# ours\n\nb , a\r\n 1,\"x, \"\"y\"\"\"\n#\n2,\n", "t.csv");
  EXPECT_THAT(table.header({"a", "b", "c"}, 1), ElementsAre(1U, 0U));
  EXPECT_EQ(table.column(0), 1U);
  EXPECT_EQ(table.column(2), CsvReader::kNone);
  ASSERT_TRUE(table.next());
  EXPECT_EQ(table.cells()[0].text, "1");
  EXPECT_EQ(table.cells()[1].text, "x, \"y\"");
  EXPECT_EQ(table.cells()[1].line, 4);
  EXPECT_EQ(table.cells()[1].column, 4);
  ASSERT_TRUE(table.next());
  EXPECT_EQ(table.cells()[1].text, "");
  EXPECT_FALSE(table.next());
}

std::string refusal(const std::string& text) {
  CsvReader table(text, "t.csv");
  try {
    table.header({"one", "two"}, 1);
    while (table.next()) {
    }
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

TEST(Csv, RefusesWhatIsWrongAtItsPlace) {
  EXPECT_EQ(refusal("two,one\n1,2\n"), "taken");
  EXPECT_THAT(refusal("one,tow\n"), HasSubstr("t.csv:1:5: unknown column 'tow', did you mean 'two'?"));
  EXPECT_THAT(refusal("one,one\n"), HasSubstr("t.csv:1:5: a second column for 'one'"));
  EXPECT_THAT(refusal("two\n"), HasSubstr("t.csv:1:1: column 'one' is missing (allowed: one, two)"));
  EXPECT_THAT(refusal("one\n1,2\n"), HasSubstr("t.csv:2:1: 2 cells, but the header has 1 columns"));
  EXPECT_THAT(refusal("one\n\"1\n"), HasSubstr("t.csv:2:1: the quote that opens here is never closed"));
  EXPECT_THAT(refusal("one\n\"1\" 2\n"), HasSubstr("text behind a closing quote"));
  EXPECT_THAT(refusal("# nothing\n"), HasSubstr("no line that names columns"));
}

TEST(Csv, AFileIsReadAsItsText) {
  const std::string text = "\xef\xbb\xbf# ours\n\nb , a\r\n 1,\"x, y\"\n#\n2,\n";
  const InputSet input = InputSet::in_memory({{"t.csv", text}});
  CsvReader table(input.files().front()), expected(text, "t.csv");
  EXPECT_EQ(table.header({"a", "b"}, 1), expected.header({"a", "b"}, 1));
  while (expected.next()) {
    ASSERT_TRUE(table.next());
    EXPECT_EQ(table.line(), expected.line());
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(table.cells()[i].text, expected.cells()[i].text);
      EXPECT_EQ(table.cells()[i].column, expected.cells()[i].column);
    }
  }
  EXPECT_FALSE(table.next());
}

TEST(Csv, RowsAloneMayHaveAnyNumberOfCells) {
  CsvReader table("# no header\n1,2\n\n3\n", "t.csv");
  ASSERT_TRUE(table.next());
  EXPECT_EQ(table.cells().size(), 2U);
  ASSERT_TRUE(table.next());
  EXPECT_EQ(table.cells()[0].text, "3");
  EXPECT_EQ(table.cells()[0].line, 4);
  EXPECT_FALSE(table.next());
}

}  // namespace
}  // namespace netsim::csv_test
