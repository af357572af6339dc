#include "sim/main/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <sstream>

#include "sim/core/errors.h"

namespace netsim::options_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Action = Options::Action;

std::string error_of(const std::vector<std::string>& arguments) {
  try {
    parse_options(arguments);
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "no error";
}

TEST(CommandLine, OfARun) {
  const Options options =
      parse_options({"--config", "c.yaml", "--workload=w.pb", "--set", "a=1", "--set", "b.c=2 MB", "--out",
                     "results", "--seed", "7", "--until", "2ms", "--threads", "3", "--quiet"});
  EXPECT_EQ(options.action, Action::run);
  EXPECT_EQ(options.config, "c.yaml");
  EXPECT_EQ(options.workload, "w.pb");
  EXPECT_EQ(options.assignments, (std::vector<std::string>{"a=1", "b.c=2 MB"}));
  EXPECT_TRUE(options.workload_assignments.empty());
  EXPECT_EQ(options.output, "results");
  EXPECT_EQ(options.seed, 7u);
  EXPECT_EQ(options.threads, 3u);
  EXPECT_EQ(options.until, 2 * kMillisecond);
  EXPECT_TRUE(options.quiet);
  EXPECT_FALSE(options.json);
}

TEST(CommandLine, SeveralFilesAreOneWorkload) {
  EXPECT_THAT(parse_options({"--config", "c", "--workload", "b,1.csv", "--workload", "a"}).workload.all(),
              ElementsAre("b,1.csv", "a"));
  EXPECT_THAT(error_of({"--config", "c", "--workload", "a", "--workload", ""}),
              HasSubstr("--workload: the value is empty"));
}

TEST(CommandLine, SetsValuesOfConfigurationAndWorkload) {
  const Options run = parse_options(
      {"--config", "c", "--workload", "w", "--set", "workload.parallel.data=1", "--set", "workloads=1"});
  EXPECT_EQ(run.assignments, std::vector<std::string>{"workloads=1"});
  EXPECT_EQ(run.workload_assignments, std::vector<std::string>{"parallel.data=1"});
  EXPECT_EQ(
      parse_options({"--compile", "o.pb", "--workload", "w", "--set", "workload.a=1"}).workload_assignments,
      std::vector<std::string>{"a=1"});
  EXPECT_THAT(error_of({"--compile", "o.pb", "--workload", "w", "--set", "a=1"}),
              HasSubstr("--compile reads no configuration, only workload.*"));
  EXPECT_THAT(error_of({"--show-schedule", "ring", "--set", "workload.a=1"}), HasSubstr("read no workload"));
}

TEST(CommandLine, OfTheOtherActions) {
  EXPECT_EQ(parse_options({"--list"}).subject, "");
  EXPECT_EQ(parse_options({"--list", "topology"}).subject, "topology");
  EXPECT_EQ(parse_options({"--describe", "dcqcn"}).subject, "dcqcn");
  EXPECT_EQ(parse_options({"--compile", "out.pb", "--workload", "w.yaml"}).subject, "out.pb");
  EXPECT_EQ(parse_options({"--print-config", "--config", "c"}).action, Action::print_config);
  EXPECT_EQ(parse_options({"--dry-run", "--config", "c", "--workload", "w"}).action, Action::dry_run);
  EXPECT_EQ(parse_options({"--prove", "ring.xml"}).action, Action::prove);
  EXPECT_EQ(parse_options({"--prove", "ring.xml"}).subject, "ring.xml");
  const Options plan = parse_options(
      {"--show-schedule", "chain", "--kind", "reduce", "--ranks", "8", "--root", "3", "--out", "x.svg"});
  EXPECT_EQ(plan.action, Action::show_schedule);
  EXPECT_EQ(plan.subject, "chain");
  EXPECT_EQ(plan.kind, "reduce");
  EXPECT_EQ(plan.ranks, 8U);
  EXPECT_EQ(plan.root, 3U);
  EXPECT_EQ(plan.output, "x.svg");
  EXPECT_EQ(parse_options({"--write-program", "ring"}).action, Action::write_program);
  EXPECT_EQ(parse_options({"--version"}).action, Action::version);
  EXPECT_EQ(parse_options({"--help"}).action, Action::help);
  EXPECT_EQ(parse_options({"--schema"}).action, Action::schema);
  EXPECT_EQ(parse_options({"--schema"}).subject, "");
  EXPECT_EQ(parse_options({"--schema", "workload"}).subject, "workload");
  EXPECT_EQ(parse_options({"--completion", "zsh"}).action, Action::completion);
  EXPECT_EQ(parse_options({"--completion", "zsh"}).subject, "zsh");
  EXPECT_EQ(parse_options({"--man"}).action, Action::man);
  EXPECT_TRUE(parse_options({"--config", "c", "--workload", "w", "--json", "-"}).json);
}

TEST(CommandLine, UnknownOptionsNameTheNearest) {
  EXPECT_THAT(error_of({"--confg", "x"}), HasSubstr("did you mean '--config'?"));
  EXPECT_THAT(error_of({"--worklod=x"}), HasSubstr("did you mean '--workload'?"));
  EXPECT_THAT(error_of({"--configx=abcdefgh"}),
              HasSubstr("unknown option '--configx', did you mean '--config'? (--help lists all)"));
  EXPECT_THAT(error_of({"--zzzzzzzzzz"}), HasSubstr("unknown option '--zzzzzzzzzz'"));
  EXPECT_THAT(error_of({"--conf", "x"}), HasSubstr("unknown option"));  // no guessing of prefixes
  EXPECT_THAT(error_of({"stray"}), HasSubstr("unexpected argument 'stray'"));
  EXPECT_THAT(error_of({"--schema", "cluster"}),
              HasSubstr("unexpected argument 'cluster' of --schema (allowed: workload"));
  EXPECT_THAT(error_of({"--threads", "1", "compare", "a", "b"}), HasSubstr("'compare': it comes first"));
}

TEST(CommandLine, WrongValuesSayWhatIsAllowed) {
  EXPECT_THAT(error_of({"--seed", "-1"}), HasSubstr("--seed: '-1' is not a whole number"));
  EXPECT_THAT(error_of({"--seed", "1e3"}), HasSubstr("--seed"));
  EXPECT_THAT(error_of({"--seed", "18446744073709551616"}), HasSubstr("--seed"));
  EXPECT_THAT(error_of({"--threads", "0"}), HasSubstr("0 was given, allowed is 1 to 1024"));
  EXPECT_THAT(error_of({"--threads", "1025"}), HasSubstr("1025 was given, allowed is 1 to 1024"));
  EXPECT_THAT(error_of({"--threads", "two"}), HasSubstr("--threads: 'two' is not a whole number"));
  EXPECT_THAT(error_of({"--until", "2"}), HasSubstr("--until"));
  EXPECT_THAT(error_of({"--until", "0 s"}), HasSubstr("--until"));
  EXPECT_THAT(error_of({"--until", "3 MB"}), HasSubstr("--until"));
  EXPECT_THAT(error_of({"--json", "file"}), HasSubstr("only -"));
  EXPECT_THAT(error_of({"--quiet=1"}), HasSubstr("--quiet"));
  EXPECT_THAT(error_of({"--config", ""}), HasSubstr("--config"));
  EXPECT_THAT(error_of({"--show-schedule", "ring", "--ranks", "-1"}), HasSubstr("--ranks: '-1' is not"));
  EXPECT_THAT(error_of({"--show-schedule", "ring", "--ranks", "9999999999"}), HasSubstr("too large"));
  EXPECT_THAT(error_of({"--config", "c", "--kind", "reduce"}),
              HasSubstr("--kind belongs to --show-schedule"));
  EXPECT_THAT(error_of({"--config"}), HasSubstr("--config"));
  EXPECT_THAT(error_of({"--seed", "1", "--seed", "2"}), HasSubstr("seed"));
}

TEST(CommandLine, SaysWhatIsMissing) {
  EXPECT_THAT(error_of({}), HasSubstr("--config is missing"));
  EXPECT_EQ(parse_options({"--config", "c"}).workload, "");  // the configuration may name it
  EXPECT_THAT(error_of({"--compile", "x.pb"}), HasSubstr("--workload is missing"));
  EXPECT_THAT(error_of({"--list", "--schema"}), HasSubstr("exclude each other"));
  EXPECT_THAT(error_of({"--print-config", "--list"}), HasSubstr("exclude each other"));
}

TEST(CommandLine, ADryRunMayPrintTheConfigurationToo) {
  for (const char* last : {"", "--print-config"}) {
    std::vector<std::string> words{"--dry-run", "--config", "c", "--workload", "w"};
    if (*last != 0) words.emplace_back(last);
    EXPECT_EQ(parse_options(words).action, Action::dry_run);
    EXPECT_EQ(parse_options(words).with_configuration, *last != 0);
  }
  EXPECT_THAT(error_of({"--dry-run", "--print-config", "--json", "-", "--config", "c"}),
              HasSubstr("exclude each other"));
}

TEST(CommandLine, OfARunWithTheWorthOfInformation) {
  const Options plain = parse_options({"--config", "c", "--worth"});
  EXPECT_EQ(plain.action, Action::run);
  EXPECT_TRUE(plain.worth);
  EXPECT_TRUE(plain.ages.empty());
  EXPECT_THAT(parse_options({"--worth", "ages=1ms,0,10us", "--config", "c"}).ages,
              ElementsAre(0, 10 * kMicrosecond, kMillisecond));
  EXPECT_EQ(parse_options({"--dry-run", "--worth", "--config", "c"}).action, Action::dry_run);
  EXPECT_FALSE(parse_options({"--config", "c"}).worth);
  EXPECT_THAT(error_of({"--worth", "--draw", "x.svg", "--config", "c"}),
              HasSubstr("--worth and --draw exclude"));
  EXPECT_THAT(error_of({"--worth", "--dry-run", "--print-config", "--config", "c"}),
              HasSubstr("--worth and --print-config exclude"));
  EXPECT_THAT(error_of({"--worth", "queues", "--config", "c"}), HasSubstr("only ages=LIST may follow"));
  EXPECT_THAT(error_of({"--worth", "ages=", "--config", "c"}), HasSubstr("--worth ages"));
  EXPECT_THAT(error_of({"--worth", "ages=1us,queues", "--config", "c"}), HasSubstr("'queues'"));
  EXPECT_THAT(error_of({"--worth", "ages=-1us", "--config", "c"}), HasSubstr("is negative"));
  EXPECT_THAT(error_of({"--worth", "ages=1us,1000ns", "--config", "c"}), HasSubstr("1 us was given twice"));
  EXPECT_THAT(error_of({"ages=1us", "--config", "c"}), HasSubstr("unexpected argument 'ages=1us'"));
}

TEST(CommandLine, OfARunIsThatOfItsOptions) {
  const std::vector<std::string> words{
      "--plugin",     "p.so",   "--config", "c",         "--workload", "w",       "--set", "a=1 MB", "--set",
      "workload.b=2", "--seed", "7",        "--threads", "3",          "--until", "2 ms",  "--out",  "d"};
  EXPECT_EQ(arguments_of_run(parse_options(words)), words);
  EXPECT_THAT(arguments_of_run(parse_options({"--config", "c", "--worth", "--quiet"})),
              ElementsAre("--config", "c"));
}

TEST(CommandLine, HelpFitsTheWidth) {
  for (const std::size_t width : {60u, 80u, 120u}) {
    std::istringstream lines(usage(width));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), width) << line;
  }
}

TEST(CommandLine, AnyWordsAreParsedOrRefused) {
  EXPECT_TRUE(rc::check([](const std::vector<std::string>& words) {
    try {
      parse_options(words);
    } catch (const Error& error) {
      RC_ASSERT(error.code() == ExitCode::usage);
    }
  }));
}

TEST(CommandLine, CanBeTypedAgain) {
  EXPECT_EQ(quote_command({"--set", "a=1 MB", "it's", "", "plain.yaml"}),
            "netsim --set 'a=1 MB' 'it'\\''s' '' plain.yaml");
}

}  // namespace
}  // namespace netsim::options_test
