// Tests that lines are the same however they lie across the buffers, and that wrong lines are refused.
#include "sim/core/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/input_file.h"

namespace netsim::line_reader_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using Line = std::tuple<int, std::string, bool>;  // number, text, whether a line feed follows

std::vector<Line> lines_of(LineReader reader) {
  std::vector<Line> lines;
  while (reader.next()) lines.emplace_back(reader.number(), reader.line(), reader.has_line_feed());
  return lines;
}

InputSet::File in_memory(const std::string& text) {
  return InputSet::in_memory({{"text", text}}).files().front();
}

std::string refusal(const std::string& text, std::size_t buffer = LineReader::kBuffer) {
  try {
    lines_of(LineReader(in_memory(text), buffer));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(LineReader, LinesAreTheSameForAnyBuffer) {
  for (const std::string& text :
       std::vector<std::string>{"", "\n", "a", "a\n", "\n\na", "first\nsecond, longer line\n\nlast",
                                "x\r\ny\r\n", "gr\xc3\xbc\xc3\x9f\x65\n\xe2\x82\xac\n"}) {
    const std::vector<Line> expected = lines_of(LineReader(std::string_view(text)));
    for (std::size_t buffer = 1; buffer < 24; ++buffer)
      EXPECT_EQ(lines_of(LineReader(in_memory(text), buffer)), expected) << text << " " << buffer;
  }
  EXPECT_EQ(lines_of(LineReader("a\n\nb")),
            (std::vector<Line>{{1, "a", true}, {2, "", true}, {3, "b", false}}));
  EXPECT_EQ(lines_of(LineReader("a\n")), (std::vector<Line>{{1, "a", true}}));
}

TEST(LineReader, AByteOrderMarkIsNoPartOfTheFirstLine) {
  for (std::size_t buffer = 1; buffer < 5; ++buffer)
    EXPECT_EQ(lines_of(LineReader(in_memory("\xef\xbb\xbf"
                                            "a\n\xef\xbb\xbf"
                                            "b"),
                                  buffer)),
              (std::vector<Line>{{1, "a", true},
                                 {2,
                                  "\xef\xbb\xbf"
                                  "b",
                                  false}}));
}

TEST(LineReader, AFileIsReadInPieces) {
  const std::string path = (std::filesystem::path(::testing::TempDir()) / "netsim_line_reader").string();
  constexpr int kLines = 200'000;
  {
    std::ofstream file(path);
    for (int i = 0; i < kLines; ++i) file << "line " << i << "\n";
  }
  const InputSet input(path);
  ASSERT_GT(input.files().front().size, 4 * LineReader::kBuffer);
  LineReader reader(input.files().front());
  for (int i = 0; i < kLines; ++i) {
    ASSERT_TRUE(reader.next());
    ASSERT_EQ(reader.line(), "line " + std::to_string(i));
  }
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.number(), kLines);
  std::filesystem::remove(path);
}

TEST(LineReader, ALineMayBeLongerThanTheBufferButNotHuge) {
  const std::string longest(LineReader::kLongest, 'x');
  const std::vector<Line> lines = lines_of(LineReader(in_memory("a\n" + longest + "\nb\n")));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(std::get<1>(lines[1]) == longest);
  EXPECT_EQ(std::get<1>(lines[2]), "b");
  EXPECT_THAT(refusal("a\n" + longest + "x\nb\n"), StartsWith("text:2:1: the line is longer than 16 MiB"));
  EXPECT_THAT(refusal("a\n" + longest + longest + longest), StartsWith("text:2:1: the line is longer"));
}

TEST(LineReader, WhatIsNotTextIsRefusedAtItsPlace) {
  for (const std::size_t buffer : {std::size_t{1}, std::size_t{4}, LineReader::kBuffer}) {
    EXPECT_THAT(refusal("ab\ncd\x1b[31m\n", buffer), StartsWith("text:2:3: control character 27")) << buffer;
    EXPECT_THAT(refusal("ab\n\nc\xff\n", buffer), StartsWith("text:3:2: this is not UTF-8")) << buffer;
    EXPECT_THAT(refusal("ab\xe2\x82", buffer), StartsWith("text:1:3: this is not UTF-8")) << buffer;
  }
  EXPECT_EQ(refusal("tab\tand return\r\n"), "accepted");
}

// The words of a file have the places of those of a text, also behind the last one.
TEST(LineReader, ATextReaderOfAFileIsThatOfItsText) {
  const auto places = [](TextReader reader) {
    std::vector<std::string> result;
    while (!reader.at_end()) {
      const Word word = reader.next("a word");
      result.push_back(reader.place(word).to_string() + " " + std::string(word.text));
    }
    try {
      reader.next("more");
    } catch (const InputError& error) {
      result.emplace_back(error.what());
    }
    return result;
  };
  for (const std::string& text :
       std::vector<std::string>{"", "a", "a\n", "a b\n\n c  \n", "a b\n\n c  ", "\n\n"})
    EXPECT_EQ(places(TextReader(in_memory(text))), places(TextReader(text, "text"))) << text;
  EXPECT_THAT(places(TextReader("a\n", "text")).back(), HasSubstr("text:2:1: the file ends"));
  EXPECT_THAT(places(TextReader("a", "text")).back(), HasSubstr("text:1:2: the file ends"));
}

}  // namespace
}  // namespace netsim::line_reader_test
