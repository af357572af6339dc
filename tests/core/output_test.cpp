// Do output files appear whole or not at all, and is every failure told?
#include "sim/core/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/read_log.h"

namespace netsim::output_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Output : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "netsim_output_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string in(const std::string& name) const { return (directory_ / name).string(); }
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(directory_), {}); }

  fs::path directory_;
};

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const IoError& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    return error.what();
  }
  return "no error";
}

TEST_F(Output, AppearsAtCommitOnly) {
  {
    OutputFile file(in("a.csv"));
    file.write("x,");
    file.write_integer(-42);
    file.write_integer(INT64_MIN);
    EXPECT_FALSE(fs::exists(in("a.csv")));
    file.commit();
  }
  EXPECT_EQ(read_file(in("a.csv")), "x,-42-9223372036854775808");
  EXPECT_EQ(files(), 1);
}

TEST_F(Output, WithoutCommitNothingIsLeft) {
  { OutputFile(in("a.csv")).write("x"); }
  EXPECT_EQ(files(), 0);
}

TEST_F(Output, TheOldFileStaysUntilCommit) {
  std::ofstream(in("a.csv")) << "old";
  { OutputFile(in("a.csv")).write("new"); }
  EXPECT_EQ(read_file(in("a.csv")), "old");
  OutputFile file(in("a.csv"));
  file.write("new");
  file.commit();
  EXPECT_EQ(read_file(in("a.csv")), "new");
}

TEST_F(Output, ALinkIsFollowedNotReplaced) {
  std::ofstream(in("target")) << "old";
  fs::create_symlink(in("target"), in("link"));
  OutputFile file(in("link"));
  file.write("new");
  file.commit();
  EXPECT_TRUE(fs::is_symlink(in("link")));
  EXPECT_EQ(read_file(in("target")), "new");
}

