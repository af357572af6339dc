// Tests results that a user of the program sees and keeps: directories, screens and error messages.
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

#include "sim/core/text.h"
#include "sim/report/result_sinks.h"
#include "tests/support/program.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_size.h"

namespace netsim::faces_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Ended;
using test::NetsimProgram;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Returns the text between two carriage returns or line breaks, as a terminal shows it.
std::vector<std::string> drawn_lines(const std::string& text) {
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 3, "\x1b[K") == 0) {
      i += 2;
    } else if (text[i] == '\r' || text[i] == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += text[i];
    }
  }
  return lines;
}

bool shows_progress(const std::string& line) {
  return line.find("elapsed") != std::string::npos || line.find("left") != std::string::npos;
}
std::ptrdiff_t progress_lines(const std::string& text) {
  const std::vector<std::string> lines = drawn_lines(text);
  return std::count_if(lines.begin(), lines.end(), shows_progress);
}

class Faces : public NetsimProgram {
 protected:
  void SetUp() override {
    NetsimProgram::SetUp();
    write("long.yaml", "kind: incast\nsenders: 3\nreceiver: 3\nbytes: 100 GB\n");
  }
  std::vector<std::string> words(const std::string& arguments) const {
    std::istringstream stream(arguments);
    std::vector<std::string> result{netsim_binary()};
    for (std::string word; stream >> word;) result.push_back(word);
    return result;
  }
  [[noreturn]] void become(const std::vector<std::string>& command) const {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    if (chdir(directory_.path().c_str()) == 0) execv(argv[0], argv.data());
    _exit(98);
  }
  // Starts the program in the directory; its words must hold no blanks.
  pid_t start(const std::string& arguments) const {
    const std::vector<std::string> command = words(arguments);
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGHUP, SIG_DFL);
      become(command);
    }
    return child;
  }
  static int end(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // Starts a run into `directory` that takes much longer than any test. Returns when the run simulates.
  pid_t start_long(const std::string& directory) const {
    const pid_t child = start("--config star.yaml --workload long.yaml --quiet --out " + directory +
                              " --set output.sample.interval=100ns");
    wait_for_samples(directory);
    return child;
  }
  // Name and content of everything in the directory `name` that a run writes there.
  std::map<std::string, std::string> files_of(const std::string& name) const {
    std::map<std::string, std::string> files;
    for (const std::string& file : output_files()) {
      if (directory_.has(name + "/" + file)) files[file] = directory_.text(name + "/" + file);
    }
    return files;
  }
  // Returns the output of the program on a terminal with this many columns. The program is interrupted when
  // it has drawn its progress `drawings` times, or runs to its end if that is 0.
  std::string on_terminal(const std::string& arguments, unsigned columns, std::ptrdiff_t drawings) const {
    const std::vector<std::string> command = words(arguments);
    winsize size{};
    size.ws_row = 24;
    size.ws_col = static_cast<unsigned short>(columns);
    int terminal = -1;
    const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
    if (child == 0) {
      setenv("TERM", "xterm", 1);
      become(command);
    }
    std::string text;
    char buffer[4096];
    bool interrupted = drawings == 0;
    for (ssize_t count = 0; (count = read(terminal, buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(count));
      if (interrupted || progress_lines(text) < drawings) continue;
      interrupted = true;
      kill(child, SIGINT);
    }
    EXPECT_EQ(end(child), drawings > 0 ? 130 : 0);
    close(terminal);
    return text;
  }
};

TEST_F(Faces, TwoRunsNeverShareADirectory) {
  const pid_t first = start_long("results");
  expect_error("--config star.yaml --workload incast.yaml --out results", ExitCode::io,
               {"'results'", "another run writes there now"});
  EXPECT_EQ(run("--config star.yaml --workload incast.yaml --quiet --out others").code, 0);
  ASSERT_EQ(kill(first, SIGKILL), 0);
  EXPECT_EQ(end(first), 128 + SIGKILL);
  EXPECT_EQ(run("--config star.yaml --workload incast.yaml --quiet --out results").code, 0)
      << "nothing holds it now";
  EXPECT_EQ(files_of("results")["summary.json"], files_of("others")["summary.json"]);
  for (const auto& entry : fs::directory_iterator(path("results")))
    EXPECT_FALSE(entry.path().filename().string().starts_with('.')) << entry.path();
}

TEST_F(Faces, ManyRunsAtOnceLeaveTheFilesOfOne) {
  std::vector<pid_t> runs;
  for (int i = 0; i < 6; ++i)
    runs.push_back(
        start("--config star.yaml --workload incast.yaml --quiet --threads 1 --out results --seed " +
              std::to_string(i + 1)));
  int done = 0;
  for (const pid_t child : runs) {
    const int code = end(child);
    EXPECT_TRUE(code == 0 || code == static_cast<int>(ExitCode::io)) << code;
    done += code == 0 ? 1 : 0;
  }
  EXPECT_GE(done, 1);
  const auto left = files_of("results");
  const std::string seed = std::to_string(json::parse(left.at("manifest.json"))["seed"].get<int>());
  ASSERT_EQ(run("--config star.yaml --workload incast.yaml --quiet --out alone --seed " + seed).code, 0);
  for (const auto& [name, text] : files_of("alone")) {
    if (name == "manifest.json" || name == "report.html") continue;  // they name their directory
    EXPECT_EQ(left.at(name), text) << name;
  }
}

TEST_F(Faces, ADirectoryHoldsTheFilesOfOneRunAndTheUsersOwn) {
  ASSERT_EQ(run("--config star.yaml --workload incast.yaml --quiet --out results --set "
                "output.sample.interval='1 us'")
                .code,
            0);
  ASSERT_TRUE(directory_.has("results/queue_samples.csv"));
  write("results/notes.txt", "mine");
  write("results/plot.csv", "mine too");
  ASSERT_EQ(run("--config star.yaml --workload incast.yaml --quiet --out results").code, 0);
  for (const char* gone : {"queue_samples.csv", "link_samples.csv", "flow_samples.csv"})
    EXPECT_FALSE(directory_.has(std::string("results/") + gone)) << gone;
  EXPECT_TRUE(directory_.has("results/flows.csv"));
  EXPECT_EQ(directory_.text("results/notes.txt"), "mine");
  EXPECT_EQ(directory_.text("results/plot.csv"), "mine too");
}

TEST_F(Faces, ARefusedRunLeavesTheResultsThatAreThere) {
  ASSERT_EQ(run("--config star.yaml --workload incast.yaml --quiet --out results").code, 0);
  const auto before = files_of("results");
  expect_error(
      "--config star.yaml --workload incast.yaml --out results --set output.sample.interval='1 us' "
      "--set output.sample.ports='[nowhere]'",
      ExitCode::usage, {"nowhere"});
  EXPECT_EQ(files_of("results"), before);
}

// Returns the files without the manifest, which names its directory and says how long the run took.
std::map<std::string, std::string> without_manifest(std::map<std::string, std::string> files) {
  files.erase("manifest.json");
  return files;
}

TEST_F(Faces, ARunThatIsKilledWhileItSimulatesLeavesNoSummary) {
  ASSERT_EQ(run("--config star.yaml --workload incast.yaml --quiet --out results").code, 0);
  ASSERT_TRUE(directory_.has("results/summary.json"));
  const pid_t child = start_long("results");
  ASSERT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(end(child), 128 + SIGKILL);
  EXPECT_EQ(files_of("results"), (std::map<std::string, std::string>{}));
}

// Whenever a run is killed, either no summary is there, or all files are of the run that wrote the summary.
// The moments of the kills follow the time of a whole run, but the test holds for any moments.
TEST_F(Faces, AKilledRunLeavesNothingThatSaysDoneWithOthersTables) {
  const std::string first = "--config star.yaml --workload incast.yaml --quiet --threads 1 ";
  write("second.yaml", "kind: all_to_all\nbytes: 8 MB\n");
  const std::string second = "--config star.yaml --workload second.yaml --quiet --threads 1 --out results";
  ASSERT_EQ(run(first + "--out first --set output.sample.interval='1 us'").code, 0);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run(second).code, 0);
  const auto whole = std::chrono::steady_clock::now() - begin;
  const auto of_first = without_manifest(files_of("first")),
             of_second = without_manifest(files_of("results"));
  for (int i = 0; i <= test::by_size(24, 11, 11); ++i) {
    fs::remove_all(path("results"));
    fs::copy(path("first"), path("results"));
    const pid_t child = start(second);
    std::this_thread::sleep_for(whole * (i * 7 % 25) / 24);
    kill(child, SIGKILL);
    end(child);
    const auto left = files_of("results");
    if (left.count("summary.json") == 0) continue;
    EXPECT_TRUE(without_manifest(left) == of_first || without_manifest(left) == of_second) << "kill " << i;
  }
  EXPECT_EQ(run(second).code, 0);
  EXPECT_EQ(without_manifest(files_of("results")), of_second);
}

