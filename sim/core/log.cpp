#include "sim/core/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <mutex>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr std::array<const char*, kLogTopics> kTopicNames = {"core",      "topology",   "network",
                                                             "transport", "scheduling", "collectives",
                                                             "workload",  "report",     "simulation"};
constexpr std::array<const char*, 6> kLevelNames = {"trace", "debug", "info", "warn", "error", "off"};

constexpr std::size_t index_of(LogTopic topic) { return static_cast<std::size_t>(topic); }

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::trace:
      return spdlog::level::trace;
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

// Returns the index of `word` among the names. Throws ConfigError with the nearest name if it is none of
// them.
template <class Names>
std::size_t find_name(const std::string& word, const Names& names, const char* what) {
  const std::vector<std::string> all(names.begin(), names.end());
  std::string allowed;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] == word) return i;
    append_item(allowed, all[i]);
  }
  throw ConfigError(std::string("--log: unknown ") + what + " '" + word + "'" + did_you_mean(word, all) +
                    " (allowed: " + allowed + ")");
}

LogLevel level_named(const std::string& word) {
  return static_cast<LogLevel>(find_name(word, kLevelNames, "level"));
}

}  // namespace

const char* to_string(LogTopic topic) { return kTopicNames[index_of(topic)]; }

LogLevels read_log_levels(const std::string& text) {
  LogLevels levels;
  std::istringstream words(text);
  std::string word;
  for (bool first = true; std::getline(words, word, ','); first = false) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos && first) {
      levels.of.fill(level_named(word));
    } else if (equals == std::string::npos) {
      throw ConfigError("--log: '" + word + "' was given, TOPIC=LEVEL is allowed after the first level");
    } else {
      levels.of[find_name(word.substr(0, equals), kTopicNames, "topic")] =
          level_named(word.substr(equals + 1));
    }
  }
  return levels;
}

struct Log::State {
  LogLevels levels;
  std::ostringstream lines;
  std::vector<spdlog::logger> topics;
  mutable std::mutex mutex;
  std::set<std::tuple<LogTopic, LogLevel, std::string>> warned;
};

// The loggers belong to this log alone: none is in spdlog's registry, which is global.
Log::Log(const LogLevels& levels, bool to_stderr) : state_(std::make_unique<State>()) {
  state_->levels = levels;
  const auto kept = std::make_shared<spdlog::sinks::ostream_sink_st>(state_->lines);
  kept->set_pattern("%l %n: %v");
  std::vector<spdlog::sink_ptr> sinks = {kept};
  if (to_stderr) {
    sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_st>());
    sinks.back()->set_pattern("netsim: %H:%M:%S.%e %l %n: %v");
  }
  for (std::size_t topic = 0; topic < kLogTopics; ++topic) {
    spdlog::logger& logger = state_->topics.emplace_back(kTopicNames[topic], sinks.begin(), sinks.end());
    logger.set_level(spdlog_level(levels.of[topic]));
  }
}

Log::~Log() = default;

bool Log::writes(LogTopic topic, LogLevel level) const {
  return level != LogLevel::off && level >= state_->levels.at(topic);
}

void Log::write(LogTopic topic, LogLevel level, const std::string& text) {
  if (!writes(topic, level)) return;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (level >= LogLevel::warn && !state_->warned.emplace(topic, level, text).second) return;
  state_->topics[index_of(topic)].log(spdlog_level(level), spdlog::string_view_t(printable(text)));
}

std::string Log::text() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->lines.str();
}

}  // namespace netsim
