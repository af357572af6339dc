// ChakraInput: the files of a Chakra trace by their use: one trace per rank, NAME.R.et, the communicators,
// and ASTRA-sim's logical dimensions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/input_set.h"

namespace netsim {

class ChakraInput {
 public:
  // RankFile: the trace of one rank. Its name is STEM.RANK and an ending, with .gz if it is packed.
  struct RankFile {
    InputSet::File file;
    std::string stem, ending;
    RankId rank = 0;
    bool json = false;
  };

  // One file stands for all files NAME.*.et beside it, and for NAME.json if it lists communicators. Throws
  // InputError for a rank whose trace is missing, for files of several traces, and for wrong lists.
  explicit ChakraInput(const InputSet& input);

  // The traces, by rank.
  const std::vector<RankFile>& ranks() const { return ranks_; }
  // The communicators of `{"1": [0, 1], ...}`, by the name that nodes give them.
  const std::map<std::string, std::vector<RankId>>& groups() const { return groups_; }
  // The sizes of `{"logical-dims": ["8", "2"]}`; the first dimension varies fastest. Empty: not given.
  const std::vector<std::uint32_t>& dimensions() const { return dimensions_; }
  std::string name() const;

 private:
  void add(const InputSet::File& file);
  void check(const InputSet& input, std::size_t i) const;
  void read_groups(const InputSet::File& file);
  void read_dimensions(const InputSet::File& file);

  std::vector<RankFile> ranks_;
  std::map<std::string, std::vector<RankId>> groups_;
  std::vector<std::uint32_t> dimensions_;
};

}  // namespace netsim