TEST_F(Faces, ATerminalShowsLinesThatFit) {
  for (const unsigned width :
       test::by_size<std::vector<unsigned>>({60u, 80u, 120u}, {60u, 80u}, {60u, 80u})) {
    const std::string text =
        on_terminal("--config star.yaml --workload long.yaml", width, test::by_size(8, 3, 3));
    std::ptrdiff_t drawings = 0;
    for (const std::string& line : drawn_lines(text)) {
      if (line.starts_with("netsim: error: ")) continue;  // one line, however long
      EXPECT_LE(columns(line), width) << line;
      if (!shows_progress(line)) continue;
      ++drawings;
      EXPECT_LT(columns(line), width) << line;
    }
    EXPECT_GE(drawings, 2) << text;
    EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 40) << "progress stays on its line";
    EXPECT_THAT(text, HasSubstr("longest queue"));
    EXPECT_THAT(text, HasSubstr("links by tier"));
  }
  for (const char* question : {"--help", "--list", "--describe transport", "--describe topology"}) {
    for (const unsigned width : {80u, 120u}) {
      for (const std::string& line : drawn_lines(on_terminal(question, width, 0)))
        EXPECT_LE(columns(line), width) << question << ": " << line;
    }
  }
}

TEST_F(Faces, WithoutATerminalLinesFollowCOLUMNSAndProgressIsRare) {
  const auto widest = [this](const std::string& before) {
    const std::string out = run("--list", before).out;
    std::size_t width = 0;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) width = std::max(width, columns(line));
    return width;
  };
  EXPECT_LE(widest("unset COLUMNS"), 80u);
  EXPECT_GT(widest("export COLUMNS=120"), 80u);
  EXPECT_LE(widest("export COLUMNS=120"), 120u);
  EXPECT_LE(widest("export COLUMNS=nonsense"), 80u);
  const Ended ended = run("--config star.yaml --workload long.yaml --until 3ms");
  EXPECT_LE(std::count(ended.err.begin(), ended.err.end(), '\n'), 2) << ended.err;
}

