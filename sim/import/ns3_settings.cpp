#include "sim/import/ns3_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/core/config.h"
#include "sim/core/text.h"
#include "sim/import/ns3_config.h"
#include "sim/topology/ethernet.h"

namespace netsim {
namespace {

// Keys with an effect. kWithoutEffect holds keys that only name or time output, and keys that change nothing
// in the model (DATA_RATE, LINK_DELAY, PAUSE_TIME, USE_DYNAMIC_PFC_THRESHOLD, L2_CHUNK_SIZE, PINT_*).
constexpr std::array kKeys = {"TOPOLOGY_FILE",
                              "FLOW_FILE",
                              "SIMULATOR_STOP_TIME",
                              "CC_MODE",
                              "ENABLE_QCN",
                              "PACKET_PAYLOAD_SIZE",
                              "L2_ACK_INTERVAL",
                              "L2_BACK_TO_ZERO",
                              "ALPHA_RESUME_INTERVAL",
                              "RATE_DECREASE_INTERVAL",
                              "CLAMP_TARGET_RATE",
                              "RP_TIMER",
                              "EWMA_GAIN",
                              "FAST_RECOVERY_TIMES",
                              "RATE_AI",
                              "RATE_HAI",
                              "MIN_RATE",
                              "DCTCP_RATE_AI",
                              "ERROR_RATE_PER_LINK",
                              "HAS_WIN",
                              "GLOBAL_T",
                              "VAR_WIN",
                              "FAST_REACT",
                              "U_TARGET",
                              "MI_THRESH",
                              "INT_MULTI",
                              "MULTI_RATE",
                              "SAMPLE_FEEDBACK",
                              "RATE_BOUND",
                              "ACK_HIGH_PRIO",
                              "LINK_DOWN",
                              "KMAX_MAP",
                              "KMIN_MAP",
                              "PMAX_MAP",
                              "BUFFER_SIZE",
                              "NIC_TOTAL_PAUSE_TIME"};
constexpr std::array kWithoutEffect = {
    "TRACE_FILE",      "TRACE_OUTPUT_FILE", "FCT_OUTPUT_FILE", "PFC_OUTPUT_FILE", "ENABLE_TRACE",
    "QLEN_MON_FILE",   "QLEN_MON_START",    "QLEN_MON_END",    "BW_MON_FILE",     "RATE_MON_FILE",
    "CNP_MON_FILE",    "MON_START",         "MON_END",         "QP_MON_INTERVAL", "QLEN_MON_INTERVAL",
    "BW_MON_INTERVAL", "DATA_RATE",         "LINK_DELAY",      "PAUSE_TIME",      "USE_DYNAMIC_PFC_THRESHOLD",
    "L2_CHUNK_SIZE",   "PINT_LOG_BASE",     "PINT_PROB"};

template <class List>
bool contains(const List& list, std::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

}  // namespace

bool is_ns3_config(std::string_view text) {
  TextReader reader(text, "");
  std::vector<Word> words;
  while (reader.next_line(words)) {
    if (words[0].text.starts_with('#')) continue;
    return words.size() > 1 && (contains(kKeys, words[0].text) || contains(kWithoutEffect, words[0].text));
  }
  return false;
}

Ns3Settings::Ns3Settings(std::string_view text, const std::string& path)
    : reader_(text, path), whole_{path, 0, 0, ""} {
  std::vector<Word> words;
  while (reader_.next_line(words)) {
    if (!words[0].text.starts_with('#')) add(words);
  }
}

Place Ns3Settings::place(const std::string& key) const {
  const auto it = lines_.find(key);
  return it != lines_.end() ? reader_.place(it->second.front()) : whole_;
}

void Ns3Settings::fail(const std::string& key, const std::string& message) const {
  throw ConfigError(place(key), message);
}

BitRate Ns3Settings::rate(const std::string& key) const {
  return as_config([&] { return reader_.rate(only(key), key, {0, kLinkRates.maximum}); });
}

std::map<BitRate, double> Ns3Settings::by_rate(const std::string& key) const {
  if (!has(key)) fail(key, "'" + key + "' is missing: its value for each link speed");
  const std::vector<Word>& words = lines_.at(key);
  return as_config([&] {
    if (words.size() < 2) reader_.fail(words[0], key + " has no values");
    const std::int64_t count = reader_.integer(words[1], "the number of speeds", {1, 1000});
    if (static_cast<std::int64_t>(words.size()) != 2 + 2 * count) {
      reader_.fail(words[1], fmt::format("{} pairs of speed and value are expected", count));
    }
    std::map<BitRate, double> result;
    for (std::size_t i = 2; i < words.size(); i += 2) {
      const BitRate rate = reader_.integer(words[i], "the speed", {kLinkRates.minimum, kLinkRates.maximum});
      result[rate] = reader_.real(words[i + 1], key, {0, 1e9});
    }
    return result;
  });
}

std::vector<Word> Ns3Settings::values(const std::string& key, std::size_t count) const {
  const std::vector<Word>& words = lines_.at(key);
  if (words.size() != count + 1) fail(key, fmt::format("{} values are expected", count));
  return {words.begin() + 1, words.end()};
}

void Ns3Settings::add(std::vector<Word> words) {
  // Values may be explained in braces, as in config_doc.txt.
  const auto comment = std::find_if(words.begin(), words.end(), [](const Word& word) {
    return word.text.starts_with('{') || word.text.starts_with('#');
  });
  words.erase(comment, words.end());
  if (words.empty()) return;
  const std::string key(words[0].text.substr(0, 60));
  const Place at = reader_.place(words[0]);
  if (!contains(kKeys, key)) {
    if (contains(kWithoutEffect, key)) return;
    std::vector<std::string> names(kKeys.begin(), kKeys.end());
    names.insert(names.end(), kWithoutEffect.begin(), kWithoutEffect.end());
    throw ConfigError(at, "unknown key '" + key + "'" + did_you_mean(key, names));
  }
  if (!lines_.emplace(key, std::move(words)).second) throw ConfigError(at, "'" + key + "' is given twice");
}

const Word& Ns3Settings::only(const std::string& key) const {
  const auto it = lines_.find(key);
  if (it == lines_.end()) fail(key, "'" + key + "' is missing");
  if (it->second.size() != 2) fail(key, "one value is expected");
  return it->second[1];
}

}  // namespace netsim
