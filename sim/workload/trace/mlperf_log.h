// MlperfLog: what a log of MLPerf Training says of a run. Its lines have `:::MLLOG {...}` behind any text;
// the form is that of mllog.py in github.com/mlcommons/logging.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/input_set.h"

namespace netsim {

class MlperfLog {
 public:
  // Entry: a value with its place in the file.
  struct Entry {
    std::string text;  // of a text
    double number = 0;
    bool is_number = false;
    Place place;
  };

  // Reads the file. Throws InputError for a file without a line of MLPerf that is whole.
  explicit MlperfLog(const InputSet::File& file);

  const std::string& path() const { return path_; }
  // Returns the first value of a key such as "global_batch_size", or null.
  const Entry* find(std::string_view key) const;
  // Returns the positive integer of a key, or 0 where the log has none. Throws InputError for another value.
  std::int64_t count(std::string_view key) const;
  // Return the median time of a training step in seconds, and how it was found. It is 0 if the log has none.
  double step_seconds() const;
  std::string step_source() const;
  std::uint64_t damaged() const { return damaged_; }  // lines of MLPerf that are no JSON

 private:
  // Block: the begin of a block of training, and the samples before it.
  struct Block {
    double time = 0;  // ms
    double samples = 0;
  };
  void take_block(const std::string& key, double time, double samples);

  std::string path_;
  std::map<std::string, Entry, std::less<>> values_;
  std::vector<double> step_times_, block_step_times_, rates_, block_rates_;  // s, s, samples/s, samples/s
  std::optional<Block> block_;
  std::uint64_t damaged_ = 0;
};

}  // namespace netsim