TEST_F(Faces, TrafficIsShownAsTrafficAndTrainingAsTraining) {
  const Ended traffic = run("--config star.yaml --workload incast.yaml");
  EXPECT_THAT(traffic.out,
              AllOf(HasSubstr("completion time"), HasSubstr("slowdown of flows"), HasSubstr("throughput")));
  EXPECT_THAT(traffic.out, Not(ContainsRegex("exposed|idle|iteration time|compute")));
  const std::string configs = source_directory() + "/configs/";
  const Ended training =
      run("--config '" + configs + "two_dgx.yaml' --workload '" + configs + "workloads/small_gpt_ptdp.yaml'");
  EXPECT_THAT(training.out, AllOf(HasSubstr("iteration time"), HasSubstr("exposed TP"), HasSubstr("idle")));
}

TEST_F(Faces, SignalsEndARunWithItsReport) {
  for (const int signal : {SIGHUP, SIGTERM, SIGINT}) {
    const pid_t child = start_long("results");
    ASSERT_EQ(kill(child, signal), 0);
    EXPECT_EQ(end(child), 130) << signal;
    EXPECT_EQ(json::parse(directory_.text("results/summary.json"))["outcome"], "interrupted");
  }
  const Ended ended = run("--config star.yaml --workload long.yaml --until 478us --quiet");
  EXPECT_THAT(ended.err, ContainsRegex("limit reached \\(--until\\) at 478 us with"));
}

TEST_F(Faces, WhatIsNoRegularFileIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  for (const char* name : {"pipe", "/dev/zero", "/dev/null"}) {
    const char* what = name[0] == 'p' ? "it is a pipe" : "it is a device";
    expect_error(std::string("--config ") + name + " --workload incast.yaml", ExitCode::io, {name, what});
    expect_error(std::string("--config star.yaml --workload ") + name, ExitCode::io, {name, what});
  }
  expect_error("--config . --workload incast.yaml", ExitCode::io, {"Is a directory"});
  write("ns3.yaml", "topology: {kind: ns3, file: " + path("pipe") + "}\n");
  expect_error("--config ns3.yaml --workload incast.yaml", ExitCode::io, {"it is a pipe"});
  EXPECT_EQ(run("--config /dev/stdin --workload incast.yaml --quiet <star.yaml").code, 0)
      << "a file by another name";
}