TEST_F(Output, LargeFilesAreWhole) {
  OutputFile file(in("large"));
  const std::string piece(100'003, 'x');
  for (int i = 0; i < 50; ++i) file.write(piece);
  file.commit();
  EXPECT_EQ(fs::file_size(in("large")), 50U * 100'003U);
}

TEST_F(Output, AFullDiskIsTold) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  EXPECT_EQ(error_of([] {
              OutputFile file("/dev/full");
              file.write("a few bytes: the failure comes at commit");
              file.commit();
            }),
            "'/dev/full': cannot be written: No space left on device");
  EXPECT_THAT(error_of([] {
                OutputFile file("/dev/full");
                file.write(std::string(4 << 20, 'x'));
              }),
              HasSubstr("No space left on device"));
  EXPECT_FALSE(fs::exists("/dev/.full.partial"));
}

// Files of this process may not grow beyond some size while this lives.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  SizeLimit(const SizeLimit&) = delete;
  SizeLimit& operator=(const SizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(Output, AFailedWriteLeavesNothing) {
  const SizeLimit limit(1000);
  EXPECT_THAT(error_of([&] {
                OutputFile file(in("a"));
                file.write(std::string(4 << 20, 'x'));
              }),
              HasSubstr("cannot be written: File too large"));
  EXPECT_EQ(files(), 0);
  EXPECT_THAT(error_of([&] {
                OutputFile file(in("a"));
                file.write(std::string(2000, 'x'));
                file.commit();
              }),
              HasSubstr("File too large"));
  EXPECT_EQ(files(), 0);
}

TEST_F(Output, PlacesThatCannotBeWritten) {
  std::ofstream(in("file")) << "x";
  EXPECT_THAT(error_of([&] { OutputFile(in("no/such/a.csv")); }), HasSubstr("No such file or directory"));
  EXPECT_THAT(error_of([&] { OutputFile(in("file/a.csv")); }), HasSubstr("Not a directory"));
  EXPECT_THAT(error_of([&] { OutputFile file(directory_.string()); }), HasSubstr("Is a directory"));
  EXPECT_THAT(error_of([&] { OutputFile(""); }), HasSubstr("name is empty"));
}

TEST_F(Output, ADirectoryInTheWayIsTold) {
  OutputFile file(in("a"));
  fs::create_directory(in("a"));
  std::ofstream(in("a/b")) << "x";
  EXPECT_NE(error_of([&] { file.commit(); }), "no error");
  EXPECT_EQ(files(), 1) << "nothing but what was in the way";
}

// Reads a manifest of these tests: "ours", then NAME BYTES for each file.
std::optional<std::vector<WrittenFile>> files_in(const std::string& text) {
  std::istringstream lines(text);
  std::string word;
  if (!(lines >> word) || word != "ours") return std::nullopt;
  std::vector<WrittenFile> files;
  for (std::uint64_t bytes = 0; lines >> word >> bytes;) files.push_back({word, bytes});
  return files;
}

const OutputNames kNames{{"done", "books", "a.csv", "b.csv"}, "books", files_in};

TEST_F(Output, DirectoriesAreMadeAndProved) {
  const auto take = [this](const std::string& name) { OutputDirectory(in(name), kNames); };
  take("x/y/z");
  EXPECT_TRUE(fs::is_directory(in("x/y/z")));
  take("x/y/z");
  take("x/w/");
  EXPECT_TRUE(fs::is_empty(in("x/y/z"))) << "the claim leaves nothing";
  std::ofstream(in("file")) << "x";
  EXPECT_THAT(error_of([&] { take("file"); }), HasSubstr("Not a directory"));
  EXPECT_THAT(error_of([&] { take("file/sub"); }), HasSubstr("cannot be created: Not a directory"));
  EXPECT_THAT(error_of([&] { take("file/sub/sub"); }), HasSubstr("cannot be created"));
  EXPECT_THAT(error_of([] { OutputDirectory("", kNames); }), HasSubstr("name is empty"));
  EXPECT_NE(error_of([] { OutputDirectory("/proc/netsim", kNames); }), "no error");
}

TEST_F(Output, ADirectoryBelongsToOneRun) {
  {
    const OutputDirectory first(in("x"), kNames);
    EXPECT_THAT(error_of([&] { OutputDirectory(in("x"), kNames); }),
                HasSubstr("another run writes there now"));
    EXPECT_THAT(error_of([&] { OutputDirectory(in("x/../x/"), kNames); }), HasSubstr("another run"));
    const OutputDirectory other(in("y"), kNames);
    EXPECT_EQ(first.file("a.csv"), in("x/a.csv"));
    EXPECT_EQ(error_of([&] { first.require_held(); }), "no error");
  }
  EXPECT_EQ(error_of([&] { OutputDirectory(in("x"), kNames); }), "no error");
}

TEST_F(Output, WhatAKilledRunLeavesIsTakenOver) {
  fs::create_directory(in("x"));
  for (const char* name :
       {".a.csv.123-0.partial", ".b.csv.partial", ".a.csv.x-0.partial", ".c.csv.7-1.partial", ".b.csv"})
    std::ofstream(in("x") + "/" + name) << "old";
  std::ofstream(in("x/.netsim.lock")).flush();
  { const OutputDirectory taken(in("x"), kNames); }
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(in("x"))) left.push_back(entry.path().filename().string());
  EXPECT_THAT(left, ::testing::UnorderedElementsAre(".b.csv", ".b.csv.partial", ".a.csv.x-0.partial",
                                                    ".c.csv.7-1.partial"))
      << "only ours go";
}

TEST_F(Output, ClearingRemovesTheFilesOfRunsOnly) {
  fs::create_directory(in("x"));
  std::ofstream(in("x/books")) << "ours done 3 a.csv 3";
  for (const char* name : {"done", "a.csv", "mine.csv"}) std::ofstream(in("x") + "/" + name) << "old";
  const OutputDirectory taken(in("x"), kNames);
  taken.clear();
  for (const char* name : {"done", "a.csv", "books"}) EXPECT_FALSE(fs::exists(in("x") + "/" + name)) << name;
  EXPECT_TRUE(fs::exists(in("x/mine.csv")));
}

// A run replaces what a manifest names as a run's, as it was written, and nothing else.
TEST_F(Output, WhatNoManifestNamesIsNotReplaced) {
  const auto refusal = [&] { return error_of([&] { const OutputDirectory taken(in("x"), kNames); }); };
  fs::create_directory(in("x"));
  std::ofstream(in("x/a.csv")) << "mine";
  EXPECT_EQ(refusal(), "'" + in("x/a.csv") +
                           "': is not replaced: netsim did not write it: no books of netsim is there; --out "
                           "another directory, or move the file away if it is not needed");
  std::ofstream(in("x/books")) << "a diary";
  EXPECT_THAT(refusal(), HasSubstr("books': is not replaced")) << "the manifest's own name";
  std::ofstream(in("x/books")) << "ours done 1";
  EXPECT_THAT(refusal(), HasSubstr("books does not name it"));
  std::ofstream(in("x/books")) << "ours a.csv 3";
  EXPECT_THAT(refusal(),
              HasSubstr("a.csv': is not replaced: it changed since netsim wrote it: 4 bytes, books says 3"));
  std::ofstream(in("x/books")) << "ours a.csv 4";
  EXPECT_EQ(refusal(), "no error");
  {
    const ReadLog log;
    EXPECT_EQ(read_file(in("x/a.csv")), "mine");
    EXPECT_THAT(refusal(), HasSubstr("a.csv': is not replaced: it is an input of this run"));
  }
  fs::remove(in("x/a.csv"));
  std::ofstream(in("elsewhere")) << "mine";
  fs::create_symlink(in("elsewhere"), in("x/a.csv"));
  EXPECT_THAT(refusal(), HasSubstr("it is a symbolic link"));
  fs::remove(in("x/a.csv"));
  ASSERT_EQ(::mkfifo(in("x/a.csv").c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("it is a pipe"));
  fs::remove(in("x/a.csv"));
  std::ofstream(in("x/.netsim.lock")) << "mine";
  EXPECT_THAT(refusal(), HasSubstr(".netsim.lock': cannot be locked: netsim did not write it"));
  EXPECT_EQ(read_file(in("x/.netsim.lock")), "mine");
  EXPECT_EQ(read_file(in("elsewhere")), "mine");
}

TEST_F(Output, WhatComesThereDuringTheRunIsNotReplaced) {
  const OutputDirectory taken(in("x"), kNames);
  taken.clear();
  OutputFile file(taken, "a.csv");
  file.write("ours");
  EXPECT_EQ(file.complete(), 4U);
  std::ofstream(in("x/a.csv")) << "mine";
  EXPECT_THAT(error_of([&] { file.commit(); }), HasSubstr("a.csv': cannot be written: it appeared during"));
  EXPECT_EQ(read_file(in("x/a.csv")), "mine");
}

// Two runs never write into one directory, though it has the same name.
TEST_F(Output, ADirectoryThatWasMadeAnewIsAnother) {
  std::optional<OutputDirectory> first;
  first.emplace(in("x"), kNames);
  {
    OutputFile file(*first, "a.csv");
    file.write("first");
    fs::remove_all(in("x"));
    const OutputDirectory second(in("x"), kNames);
    EXPECT_THAT(error_of([&] { first->require_held(); }), HasSubstr("was removed"));
    EXPECT_NE(error_of([&] { file.commit(); }), "no error");
    EXPECT_EQ(error_of([&] { second.require_held(); }), "no error");
    first.reset();
    EXPECT_EQ(error_of([&] { second.require_held(); }), "no error") << "the lock is the second one's";
    EXPECT_FALSE(fs::exists(in("x/a.csv")));
  }
  first.emplace(in("y"), kNames);
  OutputFile file(*first, "a.csv");
  fs::rename(in("y"), in("z"));
  file.write("moved");
  first->require_held();
  file.commit();
  EXPECT_EQ(read_file(in("z/a.csv")), "moved") << "files go with their directory";
}

// An input keeps its content also under another name of it, and behind links.
TEST_F(Output, AnInputIsNotReplaced) {
  std::ofstream(in("input")) << "mine";
  std::ofstream(in("other")) << "mine";
  fs::create_hard_link(in("input"), in("hard"));
  fs::create_symlink(in("input"), in("soft"));
  const ReadLog outer;
  EXPECT_EQ(read_file(in("input")), "mine");
  const ReadLog inner;
  for (const char* name : {"input", "hard", "soft"})
    EXPECT_THAT(error_of([&] { OutputFile file(in(name)); }), HasSubstr("it is an input of this run"))
        << name;
  OutputFile file(in("other"));
  file.write("new");
  file.commit();
  EXPECT_EQ(read_file(in("input")), "mine");
}

// A signal handler that ends the process calls remove_temporary_files().
TEST_F(Output, TemporaryFilesCanBeRemovedAtOnce) {
  const OutputDirectory taken(in("x"), kNames);
  OutputFile file(taken, "a.csv"), other(in("other"));
  file.write("x");
  EXPECT_EQ(std::distance(fs::directory_iterator(in("x")), {}), 2);
  remove_temporary_files();
  EXPECT_TRUE(fs::is_empty(in("x")));
  EXPECT_EQ(files(), 1) << "x alone";
}

TEST_F(Output, TwoFilesOfOneNameDoNotMeet) {
  OutputFile first(in("a")), second(in("a"));
  first.write("first");
  second.write("second");
  first.commit();
  EXPECT_EQ(read_file(in("a")), "first");
  second.commit();
  EXPECT_EQ(read_file(in("a")), "second");
  EXPECT_EQ(files(), 1);
}

TEST_F(Output, ReadsWholeFiles) {
  std::ofstream(in("empty"));
  EXPECT_EQ(read_file(in("empty")), "");
  std::ofstream(in("five")) << "12345";
  EXPECT_EQ(read_file(in("five"), 5), "12345");
  EXPECT_THAT(error_of([&] { (void)read_file(in("five"), 4); }), HasSubstr("larger than the limit, 4 bytes"));
  EXPECT_THAT(error_of([&] { (void)read_file("/dev/zero"); }), HasSubstr("it is a device"));
  ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { (void)read_file(in("pipe")); }), HasSubstr("it is a pipe"))
      << "and does not wait";
  EXPECT_EQ(read_file("/proc/self/comm").empty(), false) << "a file whose size is told as 0";
  EXPECT_THAT(error_of([&] { (void)read_file(in("none")); }), HasSubstr("No such file"));
  EXPECT_THAT(error_of([&] { (void)read_file(directory_.string()); }), HasSubstr("Is a directory"));
  const std::string large(3'000'001, 'z');
  std::ofstream(in("large")) << large;
  EXPECT_EQ(read_file(in("large")), large);
}

