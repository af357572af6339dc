// Reads the lines `KEY value ...` of a configuration of the HPCC family of ns-3 simulators.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/units.h"

namespace netsim {

// Ns3Settings: the lines by key, with typed readings. All errors are ConfigErrors.
class Ns3Settings {
 public:
  // Throws a ConfigError for unknown keys and keys that are given twice. The text must outlive this.
  Ns3Settings(std::string_view text, const std::string& path);

  bool has(const std::string& key) const { return lines_.count(key) != 0; }
  // Returns the place of the key, or of the file if the key is missing.
  Place place(const std::string& key) const;
  // Throws a ConfigError at the key's place.
  [[noreturn]] void fail(const std::string& key, const std::string& message) const;

  // Return the one value of a key, in its range. integer(), flag() and real() return `absent` where the key
  // is missing; the others refuse that.
  std::string text(const std::string& key) const { return std::string(only(key).text); }
  std::int64_t integer(const std::string& key, std::int64_t absent, Range<std::int64_t> range) const {
    return has(key) ? as_config([&] { return reader_.integer(only(key), key, range); }) : absent;
  }
  bool flag(const std::string& key, bool absent) const { return integer(key, absent ? 1 : 0, {0, 1}) != 0; }
  double real(const std::string& key, double absent, Range<double> range) const {
    return has(key) ? as_config([&] { return reader_.real(only(key), key, range); }) : absent;
  }
  Time time(const std::string& key, Time unit, Range<Time> range) const {
    return as_config([&] { return reader_.time_in(only(key), key, unit, range); });
  }
  BitRate rate(const std::string& key) const;
  // Returns the values by link rate of a line `KEY n (bps value)*`.
  std::map<BitRate, double> by_rate(const std::string& key) const;
  // Returns the `count` values of a key.
  std::vector<Word> values(const std::string& key, std::size_t count) const;
  // Returns the reader of the values' words.
  const TextReader& reader() const { return reader_; }

 private:
  void add(std::vector<Word> words);
  const Word& only(const std::string& key) const;

  TextReader reader_;
  Place whole_;
  std::map<std::string, std::vector<Word>> lines_;  // by key: the key and its values
};

}  // namespace netsim