TEST_F(Faces, TooLargeFilesAreRefusedBeforeTheyAreRead) {
  write("huge", "x");
  fs::resize_file(path("huge"), (std::uintmax_t{1} << 30) + 1);
  expect_error("--config huge --workload incast.yaml", ExitCode::usage, {"huge", "at most 4194304 (4 MiB)"});
  expect_error("--config star.yaml --workload huge", ExitCode::input, {"huge", "at most 1 GiB"});
}

TEST_F(Faces, NamesAreTextAndErrorsHoldNoEscapes) {
  const std::string header = "source,destination,bytes,start,name\n0,1,1000,0,good\n0,1,1000,0,";
  const auto refused = [&](const std::string& name, const std::string& place, const char* what) {
    write("flows.csv", header + name + "\n");
    expect_error("--config star.yaml --workload flows.csv", ExitCode::input, {"flows.csv:" + place, what});
    EXPECT_FALSE(find_not_text(directory_.text("err.txt")));
  };
  refused("a\x1b[31m", "3:13", "control character 27");
  refused("a\xc2\x9b", "3:13", "control character 155");
  refused("\xff", "3:12", "not UTF-8");
  write("flows.csv", header + "a\tb\n");
  EXPECT_EQ(run("--config star.yaml --workload flows.csv").code, static_cast<int>(ExitCode::input));
  write("flows.csv", header + "caf\u00e9\n");
  EXPECT_EQ(run("--config star.yaml --workload flows.csv --quiet").code, 0);
  for (const char* arguments :
       {"--config $'a\\x1b[31m\\x9b.yaml' --workload incast.yaml",
        "--config star.yaml --workload $'a\\x1b[31m\\x9b'", "--describe $'a\\x1b[31m'", "$'--a\\x1b[31m'",
        "--config star.yaml --set $'a=\\x1b[31m'", "--config star.yaml --set $'hosts=\"\\\\x9b\"'"}) {
    write("command.sh", "exec '" + netsim_binary() + "' " + arguments + "\n");
    const int status =
        std::system(("cd '" + directory_.path() + "' && bash command.sh >out.txt 2>err.txt").c_str());
    EXPECT_NE(WEXITSTATUS(status), 0) << arguments;
    EXPECT_NE(WEXITSTATUS(status), 1) << arguments;
    EXPECT_THAT(directory_.text("err.txt"), StartsWith("netsim: error: "));
    EXPECT_FALSE(find_not_text(directory_.text("err.txt"))) << arguments;
  }
}

TEST_F(Faces, NamesInCompiledWorkloadsAreText) {
  const std::string pb = [] {
    std::ostringstream all;
    all << std::ifstream(source_directory() + "/traces/gpt3_ptdp.pb", std::ios::binary).rdbuf();
    return all.str();
  }();
  const std::size_t name = pb.find("forward");
  ASSERT_NE(name, std::string::npos);
  for (const auto& [byte, what] :
       {std::pair{'\x1b', "control character 27"}, std::pair{'\xff', "not UTF-8"}}) {
    std::string changed = pb;
    changed[name] = byte;
    write("changed.pb", changed);
    expect_error("--config star.yaml --workload changed.pb", ExitCode::input,
                 {"changed.pb", "names", "byte " + std::to_string(name), what});
  }
}

TEST_F(Faces, RunningOutOfMemoryIsNotABug) {
  if (test::sanitized()) GTEST_SKIP() << "sanitizers reserve more address space than any limit here";
  write("large.yaml",
        "topology: {kind: star, hosts: 4096, rate: 100 Gbps, delay: 1 us}\nnetwork: {switch: {buffer: 1 "
        "TB}}\n");
  write("many.yaml", "kind: all_to_all\nbytes: 64 KB\n");
  int out_of_memory = 0;
  for (const int megabytes : {40, 60, 90, 140, 200, 300, 600}) {
    const Ended ended = run("--config large.yaml --workload many.yaml --threads 1 --quiet --until 1us",
                            "ulimit -v " + std::to_string(megabytes * 1000));
    EXPECT_TRUE(ended.code == 4 || ended.code == 6 || ended.code == 127)
        << megabytes << " MB: " << ended.code << ended.err;
    if (ended.err.find("out of memory") == std::string::npos) continue;
    ++out_of_memory;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_THAT(ended.err, AllOf(StartsWith("netsim: error: out of memory"), HasSubstr("ulimit -v"),
                                 HasSubstr("What helps")));
  }
  EXPECT_GE(out_of_memory, 2);
}

}  // namespace
}  // namespace netsim::faces_test
