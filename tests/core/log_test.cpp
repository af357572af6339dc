// Does a log write what its levels ask for, warnings once, and is nothing of it global?
#include "sim/core/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/errors.h"

namespace netsim::log_test {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& text) {
  try {
    (void)read_log_levels(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Log, WritesWhatTheLevelOfTheRoomAsksFor) {
  Log log(read_log_levels("warn,transport=debug,core=off"));
  log.info(LogTopic::topology, "too little");
  log.warn(LogTopic::topology, "a loop");
  log.write(LogTopic::transport, LogLevel::debug, "DCQCN");
  log.write(LogTopic::transport, LogLevel::trace, "too little");
  log.write(LogTopic::core, LogLevel::error, "nobody wants it");
  EXPECT_EQ(log.text(), "warning topology: a loop\ndebug transport: DCQCN\n");
  EXPECT_TRUE(log.writes(LogTopic::transport, LogLevel::debug));
  EXPECT_FALSE(log.writes(LogTopic::transport, LogLevel::trace));
  EXPECT_FALSE(log.writes(LogTopic::core, LogLevel::error));
}

TEST(Log, EachWarningOnceAndEveryDecision) {
  Log log(read_log_levels("info"));
  for (int i = 0; i < 3; ++i) {
    log.warn(LogTopic::network, "full");
    log.info(LogTopic::network, "chosen");
  }
  log.warn(LogTopic::transport, "full");
  EXPECT_EQ(log.text(),
            "warning network: full\ninfo network: chosen\ninfo network: chosen\ninfo network: chosen\n"
            "warning transport: full\n");
}

TEST(Log, ShowsWhatATerminalWouldObeyAndTakesBracesAsTheyAre) {
  Log log;
  log.warn(LogTopic::workload, "two\nlines \x1b[2J {} {0}");
  EXPECT_EQ(log.text(), "warning workload: two\\nlines \\x1b[2J {} {0}\n");
}

TEST(Log, TwoLogsDoNotKnowOfEachOther) {
  Log one(read_log_levels("info")), two(read_log_levels("error"));
  one.info(LogTopic::core, "one");
  two.info(LogTopic::core, "two");
  EXPECT_EQ(one.text(), "info core: one\n");
  EXPECT_EQ(two.text(), "");
}

TEST(Log, RefusesUnknownLevelsAndTopics) {
  EXPECT_EQ(
      error_of("inf"),
      "--log: unknown level 'inf', did you mean 'info'? (allowed: trace, debug, info, warn, error, off)");
  EXPECT_THAT(error_of("info,transprot=off"),
              HasSubstr("unknown topic 'transprot', did you mean 'transport'?"));
  EXPECT_THAT(error_of("info,transport"), HasSubstr("TOPIC=LEVEL is allowed"));
  EXPECT_THAT(error_of("core="), HasSubstr("unknown level ''"));
  EXPECT_EQ(error_of("core=info"), "no error");
}

}  // namespace
}  // namespace netsim::log_test
