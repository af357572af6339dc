// Tests which files an input has, how they are read in pieces, and that every wrong input is refused.
#include "sim/core/input_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sim/core/errors.h"
#include "sim/core/read_log.h"
#include "sim/core/recognise.h"

namespace netsim::input_set_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Inputs : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(::testing::TempDir()) /
        ("netsim_input_set_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& content) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  std::vector<std::string> paths(const std::vector<std::string>& names) const {
    std::vector<std::string> result;
    for (const std::string& name : names) result.push_back(path(name));
    return result;
  }
  // Returns the names of the files of an input, relative to the folder of the test.
  std::vector<std::string> found(const std::vector<std::string>& names) const {
    std::vector<std::string> result;
    const InputSet input(paths(names));
    for (const InputSet::File& file : input.files())
      result.push_back(fs::path(file.path).lexically_relative(folder_).string());
    return result;
  }
  // Returns the exit code and the message of an input that is refused.
  std::string refusal(const std::vector<std::string>& names) const {
    try {
      const InputSet input(paths(names));
    } catch (const Error& error) {
      return std::to_string(static_cast<int>(error.code())) + " " + error.what();
    }
    return "accepted";
  }

 private:
  fs::path folder_;
};

// Reads a file in pieces of `most` bytes.
std::string in_pieces(const InputSet::File& file, std::size_t most) {
  std::string result, piece(most, '\0');
  InputStream stream(file);
  while (const std::size_t size = stream.read(piece.data(), most)) result += piece.substr(0, size);
  return result;
}

TEST(InputPaths, AreOnePathOrSeveral) {
  EXPECT_TRUE(InputPaths("").empty());
  EXPECT_EQ(InputPaths("a.csv").text(), "a.csv");
  EXPECT_EQ(InputPaths(std::vector<std::string>{"b", "a"}).text(), "b, a");
  EXPECT_EQ(InputPaths("a"), InputPaths(std::vector<std::string>{"a"}));
}

TEST_F(Inputs, AFolderIsItsFilesByName) {
  for (const char* name : {"in/b", "in/a.csv", "in/B", "in/.hidden", "in/10", "in/9", "c"}) write(name, "x");
  EXPECT_THAT(found({"in"}), ElementsAre("in/10", "in/9", "in/B", "in/a.csv", "in/b"));
  EXPECT_THAT(found({"c", "in"}), ElementsAre("c", "in/10", "in/9", "in/B", "in/a.csv", "in/b"));
  EXPECT_THAT(found({"in/b", "in/9"}), ElementsAre("in/b", "in/9")) << "the user's order";
  fs::create_symlink(path("c"), path("in/linked"));
  EXPECT_EQ(found({"in"}).back(), "in/linked");
}

TEST_F(Inputs, WrongOnesAreRefusedWithTheirName) {
  write("a", "x");
  fs::create_directories(path("empty"));
  write("hidden/.x", "x");
  write("deep/a", "x");
  write("deep/further/b", "x");
  EXPECT_THAT(refusal({"none"}), AllOf(StartsWith("4 "), HasSubstr("none"), HasSubstr("cannot be read")));
  EXPECT_THAT(refusal({"a", "none"}), AllOf(StartsWith("4 "), HasSubstr("none")));
  EXPECT_THAT(refusal({"empty"}), AllOf(StartsWith("3 "), HasSubstr("empty: the folder has no files")));
  EXPECT_THAT(refusal({"hidden"}), HasSubstr("the folder has no files"));
  EXPECT_THAT(refusal({"deep"}), AllOf(StartsWith("3 "), HasSubstr("deep: contains the folder 'further'")));
  EXPECT_THAT(refusal({"a", "a"}), AllOf(StartsWith("3 "), HasSubstr("a: the file is given twice")));
  fs::create_symlink(path("a"), path("b"));
  EXPECT_THAT(refusal({"a", "b"}), HasSubstr("b: the file is given twice"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal({"pipe"}), AllOf(StartsWith("4 "), HasSubstr("pipe")));
}

TEST_F(Inputs, AFileWithoutPermissionIsRefused) {
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser may read everything";
  write("in/a", "x");
  fs::permissions(path("in/a"), fs::perms::none);
  EXPECT_THAT(refusal({"in"}), AllOf(StartsWith("4 "), HasSubstr("in/a': cannot be read")));
}

TEST_F(Inputs, OnlyOneFileIsAskedForByReadersOfOne) {
  write("a", "x");
  write("b", "x");
  EXPECT_EQ(InputSet(path("a")).only("a matrix").path, path("a"));
  try {
    InputSet(paths({"a", "b"})).only("a matrix");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              path("a") + ", " + path("b") + ": has 2 files, but a matrix is one file");
  }
}

TEST_F(Inputs, AreReadInPiecesOfAnySize) {
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += std::to_string(i) + (i % 7 == 0 ? "\n" : " ");
  const InputSet disk(write("a", content));
  const InputSet memory = InputSet::in_memory({{"a", content}});
  for (const std::size_t most : {std::size_t{7}, std::size_t{4096}, std::size_t{1} << 20}) {
    EXPECT_TRUE(in_pieces(disk.files()[0], most) == content) << most;
    EXPECT_TRUE(in_pieces(memory.files()[0], most) == content) << most;
  }
  EXPECT_TRUE(read_file(disk.files()[0]) == content);
  EXPECT_EQ(disk.count_lines(),
            1U + static_cast<std::uint64_t>(std::count(content.begin(), content.end(), '\n')));
  EXPECT_EQ(disk.count_lines(), memory.count_lines());
}

TEST_F(Inputs, AFileThatIsTooLargeToBeReadAtOnceIsRefused) {
  const InputSet input(write("a", "12345"));
  EXPECT_EQ(read_file(input.files()[0], 5), "12345");
  EXPECT_THROW(read_file(input.files()[0], 4), InputError);
}

TEST_F(Inputs, AFileThatChangesMeanwhileIsRefused) {
  const InputSet input(write("a", std::string(100, 'x')));
  std::string piece(60, '\0');
  InputStream stream(input.files()[0]);
  EXPECT_EQ(stream.read(piece.data(), piece.size()), 60U);
  fs::resize_file(path("a"), 70);
  EXPECT_THROW(stream.read(piece.data(), piece.size()), IoError);
  EXPECT_THROW(InputStream{input.files()[0]}, IoError);
}

// A file that is read in pieces is logged as one that is read at once.
TEST_F(Inputs, AreLoggedWithTheHashOfTheirContent) {
  std::string content(700'001, 'x');
  content[300'000] = 'y';
  const InputSet input(std::vector<std::string>{write("a", content), write("b", "short")});
  const ReadLog log;
  read_file(input.files()[1]);
  input.log();
  ASSERT_EQ(log.files().size(), 2U);
  EXPECT_EQ(log.files()[0].path, path("b"));
  EXPECT_EQ(log.files()[1].path, path("a"));
  EXPECT_EQ(log.files()[0].hash, content_hash("short"));
  EXPECT_EQ(log.files()[1].hash, content_hash(content));
  EXPECT_THROW(OutputFile{path("a")}, IoError) << "an input is not replaced";
}

TEST_F(Inputs, AreRecognisedByTheirBeginning) {
  const std::string list = "source,destination,bytes,start\n" + std::string(2 * kExcerpt, '#') + "\x01";
  const InputSet input(write("list", list));
  ASSERT_NE(recognise(input.files()[0]), nullptr);
  EXPECT_EQ(recognise(input.files()[0])->component, "csv");
}

}  // namespace
}  // namespace netsim::input_set_test