TEST(CsvCell, QuotesWhatNeedsIt) {
  EXPECT_EQ(csv_cell("plain text"), "plain text");
  EXPECT_EQ(csv_cell(""), "");
  EXPECT_EQ(csv_cell("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_cell("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(csv_cell("a\nb"), "\"a\nb\"");
}

TEST(ContentHash, DependsOnEveryByteAndTheLength) {
  EXPECT_EQ(content_hash("abc"), "568168bf8b87bc93") << "the same on every machine";
  EXPECT_NE(content_hash("abc"), content_hash("abd"));
  EXPECT_NE(content_hash("abc"), content_hash(std::string("abc\0", 4)));
  EXPECT_NE(content_hash("12345678a"), content_hash("12345678b"));
  EXPECT_NE(content_hash(""), content_hash(std::string(1, '\0')));
}

TEST(Errors, SayWhere) {
  EXPECT_EQ((Place{"f", 1, 2, "a.b"}).to_string(), "f:1:2: a.b");
  EXPECT_EQ((Place{"f", 0, 0, "a.b"}).to_string(), "f: a.b");
  EXPECT_EQ((Place{"f", 3, 0, ""}).to_string(), "f:3");
  EXPECT_EQ((Place{"", 0, 0, "a.b"}).to_string(), "a.b");
  EXPECT_STREQ(InputError(Place{"w.pb", 0, 0, ""}, "truncated").what(), "w.pb: truncated");
  EXPECT_STREQ(ConfigError(Place{}, "two\nlines").what(), "two\\nlines");
  EXPECT_EQ(InputError("x").code(), ExitCode::input);
}

TEST(Errors, ACheckThrowsWhatDoesNotHoldAndWhere) {
  const int line = __LINE__ + 2;
  try {
    NETSIM_CHECK(1 + 1 == 3, "arithmetic\nfailed");
    FAIL() << "nothing was thrown";
  } catch (const InternalError& error) {
    EXPECT_EQ(error.code(), ExitCode::bug);
    EXPECT_EQ(error.what(), "this is a bug in netsim: " + std::string(__FILE__) + ":" + std::to_string(line) +
                                ": '1 + 1 == 3' does not hold: arithmetic\\nfailed");
  }
}

}  // namespace
}  // namespace netsim::output_test
